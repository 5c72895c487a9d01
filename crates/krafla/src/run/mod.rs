//! `krafla run`: from files to an exit code.

mod beginning;
mod ending;
mod signals;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::select_all;
use krafla_api::{Key, Kind, Uid};
use krafla_cluster::{ClientError, Event, EventType};
use krafla_node::pod::Pod;
use krafla_plan::{Object, controlling_keys};
use serde_json::json;
use tokio::time::MissedTickBehavior;

pub(crate) use self::signals::Signals;
use crate::catalogue::identify;
use crate::changes::changes;
use crate::cli::{self, Limit, Output};
use crate::cluster;
use crate::doctor::Means;
use crate::home::{Choice, Home, plainly};
use crate::manifest::{self, Document};
use crate::outcome::{self, Outcome, Waited};
use crate::picture::{self, View};
use crate::pod_logs::{self, is_of_job};
use crate::progress::{self, End, FOLLOWED, JobKey};
use crate::screen::{Screen, print, tell};
use crate::submit::Making;
use crate::waits::Waits;

/// The kinds that say why a job does not start.
const WAITING: [Kind; 3] = [Kind::PodGroup, Kind::Pod, Kind::Event];
/// A cluster that has failed nobody for so long was in contact meanwhile.
const CONTACT_LASTS: Duration = Duration::from_secs(60);
/// How long to wait at the very end for whoever reads.
const READ_WITHIN: Duration = Duration::from_secs(1);
/// How often the time on a terminal moves on, and how soon a reason to wait is told.
const REDRAWN_EVERY: Duration = Duration::from_millis(250);

/// What the user did wrong: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub(crate) struct BadInput(pub(crate) anyhow::Error);

/// Runs the jobs and flows in the files and waits for their end.
pub(crate) async fn run(args: cli::Run) -> Result<ExitCode> {
    let output = args.output;
    let screen = Arc::new(Screen::new(output.is_some()));
    let exit_code = match execute(args, &screen).await {
        Err(error) => {
            // That it can not be written may be the mistake.
            let _ = say_mistake(&screen, &error, output).map(|text| print(&text));
            Ok(outcome::code_of(&error))
        }
        outcome => outcome,
    };
    // Whoever is in a hurry does not wait for a reader that stands still.
    let _ = tokio::time::timeout(READ_WITHIN, screen.until_written()).await;
    exit_code
}

/// Says what is wrong. Returns the document for whoever asked for one, who gets it in any case.
fn say_mistake(screen: &Screen, error: &anyhow::Error, output: Option<Output>) -> Option<String> {
    screen.tell(&format!("krafla: {error:#}\n"));
    output.map(|Output::Json| format!("{:#}\n", json!({ "error": format!("{error:#}") })))
}

