//! The life of a Kubernetes Job (batch/v1), top to bottom in [`plan`].
//!
//! ```text
//!   Job --owns--> Pod <job>-xxxxx               until enough of them have succeeded
//!        or       Pod <job>-<index>-xxxxx       one that succeeds for each index
//! ```
//!
//! A pod that has ended is counted exactly once, however often this program dies on the way (`track`). A Job whose end is
//! decided says so first (`FailureTarget`, `SuccessCriteriaMet`), then its pods go, and only then has it ended: what
//! [`plan`] does in that time follows from the condition that is stored, not from what led to it.
//!
//! Mirrors Kubernetes' `pkg/controller/job`; what is deliberately different stands in DEVIATIONS.md.

mod attempt;
mod backoff;
mod condition;
mod failure_policy;
mod former;
mod manage;
mod managed;
mod measure;
mod outcome;
mod pods;
mod rank;
mod release;
mod success_policy;
mod tally;
mod template;
mod track;
mod ttl;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::batch::{JobSpec, JobStatus};
use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::{Propagation, Step, Verb};
use serde_json::{Value, json};

use self::former::Former;
use self::manage::Change;
use self::outcome::Outcome;
use self::pods::{Claim, JobPod};
use self::tally::Tally;
use self::template::Names;
use crate::indexes::Indexes;
use crate::object::{Body, Meta};
use crate::placement::selects;
use crate::{
    Attempt, Controller, Measure, Note, Object, Objects, Plan, Snapshot, Stored, controlling_keys,
    merge_patch,
};

pub use self::managed::Managed;
pub use self::release::ReleaseController;
pub use self::ttl::TtlController;

/// How many pods a plan names one by one in its notes.
const NAMED_PODS_MAX: usize = 10;

/// The text about a refused write for a Job, in Kubernetes' words.
fn refusal(reason: &str, why: &str) -> String {
    match reason {
        "FailedCreate" => format!("Error creating: {why}"),
        "FailedDelete" => format!("Error deleting: {why}"),
        _ => why.to_owned(),
    }
}

/// The controller of Jobs.
#[derive(Debug, Default)]
pub struct JobController {
    /// Whose Jobs it takes care of.
    pub managed: Managed,
}

impl Controller for JobController {
    fn name(&self) -> &'static str {
        "kubernetes-job-controller"
    }

    fn queue(&self) -> &'static str {
        "job"
    }

    fn event_source(&self) -> &'static str {
        "job-controller"
    }

    fn refusal(&self, reason: &str, why: &str) -> String {
        refusal(reason, why)
    }

    fn root(&self) -> Kind {
        Kind::Job
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::Pod]
    }

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        let is_orphan = changed.kind == Kind::Pod && changed.meta.controller_uid().is_none();
        if !is_orphan || changed.meta.labels.is_empty() {
            return controlling_keys(Kind::Job, changed);
        }
        let jobs = objects.in_namespace(Kind::Job, &changed.meta.key.namespace);
        let picking = jobs.filter(|job| {
            let selector = job.as_job().and_then(|job| job.spec.selector.as_ref());
            selector.is_some_and(|selector| selects(selector, &changed.meta.labels))
        });
        picking.map(|job| job.meta.key.clone()).collect()
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        plan(&self.managed, snapshot)
    }

    fn measure(&self, stored: &Stored<'_>) -> Vec<Measure> {
        measure::measure(&self.managed, stored)
    }

    fn measure_attempt(&self, attempt: &Attempt<'_>) -> Vec<Measure> {
        attempt::measure(&self.managed, attempt)
    }
}

