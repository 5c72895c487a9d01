//! `krafla run`: from files to an exit code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use futures_util::StreamExt;
use futures_util::stream::select_all;
use krafla_api::{Key, Kind, Uid};
use krafla_plan::{Object, Propagation, Step, controlling_keys};
use krafla_runtime::{Event, EventType};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::MissedTickBehavior;

use crate::bars::{self, View};
use crate::catalogue::{Manifest, identify};
use crate::changes::changes;
use crate::cli::{self, Output};
use crate::home::{Choice, Home};
use crate::manifest::{self, Document};
use crate::pod_logs;
use crate::progress::{self, End, FOLLOWED};
use crate::screen::Screen;
use crate::submit::submit;
use crate::waits::Waits;

/// What shells report of a program that Ctrl-C ended.
const EXIT_INTERRUPTED: u8 = 130;
/// The kinds that say why a job does not start.
const WAITING: [Kind; 3] = [Kind::PodGroup, Kind::Pod, Kind::Event];
/// How often the time on a terminal moves on, and how soon a reason to wait is told.
const REDRAWN_EVERY: Duration = Duration::from_millis(250);

/// What the user did wrong: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub(crate) struct BadInput(pub(crate) anyhow::Error);

/// Runs the jobs and flows in the files and waits for their end.
pub(crate) async fn run(args: cli::Run) -> Result<ExitCode> {
    let started = Instant::now();
    // What a node that runs already has is not for a run to say.
    let choice = if args.own_cluster || !args.capacity.is_empty() {
        Choice::Own
    } else {
        let variable = std::env::var_os("KUBECONFIG");
        Choice::of(args.kubeconfig.as_deref(), variable.as_deref(), Path::new(cli::DATA_DIR))?
    };
    if !args.workdir.is_dir() {
        let message = "is not a directory of this machine: create it, or name another one";
        return Err(BadInput(anyhow!("--workdir: {} {message}", args.workdir.display())).into());
    }
    let documents = manifest::read_all(&args.all_files()).map_err(BadInput)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let screen = Arc::new(Screen::new(args.output.is_some()));
    let home = enter(choice, &args, &screen).await?;
    let mut run = Run {
        home: &home,
        followed: BTreeMap::new(),
        jobs: Vec::new(),
        waits: Waits::default(),
        has_contact: true,
        started,
        output: args.output,
        screen,
    };
    let outcome = tokio::select! {
        outcome = run.until_all_have_ended(documents, args.logs) => outcome,
        () = any(&mut interrupt, &mut terminate) => Ok(ExitCode::from(EXIT_INTERRUPTED)),
    };
    let mut is_hurried = false;
    if outcome.as_ref().is_ok_and(|code| *code == ExitCode::from(EXIT_INTERRUPTED)) {
        run.screen.line("interrupted: ending all jobs; once more ends them at once");
        is_hurried = tokio::select! {
            () = run.end_jobs() => false,
            () = any(&mut interrupt, &mut terminate) => true,
        };
    }
    let screen = run.screen;
    if is_hurried {
        home.leave(|_| {}, std::future::ready(())).await;
    } else {
        // Pods that no job of this run has made, or later runs of a CronJob, may take their time.
        home.leave(|line| screen.line(line), any(&mut interrupt, &mut terminate)).await;
    }
    outcome
}

/// The cluster that was chosen. A `krafla up` that is not there any more is not missed.
async fn enter(choice: Choice, args: &cli::Run, screen: &Screen) -> Result<Home> {
    let own = || Home::own(args.workdir.clone(), args.capacity.clone());
    let (access, is_here) = match choice {
        Choice::Own => return own().await,
        Choice::There(access) => (*access, false),
        Choice::Here(access) => (*access, true),
    };
    let origin = format!("{} ({})", access.origin, access.server);
    match Home::there(access, &args.workdir).await {
        Err(_) if is_here => own().await,
        Err(error) if args.kubeconfig.is_none() => {
            screen.line(&format!("{error:#}; this run has a cluster of its own instead"));
            own().await
        }
        home => {
            let home = home?;
            eprintln!("in the cluster of {origin}");
            Ok(home)
        }
    }
}

