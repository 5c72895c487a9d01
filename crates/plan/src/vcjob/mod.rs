//! The life of a Volcano Job, top to bottom in [`plan`].
//!
//! ```text
//!   Job --owns--> PodGroup <jobname>-<uid>        the gang, admitted by the scheduler
//!    |
//!    +---owns---> Pod <jobname>-<task>-<index>    one per task and index; carries the job's version and retry count
//!    +---owns---> PersistentVolumeClaim           the volumes that the job asks for
//!    +---owns---> Service, ConfigMap, ...         what its plugins want
//!    ^
//!    +---names--- Command                         what a user wants done to it
//! ```
//!
//! A pod fails, and the policy says `RestartJob`:
//!
//! ```text
//!   Running     the failed pod of the current version is the trigger
//!     | 1. status: phase Restarting, version + 1, retryCount + 1        the restart is charged before any other write
//!     | 2. delete the plugins' objects of this try, then the PodGroup   so the next try cannot start under the old gang
//!     | 3. mark each pod of the old version as killed by us, delete it  so the kill does not look like an eviction
//!   Restarting  waits until the old PodGroup is gone and enough pods are
//!     | 4. create the plugins' objects, the PodGroup and the pods of the new version
//!   Pending, then Running
//! ```
//!
//! A restart of the whole job is a new *version*, a partial restart a new *retry count*. The status stores either one before any
//! step. Which pods must go follows from the stored status, so a crash between the status and the last kill loses nothing and
//! repeats nothing. After `maxRetry` restarts the job fails instead, and keeps the pods of its last try.
//!
//! Mirrors Volcano's `pkg/controllers/job`; what is deliberately different stands in DEVIATIONS.md.

mod command;
mod completed;
mod dependency;
mod grow;
mod hold;
mod intent;
mod measure;
mod phase;
mod plugins;
mod podgroup;
mod pods;
mod policy;
mod resources;
mod since;
mod status;
mod trigger;
mod volumes;

pub use self::hold::{has_no_room, is_refused, waits_for};
pub use self::resources::pod_requests;
pub(crate) use self::resources::pod_usage;

use std::collections::BTreeSet;

use krafla_api::volcano::{JobPhase, JobSpec, JobStatus, TaskSpec};
use krafla_api::{Key, Kind, OwnerReference, Time, Uid, labels};
use krafla_cluster::{Step, Verb};
use serde_json::{Value, json};

use self::grow::Parts;
use self::hold::Hold;
use self::intent::Intent;
use self::phase::Next;
use self::podgroup::Group;
use self::pods::Pods;
use self::policy::{Decision, Vacancies};
use crate::object::{Body, Meta, VcJob};
use crate::plugin::Plugins;
use crate::{Controller, Measure, Note, Object, Objects, Plan, Snapshot, Stored, controlling_keys};

/// The reason of the Events that say what a policy does.
const EXECUTE_ACTION: &str = "ExecuteAction";

/// The controller of Volcano Jobs.
pub struct JobController;

impl Controller for JobController {
    fn name(&self) -> &'static str {
        "job-controller"
    }

    fn root(&self) -> Kind {
        Kind::VcJob
    }

    fn watches(&self) -> &'static [Kind] {
        &[
            Kind::Pod,
            Kind::PodGroup,
            Kind::Command,
            Kind::Queue,
            Kind::PersistentVolumeClaim,
            Kind::PriorityClass,
            Kind::Service,
            Kind::ConfigMap,
            Kind::Secret,
            Kind::NetworkPolicy,
        ]
    }

    fn recorded(&self) -> &'static [Kind] {
        &[Kind::Pod]
    }

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        let in_same_namespace = |name: &str| Key::new(&changed.meta.key.namespace, name);
        let waiting = |is_concerned: &dyn Fn(&Object, &VcJob) -> bool| {
            let jobs = objects.all(Kind::VcJob).filter(|job| {
                job.as_vcjob().is_some_and(|body| {
                    let state = &body.status.state;
                    let waits = matches!(state.phase, JobPhase::Unset | JobPhase::Pending)
                        || Hold::is_for_want_of_another(&state.reason);
                    waits && is_concerned(job, body)
                })
            });
            jobs.map(|job| job.meta.key.clone()).collect::<Vec<Key>>()
        };
        match &changed.body {
            Body::Command(command) => {
                command.target.iter().map(|target| in_same_namespace(&target.name)).collect()
            }
            Body::Queue(_) => waiting(&|_, job| *job.spec.queue == *changed.meta.key.name),
            _ if changed.kind == Kind::PersistentVolumeClaim => waiting(&|object, job| {
                object.meta.key.namespace == changed.meta.key.namespace && !job.spec.volumes.is_empty()
            }),
            // Priorities only weigh the PodGroups of jobs that wait.
            Body::PriorityClass(_) => waiting(&|_, _| true),
            _ => {
                let owners = controlling_keys(Kind::VcJob, changed);
                if owners.is_empty() { namesakes(changed, objects) } else { owners }
            }
        }
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        plan(snapshot)
    }

    fn measure(&self, stored: &Stored<'_>) -> Vec<Measure> {
        measure::measure(stored)
    }
}

