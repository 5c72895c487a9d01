//! `krafla run`: from files to an exit code.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use futures_util::StreamExt;
use krafla_api::volcano::JobPhase;
use krafla_api::{Key, Kind};
use krafla_node::{LogOptions, Mode};
use krafla_plan::object::{PodPhase, Terminated};
use krafla_plan::{Object, Step};
use krafla_runtime::{ClientError, EventType};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli;
use crate::cluster::{self, Cluster};
use crate::manifest::{self, Manifest};

/// How many of a failed pod's last lines are shown.
const LAST_LINES: u64 = 10;
/// How many failed pods are shown.
const FAILED_PODS_SHOWN_MAX: usize = 5;

/// What the user did wrong: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub(crate) struct BadInput(pub(crate) anyhow::Error);

/// Runs the jobs in the files and waits for their end.
pub(crate) async fn run(args: cli::Run) -> Result<ExitCode> {
    let started = Instant::now();
    let manifests = manifest::read_all(&args.files).map_err(BadInput)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let dir =
        tempfile::Builder::new().prefix("krafla-").tempdir().context("no temporary directory can be made")?;
    let config = cluster::Config {
        data_dir: dir.path().to_owned(),
        in_memory: true,
        workdir: args.workdir,
        mode: Mode::EndWithNode,
    };
    let cluster = Cluster::start(config).await?;
    let outcome = tokio::select! {
        outcome = run_jobs(&cluster, manifests, started) => outcome,
        _ = interrupt.recv() => Err(anyhow!("interrupted")),
        _ = terminate.recv() => Err(anyhow!("terminated")),
    };
    cluster.stop().await;
    outcome
}

async fn run_jobs(cluster: &Cluster, manifests: Vec<Manifest>, started: Instant) -> Result<ExitCode> {
    let revision = cluster.client.list(Kind::VcJob).await?.revision;
    let mut jobs = BTreeMap::new();
    for manifest in manifests {
        let key = create(cluster, &manifest).await?;
        if manifest.kind == Kind::VcJob {
            jobs.insert(key, JobPhase::Unset);
        }
    }
    if jobs.is_empty() {
        return Err(BadInput(anyhow!("there is no Job in the files, so there is nothing to wait for")).into());
    }
    follow(cluster, &mut jobs, revision, started).await?;
    let failed: Vec<&Key> =
        jobs.iter().filter(|(_, phase)| **phase != JobPhase::Completed).map(|(key, _)| key).collect();
    for key in &failed {
        explain(cluster, key).await?;
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

async fn create(cluster: &Cluster, manifest: &Manifest) -> Result<Key> {
    let step = Step::Create { kind: manifest.kind, object: manifest.object.clone() };
    match cluster.client.write(&step).await {
        Ok(written) => {
            println!("{}/{} created", manifest.kind.info().singular, written.key.name);
            Ok(written.key)
        }
        Err(ClientError::Refused { message, .. } | ClientError::AlreadyExists(message)) => {
            Err(BadInput(anyhow!("{}: {message}", manifest.place)).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints each job's way until all have ended.
async fn follow(
    cluster: &Cluster,
    jobs: &mut BTreeMap<Key, JobPhase>,
    revision: u64,
    started: Instant,
) -> Result<()> {
    let mut events = cluster.client.watch(Kind::VcJob, revision);
    while jobs.values().any(|phase| !is_ended(phase)) {
        let event = events.next().await.ok_or_else(|| anyhow!("the watch of jobs ended"))??;
        if event.event_type == EventType::Bookmark {
            continue;
        }
        let object = Object::decode(Kind::VcJob, &event.object);
        let (Some(seen), Some(job)) = (jobs.get_mut(&object.meta.key), object.as_vcjob()) else { continue };
        let phase = &job.status.state.phase;
        if phase != seen {
            println!("{}", line(&object, started));
            *seen = phase.clone();
        }
    }
    Ok(())
}

fn is_ended(phase: &JobPhase) -> bool {
    phase.is_finished() || *phase == JobPhase::Aborted
}

/// One line about a job: its phase, its pods, the time, and why.
fn line(object: &Object, started: Instant) -> String {
    let Some(job) = object.as_vcjob() else { return String::new() };
    let status = &job.status;
    let counts = [
        (status.pending, "pending"),
        (status.running, "running"),
        (status.succeeded, "succeeded"),
        (status.failed, "failed"),
        (status.terminating, "terminating"),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let mut line = format!("{}: {}", object.meta.key.name, status.state.phase);
    for part in [counts.join(", "), status.state.message.clone()] {
        if !part.is_empty() {
            line = format!("{line}, {part}");
        }
    }
    format!("{line} ({:.2} s)", started.elapsed().as_secs_f64())
}

/// Shows how the pods of a failed job ended.
async fn explain(cluster: &Cluster, job: &Key) -> Result<()> {
    let pods = cluster.client.list(Kind::Pod).await?;
    let pods = pods.items.iter().map(|pod| Object::decode(Kind::Pod, pod));
    let is_of_job = |pod: &Object| {
        pod.meta.key.namespace == job.namespace
            && pod.meta.owners.iter().any(|owner| *owner.name == *job.name)
    };
    let failed = pods.filter(|pod| {
        is_of_job(pod) && pod.as_pod().is_some_and(|body| body.status.phase == PodPhase::Failed)
    });
    for pod in failed.take(FAILED_PODS_SHOWN_MAX) {
        let Some(body) = pod.as_pod() else { continue };
        for container in &body.status.container_statuses {
            let Some(end) = container.state.terminated.as_ref().filter(|end| end.exit_code != 0) else {
                continue;
            };
            eprintln!(
                "pod {}, container {}: exit code {}{}",
                pod.meta.key.name,
                container.name,
                end.exit_code,
                detail(end)
            );
            show_last_lines(cluster, &pod.meta.key, &container.name).await;
        }
    }
    Ok(())
}

async fn show_last_lines(cluster: &Cluster, pod: &Key, container: &str) {
    let options = LogOptions { tail_lines: Some(LAST_LINES), ..LogOptions::default() };
    // A container that never started has no log, and its exit reason has been told.
    let Ok(mut log) = cluster.node.logs(&pod.namespace, &pod.name, Some(container), options).await else {
        return;
    };
    let mut text = Vec::new();
    while let Some(Ok(chunk)) = log.next().await {
        text.extend_from_slice(&chunk);
    }
    for line in String::from_utf8_lossy(&text).lines() {
        eprintln!("  {line}");
    }
}

/// Why a container ended, where its exit code does not say it all.
fn detail(end: &Terminated) -> String {
    match (end.reason.as_str(), end.message.as_str()) {
        ("" | "Error", "") => String::new(),
        (reason, "") => format!(" ({reason})"),
        (_, message) => format!(": {message}"),
    }
}