/// What should be done for one Job now.
pub fn plan(managed: &Managed, snapshot: &Snapshot<'_>) -> Plan {
    let Some(root) = snapshot.root() else { return Plan::nothing() };
    let job = match &root.body {
        Body::Job(job) => Job { meta: &root.meta, spec: &job.spec, status: &job.status, now: snapshot.now },
        Body::Unreadable(why) => {
            return Plan::hold("JobUnreadable", format!("cannot read the Job: {why}"));
        }
        _ => return Plan::nothing(),
    };
    if !managed.includes(job.spec.managed_by.as_deref()) || job.status.finished().is_some() {
        return Plan::nothing();
    }
    if !is_known_mode(job.spec.completion_mode.as_deref()) {
        let message = "Skipped Job sync because completion mode is unknown".to_owned();
        return Plan::hold("UnknownCompletionMode", message);
    }
    let pods = match pods::claim(&job, snapshot) {
        Claim::Pods(pods) => pods,
        Claim::Settle(steps) => return Plan { status: Some(confirm(&job)), steps, ..Plan::nothing() },
    };
    let tally = Tally::of(&job, &pods);
    let decided = outcome::decide(&job, &pods, &tally);
    let change = match &decided {
        Some(_) => Change::stop(&pods),
        None if job.meta.is_deleting() => Change::default(),
        None => manage::change(&job, &pods, &tally),
    };
    let mut plan = Plan { wake_at: change.wake_at, creates_alike: true, ..Plan::nothing() };
    let retained = tally.retained.clone();
    let tally = tally.after(&change, snapshot.refusal.is_none());
    let outcome = decided.or_else(|| outcome::completions_reached(&job, &tally));
    if outcome.is_none() {
        wake(&mut plan, outcome::deadline(&job));
    }

    let mut status = job.status.clone();
    status.active = narrow(tally.active);
    status.ready = Some(narrow(tally.ready));
    status.terminating = Some(narrow(tally.terminating));
    if !job.is_suspended() {
        status.start_time.get_or_insert(job.now.whole_seconds());
    }
    let account = track::account(&job, &pods, &tally, outcome.as_ref(), &mut status);
    wake(&mut plan, account.wake_at);
    match &outcome {
        Some(outcome) => {
            let nothing_to_do = account.untracked.is_empty() && change.delete.is_empty();
            end(&job, outcome, nothing_to_do, &mut status, &mut plan);
        }
        None if job.meta.is_deleting() => {}
        None => suspend_or_resume(&job, &mut status, &mut plan),
    }
    let before = Former::recorded(&job);
    let let_go = account.untracked.iter().copied().chain(released(&change, &account.untracked));
    // No more pods come for a Job that ends or goes.
    let has_successors = outcome.is_none() && !job.meta.is_deleting();
    let former = before.clone().with(&job, let_go, &tally, &status).difference(&before);
    let former = former.filter(|_| has_successors);
    remove(&change, &account.untracked, &mut plan);
    create(&job, &change, &retained, Names::new(&job, snapshot.objects, &pods), &mut plan);
    write_status(&job, &status, former, account.untracked.is_empty(), &mut plan);
    plan
}

/// Says how the Job will end, and that it has ended once nothing of it is left.
fn end(job: &Job<'_>, outcome: &Outcome, nothing_to_do: bool, status: &mut JobStatus, plan: &mut Plan) {
    let [decided, ended] = outcome.conditions();
    let why = (outcome.reason.as_str(), outcome.message.as_str());
    condition::set(status, (decided, true), why, job.now);
    let is_counted = status
        .uncounted_terminated_pods
        .as_ref()
        .is_none_or(|listed| listed.succeeded.is_empty() && listed.failed.is_empty());
    if !(nothing_to_do && is_counted && status.active == 0 && status.terminating == Some(0)) {
        return;
    }
    condition::set(status, (ended, true), why, job.now);
    // A Job may end while it is suspended and has no start. The server takes no such end, unless there was nothing to do.
    if job.completions() != Some(0) {
        status.start_time.get_or_insert(job.now.whole_seconds());
    }
    if !outcome.is_success {
        let reason = failure_reason(&outcome.reason);
        return plan.notes.push(Note::warning(reason, outcome.message.clone()).of(
            Verb::Report,
            Kind::Job,
            &job.meta.key,
        ));
    }
    // The clock may have been set back since the Job started, and the server takes no end before the start.
    let now = job.now.whole_seconds();
    let completed_at = status.start_time.map_or(now, |started| now.max(started));
    status.completion_time.get_or_insert(completed_at);
    if job.completions().is_some_and(|completions| i64::from(status.succeeded) > i64::from(completions)) {
        let message = "Too many succeeded pods running after completion count reached".to_owned();
        plan.notes.push(Note::warning("TooManySucceededPods", message).of(
            Verb::Report,
            Kind::Job,
            &job.meta.key,
        ));
    }
    let message = "Job completed".to_owned();
    plan.notes.push(Note::normal("Completed", message).of(Verb::Report, Kind::Job, &job.meta.key));
}