/// Jobs that a foreign object may block: the names of a job's objects start with its own, and a name is free again when the
/// foreign object is deleted.
fn namesakes(stranger: &Object, objects: &Objects) -> Vec<Key> {
    let Key { namespace, name } = &stranger.meta.key;
    let ends = name.match_indices('-').map(|(end, _)| end).chain([name.len()]);
    let names = ends.filter_map(|end| name.get(..end)).map(|job| Key::new(namespace, job));
    names.filter(|key| objects.get(Kind::VcJob, key).is_some()).collect()
}

/// The plan for one job.
pub fn plan(snapshot: &Snapshot<'_>) -> Plan {
    let Some(root) = snapshot.root() else { return Plan::nothing() };
    // The garbage collector removes what a deleted job owns.
    if root.meta.is_deleting() {
        return Plan::nothing();
    }
    let job = match &root.body {
        Body::VcJob(job) => Job::new(&root.meta, job, snapshot),
        Body::Unreadable(why) => return hold::unreadable(root, why),
        _ => return Plan::nothing(),
    };
    let pods = pods::observe(&job, snapshot);
    let group = podgroup::observe(&job, snapshot);
    let plugins = plugins::of(&job);
    let mut plan = Plan::nothing();
    let (mut next, policies) = decide(&job, &pods, &group, snapshot, &mut plan);
    let seen = Seen { pods: &pods, group: &group, plugins: &plugins, vacant: &policies.vacant };
    match &next.phase {
        JobPhase::Unset | JobPhase::Pending | JobPhase::Running => {
            grow::kill(&job, &next, &pods, &mut plan);
            provide(&job, &seen, &mut next, snapshot, &mut plan);
        }
        JobPhase::Restarting => {
            // The PodGroup goes before the pods: the restart is not over while the one of the last try exists.
            let is_begun = next.version > job.status.version || pods.has_doomed_outdated(&job, &next);
            if is_begun || next.leaves_behind(&group) {
                plugins::remove(&plugins, false, snapshot, &mut plan);
                podgroup::remove(&group, &mut plan);
            }
            grow::kill(&job, &next, &pods, &mut plan);
            if plan.steps.is_empty() {
                provide(&job, &seen, &mut next, snapshot, &mut plan);
            }
        }
        JobPhase::Aborting
        | JobPhase::Aborted
        | JobPhase::Completing
        | JobPhase::Completed
        | JobPhase::Terminating
        | JobPhase::Terminated
        | JobPhase::Failed => {
            podgroup::remove(&group, &mut plan);
            plugins::remove(&plugins, next.phase.is_finished(), snapshot, &mut plan);
            grow::kill(&job, &next, &pods, &mut plan);
        }
        JobPhase::Other(phase) => {
            return Plan::hold(
                "UnknownPhase",
                format!("the job's phase {phase} is not known to this version"),
            );
        }
    }
    since::keep(&job, &policies.moments, &mut plan);
    status::write(&job, &pods, &plugins, &next, &policies.vacant, &mut plan);
    plan.status_may_wait &= !settles_an_eviction(&job, snapshot, &plan);
    plan
}