async fn execute(mut args: cli::Run, screen: &Arc<Screen>) -> Result<ExitCode> {
    let started = Instant::now();
    // What a node that runs already has is not for a run to say.
    let choice = if args.own_cluster || !args.capacity.is_empty() {
        Choice::Own
    } else if let Some(context) = &args.context {
        Choice::of_context(args.kubeconfig.as_deref(), context)?
    } else {
        let variable = std::env::var_os("KUBECONFIG");
        let choice = Choice::of(args.kubeconfig.as_deref(), variable.as_deref(), Path::new(cli::DATA_DIR))?;
        choice.remark(variable.as_deref()).iter().for_each(|remark| tell(&format!("krafla: {remark}\n")));
        choice
    };
    args.workdir = cluster::workdir(&args.workdir)?;
    let documents = manifest::read_all(&args.all_files(), args.recursive).map_err(BadInput)?;
    let mut signals = Signals::new()?;
    let mut home = enter(choice, &args).await?;
    if let Some(namespace) = &args.namespace {
        home.enter_namespace(namespace).await?;
    }
    let means = if home.is_own() { Means::Files } else { Means::Cluster };
    let mut run = Run {
        home: &home,
        followed: BTreeMap::new(),
        logs: None,
        prints_logs: args.logs,
        waits: Waits::new(means),
        made: Vec::new(),
        making: None,
        has_begun: false,
        replaces: args.replace,
        contact_lost_at: None,
        started,
        screen: screen.clone(),
    };
    let outcome = tokio::select! {
        outcome = run.until_all_have_ended(documents, args.logs) => outcome,
        () = signals.any() => Ok(Outcome::Interrupted),
        // The time may run out while the last words of jobs are printed that have all ended.
        () = after(args.timeout.as_ref()) => Ok(run.verdict().unwrap_or(Outcome::TimedOut)),
    };
    run.screen.keep();
    let document = run.tell(&outcome, args.output, &mut signals).await;
    // What has to be ended does not wait for whoever reads it.
    let printing = tokio::task::spawn_blocking(move || document.map_or(Ok(()), |text| print(&text)));
    let is_hurried = run.end_early(&outcome, args.timeout.as_ref(), &mut signals).await;
    drop(run);
    let printed = if is_hurried {
        home.leave(|_| {}, std::future::ready(())).await;
        tokio::time::timeout(READ_WITHIN, printing).await.ok()
    } else {
        // Pods that no job of this run has made, or later runs of a CronJob, may take their time.
        home.leave(|line| screen.line(line), signals.any()).await;
        signals.until_one(screen.until_written()).await;
        signals.until_one(printing).await
    };
    printed.unwrap_or(Ok(Ok(())))??;
    Ok(outcome.map_or_else(|error| outcome::code_of(&error), Outcome::exit_code))
}

/// Returns after some time, if there is a limit.
async fn after(limit: Option<&Limit>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit.duration).await,
        None => std::future::pending().await,
    }
}

/// The cluster that was chosen. A `krafla up` that is not there any more is not missed.
async fn enter(choice: Choice, args: &cli::Run) -> Result<Home> {
    let own = || Home::own(args.workdir.clone(), args.capacity.clone());
    let (access, is_here) = match choice {
        Choice::Own => return own().await,
        Choice::There(access) => (*access, false),
        Choice::Here(access) => (*access, true),
    };
    let origin = format!("{} ({})", access.origin, access.server);
    match Home::there(access, &args.workdir).await {
        Err(_) if is_here => own().await,
        Err(error) if args.kubeconfig.is_none() && args.context.is_none() => {
            tell(&format!("krafla: {error:#}; using an embedded cluster instead\n"));
            own().await
        }
        home => {
            let home = home?;
            let remark = if home.is_simulated { ", whose pods are simulated" } else { "" };
            tell(&format!("in the cluster of {origin}{remark}\n"));
            Ok(home)
        }
    }
}

struct Run<'a> {
    home: &'a Home,
    /// The jobs and flows that this run made.
    followed: BTreeMap<JobKey, Followed>,
    /// What prints the pods' output, if somebody asked for it.
    logs: Option<pod_logs::Follower>,
    /// Whether all that pods write is printed anyway.
    prints_logs: bool,
    waits: Waits,
    /// What it made that does not go with it.
    made: Vec<String>,
    /// What is being made: it may be there although nobody has followed it yet.
    making: Option<Making>,
    /// Whether all has been made.
    has_begun: bool,
    /// Whether it takes the place of what has the name of one of its jobs.
    replaces: bool,
    /// When the cluster last did not say what happens to some kind.
    contact_lost_at: Option<Instant>,
    started: Instant,
    screen: Arc<Screen>,
}

/// A job or flow that this run made.
struct Followed {
    uid: Uid,
    /// How many were followed before it: they are shown in the order of the files.
    n_before: usize,
    /// Of a flow, the jobs that it will make.
    steps: Vec<JobKey>,
    /// Whether somebody deleted it before it ended, which is a bad end.
    was_deleted: bool,
    /// As it was last seen.
    seen: Option<Object>,
    /// How long after the beginning of the run it was seen to have ended.
    ended_after: Option<Duration>,
}

