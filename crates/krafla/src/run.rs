//! `krafla run`: from files to an exit code.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use futures_util::StreamExt;
use futures_util::stream::select_all;
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
use crate::progress::{self, End, FOLLOWED};

/// What shells report of a program that Ctrl-C ended.
const EXIT_INTERRUPTED: u8 = 130;

/// What the user did wrong: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub(crate) struct BadInput(pub(crate) anyhow::Error);

/// Runs the jobs and flows in the files and waits for their end.
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
    let mut run = Run { cluster: &cluster, followed: BTreeMap::new(), started, output: args.output };
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
    /// Each job and flow as it was last seen.
    followed: BTreeMap<(Kind, Key), Option<Object>>,
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
        let mut jobs = Vec::new();
        for manifest in manifests {
            let key = self.create(&manifest).await?;
            if FOLLOWED.contains(&manifest.kind) {
                jobs.extend(job_keys(&manifest, &key));
                self.followed.insert((manifest.kind, key), None);
            }
        }
        if self.followed.is_empty() {
            let message = "there is no Job and no JobFlow in the files, so there is nothing to wait for";
            return Err(BadInput(anyhow!(message)).into());
        }
        let logs = pod_logs::Follower::start(self.cluster, follows_logs.then_some(jobs), revision);
        self.follow(revision).await?;
        logs.finish().await;
        let mut failed = self
            .followed
            .values()
            .flatten()
            .filter(|object| progress::end(object) != Some(End::Well))
            .peekable();
        let code = if failed.peek().is_none() { ExitCode::SUCCESS } else { ExitCode::from(1) };
        for key in failed.flat_map(progress::failed_jobs) {
            pod_logs::explain(self.cluster, &key).await?;
        }
        if self.output == Some(Output::Json) {
            println!("{:#}", self.result());
        }
        Ok(code)
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

    /// Prints the way of each job and flow until all have ended.
    async fn follow(&mut self, revision: u64) -> Result<()> {
        let watches = FOLLOWED.map(|kind| {
            self.cluster
                .client
                .watch(kind, revision)
                .map(move |event| event.map(|event| (kind, event)))
                .boxed()
        });
        let mut events = select_all(watches);
        while self.followed.values().any(|object| object.as_ref().and_then(progress::end).is_none()) {
            let (kind, event) = events.next().await.ok_or_else(|| anyhow!("the watch of jobs ended"))??;
            if event.event_type == EventType::Bookmark {
                continue;
            }
            let object = Object::decode(kind, &event.object);
            let Some(seen) = self.followed.get_mut(&(kind, object.meta.key.clone())) else { continue };
            if event.event_type == EventType::Deleted {
                // One that has ended may be removed, by its time to live or otherwise.
                if seen.as_ref().and_then(progress::end).is_none() {
                    let (what, name) = (kind.info().singular, &object.meta.key.name);
                    return Err(anyhow!("{what} {name} was deleted before it ended"));
                }
                continue;
            }
            let before = seen.as_ref().map(progress::news);
            let now = seen.insert(object);
            if before.as_ref() != Some(&progress::news(now)) && !is_new(now) {
                let line = format!("{} ({:.2} s)", progress::line(now), self.started.elapsed().as_secs_f64());
                self.say(&line);
            }
        }
        Ok(())
    }

    /// Deletes all jobs and flows and waits until their pods have ended.
    async fn end_jobs(&self) {
        for object in self.followed.values().flatten() {
            let step = Step::Delete {
                kind: object.kind,
                key: object.meta.key.clone(),
                uid: object.meta.uid.clone(),
                revision: None,
                propagation: Propagation::Foreground,
                grace_seconds: None,
            };
            // One that is gone already has ended.
            let _ = self.cluster.client.write(&step).await;
        }
        for kind in [Kind::VcJob, Kind::Job] {
            let Ok(listed) = self.cluster.client.list(kind).await else { return };
            let mut left = listed.items.len();
            let mut events = self.cluster.client.watch(kind, listed.revision);
            while left > 0 {
                let Some(Ok(event)) = events.next().await else { return };
                left -= usize::from(event.event_type == EventType::Deleted);
            }
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
        let of_kind = |kind: Kind| {
            let objects = self.followed.values().flatten().filter(move |object| object.kind == kind);
            objects.map(progress::result).collect::<Vec<_>>()
        };
        let jobs = [of_kind(Kind::VcJob), of_kind(Kind::Job)].concat();
        json!({
            "jobs": jobs,
            "flows": of_kind(Kind::JobFlow),
            "seconds": self.started.elapsed().as_secs_f64(),
        })
    }
}

/// Whether nobody has looked at a job or flow yet.
fn is_new(object: &Object) -> bool {
    let is_new_job = object.as_vcjob().is_some_and(|job| job.status.state.phase.is_unset());
    let is_new_job = is_new_job || object.as_job().is_some_and(|job| job.status == Default::default());
    is_new_job || object.as_jobflow().is_some_and(|flow| flow.status.state.phase.is_unset())
}

/// The jobs that a manifest stands for: itself, or one for each step of a flow.
fn job_keys(manifest: &Manifest, key: &Key) -> Vec<Key> {
    if manifest.kind != Kind::JobFlow {
        return vec![key.clone()];
    }
    let steps = manifest.object.pointer("/spec/flows").and_then(serde_json::Value::as_array);
    let names = steps.into_iter().flatten().filter_map(|step| step.get("name")?.as_str());
    names.map(|name| Key::new(&key.namespace, &format!("{}-{name}", key.name))).collect()
}
