//! Reasons why jobs wait, as the scheduler, the node or the API server report them.

mod flows;
mod jobs;
mod pods;
mod seen;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use krafla_api::{Key, Kind};
use krafla_node::NO_MOUNTS;
use krafla_plan::object::{Job, VcJob};
use krafla_plan::{Object, vcjob};
use krafla_scheduler::Scheduler;
use krafla_why::Reason;
use tokio::time::Instant;

use self::seen::{Condition, Seen, Status};
use crate::doctor::{Means, not_scheduled, remedy_of_scheduler, remedy_of_scheduling, remedy_of_warning};
use crate::progress::{self, JobKey};
use crate::warnings::Warnings;

/// How long a reason must last before it is worth telling: every job waits for a moment at its start.
const TOLD_AFTER: Duration = Duration::from_secs(1);
/// How long a scheduler of which nothing is known may take before it is said that it does nothing.
const SCHEDULED_WITHIN: Duration = Duration::from_secs(10);
/// How long a reason that nothing can change must last before it is believed. Controllers may still be at work.
const HOPELESS_AFTER: Duration = Duration::from_secs(5);
/// Who was refused something asks again after a minute at the latest.
const RETRIED_WITHIN: Duration = Duration::from_secs(75);
/// So many different reasons of one job are told off a terminal.
const TOLD_OF_JOB_MAX: usize = 50;

/// The kinds of which Events alone say why what they make was refused.
const TOLD_BY_EVENTS: [Kind; 4] = [Kind::Job, Kind::JobFlow, Kind::CronJob, Kind::VcCronJob];

/// Why each job waits.
#[derive(Default)]
pub(crate) struct Waits {
    /// What can be done about it, which depends on the cluster.
    means: Means,
    /// By job, then by what waits. A pod that nobody made is a job of its own.
    reasons: BTreeMap<JobKey, BTreeMap<JobKey, Noted>>,
    /// What the server said when it refused pods of a Job of Kubernetes, a job of a flow or of a CronJob.
    refusals: BTreeMap<JobKey, Noted>,
    /// What the server said when it refused a pod the PodGroup that it needs.
    refused_pods: BTreeMap<Key, Why>,
    /// Pods that have neither ended nor said why they wait, and whose they are.
    pods: BTreeMap<Key, (JobKey, Stage)>,
    /// Which nodes there are and which there are not, as far as anybody had to know.
    nodes: BTreeMap<String, bool>,
    /// When a job or one of its pods last came further.
    moved_at: Option<Instant>,
    /// The jobs whose own rules end or change them after some time.
    timed: BTreeSet<JobKey>,
    /// Those who lack what may have been refused to them: what was refused to others is past.
    lacking: BTreeSet<JobKey>,
    /// What is wrong with pods that run all the same.
    pub(crate) warnings: Warnings,
    /// By job: what was told of it, with the names of pods left out, for what holds for one holds for its like.
    told: BTreeMap<JobKey, BTreeSet<String>>,
}

/// Why something waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) text: String,
    /// How long to hope that it passes although nobody changes anything in the cluster; for ever if there is no limit.
    hope: Option<Duration>,
}

impl Why {
    /// What stays until somebody changes something in the cluster.
    pub(crate) fn lasting(text: impl Into<String>) -> Why {
        Why { text: text.into(), hope: Some(HOPELESS_AFTER) }
    }

    /// What was refused, and is asked for again from time to time.
    fn refused(text: impl Into<String>) -> Why {
        Why { text: text.into(), hope: Some(RETRIED_WITHIN) }
    }

    /// What time may change, or somebody outside the cluster.
    pub(crate) fn passing(text: impl Into<String>) -> Why {
        Why { text: text.into(), hope: None }
    }
}

struct Noted {
    why: Why,
    since: Instant,
}

impl Noted {
    fn has_lasted(&self, duration: Duration, now: Instant) -> bool {
        now.duration_since(self.since) >= duration
    }
}

