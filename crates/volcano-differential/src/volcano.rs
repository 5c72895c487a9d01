//! Volcano's controller manager at work: an embedded API server that listens, and the manager as a process of its own.

use std::collections::HashMap;
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use krafla_api::{Key, Kind};
use krafla_apiserver::store::{ResourceId, StoredEvent};
use krafla_apiserver::{Api, Collector, Env, RunningServer, ServerConfig, SystemEnv, Tokens, serve};
use krafla_sim::golden::{self, Site};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How long the manager may take until it acts on the first job.
const START_WITHIN: Duration = Duration::from_secs(120);

/// The namespace of the job by which it shows that the manager is at work.
const PROBE: &str = "probe";

/// How the names of all namespaces begin in which sequences are played. They all have the same length, so that no name
/// contains another.
const PREFIX: &str = "seq";
const NAME_LENGTH: usize = PREFIX.len() + 8;

/// The name of the namespace with this number.
pub(crate) fn namespace_name(number: u64) -> String {
    format!("{PREFIX}{number:08}")
}

/// A server with Volcano's controllers.
pub(crate) struct Volcano {
    api: Api,
    observer: Arc<Observer>,
    manager: Child,
    canary: Arc<Canary>,
    canary_thread: Option<JoinHandle<()>>,
    // Fields are dropped in this order: whoever still asks is refused before the runtime ends.
    _server: RunningServer,
    _runtime: Runtime,
    _dir: TempDir,
}

/// Sees every change, by namespace.
#[derive(Default)]
pub(crate) struct Observer {
    namespaces: Mutex<HashMap<String, Activity>>,
}

struct Activity {
    changed_at: Instant,
    phased: Vec<(&'static str, Kind, Arc<StoredEvent>)>,
}

impl Volcano {
    /// Starts a server and the manager, and waits until the manager acts.
    pub(crate) fn start(manager: &Path, log: &Path) -> Result<Volcano> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let env: Arc<dyn Env> = Arc::new(SystemEnv);
        let api = golden::new_cluster(env.clone());
        let observer = Arc::<Observer>::default();
        let server = runtime.block_on(async {
            for kind in OBSERVED {
                observe(&api, kind, &observer)?;
            }
            tokio::spawn(api.clone().run_namespaces());
            tokio::spawn(Collector::new(api.clone()).run());
            let config = ServerConfig::new((Ipv4Addr::LOCALHOST, 0).into(), Arc::new(Tokens::for_now()));
            anyhow::Ok(serve(api.clone(), env, config).await?)
        })?;
        let dir = tempfile::tempdir()?;
        let kubeconfig = dir.path().join("kubeconfig");
        std::fs::write(&kubeconfig, server.kubeconfig())?;
        let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let manager = Command::new(manager)
            .arg(&kubeconfig)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {}", manager.display()))?;
        let canary = Arc::<Canary>::default();
        let mut volcano = Volcano {
            api,
            observer,
            manager,
            canary,
            canary_thread: None,
            _server: server,
            _runtime: runtime,
            _dir: dir,
        };
        let site = volcano.wait_until_ready(log)?;
        let (canary, api) = (volcano.canary.clone(), volcano.api.clone());
        volcano.canary_thread = Some(std::thread::spawn(move || canary.run(&api, &site)));
        Ok(volcano)
    }

    /// A new namespace.
    pub(crate) fn site(&self, namespace: &str) -> Result<Site> {
        self.observer.touch(namespace);
        let site = Site::new(self.api.clone(), Arc::new(SystemEnv), namespace);
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        golden::create_all(&site, &[object]).map_err(anyhow::Error::msg)?;
        Ok(site)
    }

    pub(crate) fn observer(&self) -> &Observer {
        &self.observer
    }

    /// How long the manager takes at present until it acts on a new job. Then it has seen what was done before, too.
    pub(crate) fn lag(&self) -> Duration {
        self.canary.lag()
    }

    fn wait_until_ready(&mut self, log: &Path) -> Result<Site> {
        let site = self.site(PROBE)?;
        golden::create_all(&site, &[probe("probe")]).map_err(anyhow::Error::msg)?;
        let started = Instant::now();
        while count(&self.api, Kind::PodGroup) == 0 {
            if let Some(status) = self.manager.try_wait()? {
                bail!("Volcano's manager ended with {status}, see {}", log.display());
            }
            if started.elapsed() > START_WITHIN {
                bail!("Volcano's manager does nothing, see {}", log.display());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(site)
    }
}

/// A job by which the manager shows that it acts.
fn probe(name: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": { "name": name },
        "spec": { "tasks": [{ "replicas": 1, "template": {
            "spec": { "containers": [{ "name": "main", "image": "img:1" }] } } }] },
    })
}

/// A Command about the probe of that name. It changes nothing, and the manager reports it in an Event.
fn command(api: &Api, name: &str) -> Option<Value> {
    let jobs = api.store().snapshot(&resource(Kind::VcJob));
    let mut jobs = jobs.range(Some(PROBE), None);
    let job = jobs.find(|entry| &*entry.key.name == name)?;
    let job: Value = serde_json::from_slice(&job.bytes).ok()?;
    Some(json!({
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": { "name": name }, "action": "ResumeJob",
        "target": {
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name, "controller": true,
            "uid": job.pointer("/metadata/uid")?,
        },
    }))
}