impl Followed {
    fn new(uid: Uid, n_before: usize, steps: Vec<JobKey>) -> Followed {
        Followed { uid, n_before, steps, was_deleted: false, seen: None, ended_after: None }
    }

    fn has_ended(&self) -> bool {
        self.was_deleted || self.end().is_some()
    }

    /// How it ended, as far as it was seen.
    fn end(&self) -> Option<End> {
        self.seen.as_ref().and_then(progress::end)
    }
}

impl Run<'_> {
    /// Says how it went, as far as that is not on the screen. Returns the document for whoever asked for one.
    async fn tell(
        &self,
        outcome: &Result<Outcome>,
        output: Option<Output>,
        signals: &mut Signals,
    ) -> Option<String> {
        let outcome = match outcome {
            Ok(outcome) => *outcome,
            // Before anything is ended, which takes time.
            Err(error) => return say_mistake(&self.screen, error, output),
        };
        if outcome != Outcome::Interrupted {
            signals.until_one(self.explain_failures()).await;
        }
        match output {
            // Before jobs are ended, which takes their pods away.
            Some(Output::Json) => Some(self.result(outcome).await),
            None => None,
        }
    }

    async fn until_all_have_ended(
        &mut self,
        documents: Vec<Document>,
        follows_logs: bool,
    ) -> Result<Outcome> {
        // A job that is there before its node would be told that there is none.
        let (manifests, ()) = tokio::join!(identify(self.home, documents), self.home.until_pods_can_run());
        let manifests = manifests?;
        let revision = self.home.client.list(Kind::Pod).await?.revision;
        self.submit_all(&manifests).await?;
        self.has_begun = true;
        if follows_logs {
            let (jobs, screen) = (self.jobs().cloned().collect(), self.screen.clone());
            self.logs = Some(pod_logs::Follower::start(self.home, jobs, revision, screen));
        }
        if !self.follow(revision).await? {
            return Ok(Outcome::Stuck);
        }
        self.finish_logs().await;
        Ok(self.verdict().unwrap_or(Outcome::Failed))
    }

    /// How it all ended, if it has.
    fn verdict(&self) -> Option<Outcome> {
        if !self.has_begun || self.unfinished().next().is_some() {
            return None;
        }
        let is_well = |((kind, _), followed): (&JobKey, &Followed)| {
            // How a CronJob's run went, its Job says.
            let is_maker = progress::made_by(*kind).is_some();
            !followed.was_deleted && (is_maker || followed.end() == Some(End::Well))
        };
        Some(if self.followed.iter().all(is_well) { Outcome::Succeeded } else { Outcome::Failed })
    }

    /// Shows how the pods of those ended that ended badly.
    async fn explain_failures(&self) {
        let ended = self.followed.values().filter(|followed| followed.end() == Some(End::Badly));
        let failed = ended.filter_map(|followed| followed.seen.as_ref()).flat_map(progress::failed_jobs);
        for (kind, job) in failed {
            let key = (kind, job.clone());
            if let Err(error) = pod_logs::explain(self.home, &self.screen, &key, !self.prints_logs).await {
                self.screen.tell(&format!(
                    "cannot show how the pods of {} ended: {}\n",
                    job.name,
                    plainly(&error)
                ));
            }
        }
    }

    /// Waits until everything has been printed that pods wrote that have ended or are about to.
    async fn finish_logs(&mut self) {
        let Some(logs) = self.logs.take() else { return };
        let finished = logs.finish();
        tokio::pin!(finished);
        let mut ticks = tokio::time::interval(REDRAWN_EVERY);
        loop {
            tokio::select! {
                is_whole = &mut finished => return self.say_if_lost(is_whole),
                _ = ticks.tick() => self.draw(),
            }
        }
    }

    /// Says that not all was printed that pods wrote.
    fn say_if_lost(&self, is_whole: bool) {
        if !is_whole {
            self.screen.line("lost the connection to the cluster: the last lines of pods may be missing");
        }
    }

    /// Shows the way of each job and flow until all have ended, or nothing can go on: then it returns false.
    async fn follow(&mut self, revision: u64) -> Result<bool> {
        let followed: BTreeSet<Kind> = self.followed.keys().map(|(kind, _)| *kind).collect();
        let watches = self.kinds().into_iter().map(|kind| {
            let is_optional = WAITING.contains(&kind) && !followed.contains(&kind);
            let events = changes(self.home.client.clone(), kind, revision);
            let events = events.take_while(move |event| std::future::ready(!is_optional || is_served(event)));
            events.map(move |event| event.map(|event| (kind, event))).boxed()
        });
        let mut events = select_all(watches);
        let mut ticks = tokio::time::interval(REDRAWN_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while self.unfinished().next().is_some() {
            tokio::select! {
                event = events.next() => match event.ok_or_else(|| anyhow!("the watch of jobs ended"))? {
                    Ok((kind, event)) => self.observe(kind, &event),
                    Err(error) => self.tell_lost_contact(&error),
                },
                _ = ticks.tick() => {
                    self.ask_for_nodes().await;
                    self.tell_reasons();
                    if self.is_stuck() {
                        return Ok(false);
                    }
                }
            }
        }
        self.hear_last_warnings().await;
        self.draw();
        Ok(true)
    }

    /// Says that there is no contact, once for as long as that lasts.
    fn tell_lost_contact(&mut self, error: &ClientError) {
        let now = Instant::now();
        let lost_before = self.contact_lost_at.replace(now);
        if lost_before.is_none_or(|at| now.duration_since(at) >= CONTACT_LASTS) {
            self.screen.line(&format!("lost the connection to the cluster, retrying: {}", plainly(error)));
        }
    }

    /// Finds out whether there is a node that says nothing about a pod that it has.
    async fn ask_for_nodes(&mut self) {
        let now = tokio::time::Instant::now();
        if let Some(node) = self.waits.node_in_doubt(now).map(str::to_owned) {
            let answer = self.home.client.get(Kind::Node, &Key::new("", &node)).await;
            let is_missing = matches!(answer, Err(ClientError::NotFound(_)));
            self.waits.observe_node(&node, !is_missing, now);
        }
    }

    /// Whether nothing that has not ended can go on. In a cluster that others reach, somebody may still help.
    fn is_stuck(&self) -> bool {
        let now = tokio::time::Instant::now();
        let is_hopeless = |job: &JobKey, followed: &Followed| {
            let is_never_due = followed.seen.as_ref().is_some_and(progress::is_never_due);
            is_never_due || self.waits.are_hopeless(followed.steps.iter().chain([job]), now)
        };
        self.home.is_own()
            && !self.waits.anything_moves()
            && self.unfinished().all(|(job, followed)| is_hopeless(job, followed))
    }

    /// What has not ended, and CronJobs that have made no Job yet.
    fn unfinished(&self) -> impl Iterator<Item = (&JobKey, &Followed)> {
        self.followed.iter().filter(|(job, followed)| !self.is_over(job, followed))
    }

    /// Whether it is waited for no more. In place of a CronJob its first Job is waited for.
    fn is_over(&self, job: &JobKey, followed: &Followed) -> bool {
        match progress::made_by(job.0) {
            Some(_) => followed.was_deleted || self.has_run(job),
            None => followed.has_ended(),
        }
    }

    /// The kinds of what is followed, of what that makes, and of what says why it waits. A cluster need not serve the others.
    fn kinds(&self) -> BTreeSet<Kind> {
        let followed = self.followed.keys().map(|(kind, _)| *kind);
        let made_by = |kind| if kind == Kind::JobFlow { Some(Kind::VcJob) } else { progress::made_by(kind) };
        followed.flat_map(|kind| [Some(kind), made_by(kind)]).flatten().chain(WAITING).collect()
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
            if self.jobs().any(|ours| *ours == job) {
                self.screen.line(&format!("{}: {warning}", job.1.name));
            }
        }
    }

    /// Whether a Job of this CronJob is followed.
    fn has_run(&self, cron_job: &JobKey) -> bool {
        let mut seen = self.followed.values().filter_map(|followed| followed.seen.as_ref());
        seen.any(|object| maker(object).as_ref() == Some(cron_job))
    }

    /// Follows the first Job that a CronJob makes. Those that come after it are the next run's affair.
    fn follow_first_run(&mut self, job: &Object) {
        let cron_job = maker(job).filter(|maker| self.followed.contains_key(maker));
        if cron_job.is_some_and(|cron_job| !self.has_run(&cron_job)) {
            let run = Followed::new(job.meta.uid.clone(), self.followed.len(), Vec::new());
            self.followed.entry((job.kind, job.meta.key.clone())).or_insert(run);
        }
    }

    /// Whether a job was made by a flow that is followed. What it does its flow says, but not what it waits for.
    fn is_step(&self, job: &Object) -> bool {
        let mut flows = controlling_keys(Kind::JobFlow, job).into_iter();
        job.kind == Kind::VcJob && flows.any(|flow| self.followed.contains_key(&(Kind::JobFlow, flow)))
    }

    fn observe(&mut self, kind: Kind, event: &Event) {
        let is_deleted = event.event_type == EventType::Deleted;
        if event.event_type == EventType::Bookmark {
            return;
        }
        if WAITING.contains(&kind) {
            self.waits.observe(kind, &event.object, is_deleted, tokio::time::Instant::now());
            let is_followed = self.followed.keys().any(|(followed, _)| *followed == kind);
            if !is_followed {
                return;
            }
        }
        let object = Object::decode(kind, &event.object);
        self.follow_first_run(&object);
        if self.is_step(&object) && !is_deleted {
            self.waits.observe_job(&object, tokio::time::Instant::now());
        }
        let job = (kind, object.meta.key.clone());
        let is_over =
            is_deleted && self.followed.get(&job).is_some_and(|followed| self.is_over(&job, followed));
        let Some(followed) = self.followed.get_mut(&job) else { return };
        // Another one of the same name may have been there before.
        if followed.uid != object.meta.uid {
            return;
        }
        if is_deleted {
            // One that has ended may be removed, by its time to live or otherwise.
            if !is_over {
                followed.was_deleted = true;
                followed.ended_after.get_or_insert_with(|| self.started.elapsed());
                let (what, name) = (kind.info().singular, &object.meta.key.name);
                self.screen.line(&format!("{what} {name} was deleted before it ended"));
            }
            return;
        }
        if kind != Kind::Pod {
            self.waits.observe_job(&object, tokio::time::Instant::now());
        }
        let before = followed.seen.take();
        let now = followed.seen.insert(object);
        if progress::end(now).is_some() {
            followed.ended_after.get_or_insert_with(|| self.started.elapsed());
        }
        let change =
            if is_new(now) || self.screen.is_live() { None } else { progress::change(before.as_ref(), now) };
        if let Some(change) = change {
            let seconds = self.started.elapsed().as_secs_f64();
            self.screen.line(&format!("{change} ({seconds:.2} s)"));
        }
        // If it is too soon, the next tick draws it.
        if self.screen.is_due() {
            self.draw();
        }
    }

    /// Says why jobs wait: below each on a terminal, in a line of its own elsewhere.
    fn tell_reasons(&mut self) {
        self.tell_warnings();
        if self.screen.is_live() {
            return self.draw();
        }
        let waiting = self.unfinished().flat_map(|(job, followed)| followed.steps.iter().chain([job]));
        let waiting: Vec<JobKey> = waiting.cloned().collect();
        for ((_, key), reason) in self.waits.news(waiting.iter(), tokio::time::Instant::now()) {
            self.screen.line(&format!("{}: waiting: {reason}", key.name));
        }
    }

    fn draw(&self) {
        if !self.screen.is_live() {
            return;
        }
        let now = tokio::time::Instant::now();
        let mut in_order: Vec<_> = self.followed.iter().collect();
        in_order.sort_by_key(|(_, followed)| followed.n_before);
        let views = in_order.into_iter().map(|(job, followed)| {
            let reason = if followed.has_ended() { None } else { self.reason(job, followed, now) };
            let view = match followed.was_deleted {
                true => View::of_deleted(&job.1.name),
                false => View::of(&job.1.name, followed.seen.as_ref(), reason),
            };
            View { ended_after: followed.ended_after, ..view }
        });
        let views: Vec<View> = views.collect();
        self.screen.draw(picture::render(&views, self.started.elapsed(), self.screen.size()));
    }

    /// Why a job, or the first job of a flow that does, waits.
    fn reason(&self, job: &JobKey, followed: &Followed, now: tokio::time::Instant) -> Option<&str> {
        followed.steps.iter().chain([job]).find_map(|job| self.waits.reason(job, now))
    }

    /// All that is followed, and the jobs that flows make.
    fn jobs(&self) -> impl Iterator<Item = &JobKey> {
        self.followed.iter().flat_map(|(job, followed)| followed.steps.iter().chain([job]))
    }

    /// How it all went, for a program to read.
    async fn result(&self, outcome: Outcome) -> String {
        let listed = self.home.client.list(Kind::Pod).await.map(|listed| listed.items).unwrap_or_default();
        let read = |json: &Bytes| Some((Object::decode(Kind::Pod, json), serde_json::from_slice(json).ok()?));
        let pods: Vec<(Object, Pod)> = listed.iter().filter_map(read).collect();
        let waited = self.followed.iter().filter_map(|(job, followed)| {
            let is_part = |pod: &Object| followed.steps.iter().chain([job]).any(|job| is_of_job(pod, job));
            let of_it = pods.iter().filter(|(object, _)| is_part(object));
            Some(Waited { object: followed.seen.as_ref()?, pods: of_it.map(|(_, pod)| pod).collect() })
        });
        let waited: Vec<Waited<'_>> = waited.collect();
        format!("{:#}\n", outcome::result(outcome, &waited, self.started.elapsed()))
    }
}