/// How far a pod has come that has neither ended nor said why it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// No scheduler has said anything about it yet.
    Unseen,
    /// It has a node, which has not said anything about it yet.
    Sent { node: String, since: Instant },
    /// Its node takes care of it.
    Alive,
}

impl Waits {
    /// Of jobs in a cluster where this can be done about it.
    pub(crate) fn new(means: Means) -> Waits {
        Waits { means, ..Waits::default() }
    }

    /// Takes in a PodGroup, a pod or an Event, as it is now or was last.
    pub(crate) fn observe(&mut self, kind: Kind, json: &[u8], is_deleted: bool, now: Instant) {
        let Ok(seen) = serde_json::from_slice::<Seen>(json) else { return };
        match kind {
            Kind::Event => self.observe_event(seen, now),
            Kind::Pod => self.observe_pod(&seen, is_deleted, now),
            _ => {
                let Some(job) = seen.owner() else { return };
                let why = self.of_podgroup(&seen.status).filter(|_| !is_deleted);
                self.note(job, (kind, seen.key()), why, now);
            }
        }
    }

    fn observe_pod(&mut self, seen: &Seen, is_deleted: bool, now: Instant) {
        let key = seen.key();
        let is_alone = seen.metadata.owner_references.is_empty();
        let Some(job) = seen.owner().or_else(|| is_alone.then(|| (Kind::Pod, key.clone()))) else { return };
        if is_deleted {
            self.refused_pods.remove(&key);
            self.warnings.forget_pod(&key);
        } else {
            self.warnings.observe_pod(&key, &job);
        }
        let stage = if is_deleted { None } else { stage(seen, now) };
        // What a pod that has ended waited for is past.
        let mut why = self.of_pod(seen).filter(|_| stage.is_some());
        let mut since = now;
        match &stage {
            Some(Stage::Unseen) if why.is_none() => {
                why = self.refused_pods.get(&key).cloned();
                if let Some((unseen, patience)) = self.why_unseen(seen).filter(|_| why.is_none()) {
                    (why, since) = (Some(unseen), now + patience);
                }
            }
            Some(Stage::Sent { node, .. }) if self.nodes.get(node) == Some(&false) => {
                why = Some(why_lost(&key, node));
            }
            _ => {}
        }
        // What says why it waits does not move. What no scheduler has seen may be refused yet.
        let stage = stage.filter(|stage| why.is_none() || *stage == Stage::Unseen);
        self.set_stage(&key, &job, stage, now);
        self.note(job, (Kind::Pod, key), why, since);
    }

    fn set_stage(&mut self, pod: &Key, job: &JobKey, stage: Option<Stage>, now: Instant) {
        let before = self.pods.get(pod).map(|(_, stage)| stage);
        match (before, stage) {
            // A pod that waits for its node has waited since it was sent there.
            (Some(Stage::Sent { .. }), Some(Stage::Sent { .. })) => return,
            (before, stage) if before == stage.as_ref() => return,
            (_, None) => drop(self.pods.remove(pod)),
            (_, Some(stage)) => drop(self.pods.insert(pod.clone(), (job.clone(), stage))),
        }
        self.moved_at = Some(now);
    }

    /// Takes in a Job, JobFlow or CronJob, which may itself say why it runs nothing.
    pub(crate) fn observe_job(&mut self, object: &Object, now: Instant) {
        let (kind, key) = (object.kind, &object.meta.key);
        self.moved_at = Some(now);
        set(&mut self.timed, (kind, key.clone()), is_timed(object));
        set(&mut self.lacking, (kind, key.clone()), lacks_something(object));
        let why = if let Some(job) = object.as_vcjob() {
            of_vcjob(job)
        } else if let Some(job) = object.as_job() {
            jobs::reason(job)
        } else {
            object.as_jobflow().and_then(|flow| flows::reason(&key.name, flow, self.means))
        };
        self.note((kind, key.clone()), (kind, key.clone()), why, now);
    }

