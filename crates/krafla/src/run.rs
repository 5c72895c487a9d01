//! `krafla run`: from files to an exit code.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use futures_util::StreamExt;
use krafla_api::volcano::JobPhase;
use krafla_api::{Key, Kind};
use krafla_node::Mode;
use krafla_plan::{Object, Propagation, Step};
use krafla_runtime::{ClientError, EventType};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::{self, Output};
use crate::cluster::{self, Cluster};
use crate::manifest::{self, Manifest};
use crate::pod_logs;

/// What shells report of a program that Ctrl-C ended.
const EXIT_INTERRUPTED: u8 = 130;

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
        simulate: None,
        mode: Mode::EndWithNode,
    };
    let cluster = Cluster::start(config).await?;
    let mut run = Run { cluster: &cluster, jobs: BTreeMap::new(), started, output: args.output };
    let outcome = tokio::select! {
        outcome = run.until_all_have_ended(manifests, args.logs) => outcome,
        () = any(&mut interrupt, &mut terminate) => Ok(ExitCode::from(EXIT_INTERRUPTED)),
    };
    if outcome.as_ref().is_ok_and(|code| *code == ExitCode::from(EXIT_INTERRUPTED)) {
        run.say("interrupted: ending all jobs; once more ends them at once");
        tokio::select! {
            () = run.end_jobs() => {}
            () = any(&mut interrupt, &mut terminate) => {}
        }
    }
    cluster.stop().await;
    outcome
}

async fn any(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

struct Run<'a> {
    cluster: &'a Cluster,
    /// Each job as it was last seen.
    jobs: BTreeMap<Key, Option<Object>>,
    started: Instant,
    output: Option<Output>,
}

impl Run<'_> {
    async fn until_all_have_ended(
        &mut self,
        manifests: Vec<Manifest>,
        follows_logs: bool,
    ) -> Result<ExitCode> {
        let revision = self.cluster.client.list(Kind::VcJob).await?.revision;
        for manifest in manifests {
            let key = self.create(&manifest).await?;
            if manifest.kind == Kind::VcJob {
                self.jobs.insert(key, None);
            }
        }
        if self.jobs.is_empty() {
            return Err(
                BadInput(anyhow!("there is no Job in the files, so there is nothing to wait for")).into()
            );
        }
        let keys: Vec<Key> = self.jobs.keys().cloned().collect();
        let logs = pod_logs::Follower::start(self.cluster, follows_logs.then_some(keys), revision);
        self.follow(revision).await?;
        logs.finish().await;
        let failed: Vec<&Key> = self
            .jobs
            .iter()
            .filter(|(_, job)| phase(job) != JobPhase::Completed)
            .map(|(key, _)| key)
            .collect();
        for key in &failed {
            pod_logs::explain(self.cluster, key).await?;
        }
        if self.output == Some(Output::Json) {
            println!("{:#}", self.result());
        }
        Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }

    async fn create(&self, manifest: &Manifest) -> Result<Key> {
        let step = Step::Create { kind: manifest.kind, object: manifest.object.clone() };
        match self.cluster.client.write(&step).await {
            Ok(written) => {
                self.say(&format!("{}/{} created", manifest.kind.info().singular, written.key.name));
                Ok(written.key)
            }
            Err(ClientError::Refused { message, .. } | ClientError::AlreadyExists(message)) => {
                Err(BadInput(anyhow!("{}: {message}", manifest.place)).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Prints each job's way until all have ended.
    async fn follow(&mut self, revision: u64) -> Result<()> {
        let mut events = self.cluster.client.watch(Kind::VcJob, revision);
        while self.jobs.values().any(|job| !is_ended(&phase(job))) {
            let event = events.next().await.ok_or_else(|| anyhow!("the watch of jobs ended"))??;
            if event.event_type == EventType::Bookmark {
                continue;
            }
            let object = Object::decode(Kind::VcJob, &event.object);
            let Some(seen) = self.jobs.get_mut(&object.meta.key) else { continue };
            if event.event_type == EventType::Deleted {
                return Err(anyhow!("job {} was deleted before it ended", object.meta.key.name));
            }
            let before = phase(seen);
            let now = seen.insert(object);
            if before != phase_of(now) {
                let line = line(now, self.started);
                self.say(&line);
            }
        }
        Ok(())
    }

    /// Deletes all jobs and waits until their pods have ended.
    async fn end_jobs(&self) {
        for (key, job) in &self.jobs {
            let Some(job) = job else { continue };
            let step = Step::Delete {
                kind: Kind::VcJob,
                key: key.clone(),
                uid: job.meta.uid.clone(),
                revision: None,
                propagation: Propagation::Foreground,
                grace_seconds: None,
            };
            // A job that is gone already has ended.
            let _ = self.cluster.client.write(&step).await;
        }
        let Ok(listed) = self.cluster.client.list(Kind::VcJob).await else { return };
        let mut left = listed.items.len();
        let mut events = self.cluster.client.watch(Kind::VcJob, listed.revision);
        while left > 0 {
            let Some(Ok(event)) = events.next().await else { return };
            left -= usize::from(event.event_type == EventType::Deleted);
        }
    }

    /// A line of progress: beside the result, not in it.
    fn say(&self, line: &str) {
        match self.output {
            None => println!("{line}"),
            Some(Output::Json) => eprintln!("{line}"),
        }
    }

    fn result(&self) -> serde_json::Value {
        let jobs = self.jobs.values().flatten().filter_map(|object| {
            let status = &object.as_vcjob()?.status;
            let (key, phase) = (&object.meta.key, &status.state.phase);
            Some(json!({ "namespace": key.namespace.as_ref(), "name": key.name.as_ref(), "phase": phase, "status": status }))
        });
        json!({ "jobs": jobs.collect::<Vec<_>>(), "seconds": self.started.elapsed().as_secs_f64() })
    }
}

fn phase(job: &Option<Object>) -> JobPhase {
    job.as_ref().map_or(JobPhase::Unset, phase_of)
}

fn phase_of(job: &Object) -> JobPhase {
    job.as_vcjob().map_or(JobPhase::Unset, |job| job.status.state.phase.clone())
}

fn is_ended(phase: &JobPhase) -> bool {
    phase.is_finished() || *phase == JobPhase::Aborted
}

/// One line about a job: its phase, its pods, why, and the time.
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
