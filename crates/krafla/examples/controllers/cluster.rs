//! A cluster in one process whose nodes only pretend, and clients that count what they are asked.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use krafla_api::{Key, Kind};
use krafla_apiserver::admit::{Admission, Volcano};
use krafla_apiserver::gc::Collector;
use krafla_apiserver::store::Store;
use krafla_apiserver::{Api, LocalClient, SystemEnv};
use krafla_cluster::{Client, ClientError, Event, EventType, Listed, Step, Written};
use krafla_node::simulated::SimulatedNodes;
use krafla_plan::{Controller, Object};
use krafla_runtime::{Engine, SystemClock};
use krafla_scheduler::Scheduler;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::Failure;

const WORKERS: usize = 8;
/// How many objects are created at once.
const CREATED_AT_ONCE: usize = 256;
/// When nothing was asked for so long, the controllers are at rest.
const REST: Duration = Duration::from_millis(3000);

/// Runs controllers until the future is dropped.
pub(crate) async fn run(client: Arc<Counted>, controllers: Vec<Box<dyn Controller>>) {
    krafla_runtime::run(Engine::new(controllers), client, Arc::new(SystemClock), WORKERS).await;
}

/// Stores objects of a kind and their status, before anybody looks.
pub(crate) async fn prepare(
    store: &Store,
    kind: Kind,
    objects: impl Iterator<Item = Value>,
    status: &Value,
) -> Result<(), Failure> {
    let api = api(store.clone());
    api.bootstrap().await?;
    let client = &LocalClient::new(api);
    let stored = objects.map(|object| async move {
        let Written { key, uid, .. } = client.write(&Step::Create { kind, object }).await?;
        let patch = status.clone();
        client.write(&Step::Patch { kind, key, uid, revision: None, of_status: true, patch }).await
    });
    join_all(stored).await.into_iter().try_for_each(|written| written.map(drop))?;
    Ok(())
}

fn api(store: Store) -> Api {
    Api::new(store, Arc::new(SystemEnv), Admission::default().with(Volcano::default()))
}

/// Everything but HTTP, with its requests counted.
pub(crate) struct Cluster {
    client: LocalClient,
    pub(crate) controllers: Arc<Counted>,
    pub(crate) scheduler: Arc<Counted>,
    pub(crate) nodes: Arc<Counted>,
    pub(crate) tasks: JoinSet<()>,
}

impl Cluster {
    /// Starts everything on what is stored.
    pub(crate) async fn start(store: Store) -> Result<Cluster, Failure> {
        let api = api(store);
        api.bootstrap().await?;
        // As in `krafla up`, they share what they have read.
        let client = LocalClient::new(api.clone());
        let [controllers, scheduler, nodes] = [(); 3].map(|()| Counted::new(client.clone()));
        let mut tasks = JoinSet::new();
        tasks.spawn(api.clone().run_namespaces());
        tasks.spawn(Collector::new(api.clone()).run());
        tasks.spawn(run(controllers.clone(), krafla_plan::controllers()));
        tasks.spawn(run(scheduler.clone(), vec![Box::new(Scheduler::default())]));
        let simulated =
            SimulatedNodes::new(nodes.clone(), "nodes=100,cpu=1000,memory=10Ti,pods=1000".parse()?);
        tasks.spawn(async move { simulated.run(std::future::pending()).await });
        Ok(Cluster { client, controllers, scheduler, nodes, tasks })
    }

    /// Stores objects of a kind, all at once.
    pub(crate) async fn create(
        &self,
        kind: Kind,
        objects: impl Iterator<Item = Value>,
    ) -> Result<(), Failure> {
        // So many at once: ten thousand manifests in memory would be measured with the rest.
        let create = |object| async move { self.client.write(&Step::Create { kind, object }).await };
        let created = stream::iter(objects.map(create)).buffer_unordered(CREATED_AT_ONCE);
        created.try_for_each(|_| std::future::ready(Ok(()))).await?;
        Ok(())
    }

    /// Waits until so many objects of a kind have come to something, or are gone again after that.
    pub(crate) async fn wait_for(
        &self,
        kind: Kind,
        n_objects: u64,
        has_come: impl Fn(&Object) -> bool,
    ) -> Result<(), Failure> {
        let is_there = |json: &Bytes| {
            let object = Object::decode(kind, json);
            has_come(&object).then_some(object.meta.key)
        };
        let listed = self.client.list(kind).await?;
        let mut there: HashSet<Key> = listed.items.iter().filter_map(is_there).collect();
        let mut events = self.client.watch(kind, listed.revision);
        while (there.len() as u64) < n_objects {
            let event = events.next().await.ok_or("the watch ended")??;
            there.extend(is_there(&event.object));
        }
        Ok(())
    }

    /// Waits until there is nothing left of a kind.
    pub(crate) async fn wait_until_gone(&self, kind: Kind) -> Result<(), Failure> {
        let listed = self.client.list(kind).await?;
        let key = |json: &Bytes| Object::decode(kind, json).meta.key;
        let mut left: HashSet<Key> = listed.items.iter().map(key).collect();
        let mut events = self.client.watch(kind, listed.revision);
        while !left.is_empty() {
            let event = events.next().await.ok_or("the watch ended")??;
            match event.event_type {
                EventType::Deleted => left.remove(&key(&event.object)),
                EventType::Added => left.insert(key(&event.object)),
                EventType::Modified | EventType::Bookmark => false,
            };
        }
        Ok(())
    }
}

/// A client that counts what it is asked.
pub(crate) struct Counted {
    inner: LocalClient,
    writes: AtomicU64,
    requests: AtomicU64,
}

impl Counted {
    pub(crate) fn new(inner: LocalClient) -> Arc<Counted> {
        Arc::new(Counted { inner, writes: AtomicU64::new(0), requests: AtomicU64::new(0) })
    }

    /// Returns when nothing has been asked for a while.
    pub(crate) async fn rest(&self) {
        let mut before = u64::MAX;
        loop {
            let now = self.requests.load(Ordering::Relaxed);
            if now == before {
                return;
            }
            before = now;
            tokio::time::sleep(REST).await;
        }
    }

    /// How many writes were made, but for Events.
    pub(crate) fn n_writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    fn count(&self, counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Client for Counted {
    fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
        self.count(&self.requests);
        self.inner.list(kind)
    }

    fn watch(&self, kind: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>> {
        self.count(&self.requests);
        self.inner.watch(kind, revision)
    }

    fn get(&self, kind: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
        self.count(&self.requests);
        self.inner.get(kind, key)
    }

    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
        self.count(&self.requests);
        // What is said for people is not the work.
        if step.kind() != Kind::Event {
            self.count(&self.writes);
        }
        self.inner.write(step)
    }
}