    fn observe_event(&mut self, event: Seen, now: Instant) {
        let Seen { metadata, involved_object: about, reason, message, .. } = event;
        if event.event_type != "Warning" {
            return;
        }
        let key = Key::new(&metadata.namespace, &about.name);
        let kind = Kind::of_manifest(&about.api_version, &about.kind);
        match (reason.as_str(), about.kind.as_str()) {
            ("FailedCreate", "Pod") => {
                let why = Why::refused(format!("pod {}: {}", about.name, with_remedy(message)));
                if let Some((job, Stage::Unseen)) = self.pods.get(&key) {
                    self.note(job.clone(), (Kind::Pod, key.clone()), Some(why.clone()), now);
                }
                self.refused_pods.insert(key, why);
            }
            // A volume that is only late is a reason to wait, and told as such.
            ("FailedMount", "Pod") if message.contains(NO_MOUNTS) => self.warnings.observe(key, message),
            ("FailedCreate", _) => {
                let Some(kind) = kind.filter(|kind| TOLD_BY_EVENTS.contains(kind)) else { return };
                let since = self.refusals.get(&(kind, key.clone())).map_or(now, |refusal| refusal.since);
                self.refusals.insert((kind, key), Noted { why: Why::refused(with_remedy(message)), since });
            }
            _ => {}
        }
    }

    /// A node that has had a pod for a while and says nothing about it: perhaps there is no such node.
    pub(crate) fn node_in_doubt(&self, now: Instant) -> Option<&str> {
        self.pods.values().find_map(|(_, stage)| match stage {
            Stage::Sent { node, since } => {
                let is_late = now.duration_since(*since) >= TOLD_AFTER;
                Some(node.as_str()).filter(|node| is_late && !self.nodes.contains_key(*node))
            }
            _ => None,
        })
    }

    /// Takes in whether there is a node. One of which nobody can say it is taken to be there.
    pub(crate) fn observe_node(&mut self, name: &str, is_there: bool, now: Instant) {
        self.nodes.insert(name.to_owned(), is_there);
        if is_there {
            return;
        }
        let is_lost = |stage: &Stage| matches!(stage, Stage::Sent { node, .. } if node == name);
        let lost = self.pods.iter().filter(|(_, (_, stage))| is_lost(stage));
        let lost: Vec<(Key, JobKey)> = lost.map(|(pod, (job, _))| (pod.clone(), job.clone())).collect();
        for (pod, job) in lost {
            self.pods.remove(&pod);
            let why = why_lost(&pod, name);
            self.note(job, (Kind::Pod, pod), Some(why), now);
        }
    }

    fn note(&mut self, job: JobKey, waiter: JobKey, why: Option<Why>, since: Instant) {
        match why {
            Some(why) => {
                let reasons = self.reasons.entry(job).or_default();
                let since = reasons.get(&waiter).map_or(since, |reason| reason.since.min(since));
                reasons.insert(waiter, Noted { why, since });
            }
            None => {
                if let Some(reasons) = self.reasons.get_mut(&job) {
                    reasons.remove(&waiter);
                    if reasons.is_empty() {
                        self.reasons.remove(&job);
                    }
                }
            }
        }
    }

    fn of_job(&self, job: &JobKey) -> impl Iterator<Item = &Noted> {
        let refusal = self.refusals.get(job).filter(|_| self.lacking.contains(job));
        self.reasons.get(job).into_iter().flat_map(BTreeMap::values).chain(refusal)
    }

    /// Why a job waits, if it has done so for a while.
    pub(crate) fn reason(&self, job: &JobKey, now: Instant) -> Option<&str> {
        let lasting = self.of_job(job).filter(|reason| reason.has_lasted(TOLD_AFTER, now));
        let first = lasting.min_by_key(|reason| reason.since)?.why.text.as_str();
        // A pod of a gang repeats what its PodGroup says, with numbers of an earlier moment; it is the gang that waits.
        let plain = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
        let of_gang = |waiter: &JobKey| waiter.0 == Kind::PodGroup;
        let of_gangs = self.reasons.get(job).into_iter().flatten().filter(|(waiter, _)| of_gang(waiter));
        let mut texts = of_gangs.map(|(_, reason)| reason.why.text.as_str());
        texts.find(|text| plain(first).ends_with(&plain(text))).or(Some(first))
    }