/// Returns when one of two signals has come.
pub(crate) async fn any(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

struct Run<'a> {
    home: &'a Home,
    /// The jobs and flows that this run made.
    followed: BTreeMap<(Kind, Key), Followed>,
    /// The jobs among them, and those that the flows will make.
    jobs: Vec<Key>,
    waits: Waits,
    /// Whether the cluster has answered since it last did not.
    has_contact: bool,
    started: Instant,
    output: Option<Output>,
    screen: Arc<Screen>,
}

/// A job or flow that this run made.
struct Followed {
    uid: Uid,
    /// As it was last seen.
    seen: Option<Object>,
    /// How long after the beginning of the run it was seen to have ended.
    ended_after: Option<Duration>,
}

impl Followed {
    fn new(uid: Uid) -> Followed {
        Followed { uid, seen: None, ended_after: None }
    }

    fn has_ended(&self) -> bool {
        self.seen.as_ref().and_then(progress::end).is_some()
    }
}

impl Run<'_> {
    async fn until_all_have_ended(
        &mut self,
        documents: Vec<Document>,
        follows_logs: bool,
    ) -> Result<ExitCode> {
        let manifests = identify(&*self.home.manifests, documents, &self.home.namespace).await?;
        let revision = self.home.client.list(Kind::Pod).await?.revision;
        if let Err(error) = self.submit_all(manifests).await {
            // What can not begin as a whole does not begin at all.
            self.end_jobs().await;
            return Err(error);
        }
        let jobs = follows_logs.then(|| self.jobs.clone());
        let logs = pod_logs::Follower::start(self.home, jobs, revision, self.screen.clone());
        self.follow(revision).await?;
        logs.finish().await;
        let ended = self.followed.values().filter_map(|followed| followed.seen.as_ref());
        let mut failed = ended.filter(|object| progress::end(object) != Some(End::Well)).peekable();
        let code = if failed.peek().is_none() { ExitCode::SUCCESS } else { ExitCode::from(1) };
        for key in failed.flat_map(progress::failed_jobs) {
            pod_logs::explain(self.home, &key).await?;
        }
        if self.output == Some(Output::Json) {
            println!("{:#}", self.result());
        }
        Ok(code)
    }

    async fn submit_all(&mut self, manifests: Vec<Manifest>) -> Result<()> {
        for manifest in manifests {
            let submitted = submit(self.home, &manifest).await?;
            let key = submitted.key;
            let what = format!("{}/{}", manifest.of.singular, key.name);
            self.screen.line(&format!("{what} {}", submitted.done));
            for doubt in submitted.doubts {
                self.screen.line(&format!("{what}: {doubt}"));
            }
            if let Some(kind) = manifest.followed() {
                self.jobs.extend(job_keys(&manifest, &key));
                self.followed.insert((kind, key), Followed::new(submitted.uid));
            }
        }
        Ok(())
    }

    /// Shows the way of each job and flow until all have ended.
    async fn follow(&mut self, revision: u64) -> Result<()> {
        let watches = self.kinds().into_iter().chain(WAITING).map(|kind| {
            let events = changes(self.home.client.clone(), kind, revision);
            events.map(move |event| event.map(|event| (kind, event))).boxed()
        });
        let mut events = select_all(watches);
        let mut ticks = tokio::time::interval(REDRAWN_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while self.waits_for_anything() {
            tokio::select! {
                event = events.next() => match event.ok_or_else(|| anyhow!("the watch of jobs ended"))? {
                    Ok((kind, event)) => self.observe(kind, &event)?,
                    Err(error) => {
                        if std::mem::take(&mut self.has_contact) {
                            self.screen.line(&format!("no contact with the cluster, trying again: {error}"));
                        }
                    }
                },
                _ = ticks.tick() => self.tell_reasons(),
            }
        }
        self.hear_last_warnings().await;
        self.draw();
        Ok(())
    }

    /// The kinds of what is followed, and of what that makes. A cluster need not serve the others.
    fn kinds(&self) -> BTreeSet<Kind> {
        let followed = self.followed.keys().map(|(kind, _)| *kind);
        let made_by = |kind| if kind == Kind::JobFlow { Some(Kind::VcJob) } else { progress::made_by(kind) };
        followed.flat_map(|kind| [Some(kind), made_by(kind)]).flatten().collect()
    }

    /// Takes in what was said of pods before their jobs ended: Events may come late.
    async fn hear_last_warnings(&mut self) {
        self.take_in(Kind::Event).await;
        if self.waits.warnings.lacks_pods() {
            self.take_in(Kind::Pod).await;
        }
        self.tell_warnings();
    }

    /// What can not be listed is not told; that there is no contact is nothing that this run waits for any more.
    async fn take_in(&mut self, kind: Kind) {
        let listed = self.home.client.list(kind).await.map(|listed| listed.items).unwrap_or_default();
        for object in &listed {
            self.waits.observe(kind, object, false, tokio::time::Instant::now());
        }
    }

    /// Says what is wrong with pods that run all the same.
    fn tell_warnings(&mut self) {
        for (job, warning) in self.waits.warnings.news() {
            if self.jobs.contains(&job) {
                self.screen.line(&format!("{}: {warning}", job.name));
            }
        }
    }

    /// Whether something has not ended, or a CronJob has made no Job yet.
    fn waits_for_anything(&self) -> bool {
        self.followed.iter().any(|(it, followed)| match progress::made_by(it.0) {
            Some(_) => !self.has_run(it),
            None => !followed.has_ended(),
        })
    }

    /// Whether a Job of this CronJob is followed.
    fn has_run(&self, cron_job: &(Kind, Key)) -> bool {
        let mut seen = self.followed.values().filter_map(|followed| followed.seen.as_ref());
        seen.any(|object| maker(object).as_ref() == Some(cron_job))
    }

    /// Follows the first Job that a CronJob makes. Those that come after it are the next run's affair.
    fn follow_first_run(&mut self, job: &Object) {
        let cron_job = maker(job).filter(|maker| self.followed.contains_key(maker));
        if cron_job.is_some_and(|cron_job| !self.has_run(&cron_job)) {
            self.jobs.push(job.meta.key.clone());
            let run = Followed::new(job.meta.uid.clone());
            self.followed.entry((job.kind, job.meta.key.clone())).or_insert(run);
        }
    }

    /// Whether a job was made by a flow that is followed. What it does its flow says, but not what it waits for.
    fn is_step(&self, job: &Object) -> bool {
        let mut flows = controlling_keys(Kind::JobFlow, job).into_iter();
        job.kind == Kind::VcJob && flows.any(|flow| self.followed.contains_key(&(Kind::JobFlow, flow)))
    }

    fn observe(&mut self, kind: Kind, event: &Event) -> Result<()> {
        self.has_contact = true;
        let is_deleted = event.event_type == EventType::Deleted;
        if event.event_type == EventType::Bookmark {
            return Ok(());
        }
        if WAITING.contains(&kind) {
            self.waits.observe(kind, &event.object, is_deleted, tokio::time::Instant::now());
            return Ok(());
        }
        let object = Object::decode(kind, &event.object);
        self.follow_first_run(&object);
        if self.is_step(&object) && !is_deleted {
            self.waits.observe_job(&object, tokio::time::Instant::now());
        }
        let Some(followed) = self.followed.get_mut(&(kind, object.meta.key.clone())) else { return Ok(()) };
        // Another one of the same name may have been there before.
        if followed.uid != object.meta.uid {
            return Ok(());
        }
        if is_deleted {
            // One that has ended may be removed, by its time to live or otherwise.
            if !followed.has_ended() {
                let (what, name) = (kind.info().singular, &object.meta.key.name);
                return Err(anyhow!("{what} {name} was deleted before it ended"));
            }
            return Ok(());
        }
        self.waits.observe_job(&object, tokio::time::Instant::now());
        let before = followed.seen.as_ref().map(progress::news);
        let now = followed.seen.insert(object);
        if progress::end(now).is_some() {
            followed.ended_after.get_or_insert_with(|| self.started.elapsed());
        }
        if before.as_ref() != Some(&progress::news(now)) && !is_new(now) && !self.screen.is_live() {
            let seconds = self.started.elapsed().as_secs_f64();
            self.screen.line(&format!("{} ({seconds:.2} s)", progress::line(now)));
        }
        self.draw();
        Ok(())
    }

    /// Says why jobs wait: below each on a terminal, in a line of its own elsewhere.
    fn tell_reasons(&mut self) {
        self.tell_warnings();
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
        let views = self.followed.iter().map(|((kind, key), followed)| {
            let reason = if followed.has_ended() { None } else { self.reason(*kind, key) };
            let view = View::of(&key.name, followed.seen.as_ref(), reason);
            View { ended_after: followed.ended_after, ..view }
        });
        let views: Vec<View> = views.collect();
        self.screen.draw(bars::render(&views, self.started.elapsed(), self.screen.size()));
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

    /// Deletes the jobs and flows of this run and waits until they, and with them their pods, are gone.
    async fn end_jobs(&self) {
        for ((kind, key), followed) in &self.followed {
            let step = Step::Delete {
                kind: *kind,
                key: key.clone(),
                uid: followed.uid.clone(),
                revision: None,
                propagation: Propagation::Foreground,
                grace_seconds: None,
            };
            // One that is gone already has ended.
            let _ = self.home.client.write(&step).await;
        }
        for kind in FOLLOWED {
            self.until_gone(kind).await;
        }
    }

    async fn until_gone(&self, kind: Kind) {
        let is_ours = |key: &Key| self.followed.contains_key(&(kind, key.clone())) || self.jobs.contains(key);
        let Ok(listed) = self.home.client.list(kind).await else { return };
        let keys = listed.items.iter().map(|item| Object::decode(kind, item).meta.key);
        let mut left: BTreeSet<Key> = keys.filter(is_ours).collect();
        let mut events = changes(self.home.client.clone(), kind, listed.revision);
        while !left.is_empty() {
            let Some(Ok(event)) = events.next().await else { continue };
            if event.event_type == EventType::Deleted {
                left.remove(&Object::decode(kind, &event.object).meta.key);
            }
        }
    }

    fn result(&self) -> serde_json::Value {
        let of_kind = |kind: Kind| {
            let objects = self.followed.values().filter_map(|followed| followed.seen.as_ref());
            let objects = objects.filter(move |object| object.kind == kind);
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

/// The CronJob that made a Job.
fn maker(job: &Object) -> Option<(Kind, Key)> {
    let kinds = FOLLOWED.into_iter().filter(|kind| progress::made_by(*kind) == Some(job.kind));
    kinds.flat_map(|kind| controlling_keys(kind, job).into_iter().map(move |key| (kind, key))).next()
}

/// Whether nobody has looked at a job or flow yet.
fn is_new(object: &Object) -> bool {
    let is_new_job = object.as_vcjob().is_some_and(|job| job.status.state.phase.is_unset());
    let is_new_job = is_new_job || object.as_job().is_some_and(|job| job.status == Default::default());
    is_new_job || object.as_jobflow().is_some_and(|flow| flow.status.state.phase.is_unset())
}

/// The jobs that a manifest stands for: itself, or one for each step of a flow.
fn job_keys(manifest: &Manifest, key: &Key) -> Vec<Key> {
    if manifest.followed() != Some(Kind::JobFlow) {
        return vec![key.clone()];
    }
    let steps = manifest.object.pointer("/spec/flows").and_then(serde_json::Value::as_array);
    let names = steps.into_iter().flatten().filter_map(|step| step.get("name")?.as_str());
    names.map(|name| Key::new(&key.namespace, &format!("{}-{name}", key.name))).collect()
}
