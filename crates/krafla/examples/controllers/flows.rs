//! Flows to their end, and the collection of finished jobs whose time to live is over.

use std::time::Instant;

use krafla_api::Kind;
use krafla_apiserver::store::Store;
use krafla_plan::Object;
use serde_json::{Value, json};

use crate::cluster::{Cluster, prepare};
use crate::figures::{cpu_seconds, memory};
use crate::jobs::{manifest, volcano_spec};
use crate::{Failure, parse};

/// Above the rows that [`complete`] and [`collect`] print.
pub(crate) const HEADER: &str = "what                       seconds   jobs/s  cpu s  peak MB   \
     writes per job: controllers scheduler nodes   per flow: controllers";

/// Runs flows to their end, each a chain of jobs of one pod, and prints a row.
pub(crate) async fn complete(size: &str) -> Result<(), Failure> {
    let (flows, steps) = parse(size)?;
    let cluster = Cluster::start(Store::in_memory()).await?;
    cluster.create(Kind::JobTemplate, (0..steps).map(template)).await?;
    let started = Instant::now();
    cluster.create(Kind::JobFlow, (0..flows).map(|n| flow(n, steps))).await?;
    let has_succeeded = |flow: &Object| {
        flow.as_jobflow().is_some_and(|flow| flow.status.state.phase.to_string() == "Succeed")
    };
    cluster.wait_for(Kind::JobFlow, flows, has_succeeded).await?;
    let per_flow = cluster.controllers.n_writes() as f64 / flows as f64;
    print_row(&format!("{size} flows x steps"), &cluster, flows * steps, started, &format!("{per_flow:.2}"))
}

/// Starts the controllers on finished jobs whose time to live is over, waits until none is left, and prints a row.
pub(crate) async fn collect(jobs: &str) -> Result<(), Failure> {
    let n_jobs: u64 = jobs.parse()?;
    let store = Store::in_memory();
    let completed = json!({"state": {"phase": "Completed", "lastTransitionTime": "2026-01-01T00:00:00Z"}});
    prepare(&store, Kind::VcJob, (0..n_jobs).map(expired), &json!({"status": completed})).await?;
    let started = Instant::now();
    let cluster = Cluster::start(store).await?;
    cluster.wait_until_gone(Kind::VcJob).await?;
    print_row(&format!("{jobs} jobs past their TTL"), &cluster, n_jobs, started, "-")
}

fn print_row(
    what: &str,
    cluster: &Cluster,
    jobs: u64,
    started: Instant,
    per_flow: &str,
) -> Result<(), Failure> {
    let seconds = started.elapsed().as_secs_f64();
    let [controllers, scheduler, nodes] = [&cluster.controllers, &cluster.scheduler, &cluster.nodes]
        .map(|who| who.n_writes() as f64 / jobs as f64);
    println!(
        "{what:<25} {seconds:>8.2} {:>8.0} {:>6.2} {:>8.1}   {controllers:>27.2} {scheduler:>9.2} {nodes:>5.2}   {per_flow:>21}",
        jobs as f64 / seconds,
        cpu_seconds()?,
        memory("VmHWM:")?,
    );
    Ok(())
}

fn template(n: u64) -> Value {
    manifest(Kind::JobTemplate, &format!("step-{n}"), &volcano_spec(1, "0s"))
}

/// A chain: every step waits for the one before it.
fn flow(n: u64, steps: u64) -> Value {
    let step = |n: u64| match n.checked_sub(1) {
        Some(before) => {
            json!({"name": format!("step-{n}"), "dependsOn": {"targets": [format!("step-{before}")]}})
        }
        None => json!({"name": format!("step-{n}")}),
    };
    let spec = json!({"flows": (0..steps).map(step).collect::<Vec<_>>()});
    manifest(Kind::JobFlow, &format!("flow-{n}"), &spec)
}

fn expired(n: u64) -> Value {
    let mut spec = volcano_spec(1, "0s");
    if let Some(spec) = spec.as_object_mut() {
        spec.insert("ttlSecondsAfterFinished".to_owned(), json!(0));
    }
    manifest(Kind::VcJob, &format!("job-{n}"), &spec)
}