    /// Whether nothing that some jobs, which are one to whoever waits, wait for will come unless somebody changes something in
    /// the cluster. Of the steps of a flow, most may have nothing to say.
    pub(crate) fn are_hopeless<'a>(
        &self,
        jobs: impl Iterator<Item = &'a JobKey> + Clone,
        now: Instant,
    ) -> bool {
        let quiet_for = self.moved_at.map_or(Duration::MAX, |at| now.duration_since(at));
        // What others held until now, somebody may get now.
        let is_past = |reason: &Noted| {
            reason.why.hope.is_some_and(|hope| reason.has_lasted(hope, now) && quiet_for >= hope)
        };
        let mut reasons = jobs.clone().flat_map(|job| self.of_job(job)).peekable();
        let is_told = reasons.peek().is_some();
        let is_timed = jobs.into_iter().any(|job| self.timed.contains(job));
        is_told && reasons.all(is_past) && !is_timed
    }

    /// Whether a node takes care of a pod that some job made. A pod that nobody made may be there for others, and stay.
    pub(crate) fn anything_moves(&self) -> bool {
        let moves = |(pod, (job, stage)): (&Key, &(JobKey, Stage))| job.1 != *pod && *stage != Stage::Unseen;
        self.pods.iter().any(moves)
    }

    /// What has not been told yet: the reasons of these jobs.
    pub(crate) fn news<'a>(
        &mut self,
        jobs: impl Iterator<Item = &'a JobKey>,
        now: Instant,
    ) -> Vec<(&'a JobKey, String)> {
        let mut news = Vec::new();
        for job in jobs {
            let Some(reason) = self.reason(job, now).map(str::to_owned) else { continue };
            let gist = self.gist(job, &reason);
            let told = self.told.entry(job.clone()).or_default();
            if told.len() < TOLD_OF_JOB_MAX && told.insert(gist) {
                news.push((job, reason));
            }
        }
        news
    }

    /// A reason without the name of whoever has it.
    fn gist(&self, job: &JobKey, text: &str) -> String {
        let mut waiters = self.reasons.get(job).into_iter().flatten();
        let waiter = waiters.find(|(waiter, reason)| reason.why.text == text && *waiter != job);
        match waiter {
            Some(((_, waiter), _)) => text.replace(&*waiter.name, "*"),
            // Each Job of a CronJob is named after its time.
            None if progress::made_by(job.0).is_some() => text.replace(|c: char| c.is_ascii_digit(), ""),
            None => text.to_owned(),
        }
    }

    /// What the scheduler says of a gang that finds no place.
    fn of_podgroup(&self, status: &Status) -> Option<Why> {
        let waiting = status.condition("Unschedulable", "True")?;
        // Volcano leaves the condition when the gang is placed later, and adds another one.
        let placed = status.condition("Scheduled", "True");
        let is_over =
            placed.is_some_and(|placed| placed.last_transition_time >= waiting.last_transition_time);
        Some(waiting).filter(|_| !is_over).map(|waiting| self.of_scheduler(waiting))
    }

    /// What a condition of the scheduler says, and what to do about it.
    fn of_scheduler(&self, waiting: &Condition) -> Why {
        let why = if waiting.message.is_empty() { &waiting.reason } else { &waiting.message };
        // Some sentences have a remedy for those who see nothing else.
        let told = Reason::parse(why).without_advice();
        let told = told.as_deref().unwrap_or(why);
        Why::lasting(format!("{told}; fix: {}", remedy_of_scheduling(why, self.means)))
    }

    /// That nobody schedules a pod, and how long to wait before that is said. In a cluster of its own a run knows who there
    /// is; another scheduler may take its time.
    fn why_unseen(&self, seen: &Seen) -> Option<(Why, Duration)> {
        if seen.status.conditions.iter().any(|condition| condition.condition_type == "PodScheduled") {
            return None;
        }
        let (pod, scheduler) = (&seen.metadata.name, &seen.spec.scheduler_name);
        let patience = match self.means {
            Means::Cluster => SCHEDULED_WITHIN.saturating_sub(TOLD_AFTER),
            Means::Files => {
                let Scheduler { gang_names, lone_names, .. } = Scheduler::default();
                if gang_names.contains(scheduler) || lone_names.contains(scheduler) {
                    return None;
                }
                Duration::ZERO
            }
        };
        let remedy = remedy_of_scheduler(scheduler, self.means);
        let why = Why::lasting(format!("{}; fix: {remedy}", not_scheduled(pod, scheduler)));
        Some((why, patience))
    }
}