/// Whether the plan settles the eviction of a pod. Until status no longer counts the pod, a controller that starts anew takes it
/// for evicted just now. Pods that we deleted ourselves are marked and count as no eviction.
fn settles_an_eviction(job: &Job<'_>, snapshot: &Snapshot<'_>, plan: &Plan) -> bool {
    let settled: BTreeSet<&Uid> = plan.settled.iter().collect();
    let is_evicted = |object: &Object| {
        settled.contains(&object.meta.uid) && !object.meta.annotations.contains_key(labels::OUT_OF_SYNC)
    };
    matches!(job.phase(), JobPhase::Pending | JobPhase::Running)
        && snapshot.departed.iter().any(|departed| is_evicted(&departed.object))
}

/// The next phase, by a Command, by a policy, or from the pods; and the decisions of the policies.
fn decide(
    job: &Job<'_>,
    pods: &Pods<'_>,
    group: &Group<'_>,
    snapshot: &Snapshot<'_>,
    plan: &mut Plan,
) -> (Next, Decision) {
    let listens = matches!(job.phase(), JobPhase::Pending | JobPhase::Running | JobPhase::Restarting);
    let departed = if listens { snapshot.departed } else { &[] };
    let triggers = if listens { trigger::observe(job, pods, group, departed) } else { Vec::new() };
    let policies = policy::decide(job, &triggers);
    plan.wake_at = policies.look_again_at;

    let command = command::observe(job, snapshot);
    let asked = command.as_ref().and_then(|command| command.intent(job));
    let chosen = choose(job, asked.iter().chain(&policies.intents));
    let kept = kept_evidence(job, &policies, chosen.as_ref());
    let uids = snapshot.departed.iter().map(|departed| &departed.object.meta.uid);
    plan.settled = uids.filter(|uid| !kept.contains(uid)).cloned().collect();

    if let Some(command) = &command {
        command.take(plan);
    }
    plan.notes.extend(policies.announced.iter().map(|message| Note::normal(EXECUTE_ACTION, message.clone())));
    let next = match chosen {
        Some(intent) => {
            let message = format!("{}: {}", intent.action, intent.message());
            plan.notes.push(Note::normal(EXECUTE_ACTION, message).of(
                Verb::Report,
                Kind::VcJob,
                &job.meta.key,
            ));
            phase::follow(job, &intent)
        }
        // While a Command that is already carried out is still there, the phase that it led to is not left.
        None if command.is_some() && *job.phase() != JobPhase::Unset => phase::stay(job),
        None => phase::advance(job, pods, group),
    };
    (next, policies)
}

/// The first intent that has an effect, together with all others of its kind: pods that fail together restart together.
fn choose<'a>(job: &Job<'_>, intents: impl Iterator<Item = &'a Intent>) -> Option<Intent> {
    let mut intents = intents.filter(|intent| phase::has_effect(job, intent));
    let mut chosen = intents.next()?.clone();
    if chosen.is_partial() && !chosen.is_command {
        for other in intents {
            if other.action == chosen.action {
                chosen.join(other);
            }
        }
    }
    Some(chosen)
}

/// Evidence is kept for a policy whose time has not come, and for one whose turn comes after the chosen intent.
fn kept_evidence<'a>(job: &Job<'_>, policies: &'a Decision, chosen: Option<&Intent>) -> BTreeSet<&'a Uid> {
    let open = policies.intents.iter().filter(|intent| phase::has_effect(job, intent));
    let mut kept: BTreeSet<&Uid> = open.flat_map(|intent| &intent.evidence).collect();
    for uid in chosen.iter().flat_map(|intent| &intent.evidence) {
        kept.remove(uid);
    }
    kept.extend(&policies.awaited);
    kept
}

/// Observed state of a job.
struct Seen<'a> {
    pods: &'a Pods<'a>,
    group: &'a Group<'a>,
    plugins: &'a Plugins<'a>,
    vacant: &'a Vacancies,
}

