//! P1, P2, P3 and P7 as they read for a plan of a Volcano Job.

use krafla_api::volcano::{JobPhase, PodGroupPhase};
use krafla_api::{Key, Kind, labels};
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
    for step in &plan.steps {
        match step {
            Step::Create { kind: Kind::Pod, object } => pod_may_be_created(snapshot, &after, object)?,
            Step::Delete { kind: Kind::Pod, key, .. } => pod_may_be_killed(snapshot, job, &after, key)?,
            _ => {}
        }
    }
    Ok(())
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
