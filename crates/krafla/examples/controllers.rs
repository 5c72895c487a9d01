//! What the controllers cost: many jobs on nodes that only pretend, with everything in one process.
//!
//! ```text
//!   bench/controller [JOBSxPODS...]     Volcano Jobs
//!   bench/batch [JOBSxPODS...]          Jobs of Kubernetes itself
//! ```
//!
//! Each size runs in a process of its own, so that its processor time and memory are its own. Requests are counted by who
//! makes them. In the end the same jobs, still running, are read from disk once without and once with the controllers: the
//! difference is what the controllers hold in memory.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::BoxStream;
use krafla_api::{Key, Kind};
use krafla_apiserver::admit::{Admission, Volcano};
use krafla_apiserver::gc::Collector;
use krafla_apiserver::store::Store;
use krafla_apiserver::{Api, LocalClient, SystemEnv};
use krafla_node::simulated::SimulatedNodes;
use krafla_plan::{Controller, Object, Step};
use krafla_runtime::{Client, ClientError, Engine, Event, Listed, SystemClock, Written};
use krafla_scheduler::Scheduler;
use serde_json::{Value, json};
use tokio::task::JoinSet;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const SIZES: [&str; 3] = ["1000x1", "1000x10", "100x100"];
const BATCH_SIZES: [&str; 4] = ["1000x10", "10x1000", "1x1000", "1x10000"];
const RESIDENT: &str = "1000x10";
const WORKERS: usize = 8;
/// When nothing was asked for so long, the controllers are at rest.
const REST: Duration = Duration::from_millis(3000);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--one", size] => on_threads(complete(Kind::VcJob, size)),
        ["--one-batch", size] => on_threads(complete(Kind::Job, size)),
        ["--fill", dir] => on_threads(fill(Path::new(dir))),
        ["--rest", dir, who] => on_threads(rest(Path::new(dir), *who == "controllers")),
        ["--batch"] => rows("--one-batch", &BATCH_SIZES),
        ["--batch", sizes @ ..] => rows("--one-batch", sizes),
        [] => all(&SIZES),
        sizes => all(sizes),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("controllers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn on_threads(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}

/// A table with a row for each size, each of which is a process of its own.
fn rows(mode: &str, sizes: &[&str]) -> Result<(), Failure> {
    println!(
        "jobs x pods   seconds   jobs/s   pods/s  cpu s  peak MB   writes per job: controllers scheduler nodes   per pod: controllers"
    );
    sizes.iter().try_for_each(|size| again(&[mode, size]))
}

fn all(sizes: &[&str]) -> Result<(), Failure> {
    rows("--one", sizes)?;
    let dir = tempfile::tempdir()?;
    let dir = dir.path().to_str().ok_or("the temporary directory has no usable name")?;
    again(&["--fill", dir])?;
    let without = resident(dir, "nobody")?;
    let with = resident(dir, "controllers")?;
    println!(
        "{RESIDENT} running: {without:.1} MB resident without the controllers, {with:.1} MB with them: they hold {:.1} MB",
        with - without
    );
    Ok(())
}

fn again(words: &[&str]) -> Result<(), Failure> {
    let status = Command::new(std::env::current_exe()?).args(words).status()?;
    if status.success() { Ok(()) } else { Err(format!("{words:?} failed").into()) }
}

fn resident(dir: &str, who: &str) -> Result<f64, Failure> {
    let output = Command::new(std::env::current_exe()?).args(["--rest", dir, who]).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// `1000x10`.
fn parse(size: &str) -> Result<(u64, u64), Failure> {
    let (jobs, pods) = size.split_once('x').ok_or("a size is JOBSxPODS, such as 1000x10")?;
    Ok((jobs.parse()?, pods.parse()?))
}

/// Runs jobs to their end and prints a row.
async fn complete(kind: Kind, size: &str) -> Result<(), Failure> {
    let (jobs, pods) = parse(size)?;
    let cluster = Cluster::start(Store::in_memory()).await?;
    let started = Instant::now();
    cluster.create(kind, jobs, pods, "0s").await?;
    cluster.wait_for(kind, jobs, has_completed).await?;
    let seconds = started.elapsed().as_secs_f64();
    let per_job = |who: &Counted| who.writes.load(Ordering::Relaxed) as f64 / jobs as f64;
    println!(
        "{size:<12} {seconds:>8.2} {:>8.0} {:>8.0} {:>6.2} {:>8.1}   {:>27.2} {:>9.2} {:>5.2}   {:>20.3}",
        jobs as f64 / seconds,
        (jobs * pods) as f64 / seconds,
        cpu_seconds()?,
        memory("VmHWM:")?,
        per_job(&cluster.controllers),
        per_job(&cluster.scheduler),
        per_job(&cluster.nodes),
        per_job(&cluster.controllers) / pods as f64,
    );
    Ok(())
}

/// Leaves running jobs on disk.
async fn fill(dir: &Path) -> Result<(), Failure> {
    let (jobs, pods) = parse(RESIDENT)?;
    let store = Store::open(dir)?;
    let mut cluster = Cluster::start(store.clone()).await?;
    cluster.create(Kind::VcJob, jobs, pods, "forever").await?;
    cluster.wait_for(Kind::VcJob, jobs, |job| phase_is(job, "Running")).await?;
    cluster.tasks.shutdown().await;
    store.close();
    Ok(())
}

/// Opens what is on disk, with or without the controllers, and prints the resident memory at rest.
async fn rest(dir: &Path, with_controllers: bool) -> Result<(), Failure> {
    let api = Api::new(Store::open(dir)?, Arc::new(SystemEnv), Admission::default());
    let client = Counted::new(&api);
    let mut tasks = JoinSet::new();
    if with_controllers {
        tasks.spawn(run(client.clone(), krafla_plan::controllers()));
    }
    client.rest().await;
    println!("{:.1}", memory("VmRSS:")?);
    Ok(())
}

async fn run(client: Arc<Counted>, controllers: Vec<Box<dyn Controller>>) {
    krafla_runtime::run(Engine::new(controllers), client, Arc::new(SystemClock), WORKERS).await;
}

/// Everything but HTTP, with its requests counted.
struct Cluster {
    client: LocalClient,
    controllers: Arc<Counted>,
    scheduler: Arc<Counted>,
    nodes: Arc<Counted>,
    tasks: JoinSet<()>,
}

impl Cluster {
    async fn start(store: Store) -> Result<Cluster, Failure> {
        let admission = Admission::default().with(Volcano::default());
        let api = Api::new(store, Arc::new(SystemEnv), admission);
        api.bootstrap().await?;
        let [controllers, scheduler, nodes] = [(); 3].map(|()| Counted::new(&api));
        let mut tasks = JoinSet::new();
        tasks.spawn(api.clone().run_namespaces());
        tasks.spawn(Collector::new(api.clone()).run());
        tasks.spawn(run(controllers.clone(), krafla_plan::controllers()));
        tasks.spawn(run(scheduler.clone(), vec![Box::new(Scheduler::default())]));
        let simulated =
            SimulatedNodes::new(nodes.clone(), "nodes=100,cpu=1000,memory=10Ti,pods=1000".parse()?);
        tasks.spawn(async move { simulated.run(std::future::pending()).await });
        Ok(Cluster { client: LocalClient::new(api), controllers, scheduler, nodes, tasks })
    }

    async fn create(&self, kind: Kind, jobs: u64, pods: u64, duration: &str) -> Result<(), Failure> {
        let created = join_all((0..jobs).map(|n| async move {
            let object =
                if kind == Kind::Job { batch_job(n, pods, duration) } else { job(n, pods, duration) };
            let step = Step::Create { kind, object };
            self.client.write(&step).await
        }));
        created.await.into_iter().try_for_each(|written| written.map(drop))?;
        Ok(())
    }

    /// Waits until all jobs are or have been so.
    async fn wait_for(&self, kind: Kind, jobs: u64, is_so: impl Fn(&Object) -> bool) -> Result<(), Failure> {
        let listed = self.client.list(kind).await?;
        let is_there = |json: &Bytes| {
            let object = Object::decode(kind, json);
            is_so(&object).then_some(object.meta.key)
        };
        let mut there: std::collections::HashSet<Key> = listed.items.iter().filter_map(is_there).collect();
        let mut events = self.client.watch(kind, listed.revision);
        while (there.len() as u64) < jobs {
            let event = events.next().await.ok_or("the watch ended")??;
            there.extend(is_there(&event.object));
        }
        Ok(())
    }
}

fn has_completed(job: &Object) -> bool {
    phase_is(job, "Completed") || job.as_job().is_some_and(|job| job.status.condition("Complete").is_some())
}

fn phase_is(job: &Object, phase: &str) -> bool {
    job.as_vcjob().is_some_and(|job| job.status.state.phase.to_string() == phase)
}

fn batch_job(n: u64, pods: u64, duration: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": format!("job-{n}"), "namespace": "default"},
        "spec": {
            "completionMode": "Indexed", "completions": pods, "parallelism": pods,
            "template": template(duration),
        },
    })
}

