//! Jobs to their end, and what the controllers hold in memory while jobs run.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use krafla_api::Kind;
use krafla_apiserver::admit::Admission;
use krafla_apiserver::store::Store;
use krafla_apiserver::{Api, LocalClient, SystemEnv};
use krafla_plan::Object;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::cluster::{Cluster, Counted, run};
use crate::figures::{cpu_seconds, memory};
use crate::{Failure, parse};

/// The size whose memory is measured.
pub(crate) const RESIDENT: &str = "1000x10";

/// Above the rows that [`complete`] prints.
pub(crate) const HEADER: &str = "jobs x pods   seconds   jobs/s   pods/s  cpu s  peak MB   \
     writes per job: controllers scheduler nodes   per pod: controllers";

/// Runs jobs to their end and prints a row.
pub(crate) async fn complete(kind: Kind, size: &str) -> Result<(), Failure> {
    let (jobs, pods) = parse(size)?;
    let cluster = Cluster::start(Store::in_memory()).await?;
    let started = Instant::now();
    cluster.create(kind, (0..jobs).map(|n| job(kind, n, pods, "0s"))).await?;
    cluster.wait_for(kind, jobs, has_completed).await?;
    let seconds = started.elapsed().as_secs_f64();
    let per_job = |who: &Counted| who.n_writes() as f64 / jobs as f64;
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
pub(crate) async fn fill(dir: &Path) -> Result<(), Failure> {
    let (jobs, pods) = parse(RESIDENT)?;
    let store = Store::open(dir)?;
    let mut cluster = Cluster::start(store.clone()).await?;
    cluster.create(Kind::VcJob, (0..jobs).map(|n| job(Kind::VcJob, n, pods, "forever"))).await?;
    cluster.wait_for(Kind::VcJob, jobs, |job| phase_is(job, "Running")).await?;
    cluster.tasks.shutdown().await;
    store.close();
    Ok(())
}

/// Opens what is on disk, with or without the controllers, and prints the resident memory at rest.
pub(crate) async fn rest(dir: &Path, with_controllers: bool) -> Result<(), Failure> {
    let api = Api::new(Store::open(dir)?, Arc::new(SystemEnv), Admission::default());
    let client = Counted::new(LocalClient::new(api));
    let mut tasks = JoinSet::new();
    if with_controllers {
        tasks.spawn(run(client.clone(), krafla_plan::controllers()));
    }
    client.rest().await;
    println!("{:.1}", memory("VmRSS:")?);
    Ok(())
}

fn has_completed(job: &Object) -> bool {
    phase_is(job, "Completed") || job.as_job().is_some_and(|job| job.status.condition("Complete").is_some())
}

fn phase_is(job: &Object, phase: &str) -> bool {
    job.as_vcjob().is_some_and(|job| job.status.state.phase.to_string() == phase)
}

fn job(kind: Kind, n: u64, pods: u64, duration: &str) -> Value {
    let spec = match kind {
        Kind::Job => json!({
            "completionMode": "Indexed", "completions": pods, "parallelism": pods,
            "template": pod_template(duration),
        }),
        _ => volcano_spec(pods, duration),
    };
    manifest(kind, &format!("job-{n}"), &spec)
}

/// An object of the namespace in which everything happens.
pub(crate) fn manifest(kind: Kind, name: &str, spec: &Value) -> Value {
    let info = kind.info();
    json!({
        "apiVersion": info.api_version(), "kind": info.kind,
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    })
}

/// The spec of a Volcano Job of equal pods that seem to run for so long.
pub(crate) fn volcano_spec(pods: u64, duration: &str) -> Value {
    json!({
        "minAvailable": pods,
        "tasks": [{"name": "work", "replicas": pods, "template": pod_template(duration)}],
    })
}

fn pod_template(duration: &str) -> Value {
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