/// Whether a cluster says, or will say again, what happens to a kind. Not every one has PodGroups, or lets everybody see Events.
fn is_served<T>(event: &Result<T, ClientError>) -> bool {
    !matches!(event, Err(ClientError::NotFound(_) | ClientError::Refused(_)))
}

/// The CronJob that made a Job.
fn maker(job: &Object) -> Option<JobKey> {
    let kinds = FOLLOWED.into_iter().filter(|kind| progress::made_by(*kind) == Some(job.kind));
    kinds.flat_map(|kind| controlling_keys(kind, job).into_iter().map(move |key| (kind, key))).next()
}

/// Whether nobody has looked at a job or flow yet.
fn is_new(object: &Object) -> bool {
    let is_new_job = object.as_vcjob().is_some_and(|job| job.status.state.phase.is_unset());
    let is_new_job = is_new_job || object.as_job().is_some_and(|job| job.status == Default::default());
    is_new_job || object.as_jobflow().is_some_and(|flow| flow.status.state.phase.is_unset())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_a_cluster_does_not_have_or_show_is_not_waited_for() {
        let refused = ClientError::forbidden("forbidden");
        let busy = ClientError::busy("later", None);
        for (answer, is_expected) in [
            (Ok(()), true),
            (Err(ClientError::not_found("podgroups")), false),
            (Err(refused), false),
            (Err(busy), true),
            (Err(ClientError::Unknown("no connection".to_owned())), true),
        ] {
            assert_eq!(is_served(&answer), is_expected, "{answer:?}");
        }
    }
}
