//! The server: the store, the API and the client that ship, in memory and in virtual time.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use futures_util::future::FutureExt;
use krafla_api::{Key, Kind, Uid};
use krafla_apiserver::admit::{Admission, Volcano};
use krafla_apiserver::env::Env;
use krafla_apiserver::gc::{Collector, Deed};
use krafla_apiserver::store::{ResourceId, Store, Watcher};
use krafla_apiserver::{Api, LocalClient};
use krafla_cluster::{Client, ClientError, Listed, Propagation, Step, Written};
use serde_json::{Value, json};

use crate::clock::{Clock, Surroundings};

/// The server.
pub(crate) struct Server {
    /// Where everything is.
    pub(crate) store: Store,
    api: Api,
    client: Arc<LocalClient>,
    /// Where its time and identities come from, if the world knows.
    surroundings: Option<Arc<Surroundings>>,
}

/// The node of every world.
const NODE: &str = "node-1";

/// Identities below this belong to what every world begins with.
const FIRST_IDENTITY: u64 = 1000;

/// A new cluster with one node: what every world begins with. It is made once, and each world gets its own fork.
static NEW_CLUSTER: LazyLock<Api> =
    LazyLock::new(|| new_cluster(at_the_start(), Admission::default().with(Volcano::default())));

fn at_the_start() -> Arc<dyn Env> {
    Arc::new(Surroundings::new(Clock::default(), 0))
}

/// A new cluster with one node, in these surroundings.
pub(crate) fn new_cluster(env: Arc<dyn Env>, admission: Admission) -> Api {
    let api = Api::new(Store::in_memory(), env, admission);
    let bootstrapped = at_once(api.bootstrap());
    debug_assert!(matches!(bootstrapped, Some(Ok(()))), "a new cluster can be made: {bootstrapped:?}");
    let server = Server::of(api.clone());
    let made = server.create(Kind::Node, node());
    // A new node is tainted as not ready until its agent reports.
    let ready = made
        .and_then(|()| server.patch(Kind::Node, &Key::new("", NODE), json!({ "spec": { "taints": null } })));
    debug_assert!(ready.is_ok(), "a node can be made: {ready:?}");
    api
}

impl Server {
    /// A new cluster, in the time of this clock.
    pub(crate) fn new(clock: &Clock) -> Server {
        Server::forked(&NEW_CLUSTER, clock, FIRST_IDENTITY)
    }

    /// The same cluster in the time of another clock: what happens to one does not happen to the other.
    pub(crate) fn fork(&self, clock: &Clock) -> Server {
        let n_identities = self.n_identities().unwrap_or(FIRST_IDENTITY);
        Server::forked(&self.api, clock, n_identities)
    }

    fn forked(api: &Api, clock: &Clock, n_identities: u64) -> Server {
        let surroundings = Arc::new(Surroundings::new(clock.clone(), n_identities));
        Server { surroundings: Some(surroundings.clone()), ..Server::of(api.fork(surroundings)) }
    }

    /// How many identities have been given so far, if the world knows.
    pub(crate) fn n_identities(&self) -> Option<u64> {
        self.surroundings.as_ref().map(|surroundings| surroundings.n_identities())
    }

    /// A new cluster that lets every object in as it is.
    pub(crate) fn without_admission(clock: &Clock) -> Server {
        static NEW_CLUSTER: LazyLock<Api> =
            LazyLock::new(|| new_cluster(at_the_start(), Admission::default()));
        Server::forked(&NEW_CLUSTER, clock, FIRST_IDENTITY)
    }

    /// The server behind an API.
    pub(crate) fn of(api: Api) -> Server {
        let (store, client) = (api.store().clone(), Arc::new(LocalClient::new(api.clone())));
        Server { store, api, client, surroundings: None }
    }

    /// The client that processes get, if nothing goes wrong.
    pub(crate) fn client(&self) -> Arc<dyn Client> {
        self.client.clone()
    }

    /// All objects of a kind.
    pub(crate) fn list(&self, kind: Kind) -> Option<Listed> {
        at_once(self.client.list(kind))?.ok()
    }

    /// What happens to a kind from now on.
    pub(crate) fn watch(&self, kind: Kind) -> Option<Watcher> {
        self.store.watch(&resource(kind), self.store.revision()).ok()
    }

