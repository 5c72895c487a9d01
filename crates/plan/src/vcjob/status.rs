//! The job's status: a recount of what is observed, and the phase that was decided.

use std::collections::BTreeMap;

use krafla_api::Kind;
use krafla_api::volcano::{JobCondition, JobPhase, JobStatus};
use krafla_cluster::Step;
use serde_json::json;

use super::hold::Hold;
use super::phase::Next;
use super::pods::Pods;
use super::policy::Vacancies;
use super::{Job, completed};
use crate::Plan;
use crate::merge_patch::difference;
use crate::object::PodPhase;
use crate::plugin::Plugins;

/// Puts the status write into the plan, if there is anything to write.
pub(super) fn write(
    job: &Job<'_>,
    pods: &Pods<'_>,
    plugins: &Plugins<'_>,
    next: &Next,
    vacant: &Vacancies,
    plan: &mut Plan,
) {
    let before = job.status;
    let after = recount(job, pods, plugins, next, vacant);
    let Some(patch) = difference(&json!(before), &json!(after)) else { return };
    // Counters follow the pods and may be a moment late, and so may what the scheduler says of a job that may start in the
    // same moment; what decides does not wait.
    let decides = |status: &JobStatus| {
        let mut state = status.state.clone();
        if Hold::is_remark(&state.reason) {
            state.reason.clear();
            state.message.clear();
        }
        (state, status.version, status.retry_count, status.controlled_resources.clone())
    };
    let is_urgent = shows_a_kill(before, &after) || forgets_a_success(before, &after);
    plan.status_may_wait = decides(before) == decides(&after) && !is_urgent;
    plan.status = Some(Step::Patch {
        kind: Kind::VcJob,
        key: job.meta.key.clone(),
        uid: job.meta.uid.clone(),
        revision: Some(job.meta.revision),
        of_status: true,
        patch: json!({ "status": patch }),
    });
}

/// Whether the job shows for the first time that pods of it are on their way out. Volcano's clients wait to see just that in a
/// job that is being stopped or restarted, and it may be over in a moment.
fn shows_a_kill(before: &JobStatus, after: &JobStatus) -> bool {
    let is_killing = matches!(
        after.state.phase,
        JobPhase::Restarting | JobPhase::Aborting | JobPhase::Completing | JobPhase::Terminating
    );
    is_killing && before.terminating == 0 && after.terminating > 0
}

/// Whether pods that succeeded no longer count, because the job is smaller. They are about to go, and nobody must take what
/// was counted for more that is done.
fn forgets_a_success(before: &JobStatus, after: &JobStatus) -> bool {
    let n_succeeded = |status: &JobStatus, task: &str| {
        let counted = status.task_status_count.get(task);
        counted.and_then(|counted| counted.phase.get(PodPhase::Succeeded.as_str())).copied().unwrap_or(0)
    };
    before.task_status_count.keys().any(|task| n_succeeded(after, task) < n_succeeded(before, task))
}

fn recount(
    job: &Job<'_>,
    pods: &Pods<'_>,
    plugins: &Plugins<'_>,
    next: &Next,
    vacant: &Vacancies,
) -> JobStatus {
    let mut status = job.status.clone();
    let counts = pods.counts_after(job, next);
    status.pending = counts.pending;
    status.running = counts.running;
    status.succeeded = counts.succeeded;
    status.failed = counts.failed;
    status.terminating = counts.terminating;
    status.unknown = counts.unknown;
    status.task_status_count = pods.task_status_count(job, next, vacant);
    status.version = next.version;
    status.retry_count = next.retry_count;
    if next.phase.is_finished() && status.state.phase.is_finished() {
        return status;
    }
    status.min_available = job.spec.min_available;
    status.controlled_resources = controlled_resources(job, pods, plugins, next);
    status.state.reason.clone_from(&next.reason);
    status.state.message.clone_from(&next.message);
    if next.phase != status.state.phase {
        change_phase(job, &mut status, &next.phase);
    }
    status
}

fn change_phase(job: &Job<'_>, status: &mut JobStatus, phase: &JobPhase) {
    let now = job.now.whole_seconds();
    status.state.phase = phase.clone();
    status.state.last_transition_time = Some(now);
    status.conditions.retain(|condition| condition.status != *phase);
    status.conditions.push(JobCondition { status: phase.clone(), last_transition_time: Some(now) });
    let is_steady = matches!(phase, JobPhase::Pending | JobPhase::Running);
    if !is_steady {
        let created_at = job.meta.created_at.unwrap_or(now);
        status.running_duration = Some(now.since(created_at).into());
    }
}

/// What exists because of the job: its claims, and what its plugins made. Claims stay until the job goes; the rest only while
/// the job may run. And what is done although its pod is gone.
fn controlled_resources(
    job: &Job<'_>,
    pods: &Pods<'_>,
    plugins: &Plugins<'_>,
    next: &Next,
) -> BTreeMap<String, String> {
    let is_kept = |key: &str| !key.starts_with("plugin-") && !completed::is_record(key);
    let recorded = job.status.controlled_resources.iter().filter(|(key, _)| is_kept(key));
    let mut controlled: BTreeMap<String, String> =
        recorded.map(|(key, value)| (key.clone(), value.clone())).collect();
    let claims = job.spec.volumes.iter().map(|volume| volume.volume_claim_name.as_str());
    for claim in claims.filter(|claim| !claim.is_empty()) {
        controlled.insert(format!("volume-pvc-{claim}"), claim.to_owned());
    }
    let may_run = matches!(next.phase, JobPhase::Pending | JobPhase::Running | JobPhase::Restarting);
    if may_run {
        controlled.extend(plugins.controlled_resources());
    }
    controlled.extend(pods.completed().record(job, next));
    controlled
}
