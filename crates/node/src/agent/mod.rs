//! The node: takes the pods that are bound to it, and makes them run.
//!
//! ```text
//!   server ── pods ──> Pods <── records ── supervisor
//!                       │ wake                ^
//!                       v                     │ start, stop
//!                  one worker per pod: decide, carry out, report
//!                       └── status, confirmation ──> server
//! ```

mod addresses;
mod claims;
mod feed;
mod hosts;
mod isolation;
mod launch;
mod lease;
mod link;
mod links;
mod pods;
mod refuse;
mod register;
mod reports;
mod sandbox;
mod services;
mod sources;
mod worker;

pub use sandbox::NO_MOUNTS;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use krafla_api::{Key, Kind, Quantity, Uid};
use krafla_cluster::{Client, ClientError, Event, EventType};
use krafla_runtime::{Clock, SystemClock};
use parking_lot::Mutex;
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process};
use tokio::process::Child;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use addresses::Addresses;
use claims::Claims;
pub(crate) use claims::look_after as look_after_claims;
use hosts::Hosts;
use isolation::Isolation;
pub(crate) use launch::Context;
pub(crate) use link::Link;
use links::Links;
pub(crate) use pods::View;
use pods::{Pods, Taken};
use refuse::Glance;
pub(crate) use register::{Presence, register};
pub use register::{capacity, forget};
pub(crate) use reports::{backoff, changed_fields};
use sources::Readers;
use worker::Worker;

use crate::access::ServerAccess;
use crate::container::ContainerId;
use crate::exec::Beside;
use crate::pod::Pod;
use crate::supervisor::protocol::Request;
use crate::supervisor::{KILL_ALL, Mode};

/// How long to wait after a failed list, a broken watch or a failed registration.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// How many pods the node takes unless it is told otherwise. Each container needs three open files.
const PODS_MAX: u32 = 1000;

/// What a node has to know.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The name of the Node object.
    pub name: String,
    /// Where containers' records, logs and volumes are kept. Nobody else may use it.
    pub root: PathBuf,
    /// Where containers run that do not say where.
    pub workdir: PathBuf,
    /// The command that runs [`crate::supervisor::main`]; two arguments are added to it.
    pub supervisor: Vec<OsString>,
    /// What happens to the containers when this process dies.
    pub mode: Mode,
    /// What containers inherit: by default all that this process has, because they are ordinary processes of
    /// its user.
    pub env: Vec<(String, String)>,
    /// How many files containers may have open: by default as many as this process may now. A server raises that for itself later.
    pub open_files: Option<u64>,
    /// How many pods the node takes.
    pub pods_max: u32,
    /// Whether containers may have a view of the file system of their own, if this machine allows it. Without
    /// it volumes are not at their mountPath, and pods do not know each other's names.
    pub isolation: bool,
    /// What the node has, where that is not to be what the machine has.
    pub capacity: BTreeMap<String, Quantity>,
    /// Whether Events tell also of what goes well. Each is a write for each container, so only where people look at them.
    pub tells: bool,
}

impl NodeConfig {
    /// A node with everything by default but the names and places.
    pub fn new(
        name: &str,
        root: PathBuf,
        workdir: PathBuf,
        supervisor: Vec<OsString>,
        mode: Mode,
    ) -> NodeConfig {
        // What is not UTF-8 can not be sent as JSON; no program that batch jobs use has such variables.
        let env =
            std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        NodeConfig {
            name: name.to_owned(),
            root,
            workdir,
            supervisor,
            mode,
            env: env.collect(),
            open_files: getrlimit(Resource::Nofile).current,
            pods_max: PODS_MAX,
            isolation: true,
            capacity: BTreeMap::new(),
            tells: false,
        }
    }

    pub(crate) fn pods(&self) -> PathBuf {
        self.root.join("pods")
    }
}

/// Sends a signal to a process. One that has ended by now need not be told.
fn signal(process: &Child, signal: Signal) {
    let pid = process.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
    let _ = pid.map(|pid| kill_process(pid, signal));
}