    /// Makes a write.
    pub(crate) fn write(&self, step: &Step) -> Result<Written, ClientError> {
        let no_answer = || ClientError::Unknown("a store in memory answers at once".to_owned());
        at_once(self.client.write(step)).unwrap_or_else(|| Err(no_answer()))
    }

    /// Stores a new object.
    pub(crate) fn create(&self, kind: Kind, object: Value) -> Result<(), ClientError> {
        self.write(&Step::Create { kind, object }).map(drop)
    }

    /// Stores a new object of a kind with which no controller works.
    #[allow(clippy::unwrap_used, reason = "a record that cannot be played ends its test")]
    pub(crate) fn create_other(&self, namespace: &str, object: Value) {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let table = self.api.registry().table();
        let resource = table.of_manifest(text("apiVersion"), text("kind")).unwrap().clone();
        let options = krafla_apiserver::ops::WriteOptions::default();
        at_once(self.api.create(&resource, namespace, object, &options)).unwrap().unwrap();
    }

    /// Changes an object of this name, whoever it is.
    pub(crate) fn patch(&self, kind: Kind, key: &Key, patch: Value) -> Result<(), ClientError> {
        let (key, uid) = (key.clone(), self.uid(kind, key)?);
        self.write(&Step::Patch { kind, key, uid, revision: None, of_status: false, patch }).map(drop)
    }

    /// Removes an object of this name, whoever it is.
    pub(crate) fn delete(&self, kind: Kind, key: &Key) -> Result<(), ClientError> {
        self.remove(kind, key, Propagation::Background, None)
    }

    /// Removes an object of this name, whoever it is, and gives it no time to end.
    pub(crate) fn delete_by_force(&self, kind: Kind, key: &Key) -> Result<(), ClientError> {
        self.remove(kind, key, Propagation::Background, Some(0))
    }

    /// Removes an object of this name, whoever it is, once its children are gone.
    pub(crate) fn delete_in_foreground(&self, kind: Kind, key: &Key) -> Result<(), ClientError> {
        self.remove(kind, key, Propagation::Foreground, None)
    }

    /// Removes an object of this name, whoever it is, and lets its children live on.
    pub(crate) fn orphan(&self, kind: Kind, key: &Key) -> Result<(), ClientError> {
        self.remove(kind, key, Propagation::Orphan, None)
    }

    fn remove(
        &self,
        kind: Kind,
        key: &Key,
        propagation: Propagation,
        grace_seconds: Option<i64>,
    ) -> Result<(), ClientError> {
        let (key, uid) = (key.clone(), self.uid(kind, key)?);
        self.write(&Step::Delete { kind, key, uid, revision: None, propagation, grace_seconds }).map(drop)
    }

    /// Who has this name now.
    pub(crate) fn uid(&self, kind: Kind, key: &Key) -> Result<Uid, ClientError> {
        let entry = self.store.get(&resource(kind), key);
        entry.map(|entry| entry.uid.clone()).ok_or_else(|| ClientError::not_found(format!("{kind} {key}")))
    }

    /// The garbage collector that ships.
    pub(crate) fn collector(&self) -> Collector {
        Collector::new(self.api.clone())
    }

    /// The garbage collector of the server from which this one was forked, as it goes on here.
    pub(crate) fn collector_like(&self, other: &Collector) -> Collector {
        other.fork(self.api.clone())
    }
}

/// Lets the garbage collector do what is to be done now, and says what that was.
pub(crate) fn collect(collector: &mut Collector) -> Vec<Deed> {
    at_once(collector.step()).unwrap_or_default()
}

/// Where objects of a kind are stored.
pub(crate) fn resource(kind: Kind) -> ResourceId {
    static RESOURCES: LazyLock<BTreeMap<Kind, ResourceId>> = LazyLock::new(|| {
        let of_kind = |kind: Kind| (kind, ResourceId::from(kind.info().qualified_plural().as_str()));
        Kind::ALL.into_iter().map(of_kind).collect()
    });
    RESOURCES.get(&kind).cloned().unwrap_or_else(|| ResourceId::from(""))
}

/// The answer of a future that waits for nobody.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    future.now_or_never()
}

fn node() -> Value {
    let amounts = json!({ "cpu": "16", "memory": "64Gi", "pods": "110" });
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": NODE },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })
}
