//! Phase and action make the next phase: one table.

use krafla_api::volcano::{Action, JobPhase};

use super::Job;
use super::podgroup::Group;
use super::pods::Pods;

/// What status will say of the job's life. It is stored before anything is done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) phase: JobPhase,
    pub(super) version: i32,
    pub(super) retry_count: i32,
}

/// The next phase. `action` is what a policy asks for, if one does.
pub(super) fn next(job: &Job<'_>, pods: &Pods<'_>, group: &Group<'_>, action: Option<Action>) -> Next {
    let stay =
        Next { phase: job.phase().clone(), version: job.status.version, retry_count: job.status.retry_count };
    let to = |phase| Next { phase, ..stay.clone() };
    let kill_and_go_to = |phase| Next { phase, version: stay.version.saturating_add(1), ..stay.clone() };
    match job.phase() {
        JobPhase::Unset => to(JobPhase::Pending),
        JobPhase::Pending | JobPhase::Running => match action {
            Some(Action::RestartJob) => {
                let retry_count = stay.retry_count.saturating_add(1);
                Next { retry_count, ..kill_and_go_to(JobPhase::Restarting) }
            }
            Some(Action::AbortJob) => kill_and_go_to(JobPhase::Aborting),
            Some(Action::CompleteJob) => kill_and_go_to(JobPhase::Completing),
            Some(Action::TerminateJob) => kill_and_go_to(JobPhase::Terminating),
            Some(_) | None if *job.phase() == JobPhase::Pending => to(pending(job, pods)),
            Some(_) | None => to(running(job, pods)),
        },
        JobPhase::Restarting => to(restarting(job, pods, group)),
        JobPhase::Aborting if pods.is_quiet() => to(JobPhase::Aborted),
        JobPhase::Completing if pods.is_quiet() => to(JobPhase::Completed),
        JobPhase::Terminating if pods.is_quiet() => to(JobPhase::Terminated),
        JobPhase::Aborting
        | JobPhase::Completing
        | JobPhase::Terminating
        | JobPhase::Aborted
        | JobPhase::Completed
        | JobPhase::Terminated
        | JobPhase::Failed
        | JobPhase::Other(_) => stay,
    }
}

/// Volcano: state/pending.go. Failed pods count: the gang has started.
fn pending(job: &Job<'_>, pods: &Pods<'_>) -> JobPhase {
    let counts = pods.counts();
    let started = counts.running.saturating_add(counts.succeeded).saturating_add(counts.failed);
    if job.spec.min_available <= started { JobPhase::Running } else { JobPhase::Pending }
}

/// Volcano: state/running.go. minSuccess is looked at before minAvailable.
fn running(job: &Job<'_>, pods: &Pods<'_>) -> JobPhase {
    let (replicas, counts) = (job.replicas(), pods.counts());
    let (min_available, min_success) = (job.spec.min_available, job.spec.min_success);
    if replicas == 0 {
        return JobPhase::Running;
    }
    if min_success.is_some_and(|min_success| counts.succeeded >= min_success) {
        return JobPhase::Completed;
    }
    if counts.succeeded.saturating_add(counts.failed) == replicas {
        let enough = min_success.unwrap_or(min_available);
        let is_success = every_task_has_its_minimum(job, pods) && counts.succeeded >= enough;
        return if is_success { JobPhase::Completed } else { JobPhase::Failed };
    }
    if counts.pending > replicas.saturating_sub(min_available) {
        return JobPhase::Pending;
    }
    JobPhase::Running
}

/// Only when the job's minimum covers all tasks' minima does a single task's minimum decide.
fn every_task_has_its_minimum(job: &Job<'_>, pods: &Pods<'_>) -> bool {
    let minima = job.spec.tasks.iter().map(|task| task.min_available.unwrap_or(task.replicas));
    if job.spec.min_available < minima.fold(0, i32::saturating_add) {
        return true;
    }
    job.spec.tasks.iter().all(|task| match (task.min_available, pods.counts_of(&task.name)) {
        (Some(minimum), Some(counts)) => counts.succeeded >= minimum,
        (None, _) | (_, None) => true,
    })
}

/// Volcano: state/restarting.go. The next try starts once nothing of the last one holds a name that it needs.
fn restarting(job: &Job<'_>, pods: &Pods<'_>, group: &Group<'_>) -> JobPhase {
    if job.status.retry_count >= job.spec.max_retry {
        return JobPhase::Failed;
    }
    let free = job.replicas().saturating_sub(pods.n_outdated());
    if free >= job.status.min_available && group.is_absent() {
        JobPhase::Pending
    } else {
        JobPhase::Restarting
    }
}
