//! Diagnosis of waiting jobs, from listed objects only. Pure.
//!
//! For each Job, JobFlow, PodGroup and pod that makes no progress the first cause is told that explains it, from what
//! people have asked for (aborted, suspended) over what is missing (queue, template, claim) to what the scheduler and
//! the node say. What belongs to something that is told already is not told again.

mod cause;
mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use krafla_api::volcano::{JobFlowPhase, JobPhase, PodGroupPhase, QueueState};
use krafla_api::{Key, Kind, Time, Uid};
use krafla_node::pod::Pod;
use krafla_plan::jobflow::JobFlow;
use krafla_plan::object::{Job, VcJob};
use krafla_plan::{Body, Object, Objects};

pub(crate) use cause::{
    Cause, Lease, Means, not_scheduled, remedy_of_container, remedy_of_scheduler, remedy_of_scheduling,
    remedy_of_warning,
};

/// Within this time a controller has said something about a new object.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(5);
/// The queue of jobs that name none.
const DEFAULT_QUEUE: &str = "default";
/// Who takes care of Kubernetes' Jobs that do not name anybody.
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

/// What was listed.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) objects: Objects,
    /// Pods with all that a node reads and writes.
    pub(crate) pods: BTreeMap<Key, Pod>,
    /// The last warning about each object.
    pub(crate) warnings: BTreeMap<Uid, Warning>,
    /// The lease of Volcano's controllers.
    pub(crate) lease: Lease,
}

/// What somebody warned of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Warning {
    /// When it last happened, if that was said.
    pub(crate) at: Option<Time>,
    pub(crate) message: String,
}

/// Something that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    pub(crate) cause: Cause,
}

/// All that waits at a time: flows, jobs, gangs and pods, each in the order of their names.
pub(crate) fn waiting(seen: &Seen, now: Time) -> Vec<Waiting> {
    let mut found = Vec::new();
    let mut told = BTreeSet::new();
    for kind in [Kind::JobFlow, Kind::VcJob, Kind::Job, Kind::PodGroup, Kind::Pod] {
        for object in seen.objects.all(kind) {
            // A flow is told beside its jobs: it waits for them. The rest is told once.
            let is_part = object.meta.owners.iter().any(|owner| told.contains(&owner.uid));
            if is_part && kind != Kind::VcJob {
                told.insert(object.meta.uid.clone());
                continue;
            }
            if let Some(cause) = cause_of(seen, object, now) {
                told.insert(object.meta.uid.clone());
                found.push(Waiting { kind, key: object.meta.key.clone(), cause });
            }
        }
    }
    found
}

fn cause_of(seen: &Seen, object: &Object, now: Time) -> Option<Cause> {
    if object.meta.is_deleting() {
        let finalizers = object.meta.finalizers.clone();
        return Some(finalizers)
            .filter(|them| !them.is_empty())
            .map(|finalizers| Cause::Deleted { finalizers });
    }
    if let Body::Unreadable(unreadable) = &object.body {
        return Some(Cause::Unreadable(unreadable.why.clone()));
    }
    let cause = if let Some(flow) = object.as_jobflow() {
        of_flow(seen, object, flow, now)
    } else if let Some(job) = object.as_vcjob() {
        of_vcjob(seen, object, job, now)
    } else if let Some(job) = object.as_job() {
        of_job(seen, object, job, now)
    } else if object.kind == Kind::PodGroup {
        of_podgroup(object)
    } else {
        return seen.pods.get(&object.meta.key).and_then(|pod| pods::cause_of(seen, pod));
    };
    cause.filter(|_| !has_ended(object))
}

fn has_ended(object: &Object) -> bool {
    let of_vcjob = object.as_vcjob().map(|job| &job.status.state.phase);
    let of_flow = object.as_jobflow().map(|flow| &flow.status.state.phase);
    matches!(of_vcjob, Some(JobPhase::Completed | JobPhase::Failed | JobPhase::Terminated))
        || matches!(of_flow, Some(JobFlowPhase::Succeed | JobFlowPhase::Failed))
        || object.as_job().is_some_and(|job| job.status.finished().is_some())
}

/// That nobody has taken up an object, if that should have happened by now.
fn not_taken_up(seen: &Seen, object: &Object, now: Time) -> Option<Cause> {
    let is_new = object.meta.created_at.is_some_and(|made| now.since(made) < TAKEN_UP_WITHIN);
    (!is_new).then(|| Cause::NoController(seen.lease.clone()))
}

fn of_vcjob(seen: &Seen, object: &Object, job: &VcJob, now: Time) -> Option<Cause> {
    let status = &job.status;
    match status.state.phase {
        JobPhase::Unset => return not_taken_up(seen, object, now),
        JobPhase::Aborted => return Some(Cause::Aborted),
        _ => {}
    }
    let ending = seen.objects.children(&object.meta.uid, Kind::Pod).filter(|pod| pod.meta.is_deleting());
    let ending: Vec<&str> = ending.map(|pod| &*pod.meta.key.name).collect();
    if let (
        JobPhase::Restarting | JobPhase::Aborting | JobPhase::Terminating | JobPhase::Completing,
        [pod, ..],
    ) = (&status.state.phase, ending.as_slice())
    {
        return Some(Cause::PodsEnding { pod: (*pod).to_owned(), n_others: ending.len().saturating_sub(1) });
    }
    let of_podgroup =
        || seen.objects.children(&object.meta.uid, Kind::PodGroup).find_map(|it| of_podgroup(it));
    let cause = of_queue(seen, &job.spec.queue).filter(|_| status.running == 0);
    let cause = cause.or_else(of_podgroup).or_else(|| of_pods(seen, object));
    let cause = cause.or_else(|| of_tasks(job).filter(|_| status.running == 0));
    cause.or_else(|| warned(seen, object).filter(|_| status.running == 0))
}