fn resource(kind: Kind) -> ResourceId {
    ResourceId::from(kind.info().qualified_plural().as_str())
}

/// How many objects of a kind are in the namespace of the probes.
fn count(api: &Api, kind: Kind) -> usize {
    api.store().snapshot(&resource(kind)).range(Some(PROBE), None).count()
}

/// Measures again and again how long the manager takes until it acts: a busy machine must not look like quiet.
#[derive(Default)]
struct Canary {
    is_over: AtomicBool,
    /// The last measurement.
    lag_ms: AtomicU64,
    /// When the present measurement began.
    began_at: Mutex<Option<Instant>>,
}

impl Canary {
    const PAUSE: Duration = Duration::from_millis(300);

    fn lag(&self) -> Duration {
        let waiting = self.began_at.lock().map(|began_at| began_at.elapsed()).unwrap_or_default();
        waiting.max(Duration::from_millis(self.lag_ms.load(Ordering::Relaxed)))
    }

    fn run(&self, api: &Api, site: &Site) {
        for number in 0_u64.. {
            let began_at = Instant::now();
            *self.began_at.lock() = Some(began_at);
            if self.measure(api, site, &format!("canary-{number}")).is_none() {
                return;
            }
            *self.began_at.lock() = None;
            let lag_ms = u64::try_from(began_at.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.lag_ms.store(lag_ms, Ordering::Relaxed);
            std::thread::sleep(Canary::PAUSE);
        }
    }

    /// Makes a job and a Command. Events have a queue of their own in the manager. None if all is over.
    fn measure(&self, api: &Api, site: &Site, name: &str) -> Option<()> {
        let (n_podgroups, n_events) = (count(api, Kind::PodGroup), count(api, Kind::Event));
        golden::create_all(site, &[probe(name)]).ok()?;
        self.wait_until(|| count(api, Kind::PodGroup) > n_podgroups)?;
        golden::create_all(site, &[command(api, name)?]).ok()?;
        self.wait_until(|| count(api, Kind::Event) > n_events)
    }

    fn wait_until(&self, is_so: impl Fn() -> bool) -> Option<()> {
        while !is_so() {
            std::thread::sleep(Duration::from_millis(10));
            if self.is_over.load(Ordering::Relaxed) {
                return None;
            }
        }
        Some(())
    }
}

impl Drop for Volcano {
    fn drop(&mut self) {
        self.canary.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.canary_thread.take() {
            // It fails only if the thread panicked, which has been reported.
            let _ = thread.join();
        }
        // It fails only if the manager has ended already.
        let _ = self.manager.kill();
        let _ = self.manager.wait();
    }
}

/// The kinds whose changes count when a namespace is to be quiet.
const OBSERVED: [Kind; 15] = [
    Kind::VcJob,
    Kind::JobFlow,
    Kind::Queue,
    Kind::Pod,
    Kind::PodGroup,
    Kind::Service,
    Kind::ConfigMap,
    Kind::Secret,
    Kind::NetworkPolicy,
    Kind::PersistentVolumeClaim,
    Kind::Command,
    Kind::JobTemplate,
    Kind::VcCronJob,
    Kind::ReplicaSet,
    Kind::Event,
];

fn observe(api: &Api, kind: Kind, observer: &Arc<Observer>) -> Result<()> {
    let mut watcher = api.store().watch(&resource(kind), api.store().revision())?;
    let section = golden::PHASED.iter().find(|(_, phased)| *phased == kind).map(|(section, _)| *section);
    let observer = observer.clone();
    tokio::spawn(async move {
        while let Ok(event) = watcher.next().await {
            observer.saw(section.map(|section| (section, kind)), event);
        }
    });
    Ok(())
}

impl Observer {
    fn touch(&self, namespace: &str) {
        let activity = Activity { changed_at: Instant::now(), phased: Vec::new() };
        self.namespaces.lock().insert(namespace.to_owned(), activity);
    }

    fn saw(&self, phased: Option<(&'static str, Kind)>, event: Arc<StoredEvent>) {
        let mut namespaces = self.namespaces.lock();
        let Some(activity) = namespaces.get_mut(namespace_of(&event.entry.key)) else { return };
        activity.changed_at = Instant::now();
        if let Some((section, kind)) = phased {
            activity.phased.push((section, kind, event));
        }
    }

    /// When something in a namespace last changed.
    pub(crate) fn changed_at(&self, namespace: &str) -> Option<Instant> {
        self.namespaces.lock().get(namespace).map(|activity| activity.changed_at)
    }

    /// The changes since this was last asked of objects that have phases.
    pub(crate) fn take_phased(&self, namespace: &str) -> Vec<(&'static str, Kind, Arc<StoredEvent>)> {
        let mut namespaces = self.namespaces.lock();
        namespaces.get_mut(namespace).map(|activity| std::mem::take(&mut activity.phased)).unwrap_or_default()
    }

    /// Forgets a namespace.
    pub(crate) fn forget(&self, namespace: &str) {
        self.namespaces.lock().remove(namespace);
    }
}

/// The namespace to which an object belongs: its own, or the one in its name.
fn namespace_of(key: &Key) -> &str {
    if key.namespace.is_empty() || &*key.namespace == "default" {
        let named = key.name.find(PREFIX).and_then(|start| key.name.get(start..start + NAME_LENGTH));
        return named.unwrap_or_default();
    }
    &key.namespace
}