/// What all workers share.
pub(crate) struct Shared {
    pub(crate) config: NodeConfig,
    client: Arc<dyn Client>,
    clock: Arc<dyn Clock>,
    pub(crate) pods: Pods,
    pub(crate) link: Link,
    hosts: Hosts,
    links: Links,
    claims: Arc<Claims>,
    isolation: Isolation,
    pub(crate) beside: Arc<Beside>,
    capacity: BTreeMap<String, Quantity>,
    access: Option<Arc<dyn ServerAccess>>,
}

/// Runs the pods that are bound to it as processes of this machine.
pub struct Node {
    pub(crate) shared: Arc<Shared>,
    requests: Mutex<Option<link::Requests>>,
    /// Told when nobody wants to wait any longer for what ends with the node.
    kill: Notify,
    /// Whether it takes pods, and knows those that it has.
    is_up: watch::Sender<bool>,
}

impl Node {
    /// A node that does nothing yet. With `access`, its pods can talk to the API server.
    pub fn new(client: Arc<dyn Client>, config: NodeConfig, access: Option<Arc<dyn ServerAccess>>) -> Node {
        let mut capacity = register::capacity(config.pods_max, &config.root);
        capacity.extend(config.capacity.clone());
        let pods = Pods::new(Addresses::beginning_at(config.root.as_os_str().as_encoded_bytes()));
        let (link, requests) = Link::new();
        let hosts = Hosts::new(config.root.join("hosts"));
        let claims = Arc::new(Claims::new(&config.root));
        let links = Links::default();
        let isolation = Isolation::default();
        let clock = Arc::new(SystemClock);
        let beside = Arc::new(Beside::of(&config.root));
        let shared = Shared {
            config,
            client,
            clock,
            pods,
            link,
            hosts,
            links,
            claims,
            isolation,
            beside,
            capacity,
            access,
        };
        Node {
            shared: Arc::new(shared),
            requests: Mutex::new(Some(requests)),
            kill: Notify::new(),
            is_up: watch::Sender::new(false),
        }
    }

