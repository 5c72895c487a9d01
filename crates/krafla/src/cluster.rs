//! A whole cluster in this process: API server, controllers, scheduler, node.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use krafla_admission::Settings;
use krafla_api::{Key, Kind, Quantity};
use krafla_apiserver::admit::{
    Admission, NotEnforced, ServiceAccounts, StorageProtection, Volcano, WorkloadControllers,
};
use krafla_apiserver::gc::Collector;
use krafla_apiserver::http::{gather_noise, write_private};
use krafla_apiserver::store::{DirectoryLock, Store};
use krafla_apiserver::{
    Api, AuditConfig, AuthorizationMode, LocalClient, PodAccess, RunningServer, ServerConfig, SystemEnv,
    Tokens, User, serve,
};
use krafla_cluster::Client;
use krafla_node::simulated::{ClusterSize, SimulatedNodes, is_simulated};
use krafla_node::{Mode, Node, NodeConfig, ServerAccess};
use krafla_plan::k8sjob::Managed;
use krafla_plan::podgc::PodGcController;
use krafla_plan::podgroup::PodGroupController;
use krafla_plan::{Controller, Object};
use krafla_runtime::metrics::Metrics;
use krafla_runtime::{Engine, SystemClock};
use krafla_scheduler::Scheduler;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::data_dir;
use crate::pod_access::{NodeAccess, SimulatedAccess};
use crate::run::BadInput;
use crate::server_access::{Listening, OwnServer};

/// How many plans are carried out at once.
const WORKERS: usize = 8;

/// How long killed processes may take to end.
const KILL_MAX: Duration = Duration::from_secs(5);

/// The node that runs processes of this machine.
const NODE_NAME: &str = "localhost";

/// How many pods are named before the others are only counted.
const NAMED_MAX: usize = 5;

/// What a cluster has to know.
pub(crate) struct Config {
    /// Where the cluster's state is kept, unless it is in memory.
    pub(crate) data_dir: PathBuf,
    /// Where pods' files are kept.
    pub(crate) node_dir: PathBuf,
    pub(crate) in_memory: bool,
    pub(crate) workdir: PathBuf,
    /// What the node has, where that is not to be what this machine has.
    pub(crate) capacity: Vec<(String, Quantity)>,
    /// Nodes that only pretend, in place of this machine.
    pub(crate) simulate: Option<ClusterSize>,
    /// Whether queues take back their share from others.
    pub(crate) reclaims: bool,
    /// Whether jobs preempt others of a lower priority.
    pub(crate) preempts: bool,
    /// Whether the controllers run in this process; if not, somebody else runs them.
    pub(crate) has_controllers: bool,
    /// What happens to containers when krafla ends.
    pub(crate) mode: Mode,
    /// Whether it will listen for HTTP: then pods get what they need to talk to the server.
    pub(crate) is_served: bool,
    /// What an administrator has set of admission.
    pub(crate) settings: Settings,
    /// How requests over HTTP are authorised. What is in this process may do everything.
    pub(crate) authorization: AuthorizationMode,
}

/// Who is let in over HTTP, beside the administrator and service accounts.
pub(crate) struct Access {
    /// Whether requests without a token and a certificate are looked at at all.
    pub(crate) anonymous: bool,
    /// Users with tokens of their own.
    pub(crate) users: Vec<(String, Arc<User>)>,
    /// Where every request is noted.
    pub(crate) audit: Option<AuditConfig>,
}

/// A running cluster.
pub(crate) struct Cluster {
    pub(crate) client: Arc<LocalClient>,
    pub(crate) node: Arc<Node>,
    /// Whether pods only seem to run, and the node has none.
    is_simulated: bool,
    api: Api,
    store: Store,
    metrics: Arc<Metrics>,
    tasks: JoinSet<()>,
    node_task: JoinHandle<()>,
    stop_node: Option<oneshot::Sender<()>>,
    tokens: Arc<Tokens>,
    address: watch::Sender<Option<Listening>>,
    /// Held by a cluster in memory; one on disk has that of its store.
    _lock: Option<DirectoryLock>,
}