fn failure_reason(reason: &str) -> &'static str {
    let known = [
        "PodFailurePolicy",
        "BackoffLimitExceeded",
        "DeadlineExceeded",
        "MaxFailedIndexesExceeded",
        "FailedIndexes",
    ];
    known.into_iter().find(|known| *known == reason).unwrap_or("Failed")
}

/// A suspended Job has no start; a resumed one starts anew, and so does its deadline.
fn suspend_or_resume(job: &Job<'_>, status: &mut JobStatus, plan: &mut Plan) {
    let (reason, message, note) = if job.is_suspended() {
        ("JobSuspended", "Job suspended", "Suspended")
    } else {
        ("JobResumed", "Job resumed", "Resumed")
    };
    if condition::set(status, (condition::SUSPENDED, job.is_suspended()), (reason, message), job.now) {
        status.start_time = (!job.is_suspended()).then(|| job.now.whole_seconds());
        plan.notes.push(Note::normal(note, message.to_owned()).of(Verb::Report, Kind::Job, &job.meta.key));
    }
}

/// The pods that are removed and lose their finalizer only for that.
fn released<'a>(
    change: &Change<'a>,
    untracked: &[&JobPod<'_>],
) -> impl Iterator<Item = &'a JobPod<'a>> + use<'a> {
    let gone: BTreeSet<Uid> = untracked.iter().map(|pod| pod.meta().uid.clone()).collect();
    let deleted: Vec<&'a JobPod<'a>> = change.delete.clone();
    deleted.into_iter().filter(move |pod| pod.is_tracked && !gone.contains(&pod.meta().uid))
}

/// Lets go of pods, and removes those that are too many. A pod that goes unfinished loses its finalizer first, and is
/// not counted.
fn remove(change: &Change<'_>, untracked: &[&JobPod<'_>], plan: &mut Plan) {
    let let_go = untracked.iter().copied().chain(released(change, untracked));
    plan.steps.extend(let_go.map(|pod| pods::untrack(pod.object)));
    for pod in &change.delete {
        plan.steps.push(Step::Delete {
            kind: Kind::Pod,
            key: pod.meta().key.clone(),
            uid: pod.meta().uid.clone(),
            revision: None,
            propagation: Propagation::Background,
            grace_seconds: None,
        });
    }
    let keys: Vec<Key> = change.delete.iter().map(|pod| pod.meta().key.clone()).collect();
    note_each(Verb::Delete, "SuccessfulDelete", "Deleted", &keys, plan);
}

fn create(
    job: &Job<'_>,
    change: &Change<'_>,
    retained: &BTreeMap<u32, &JobPod<'_>>,
    mut names: Names<'_>,
    plan: &mut Plan,
) {
    let names: Vec<String> = change.create.iter().map(|index| names.draw(*index)).collect();
    for (index, name) in change.create.iter().zip(&names) {
        let failed = index.and_then(|index| retained.get(&index)).copied();
        plan.steps.push(template::create(job, *index, failed, name));
    }
    let keys: Vec<Key> = names.iter().map(|name| Key::new(&job.meta.key.namespace, name)).collect();
    note_each(Verb::Create, "SuccessfulCreate", "Created", &keys, plan);
}

/// A note for each pod; of a crowd, only the first are named, and the others are counted when it has come to the last.
fn note_each(verb: Verb, reason: &'static str, done: &str, pods: &[Key], plan: &mut Plan) {
    let mut note = |message, pod| plan.notes.push(Note::normal(reason, message).of(verb, Kind::Pod, pod));
    let (named, others) = pods.split_at(NAMED_PODS_MAX.min(pods.len()));
    for pod in named {
        note(format!("{done} pod: {}", pod.name), pod);
    }
    if let Some(last) = others.last() {
        note(format!("{done} {} more pods", others.len()), last);
    }
}