/// Creates volumes, PodGroup and pods. If one cannot be created, status reports it and the job waits.
fn provide(job: &Job<'_>, seen: &Seen<'_>, next: &mut Next, snapshot: &Snapshot<'_>, plan: &mut Plan) {
    let Seen { pods, group, plugins, vacant } = *seen;
    let mut provide = || {
        hold::check(job, snapshot)?;
        forward(job, plan);
        plugins::ensure(job, plugins, snapshot, plan)?;
        let claims = volumes::ensure(job, snapshot, plan)?;
        podgroup::ensure(job, next.version, group, snapshot, plan);
        podgroup::warn(job, group, plan);
        let parts = Parts { next, claims: &claims, plugins, vacant };
        grow::create(job, &parts, pods, group, snapshot, plan);
        Ok(())
    };
    let held = provide();
    let remark = hold::remark(plan, &job.status.state, snapshot);
    if let Err(Hold { reason, message }) = &held {
        plan.notes.push(Note::warning(reason, message.clone()));
    }
    // Until a restart is over, the state keeps what is restarted and why: the next plan needs it.
    if next.phase == JobPhase::Restarting {
        return;
    }
    let held = held.err().map(|hold| (hold.reason.to_owned(), hold.message));
    let says_nothing_else = next.reason.is_empty() || Hold::REASONS.contains(&next.reason.as_str());
    if let Some(said) = held.or(remark) {
        (next.reason, next.message) = said;
    } else if says_nothing_else {
        let remark = plugins::remark(plugins)
            .or_else(|| hold::oddities(job, plan))
            .or_else(|| group.remark(&next.phase));
        (next.reason, next.message) = remark.unwrap_or_default();
    }
}

/// A queue that spans clusters wants its jobs marked.
fn forward(job: &Job<'_>, plan: &mut Plan) {
    let is_marked = job.meta.annotations.get(labels::JOB_FORWARDING).is_some_and(|value| value == "true");
    if job.is_forwarded && !is_marked {
        plan.steps.push(job.annotate(labels::JOB_FORWARDING, Some("true")));
    }
}

/// One job as all its modules see it.
struct Job<'a> {
    meta: &'a Meta,
    spec: &'a JobSpec,
    status: &'a JobStatus,
    now: Time,
    /// Whether the queue spans clusters and wants its jobs marked.
    is_forwarded: bool,
}

impl<'a> Job<'a> {
    fn new(meta: &'a Meta, job: &'a VcJob, snapshot: &Snapshot<'_>) -> Job<'a> {
        let spec = &job.spec;
        let queue = snapshot.objects.get(Kind::Queue, &Key::new("", &spec.queue));
        let is_forwarded = queue
            .and_then(|queue| queue.as_queue())
            .is_some_and(|queue| !queue.spec.extend_clusters.is_empty());
        Job { meta, spec, status: &job.status, now: snapshot.now, is_forwarded }
    }

    fn phase(&self) -> &JobPhase {
        &self.status.state.phase
    }

    /// The write that gives the job an annotation, or takes it away.
    fn annotate(&self, key: &str, value: Option<&str>) -> Step {
        Step::Patch {
            kind: Kind::VcJob,
            key: self.meta.key.clone(),
            uid: self.meta.uid.clone(),
            revision: None,
            of_status: false,
            patch: json!({ "metadata": { "annotations": { key: value } } }),
        }
    }

    /// When its present phase began, as far as that is stored.
    fn began_at(&self) -> Time {
        let began_at = self.status.state.last_transition_time.or(self.meta.created_at);
        began_at.unwrap_or(Time::from_seconds(0))
    }

    fn task(&self, name: &str) -> Option<&TaskSpec> {
        self.spec.tasks.iter().find(|task| task.name == name)
    }

    /// Whether a pod of that index belongs to the job as it is wanted.
    fn wants(&self, task: &str, index: i32) -> bool {
        self.task(task).is_some_and(|task| (0..task.replicas).contains(&index))
    }

    fn replicas(&self) -> i32 {
        self.spec.tasks.iter().fold(0i32, |sum, task| sum.saturating_add(task.replicas.max(0)))
    }

    fn namespace(&self) -> &str {
        &self.meta.key.namespace
    }

    fn name(&self) -> &str {
        &self.meta.key.name
    }

    fn podgroup_name(&self) -> String {
        format!("{}-{}", self.name(), self.meta.uid)
    }

    fn owner_reference(&self) -> Value {
        let info = Kind::VcJob.info();
        let owner = OwnerReference {
            api_version: info.api_version(),
            kind: info.kind.to_owned(),
            name: self.name().to_owned(),
            uid: self.meta.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        json!(owner)
    }
}

#[cfg(test)]
mod tests;