impl Cluster {
    /// Starts everything but HTTP.
    pub(crate) async fn start(config: Config) -> Result<Cluster> {
        if config.is_served {
            data_dir::prepare(&config.data_dir)?;
            gather_noise();
        }
        // A cluster in memory writes its keys and its kubeconfig to the directory: only one krafla may.
        let (store, lock) = match (config.in_memory, config.is_served) {
            (true, true) => (Store::in_memory(), Some(DirectoryLock::take(&config.data_dir)?)),
            (true, false) => (Store::in_memory(), None),
            (false, _) => (Store::open(&config.data_dir)?, None),
        };
        data_dir::claim_node_dir(&config.node_dir, &store)?;
        let volcano = Volcano { settings: config.settings.clone() };
        let mut admission =
            Admission::default().with(volcano).with(StorageProtection).with(WorkloadControllers);
        // Where nothing runs, nothing talks to the server.
        let pods_can_talk = config.is_served && config.simulate.is_none();
        if pods_can_talk {
            admission = admission.with(ServiceAccounts).with(NotEnforced);
        }
        let api = Api::new(store.clone(), Arc::new(SystemEnv), admission).authorizing(config.authorization);
        api.bootstrap().await.context("cannot create the cluster's own objects")?;
        // Where nobody can ask, nobody needs a role.
        if config.is_served {
            api.bootstrap_roles().await.context("cannot create the cluster's standard roles")?;
        }
        let tokens = if config.is_served {
            Tokens::kept_in(&config.data_dir).context("the key of service accounts' tokens")?
        } else {
            Tokens::for_now()
        };
        let tokens = Arc::new(tokens);
        // Everybody writes under a name of their own, as `managedFields` shows it, and takes what another has read. Where nobody
        // can ask, the names are left out: to keep them is a twelfth of the work of a short pod.
        let local = LocalClient::new(api.clone());
        let writing_as = |manager: &str| {
            if config.is_served { local.clone().writing_as(manager) } else { local.clone() }
        };
        let client = |manager: &str| -> Arc<dyn Client> { Arc::new(writing_as(manager)) };

        forget_nodes(client("krafla-node").as_ref(), config.simulate.as_ref()).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(api.clone().run_namespaces());
        tasks.spawn(api.clone().run_quotas());
        tasks.spawn(api.clone().run_budgets());
        tasks.spawn(api.clone().run_storage_protection());
        tasks.spawn(Collector::new(api.clone()).run());
        if config.is_served {
            tasks.spawn(api.clone().run_role_aggregation());
        }
        let metrics = Arc::<Metrics>::default();
        let engine = |controllers, name| Engine::new(controllers).counting_in(metrics.clone(), name);
        if config.has_controllers {
            let client = client("krafla-controllers");
            tasks.spawn(run_engine(client, engine(controllers(&config.settings), "controllers")));
        }
        let gang_names = config.settings.scheduler_names.clone();
        let (tells, reclaims, preempts) = (config.is_served, config.reclaims, config.preempts);
        let scheduler = Scheduler { gang_names, tells, reclaims, preempts, ..Scheduler::default() };
        let scheduler = engine(vec![Box::new(scheduler), Box::new(PodGcController)], "scheduler");
        tasks.spawn(run_engine(client("krafla-scheduler"), scheduler));

        let (stop_node, stopped) = oneshot::channel();
        let (address, known_address) = watch::channel(None);
        let access = OwnServer { api: api.clone(), tokens: tokens.clone(), address: known_address };
        let access = pods_can_talk.then(|| Arc::new(access) as Arc<dyn ServerAccess>);
        let node = Arc::new(Node::new(client("krafla-node"), node_config(&config)?, access));
        let (running, simulated) = (node.clone(), config.simulate.clone());
        let is_simulated = simulated.is_some();
        let pods_of = client("krafla-node");
        let node_task = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            match simulated {
                Some(size) => SimulatedNodes::new(pods_of, size).run(stopped).await,
                None => running.run(stopped).await,
            }
        });
        let (client, stop_node) = (Arc::new(writing_as("krafla")), Some(stop_node));
        Ok(Cluster {
            client,
            node,
            is_simulated,
            api,
            store,
            metrics,
            tasks,
            node_task,
            stop_node,
            tokens,
            address,
            _lock: lock,
        })
    }

    /// Whether the disk of the store is full.
    pub(crate) fn is_full(&self) -> bool {
        self.store.is_full()
    }

    /// Returns when pods can run.
    pub(crate) async fn until_pods_can_run(&self) {
        // Simulated nodes are ready when they are made.
        if !self.is_simulated {
            self.node.up().await;
        }
    }

    /// Removes Events a time after they were last written. A cluster that ends with its command keeps them.
    pub(crate) fn forget_events_after(&mut self, ttl: Duration) {
        self.tasks.spawn(self.api.clone().run_event_expiry(ttl));
    }

    /// Listens for kubectl and others.
    pub(crate) async fn serve(
        &mut self,
        listen: SocketAddr,
        data_dir: &Path,
        access: Access,
    ) -> Result<RunningServer> {
        let node = NodeAccess(self.node.clone());
        let pod_access: Arc<dyn PodAccess> =
            if self.is_simulated { Arc::new(SimulatedAccess) } else { Arc::new(node) };
        let config = ServerConfig {
            data_dir: Some(data_dir.to_owned()),
            pod_access: Some(pod_access),
            controllers: Some(self.metrics.clone()),
            by_name: (!self.is_simulated).then(|| service_address(data_dir)),
            allows_anonymous: access.anonymous,
            users: access.users,
            audit: access.audit,
            ..ServerConfig::new(listen, self.tokens.clone())
        };
        let server = serve(self.api.clone(), Arc::new(SystemEnv), config).await?;
        let by_name = server.by_name().ok().flatten();
        self.address.send_replace(Some(Listening { address: server.address(), by_name }));
        let mut advertised = server.address();
        if advertised.ip().is_unspecified() {
            advertised.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        self.tasks.spawn(self.api.clone().run_own_service(advertised));
        self.tasks.spawn(self.api.clone().run_endpoints());
        self.tasks.spawn(self.api.clone().run_flow_control());
        self.tasks.spawn(self.api.clone().run_api_services());
        self.tasks.spawn(self.api.clone().run_service_accounts(server.ca_pem().to_owned()));
        Ok(server)
    }

    /// Ends everything in order: first what acts, then what keeps. Pods that are left are named by `say`; those that end with the
    /// cluster have their grace, until somebody is `hurried`. The process has to end after this.
    pub(crate) async fn stop(mut self, say: impl FnOnce(&str), hurried: impl Future<Output = ()>) {
        self.tasks.shutdown().await;
        let left = self.unfinished_pods().await;
        if !left.is_empty() && self.node.takes_pods_along() {
            say(&format!("ending the remaining pods: {}; Ctrl-C kills them at once", listed(&left)));
        } else if !left.is_empty() {
            let remedy = "`krafla up` with the same --data-dir takes them over";
            say(&format!("pods that continue to run: {}; {remedy}", listed(&left)));
        }
        // The receiver is only gone if the node has ended by itself.
        let _ = self.stop_node.take().map(|stop| stop.send(()));
        tokio::select! {
            _ = &mut self.node_task => {}
            () = hurried => {
                self.node.kill_all();
                // Nobody waits for a supervisor that does not answer. It kills what it has when it does again.
                let _ = tokio::time::timeout(KILL_MAX, &mut self.node_task).await;
            }
        }
        self.store.close();
        // The process ends next. To take every object apart before that took a twentieth of a run of a thousand pods.
        std::mem::forget(self);
    }
}