fn template(duration: &str) -> Value {
    json!({
        "metadata": {"annotations": {"krafla.dev/simulated-duration": duration}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "main", "image": "any", "command": ["true"],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
            }],
        },
    })
}

fn job(n: u64, pods: u64, duration: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {"name": format!("job-{n}"), "namespace": "default"},
        "spec": {
            "minAvailable": pods,
            "tasks": [{"name": "work", "replicas": pods, "template": template(duration)}],
        },
    })
}

/// A client that counts what it is asked.
struct Counted {
    inner: LocalClient,
    writes: AtomicU64,
    requests: AtomicU64,
}

impl Counted {
    fn new(api: &Api) -> Arc<Counted> {
        let inner = LocalClient::new(api.clone());
        Arc::new(Counted { inner, writes: AtomicU64::new(0), requests: AtomicU64::new(0) })
    }

    /// Returns when nothing has been asked for a while.
    async fn rest(&self) {
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

/// A line of this process' status, in megabytes.
fn memory(line: &str) -> Result<f64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let found = status.lines().find_map(|text| text.strip_prefix(line)).ok_or("no such line")?;
    Ok(found.trim().trim_end_matches(" kB").parse::<f64>()? * 1024.0 / 1e6)
}

/// Processor time of this process: fields 14 and 15 of its line, in hundredths of a second.
fn cpu_seconds() -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(") ").ok_or("no name")?.1;
    let ticks = |n| after_name.split(' ').nth(n).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / 100.0)
}
