//! `krafla run`: from files to an exit code.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use futures_util::StreamExt;
use futures_util::stream::select_all;
use krafla_api::{Key, Kind};
use krafla_node::Mode;
use krafla_plan::{Object, Propagation, Step};
use krafla_runtime::{ClientError, Event, EventType};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::MissedTickBehavior;

use crate::bars::{self, View};
use crate::cli::{self, Output};
use crate::cluster::{self, Cluster};
use crate::manifest::{self, Manifest};
use crate::pod_logs;
use crate::progress::{self, End, FOLLOWED};
use crate::screen::Screen;
use crate::waits::Waits;

/// What shells report of a program that Ctrl-C ended.
const EXIT_INTERRUPTED: u8 = 130;
/// The kinds that say why a job does not start.
const WAITING: [Kind; 2] = [Kind::PodGroup, Kind::Pod];
/// How often the time on a terminal moves on, and how soon a reason to wait is told.
const REDRAWN_EVERY: Duration = Duration::from_millis(250);

/// What the user did wrong: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub(crate) struct BadInput(pub(crate) anyhow::Error);

/// Runs the jobs and flows in the files and waits for their end.
pub(crate) async fn run(args: cli::Run) -> Result<ExitCode> {
    let started = Instant::now();
    let manifests = manifest::read_all(&args.files).map_err(BadInput)?;
    if !manifests.iter().any(|manifest| FOLLOWED.contains(&manifest.kind)) {
        let message = "there is no Job and no JobFlow in the files, so there is nothing to wait for: \
                       add one, or use `krafla up` and kubectl";
        return Err(BadInput(anyhow!(message)).into());
    }
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
    let mut run = Run {
        cluster: &cluster,
        followed: BTreeMap::new(),
        jobs: Vec::new(),
        waits: Waits::default(),
        started,
        output: args.output,
        screen: Arc::new(Screen::new(args.output.is_some())),
    };
    let outcome = tokio::select! {
        outcome = run.until_all_have_ended(manifests, args.logs) => outcome,
        () = any(&mut interrupt, &mut terminate) => Ok(ExitCode::from(EXIT_INTERRUPTED)),
    };
    if outcome.as_ref().is_ok_and(|code| *code == ExitCode::from(EXIT_INTERRUPTED)) {
        run.screen.line("interrupted: ending all jobs; once more ends them at once");
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
    /// The jobs among them, and those that the flows will make.
    jobs: Vec<Key>,
    waits: Waits,
    started: Instant,
    output: Option<Output>,
    screen: Arc<Screen>,
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
            if FOLLOWED.contains(&manifest.kind) {
                self.jobs.extend(job_keys(&manifest, &key));
                self.followed.insert((manifest.kind, key), None);
            }
        }
        let jobs = follows_logs.then(|| self.jobs.clone());
        let logs = pod_logs::Follower::start(self.cluster, jobs, revision, self.screen.clone());
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
                let kind = manifest.kind.info().singular;
                self.screen.line(&format!("{kind}/{} created", written.key.name));
                Ok(written.key)
            }
            Err(ClientError::Refused { message, .. } | ClientError::AlreadyExists(message)) => {
                Err(BadInput(anyhow!("{}: {message}", manifest.place)).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Shows the way of each job and flow until all have ended.
    async fn follow(&mut self, revision: u64) -> Result<()> {
        let watches = FOLLOWED.into_iter().chain(WAITING).map(|kind| {
            let events = self.cluster.client.watch(kind, revision);
            events.map(move |event| event.map(|event| (kind, event))).boxed()
        });
        let mut events = select_all(watches);
        let mut ticks = tokio::time::interval(REDRAWN_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while self.followed.values().any(|object| object.as_ref().and_then(progress::end).is_none()) {
            tokio::select! {
                event = events.next() => {
                    let (kind, event) = event.ok_or_else(|| anyhow!("the watch of jobs ended"))??;
                    self.observe(kind, &event)?;
                }
                _ = ticks.tick() => self.tell_reasons(),
            }
        }
        self.draw();
        Ok(())
    }

    fn observe(&mut self, kind: Kind, event: &Event) -> Result<()> {
        let is_deleted = event.event_type == EventType::Deleted;
        if event.event_type == EventType::Bookmark {
            return Ok(());
        }
        if WAITING.contains(&kind) {
            self.waits.observe(kind, &event.object, is_deleted, tokio::time::Instant::now());
            return Ok(());
        }
        let object = Object::decode(kind, &event.object);
        let Some(seen) = self.followed.get_mut(&(kind, object.meta.key.clone())) else { return Ok(()) };
        if is_deleted {
            // One that has ended may be removed, by its time to live or otherwise.
            if seen.as_ref().and_then(progress::end).is_none() {
                let (what, name) = (kind.info().singular, &object.meta.key.name);
                return Err(anyhow!("{what} {name} was deleted before it ended"));
            }
            return Ok(());
        }
        let before = seen.as_ref().map(progress::news);
        let now = seen.insert(object);
        if before.as_ref() != Some(&progress::news(now)) && !is_new(now) && !self.screen.is_live() {
            let seconds = self.started.elapsed().as_secs_f64();
            self.screen.line(&format!("{} ({seconds:.2} s)", progress::line(now)));
        }
        self.draw();
        Ok(())
    }

    /// Says why jobs wait: below each on a terminal, in a line of its own elsewhere.
    fn tell_reasons(&mut self) {
        if self.screen.is_live() {
            return self.draw();
        }
        for (job, reason) in self.waits.news(tokio::time::Instant::now()) {
            if self.jobs.contains(&job) {
                self.screen.line(&format!("{}: waiting: {reason}", job.name));
            }
        }
    }

    fn draw(&self) {
        if !self.screen.is_live() {
            return;
        }
        let views = self.followed.iter().map(|((kind, key), object)| {
            let has_ended = object.as_ref().and_then(progress::end).is_some();
            let reason = if has_ended { None } else { self.reason(*kind, key) };
            View::of(&key.name, object.as_ref(), reason)
        });
        let views: Vec<View> = views.collect();
        self.screen.draw(bars::render(&views, self.started.elapsed(), self.screen.width()));
    }

    /// Why a job, or the first job of a flow that does, waits.
    fn reason(&self, kind: Kind, key: &Key) -> Option<&str> {
        let now = tokio::time::Instant::now();
        if kind != Kind::JobFlow {
            return self.waits.reason(key, now);
        }
        let prefix = format!("{}-", key.name);
        let steps =
            self.jobs.iter().filter(|job| job.namespace == key.namespace && job.name.starts_with(&prefix));
        steps.into_iter().find_map(|job| self.waits.reason(job, now))
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