/// A queue that takes no jobs.
fn of_queue(seen: &Seen, named: &str) -> Option<Cause> {
    let name = if named.is_empty() { DEFAULT_QUEUE } else { named };
    let Some(queue) = seen.objects.get(Kind::Queue, &Key::new("", name)) else {
        return Some(Cause::QueueMissing(name.to_owned()));
    };
    let state = &queue.as_queue()?.status.state;
    let is_closed = matches!(state, QueueState::Closed | QueueState::Closing);
    is_closed.then(|| Cause::QueueClosed { queue: name.to_owned(), state: state.to_string() })
}

/// What the scheduler says of a gang that finds no place.
fn of_podgroup(object: &Object) -> Option<Cause> {
    let status = &object.as_podgroup()?.status;
    if status.phase == PodGroupPhase::Completed {
        return None;
    }
    let conditions = &status.conditions;
    let condition =
        |of_type: &str| conditions.iter().rfind(|it| it.condition_type == of_type && it.status == "True");
    let waits = condition("Unschedulable")?;
    // Volcano leaves the condition when the gang is placed later, and adds another one.
    let is_over = condition("Scheduled")
        .is_some_and(|placed| placed.last_transition_time >= waits.last_transition_time);
    let text = if waits.message.is_empty() { &waits.reason } else { &waits.message };
    (!is_over).then(|| Cause::Unschedulable(text.clone()))
}

/// The first of an object's pods that says why it does not run; or why nothing of it runs any more.
fn of_pods(seen: &Seen, owner: &Object) -> Option<Cause> {
    let all: Vec<&Pod> = pods_of(seen, owner).collect();
    let waits = all.iter().find_map(|pod| pods::cause_of(seen, pod));
    waits.or_else(|| pods::last_failure(&all))
}

fn pods_of<'a>(seen: &'a Seen, owner: &Object) -> impl Iterator<Item = &'a Pod> {
    let children = seen.objects.children(&owner.meta.uid, Kind::Pod);
    children.filter_map(|pod| seen.pods.get(&pod.meta.key))
}

/// A task without pods that depends on others.
fn of_tasks(job: &VcJob) -> Option<Cause> {
    let has_pods = |task: &str| job.status.task_status_count.contains_key(task);
    let mut tasks = job.spec.tasks.iter().filter(|task| task.replicas > 0 && !has_pods(&task.name));
    tasks.find_map(|task| {
        let on = task.depends_on.as_ref()?.name.clone();
        Some(Cause::TaskDependsOn { task: task.name.clone(), on })
    })
}

fn warned(seen: &Seen, object: &Object) -> Option<Cause> {
    seen.warnings.get(&object.meta.uid).map(|warning| Cause::Warned(warning.message.clone()))
}

fn of_job(seen: &Seen, object: &Object, job: &Job, now: Time) -> Option<Cause> {
    let (spec, status) = (&job.spec, &job.status);
    if spec.suspend == Some(true) {
        return Some(Cause::Suspended);
    }
    let manager = spec.managed_by.as_deref().filter(|name| *name != JOB_CONTROLLER);
    if status.start_time.is_none() {
        let managed = || manager.map(|name| Cause::ManagedBy(name.to_owned()));
        return not_taken_up(seen, object, now).map(|cause| managed().unwrap_or(cause));
    }
    let waits = pods_of(seen, object).find_map(|pod| pods::cause_of(seen, pod));
    waits.or_else(|| warned(seen, object).filter(|_| status.active == 0))
}

fn of_flow(seen: &Seen, object: &Object, flow: &JobFlow, now: Time) -> Option<Cause> {
    let namespace = &object.meta.key.namespace;
    let state_of = |step: &str| {
        let job = Key::new(namespace, format!("{}-{step}", object.meta.key.name).as_str());
        seen.objects.get(Kind::VcJob, &job).and_then(|job| Some(job.as_vcjob()?.status.state.phase.clone()))
    };
    let has_template = |step: &str| seen.objects.get(Kind::JobTemplate, &Key::new(namespace, step)).is_some();
    let recorded = |step: &str| {
        let name = format!("{}-{step}", object.meta.key.name);
        flow.status.job_status_list.iter().any(|job| job.name == name)
    };
    let mut open =
        flow.spec.flows.iter().filter(|step| state_of(&step.name).is_none() && !recorded(&step.name));
    if let Some(step) = open.clone().find(|step| !has_template(&step.name)) {
        return Some(Cause::TemplateMissing { step: step.name.clone() });
    }
    if flow.status.state.phase == JobFlowPhase::Unset {
        return not_taken_up(seen, object, now);
    }
    if flow.spec.flows.iter().any(|step| state_of(&step.name) == Some(JobPhase::Running)) {
        return None;
    }
    let waits = open.find_map(|step| {
        let unfinished = step.targets().filter(|target| state_of(target) != Some(JobPhase::Completed));
        let on: Vec<String> = unfinished
            .map(|target| match state_of(target) {
                Some(phase) => format!("{target} ({phase})"),
                None => target.to_owned(),
            })
            .collect();
        (!on.is_empty()).then(|| Cause::StepDependsOn { step: step.name.clone(), on })
    });
    waits.or_else(|| warned(seen, object))
}

#[cfg(test)]
mod tests;