/// Asks whether the Job is still what was read, by a change that changes nothing. Whoever deletes a Job and leaves its pods
/// makes them free to be taken: by other Jobs, and not by the memory of this one.
fn confirm(job: &Job<'_>) -> Step {
    Step::Patch {
        kind: Kind::Job,
        key: job.meta.key.clone(),
        uid: job.meta.uid.clone(),
        revision: Some(job.meta.revision),
        of_status: true,
        patch: json!({}),
    }
}

fn write_status(
    job: &Job<'_>,
    status: &JobStatus,
    former: Option<Value>,
    nothing_to_count: bool,
    plan: &mut Plan,
) {
    let patch = merge_patch::difference(&json!(job.status), &json!(status));
    if patch.is_none() && former.is_none() {
        return;
    }
    // Counters may be a moment late. What decides does not wait, nor does the record of a pod that is let go.
    let decides = |status: &JobStatus| (status.conditions.clone(), status.start_time, status.completion_time);
    plan.status_may_wait = nothing_to_count && former.is_none() && decides(job.status) == decides(status);
    let mut step = job.meta.status_patch(Kind::Job, &patch.unwrap_or_else(|| json!({})));
    if let (Some(metadata), Step::Patch { patch: Value::Object(fields), .. }) = (former, &mut step) {
        fields.insert("metadata".to_owned(), metadata);
    }
    plan.status = Some(step);
}

fn wake(plan: &mut Plan, at: Option<Time>) {
    plan.wake_at = [plan.wake_at, at].into_iter().flatten().min();
}

/// A count as status has it.
fn narrow(count: i64) -> i32 {
    i32::try_from(count.max(0)).unwrap_or(i32::MAX)
}

fn is_known_mode(completion_mode: Option<&str>) -> bool {
    matches!(completion_mode, None | Some("NonIndexed" | "Indexed"))
}

/// One Job as all modules see it.
struct Job<'a> {
    meta: &'a Meta,
    spec: &'a JobSpec,
    status: &'a JobStatus,
    now: Time,
}

impl Job<'_> {
    fn is_indexed(&self) -> bool {
        self.spec.completion_mode.as_deref() == Some("Indexed")
    }

    fn is_suspended(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    /// How many pods may run at once.
    fn parallelism(&self) -> i64 {
        i64::from(self.spec.parallelism.unwrap_or(1).max(0))
    }

    /// How many must succeed; without a number, one success is enough and the others may end by themselves.
    fn completions(&self) -> Option<u32> {
        let is_single = self.spec.completions.is_none() && self.spec.parallelism.is_none();
        let completions = if is_single { Some(1) } else { self.spec.completions };
        completions.map(|completions| u32::try_from(completions).unwrap_or(0))
    }

    fn backoff_limit(&self) -> i64 {
        let default = if self.spec.backoff_limit_per_index.is_some() { i32::MAX } else { 6 };
        i64::from(self.spec.backoff_limit.unwrap_or(default))
    }

    /// Whether a pod is replaced only once it has ended, not as soon as it is asked to.
    fn replaces_only_failed(&self) -> bool {
        self.spec.pod_failure_policy.is_some()
            || self.spec.pod_replacement_policy.as_deref() == Some("Failed")
    }

    fn restarts_containers(&self) -> bool {
        self.spec.template.pointer("/spec/restartPolicy").and_then(Value::as_str) == Some("OnFailure")
    }

    /// The indexes that are on record as completed and as failed, as far as the Job still has them.
    fn recorded_indexes(&self, completions: u32) -> (Indexes, Indexes) {
        let failed = self.status.failed_indexes.as_deref().unwrap_or_default();
        (Indexes::parse(&self.status.completed_indexes, completions), Indexes::parse(failed, completions))
    }

    fn owner_reference(&self) -> Value {
        json!(self.meta.as_controller(Kind::Job))
    }
}