/// Whether something is not there that it wants to make now, because it was refused or for another reason.
fn lacks_something(object: &Object) -> bool {
    let of_job = object.as_job().is_some_and(jobs::is_short_of_pods);
    let of_flow = object.as_jobflow().is_some_and(|flow| flows::is_refused(&object.meta.key.name, flow));
    let of_cron_job = progress::made_by(object.kind).is_some() && progress::end(object).is_none();
    of_job || of_flow || of_cron_job
}

/// Whether something in a job's own spec acts on it after some time, although it does not move.
fn is_timed(object: &Object) -> bool {
    let of_vcjob = object.as_vcjob().is_some_and(|job| {
        let of_tasks = job.spec.tasks.iter().flat_map(|task| &task.policies);
        let mut policies = job.spec.policies.iter().chain(of_tasks);
        // Policies answer what happens to pods.
        let has_pods = !job.status.task_status_count.is_empty();
        has_pods && policies.any(|policy| policy.timeout.is_some())
    });
    let runs = |job: &&Job| job.spec.suspend != Some(true);
    of_vcjob || object.as_job().filter(runs).is_some_and(|job| job.spec.active_deadline_seconds.is_some())
}

fn of_vcjob(job: &VcJob) -> Option<Why> {
    let state = &job.status.state;
    if job.spec.tasks.iter().all(|task| task.replicas == 0) {
        return Some(Why::lasting(Reason::NoReplicas.to_string()));
    }
    let why = with_remedy(vcjob::waits_for(state)?.to_owned());
    Some(if vcjob::is_refused(state) { Why::refused(why) } else { Why::lasting(why) })
}

fn set<T: Ord>(all: &mut BTreeSet<T>, one: T, is_in: bool) {
    if is_in {
        all.insert(one);
    } else {
        all.remove(&one);
    }
}

/// How far a pod has come that says nothing about why it waits; `None` if it has ended.
fn stage(seen: &Seen, now: Instant) -> Option<Stage> {
    let Status { phase, start_time, .. } = &seen.status;
    match phase.as_str() {
        "Succeeded" | "Failed" => None,
        _ if seen.spec.node_name.is_empty() => Some(Stage::Unseen),
        "" | "Pending" if start_time.is_none() => {
            Some(Stage::Sent { node: seen.spec.node_name.clone(), since: now })
        }
        _ => Some(Stage::Alive),
    }
}

/// That there is no such node as a pod was sent to.
fn why_lost(pod: &Key, node: &str) -> Why {
    let because = Reason::NodeMissing { node: node.into() };
    let remedy = because.remedy(Means::Files).unwrap_or_default();
    let reason = Reason::OfPod { pod: (&*pod.name).into(), because: Box::new(because) };
    Why::lasting(format!("{reason}; fix: {remedy}"))
}

/// What somebody warned of, and what to do about it.
fn with_remedy(message: String) -> String {
    remedy_of_warning(&message).map_or(message.clone(), |remedy| format!("{message}; fix: {remedy}"))
}