impl Cluster {
    /// The pods that the node has, as far as nobody knows yet that they have ended.
    async fn unfinished_pods(&self) -> Vec<Key> {
        let mut left = self.node.unfinished_pods();
        if !left.is_empty() {
            let pods = self.client.list(Kind::Pod).await.map(|listed| listed.items).unwrap_or_default();
            let pods = pods.iter().map(|json| Object::decode(Kind::Pod, json));
            let has_ended = |pod: &Object| pod.as_pod().is_some_and(|pod| pod.status.phase.is_finished());
            let ended: BTreeSet<Key> = pods.filter(has_ended).map(|pod| pod.meta.key).collect();
            left.retain(|pod| !ended.contains(pod));
        }
        left
    }
}

/// The loopback address of the API server's Service. Several kraflas on one machine begin at different places, away from
/// those of their pods.
fn service_address(data_dir: &Path) -> Ipv4Addr {
    let hash = data_dir.as_os_str().as_encoded_bytes().iter();
    let hash = hash.fold(0x811c_9dc5_u32, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte));
    let [.., third, fourth] = hash.to_be_bytes();
    Ipv4Addr::new(127, 63, third, fourth.clamp(1, 200))
}

/// The first names, and how many more there are.
pub(crate) fn listed(pods: &[Key]) -> String {
    let named: Vec<&str> = pods.iter().take(NAMED_MAX).map(|key| &*key.name).collect();
    match pods.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        n_more => format!("{} and {n_more} more", named.join(", ")),
    }
}

