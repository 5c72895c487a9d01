//! P1 to P5 and P7 as they read for a plan of a Volcano Job.

use std::collections::BTreeSet;
use std::sync::Arc;

use krafla_api::volcano::{Iteration, JobPhase, PodGroupPhase};
use krafla_api::{Key, Kind, Uid, labels};
use krafla_cluster::Step;
use krafla_plan::object::{PodPhase, VcJob};
use krafla_plan::{Object, Plan, Snapshot};
use serde_json::Value;

use crate::{Property, Violation};

/// Whether the plan keeps the properties, given the state that it was made from.
pub(crate) fn check(snapshot: &Snapshot<'_>, plan: &Plan) -> Result<(), Violation> {
    let Some(root) = snapshot.root() else { return Ok(()) };
    let Some(job) = root.as_vcjob() else { return Ok(()) };
    let after = StatusAfter::of(job, plan);
    terminal_is_final(job, &after)?;
    budget_is_kept(job, &after)?;
    nothing_is_counted_twice(snapshot, job, plan)?;
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
                minimums_are_the_tasks(job, written)?;
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

/// P7: so is what it asks for of each task. A task that the job no longer has is taken out.
fn minimums_are_the_tasks(job: &VcJob, written: &Value) -> Result<(), Violation> {
    let Some(Value::Object(minimums)) = written.pointer("/spec/minTaskMember") else { return Ok(()) };
    let is_right = |(name, minimum): &(&String, &Value)| {
        let Some(task) = job.spec.tasks.iter().find(|task| task.name == **name) else {
            return minimum.is_null();
        };
        let open = if task.partition_policy.is_some() { None } else { Some(task.replicas) };
        let wanted = task.min_available.or(open).map(i64::from);
        minimum.as_i64().is_some_and(|minimum| wanted.is_none_or(|wanted| wanted == minimum))
    };
    match minimums.iter().find(|entry| !is_right(entry)) {
        None => Ok(()),
        Some((name, minimum)) => {
            let message = format!("a PodGroup for {minimum} pods of task {name}, which the job does not say");
            Err(Violation::new(Property::P7, message))
        }
    }
}

/// P5: no counter says more than there are pods for it, so none is in two. A pod that the plan deletes may count as what it is
/// or as going. What succeeded or failed may be counted without its pod, if it was counted before or is on record.
fn nothing_is_counted_twice(snapshot: &Snapshot<'_>, job: &VcJob, plan: &Plan) -> Result<(), Violation> {
    const COUNTERS: [&str; 6] = ["pending", "running", "unknown", "terminating", "succeeded", "failed"];
    let Some(Step::Patch { patch, .. }) = &plan.status else { return Ok(()) };
    let counted = COUNTERS.map(|name| patch.pointer("/status")?.get(name)?.as_i64());
    if counted.iter().all(Option::is_none) {
        return Ok(());
    }
    let [mut pending, mut running, mut unknown, mut terminating, mut succeeded, mut failed] = [0; 6];
    let deleted: BTreeSet<&Uid> = plan.steps.iter().filter_map(deleted_pod).collect();
    let mut n_going = 0;
    for pod in snapshot.children(Kind::Pod) {
        let Some(phase) = pod.as_pod().map(|pod| pod.status.phase) else { continue };
        let is_going = pod.meta.is_deleting();
        n_going += i64::from(is_going && phase == PodPhase::Succeeded);
        *match phase {
            _ if is_going => &mut terminating,
            PodPhase::Pending => &mut pending,
            PodPhase::Running => &mut running,
            PodPhase::Unknown => &mut unknown,
            PodPhase::Succeeded => &mut succeeded,
            PodPhase::Failed => &mut failed,
        } += 1;
        terminating += i64::from(!is_going && deleted.contains(&pod.meta.uid));
    }
    let n_departed = i64::try_from(snapshot.departed.len()).unwrap_or(i64::MAX);
    let n_counted = n_before(job, PodPhase::Succeeded, job.status.succeeded);
    succeeded = (succeeded + n_on_record(job)).max(n_counted) + n_departed + n_going;
    if job.status.state.phase.is_finished() {
        failed = failed.max(n_before(job, PodPhase::Failed, job.status.failed));
    }
    let there = [pending, running, unknown, terminating, succeeded, failed];
    for ((name, counted), there) in COUNTERS.into_iter().zip(counted).zip(there) {
        if let Some(counted) = counted.filter(|counted| *counted > there) {
            let message = format!("{counted} pods would be counted as {name}, and there are {there}");
            return Err(Violation::new(Property::P5, message));
        }
    }
    Ok(())
}

fn deleted_pod(step: &Step) -> Option<&Uid> {
    match step {
        Step::Delete { kind: Kind::Pod, uid, .. } => Some(uid),
        _ => None,
    }
}

/// How many indexes the job has on record as done without a pod: `0-2,5` are four.
fn n_on_record(job: &VcJob) -> i64 {
    let recorded = job.status.controlled_resources.iter().filter(|(key, _)| key.starts_with("completed-"));
    let length = |range: &str| -> Option<i64> {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<i64>().ok()? - first.parse::<i64>().ok()? + 1)
    };
    recorded.flat_map(|(_, indexes)| indexes.split(',')).filter_map(length).sum()
}

/// How many pods of a phase the status counts already, in the counter of the job or in those of its tasks.
fn n_before(job: &VcJob, phase: PodPhase, counter: i32) -> i64 {
    let by_task = job.status.task_status_count.values();
    let of_tasks: i64 =
        by_task.filter_map(|task| task.phase.get(phase.as_str())).map(|n| i64::from(*n)).sum();
    of_tasks.max(counter.into())
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
