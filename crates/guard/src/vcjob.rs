//! P1, P2, P3, P4 and P7 as they read for a plan of a Volcano Job.

use std::collections::BTreeSet;
use std::sync::Arc;

use krafla_api::volcano::{Iteration, JobPhase, PodGroupPhase};
use krafla_api::{Key, Kind, Uid, labels};
use krafla_plan::object::VcJob;
use krafla_plan::{Object, Plan, Snapshot, Step};
use serde_json::Value;

use crate::{Property, Violation};

/// Whether the plan keeps the properties, given the state that it was made from.
pub(crate) fn check(snapshot: &Snapshot<'_>, plan: &Plan) -> Result<(), Violation> {
    let Some(root) = snapshot.root() else { return Ok(()) };
    let Some(job) = root.as_vcjob() else { return Ok(()) };
    let after = StatusAfter::of(job, plan);
    terminal_is_final(job, &after)?;
    budget_is_kept(job, &after)?;
    let mut marked = BTreeSet::new();
    for step in &plan.steps {
        match step {
            Step::Create { kind: Kind::Pod, object } => {
                pod_may_be_created(snapshot, &after, object)?;
                dependencies_have_begun(snapshot, job, object)?;
            }
            Step::Patch { kind: Kind::Pod, uid, patch, .. } if marks(patch) => drop(marked.insert(uid)),
            Step::Delete { kind: Kind::Pod, key, uid, .. } => {
                pod_may_be_killed(snapshot, job, &after, key)?;
                is_known_to_go(snapshot, &marked, key, uid)?;
            }
            Step::Create { kind: Kind::PodGroup, object: written }
            | Step::Patch { kind: Kind::PodGroup, patch: written, .. } => {
                minimum_is_the_jobs(job, written, step)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a patch says of a pod that its going is no eviction.
fn marks(patch: &Value) -> bool {
    let annotations = patch.pointer("/metadata/annotations");
    annotations.and_then(|annotations| annotations.get(labels::OUT_OF_SYNC)).is_some()
}

/// P4: whoever sees a pod of ours go must be able to tell that it was we who sent it away.
fn is_known_to_go(
    snapshot: &Snapshot<'_>,
    marked: &BTreeSet<&Uid>,
    key: &Key,
    uid: &Uid,
) -> Result<(), Violation> {
    let pod = snapshot.objects.get(Kind::Pod, key);
    let is_marked = pod.is_some_and(|pod| pod.meta.annotations.contains_key(labels::OUT_OF_SYNC));
    if is_marked || marked.contains(uid) {
        return Ok(());
    }
    Err(Violation::new(Property::P4, format!("pod {key} would look evicted")))
}

/// P7: of what a task depends on, something has been there. How much of it must be ready is for the decision to know.
fn dependencies_have_begun(snapshot: &Snapshot<'_>, job: &VcJob, pod: &Value) -> Result<(), Violation> {
    let annotations = pod.pointer("/metadata/annotations");
    let name = annotations.and_then(|annotations| annotations.get(labels::TASK_SPEC)).and_then(Value::as_str);
    let task_named = |name: &str| job.spec.tasks.iter().find(|task| task.name == name);
    let Some(depends_on) = name.and_then(task_named).and_then(|task| task.depends_on.as_ref()) else {
        return Ok(());
    };
    let has_begun = |name: &String| {
        let is_waited_for = task_named(name).is_none_or(|task| task.min_available.is_some_and(|n| n > 0));
        let is_of_it = |pod: &Arc<Object>| pod.meta.annotations.get(labels::TASK_SPEC) == Some(name.as_str());
        !is_waited_for
            || job.status.task_status_count.contains_key(name)
            || snapshot.children(Kind::Pod).any(is_of_it)
    };
    let is_met = match depends_on.iteration {
        Iteration::Any => depends_on.name.iter().any(has_begun),
        _ => depends_on.name.iter().all(has_begun),
    };
    if is_met {
        return Ok(());
    }
    let message = format!("a pod of task {} before what it depends on", name.unwrap_or_default());
    Err(Violation::new(Property::P7, message))
}

/// P7: the gang that the scheduler admits is the one that the job asks for.
fn minimum_is_the_jobs(job: &VcJob, written: &Value, step: &Step) -> Result<(), Violation> {
    let minimum = written.pointer("/spec/minMember");
    // A minimum of 0 is left out of a new PodGroup, and taken back from an old one.
    let minimum = match minimum {
        Some(minimum) => minimum.as_i64().unwrap_or(0),
        None if step.creates() => 0,
        None => return Ok(()),
    };
    if minimum == i64::from(job.spec.min_available) {
        return Ok(());
    }
    let message = format!("a PodGroup for {minimum} pods, and a job for {}", job.spec.min_available);
    Err(Violation::new(Property::P7, message))
}

/// What the status says once the plan's status is stored, which is before its first step.
struct StatusAfter {
    phase: JobPhase,
    version: i64,
    retry_count: i64,
}

impl StatusAfter {
    fn of(job: &VcJob, plan: &Plan) -> StatusAfter {
        let patch = match &plan.status {
            Some(Step::Patch { patch, .. }) => patch.get("status"),
            _ => None,
        };
        let number = |name: &str, before: i32| {
            patch.and_then(|patch| patch.get(name)).and_then(Value::as_i64).unwrap_or(i64::from(before))
        };
        let phase = patch.and_then(|patch| patch.pointer("/state/phase")).and_then(Value::as_str);
        StatusAfter {
            phase: phase.map_or_else(|| job.status.state.phase.clone(), JobPhase::from),
            version: number("version", job.status.version),
            retry_count: number("retryCount", job.status.retry_count),
        }
    }
}

fn terminal_is_final(job: &VcJob, after: &StatusAfter) -> Result<(), Violation> {
    let before = &job.status.state.phase;
    if before.is_finished() && after.phase != *before {
        return Err(Violation::new(Property::P2, format!("{before} would become {}", after.phase)));
    }
    Ok(())
}

fn budget_is_kept(job: &VcJob, after: &StatusAfter) -> Result<(), Violation> {
    let (before, budget) = (i64::from(job.status.retry_count), i64::from(job.spec.max_retry.max(1)));
    if after.retry_count < before || after.retry_count > budget.max(before) {
        let message = format!("retryCount would go from {before} to {} of {budget}", after.retry_count);
        return Err(Violation::new(Property::P3, message));
    }
    Ok(())
}

fn pod_may_be_created(snapshot: &Snapshot<'_>, after: &StatusAfter, pod: &Value) -> Result<(), Violation> {
    let name = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let key = Key::new(&snapshot.key.namespace, name);
    if snapshot.objects.get(Kind::Pod, &key).is_some() {
        return Err(Violation::new(Property::P1, format!("pod {name} exists")));
    }
    if after.phase.is_finished() {
        return Err(Violation::new(Property::P2, format!("pod {name} for a job that is {}", after.phase)));
    }
    let may_have_new_pods =
        matches!(after.phase, JobPhase::Pending | JobPhase::Running | JobPhase::Restarting);
    let is_admitted = snapshot.children(Kind::PodGroup).any(|group| is_admitted(group));
    if !may_have_new_pods || !is_admitted {
        let message = format!("pod {name} while the job is {} and admitted is {is_admitted}", after.phase);
        return Err(Violation::new(Property::P7, message));
    }
    Ok(())
}

fn is_admitted(group: &Object) -> bool {
    let Some(group_body) = group.as_podgroup() else { return false };
    !group.meta.is_deleting()
        && !matches!(group_body.status.phase, PodGroupPhase::Unset | PodGroupPhase::Pending)
}

fn pod_may_be_killed(
    snapshot: &Snapshot<'_>,
    job: &VcJob,
    after: &StatusAfter,
    key: &Key,
) -> Result<(), Violation> {
    let Some(pod) = snapshot.objects.get(Kind::Pod, key) else { return Ok(()) };
    let annotation = |name: &str| pod.meta.annotations.get(name).unwrap_or_default();
    let version: i64 = annotation(labels::JOB_VERSION).parse().unwrap_or(0);
    let index: i64 = annotation(labels::TASK_INDEX).parse().unwrap_or(0);
    let task = job.spec.tasks.iter().find(|task| task.name == annotation(labels::TASK_SPEC));
    let is_surplus = task.is_none_or(|task| index >= i64::from(task.replicas));
    let is_running = matches!(after.phase, JobPhase::Unset | JobPhase::Pending | JobPhase::Running);
    // A mark that is stored already was somebody's decision, and what is marked must go: nobody would see it evicted.
    let is_marked = pod.meta.annotations.contains_key(labels::OUT_OF_SYNC);
    if is_running && !is_surplus && !is_marked && version >= after.version {
        return Err(Violation::new(
            Property::P3,
            format!("pod {key} would be killed without a charged restart"),
        ));
    }
    Ok(())
}