/// Writes what `kubectl` needs to reach a server.
pub(crate) fn write_kubeconfig(server: &RunningServer, path: &Path) -> Result<()> {
    write_private(path, &server.kubeconfig())
        .with_context(|| format!("cannot write the kubeconfig {}", path.display()))
}

/// The controllers, of which one groups the pods of these schedulers.
fn controllers(settings: &Settings) -> Vec<Box<dyn Controller>> {
    let scheduler_names = settings.scheduler_names.clone();
    let podgroups = PodGroupController { scheduler_names, ..PodGroupController::default() };
    krafla_plan::controllers_of(&Managed::default(), podgroups)
}

/// Removes the simulated nodes of an earlier start that are not those of this one.
async fn forget_nodes(client: &dyn Client, simulated: Option<&ClusterSize>) -> Result<()> {
    let here = client.get(Kind::Node, &Key::new("", NODE_NAME)).await;
    if simulated.is_some() && here.is_ok() {
        let message = "--simulate: the cluster of this --data-dir runs pods as processes, and a simulated cluster would not manage them";
        return Err(anyhow!("{message}: use another --data-dir"));
    }
    let is_forgotten = |name: &str| is_simulated(name) && !simulated.is_some_and(|size| size.is_node(name));
    krafla_node::forget(client, is_forgotten).await.context("cannot remove nodes of an earlier start")
}

async fn run_engine(client: Arc<dyn Client>, engine: Engine) {
    krafla_runtime::run(engine, client, Arc::new(SystemClock), WORKERS).await;
}

/// Where containers start, if it is a directory, as an absolute path.
pub(crate) fn workdir(dir: &Path) -> Result<PathBuf> {
    if !dir.is_dir() {
        let message = "is not a directory of this machine: create it, or use another one";
        return Err(BadInput(anyhow!("--workdir: {} {message}", dir.display())).into());
    }
    absolute(dir)
}

/// A path from the root directory on. One that has no such place is relative to a directory that is gone.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| {
        let remedy = "change to an existing directory with `cd`";
        BadInput(anyhow!("the current directory does not exist ({error}); fix: {remedy}")).into()
    })
}

fn node_config(config: &Config) -> Result<NodeConfig> {
    let program = std::env::current_exe().context("cannot find krafla's own program file")?;
    let supervisor = vec![program.into_os_string(), OsString::from("supervise")];
    let root = absolute(&config.node_dir)?;
    data_dir::make_private(&root).with_context(|| format!("cannot create {}", root.display()))?;
    let mut node = NodeConfig::new(NODE_NAME, root, absolute(&config.workdir)?, supervisor, config.mode);
    node.capacity = config.capacity.iter().cloned().collect();
    node.tells = config.is_served;
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_pods_the_first_are_named() {
        let pods = ["a", "b", "c", "d", "e", "f", "g"].map(|name| Key::new("default", name));
        assert_eq!(listed(&pods[..1]), "a");
        assert_eq!(listed(&pods[..5]), "a, b, c, d, e");
        assert_eq!(listed(&pods), "a, b, c, d, e and 2 more");
    }
}