    /// Runs pods until `shutdown`. A node can be run once.
    ///
    /// With [`Mode::OutliveNode`] containers run on, and another node with the same root directory takes them over;
    /// otherwise it returns when all of them have ended.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) {
        let Some(requests) = self.requests.lock().take() else { return };
        let child = Mutex::new(None);
        let shared = &self.shared;
        let client = shared.client.as_ref();
        let [of_maps, of_secrets] =
            [Kind::ConfigMap, Kind::Secret].map(|kind| Readers { kind, pods: &shared.pods });
        tokio::select! {
            () = shared.link.run(&shared.config, &shared.pods, requests, &child) => {}
            () = self.look_after_pods() => {}
            () = shared.hosts.run(&shared.pods) => {}
            () = shared.beside.run() => {}
            () = feed::follow(client, Kind::ConfigMap, &of_maps) => {}
            () = feed::follow(client, Kind::Secret, &of_secrets) => {}
            () = claims::look_after(client, Some(&shared.claims), shared.access.as_deref()) => {}
            () = feed::follow(client, Kind::Service, &shared.hosts) => {}
            () = feed::follow(client, Kind::Service, &shared.links) => {}
            () = self.keep_lease() => {}
            () = shutdown => {}
        }
        // The connection is closed by now, which is what the supervisor ends the containers on.
        let supervisor = child.lock().take();
        if let Some(supervisor) = supervisor.filter(|_| shared.config.mode.ends_with_node())
            && !self.wait_for_end(supervisor).await
        {
            self.end_what_is_lost().await;
        }
    }

    /// Renews the node's Lease, where somebody may look for it.
    async fn keep_lease(&self) {
        let Shared { client, clock, config, .. } = &*self.shared;
        if !config.tells {
            return std::future::pending().await;
        }
        self.up().await;
        lease::keep(client.as_ref(), clock.as_ref(), &config.name).await;
    }

    /// The name of its Node object.
    pub fn name(&self) -> &str {
        &self.shared.config.name
    }

    /// Returns when the node takes pods and knows those that it has. Until then the scheduler has nowhere to put them.
    pub async fn up(&self) {
        // The sender lives as long as the node.
        let _ = self.is_up.subscribe().wait_for(|is_up| *is_up).await;
    }

    /// The pods that have not ended yet.
    pub fn unfinished_pods(&self) -> Vec<Key> {
        self.shared.pods.unfinished()
    }

    /// Whether its pods end with it.
    pub fn takes_pods_along(&self) -> bool {
        self.shared.config.mode.ends_with_node()
    }

    /// Containers that end with this node are killed, whatever grace they have left, as soon as it shuts down.
    pub fn kill_all(&self) {
        self.kill.notify_one();
    }

    /// The supervisor gives its containers their grace, unless it is asked not to. Returns whether it came to its end.
    async fn wait_for_end(&self, mut supervisor: Child) -> bool {
        // One that nobody has connected to yet does not know that it is to end.
        signal(&supervisor, Signal::TERM);
        loop {
            tokio::select! {
                ended = supervisor.wait() => {
                    let unknown = |error| tracing::warn!(%error, "cannot wait for the supervisor to end");
                    return ended.map_err(unknown).is_ok_and(|status| status.success());
                }
                () = self.kill.notified() => signal(&supervisor, KILL_ALL),
            }
        }
    }

    /// A supervisor that was killed has left its containers behind. Another one finds them by its records.
    async fn end_what_is_lost(&self) {
        let child = Mutex::new(None);
        match link::connect(&self.shared.config, &child).await {
            Ok(connection) => drop(connection),
            Err(error) => tracing::error!(%error, "no supervisor, so containers may be left"),
        }
        let supervisor = child.lock().take();
        if let Some(supervisor) = supervisor {
            self.wait_for_end(supervisor).await;
        }
    }

    async fn look_after_pods(&self) {
        // What runs already must be known before the first decision, or it would be started a second time.
        self.shared.pods.synced().await;
        self.register().await;
        let mut workers = JoinSet::new();
        loop {
            match self.list(&mut workers).await {
                Ok(revision) => self.watch(revision, &mut workers).await,
                Err(error) => {
                    tracing::warn!(%error, "cannot list pods");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    async fn register(&self) {
        let Shared { client, config, capacity, clock, .. } = &*self.shared;
        let presence =
            Presence { name: &config.name, capacity, ready_because: "pods run as processes of this machine" };
        while let Err(error) = register(client.as_ref(), &presence, clock.now()).await {
            tracing::warn!(%error, node = config.name, "cannot register the node");
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    async fn list(&self, workers: &mut JoinSet<()>) -> Result<u64, ClientError> {
        let listed = self.shared.client.list(Kind::Pod).await?;
        let mut found: Vec<_> = listed.items.iter().filter_map(|json| self.read(json)).collect();
        found.sort_by_key(Found::has_no_address);
        let uids = found.into_iter().map(|found| self.take_in(found, workers)).collect();
        let orphans = self.shared.pods.listed(&uids);
        self.remove_orphans(orphans);
        self.shared.hosts.remove_orphans();
        self.is_up.send_replace(true);
        Ok(listed.revision)
    }

    /// Follows the watch until the pods have to be listed again.
    async fn watch(&self, mut revision: u64, workers: &mut JoinSet<()>) {
        loop {
            let mut events = self.shared.client.watch(Kind::Pod, revision);
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        revision = event.revision;
                        // What this node wrote, it need not read.
                        if !self.shared.pods.is_own_report(revision) {
                            self.observe(&event, workers);
                        }
                    }
                    Err(ClientError::Expired(_)) => return,
                    Err(error) => {
                        tracing::warn!(%error, "the watch on pods broke");
                        tokio::time::sleep(RETRY_AFTER).await;
                        break;
                    }
                }
            }
        }
    }

    fn observe(&self, event: &Event, workers: &mut JoinSet<()>) {
        match event.event_type {
            // A new pod is seldom bound already, and that it is not is seen at a glance.
            EventType::Added if !self.is_bound_here(Glance::at(&event.object).as_ref()) => {}
            EventType::Added | EventType::Modified => {
                if let Some(found) = self.read(&event.object) {
                    self.take_in(found, workers);
                }
            }
            EventType::Deleted => {
                if let Some(glance) = Glance::at(&event.object) {
                    self.shared.pods.gone(&glance.metadata.uid);
                }
            }
            EventType::Bookmark => {}
        }
    }

    /// Reads a pod that is bound to this node; none if it is not.
    fn read(&self, json: &[u8]) -> Option<Found> {
        match serde_json::from_slice::<Pod>(json) {
            Ok(pod) => (pod.spec.node_name == self.shared.config.name).then(|| Found::Pod(Arc::new(pod))),
            Err(error) => {
                let glance = Glance::at(json).filter(|glance| self.is_bound_here(Some(glance)))?;
                Some(Found::Unreadable(glance, error.to_string()))
            }
        }
    }

    /// Takes in a pod of this node, and returns its UID.
    fn take_in(&self, found: Found, workers: &mut JoinSet<()>) -> Uid {
        match found {
            Found::Pod(pod) => {
                let uid = pod.metadata.uid.clone();
                let taken = self.shared.pods.insert(pod.clone());
                self.shared.hosts.changed(&pod);
                if taken == Taken::New {
                    self.employ(&uid, workers);
                }
                uid
            }
            Found::Unreadable(glance, why) => {
                let uid = glance.metadata.uid.clone();
                self.refuse(glance, why, workers);
                uid
            }
        }
    }

    fn is_bound_here(&self, pod: Option<&Glance>) -> bool {
        pod.is_some_and(|pod| pod.spec.node_name == self.shared.config.name)
    }

    fn refuse(&self, pod: Glance, why: String, workers: &mut JoinSet<()>) {
        tracing::error!(pod = %pod.key(), why, "cannot read this pod");
        let shared = self.shared.clone();
        workers.spawn(async move {
            // If this fails, the next list or change of the pod leads here again.
            if let Err(error) = refuse::refuse(shared.client.as_ref(), &pod, &why).await {
                tracing::warn!(pod = %pod.key(), %error, "cannot refuse this pod");
            }
        });
    }

    fn employ(&self, uid: &Uid, workers: &mut JoinSet<()>) {
        // Those that are done need not be remembered.
        while workers.try_join_next().is_some() {}
        let (shared, uid) = (self.shared.clone(), uid.clone());
        workers.spawn(async move {
            while let Some(view) = shared.pods.view(&uid) {
                let work = Worker::new(shared.clone(), &view).run();
                if AssertUnwindSafe(work).catch_unwind().await.is_ok() {
                    return;
                }
                tracing::error!(pod = %view.pod.key(), "its worker panicked, and begins anew");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        });
    }

    /// Removes containers and files of pods that went while no node was running: those of containers that the supervisor
    /// knows, and of directories, which may be there without any container.
    fn remove_orphans(&self, of_containers: Vec<Uid>) {
        let entries = fs::read_dir(self.shared.config.pods()).into_iter().flatten().flatten();
        let uids = entries.filter_map(|entry| Some(Uid::from(entry.file_name().to_str()?)));
        let mut orphans: BTreeSet<Uid> = uids.filter(|uid| !self.shared.pods.contains(uid)).collect();
        orphans.extend(of_containers);
        for pod in orphans {
            tracing::info!(%pod, "removing what is left of a pod that is no more");
            self.shared.link.send(Request::Forget { pod });
        }
    }

    /// What is known of a pod, by its name.
    pub(crate) fn find(&self, key: &Key) -> Option<View> {
        self.shared.pods.find(key)
    }
}

/// A pod that the server has bound to this node.
enum Found {
    Pod(Arc<Pod>),
    /// What can be seen of it, and why it can not be read.
    Unreadable(Glance, String),
}

impl Found {
    /// Pods that have an address are taken in before those that do not: else it could be given away before the pod that
    /// listens there is known.
    fn has_no_address(&self) -> bool {
        match self {
            Found::Pod(pod) => pod.status.pod_ip.is_empty(),
            Found::Unreadable(..) => true,
        }
    }
}

/// Returns when a container has ended.
pub(crate) async fn ended(shared: &Shared, id: &ContainerId) {
    while let Some(change) = shared.pods.change_of(id) {
        change.await;
    }
}
