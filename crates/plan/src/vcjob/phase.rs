//! Table of phases: the current phase and an intent give the next phase.

use krafla_api::volcano::{Action, JobPhase};

use super::intent::{Intent, Targets};
use super::podgroup::Group;
use super::pods::Pods;
use super::{Job, dependency};

/// What status will say of the job's life. It is stored before anything is done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) phase: JobPhase,
    pub(super) version: i32,
    pub(super) retry_count: i32,
    pub(super) reason: String,
    pub(super) message: String,
    /// The parts that a partial restart is about.
    pub(super) targets: Targets,
}

impl Next {
    /// Whether the budget is spent: the pods of the last try are kept for somebody to look at.
    pub(super) fn is_last_try(&self, job: &Job<'_>) -> bool {
        self.retry_count >= job.spec.max_retry
    }

    /// Whether a restart of the whole job has yet to remove the PodGroup of the last try. One that restarts a part keeps it.
    pub(super) fn leaves_behind(&self, group: &Group<'_>) -> bool {
        is_whole_restart(&self.reason) && group.is_outdated(self.version)
    }

    /// Whether a suspended job is being resumed, in which case what had finished stays finished.
    pub(super) fn is_resumed(&self) -> bool {
        self.reason == Action::ResumeJob.as_str()
    }
}

/// The job as it stands, with nothing new.
pub(super) fn stay(job: &Job<'_>) -> Next {
    let state = &job.status.state;
    Next {
        phase: state.phase.clone(),
        version: job.status.version,
        retry_count: job.status.retry_count,
        reason: state.reason.clone(),
        message: state.message.clone(),
        targets: if state.phase == JobPhase::Restarting {
            Targets::recorded(state)
        } else {
            Targets::default()
        },
    }
}

/// Whether an intent changes anything in the job's present phase. A job that nobody has looked at yet is as good as Pending.
pub(super) fn has_effect(job: &Job<'_>, intent: &Intent) -> bool {
    let is_about_something = intent.is_command || !intent.targets.is_empty() || intent.is_about_vacancy;
    match (job.phase(), &intent.action) {
        (
            JobPhase::Unset | JobPhase::Pending | JobPhase::Running | JobPhase::Restarting,
            Action::AbortJob | Action::CompleteJob | Action::TerminateJob,
        ) => true,
        (JobPhase::Unset | JobPhase::Pending | JobPhase::Running, Action::RestartJob) => true,
        // A restart that can not be paid for is not begun: the failed pods of the last try stay, and ask for one for ever.
        (
            JobPhase::Restarting,
            Action::RestartJob | Action::RestartTask | Action::RestartPod | Action::RestartPartition,
        ) if stay(job).is_last_try(job) => false,
        (JobPhase::Restarting, Action::RestartJob) => !is_whole_restart(&job.status.state.reason),
        (
            JobPhase::Unset | JobPhase::Pending | JobPhase::Running | JobPhase::Restarting,
            Action::RestartTask | Action::RestartPod | Action::RestartPartition,
        ) => is_about_something,
        (JobPhase::Aborting | JobPhase::Aborted, Action::ResumeJob) => true,
        _ => false,
    }
}

fn is_whole_restart(reason: &str) -> bool {
    [Action::RestartJob, Action::ResumeJob].iter().any(|action| action.as_str() == reason)
}

/// What an intent with an effect leads to.
pub(super) fn follow(job: &Job<'_>, intent: &Intent) -> Next {
    let stay = stay(job);
    let next = Next { reason: intent.action.to_string(), message: intent.message(), ..stay.clone() };
    let new_version = stay.version.saturating_add(1);
    let charged = stay.retry_count.saturating_add(1);
    let is_in_restart = *job.phase() == JobPhase::Restarting;
    match intent.action {
        Action::AbortJob => Next { phase: JobPhase::Aborting, version: new_version, ..next },
        Action::CompleteJob => Next { phase: JobPhase::Completing, version: new_version, ..next },
        Action::TerminateJob => Next { phase: JobPhase::Terminating, version: new_version, ..next },
        Action::ResumeJob => Next { phase: JobPhase::Restarting, version: new_version, ..next },
        Action::RestartJob => {
            let retry_count = if is_in_restart { stay.retry_count } else { charged };
            Next { phase: JobPhase::Restarting, version: new_version, retry_count, ..next }
        }
        // What fails while a part of the job restarts belongs to the same burst, unless it is already of the new try.
        _ if is_in_restart && intent.retry_count < stay.retry_count => {
            let mut joined = Intent { targets: stay.targets.clone(), ..intent.clone() };
            joined.join(intent);
            let message = if joined.targets == stay.targets { stay.message } else { joined.message() };
            Next { targets: joined.targets, message, reason: stay.reason, ..next }
        }
        _ => Next {
            phase: JobPhase::Restarting,
            retry_count: charged,
            targets: intent.targets.clone(),
            ..next
        },
    }
}

/// Where the job goes by itself, given its pods.
pub(super) fn advance(job: &Job<'_>, pods: &Pods<'_>, group: &Group<'_>) -> Next {
    let stay = stay(job);
    let to = |phase: JobPhase| {
        if phase == stay.phase {
            return stay.clone();
        }
        let (reason, message) = match phase {
            // A job that waits again still says why it was restarted.
            JobPhase::Pending => (stay.reason.clone(), stay.message.clone()),
            JobPhase::Failed => failure(job, pods),
            JobPhase::Aborted | JobPhase::Terminated => (stay.reason.clone(), stay.message.clone()),
            _ => Default::default(),
        };
        Next { phase, reason, message, targets: Targets::default(), ..stay.clone() }
    };
    match job.phase() {
        JobPhase::Unset => to(JobPhase::Pending),
        JobPhase::Pending => to(pending(job, pods)),
        JobPhase::Running => to(running(job, pods)),
        JobPhase::Restarting => to(restarting(job, pods, group, &stay)),
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
    let has_started = job.spec.min_available <= started && !job.spec.tasks.is_empty();
    if has_started { JobPhase::Running } else { JobPhase::Pending }
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
    let n_finished = counts.succeeded.saturating_add(counts.failed);
    let n_never = pods.n_never(job);
    if n_finished.saturating_add(n_never) >= replicas {
        let enough = min_success.unwrap_or(min_available);
        let is_success = n_never == 0 && every_task_has_its_minimum(job, pods) && counts.succeeded >= enough;
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

/// Volcano: state/restarting.go. The next try starts once everything of the last one is at least on its way out, and enough
/// names are free.
fn restarting(job: &Job<'_>, pods: &Pods<'_>, group: &Group<'_>, stay: &Next) -> JobPhase {
    if stay.is_last_try(job) && !stay.is_resumed() {
        return JobPhase::Failed;
    }
    let is_killing = pods.doomed(job, stay).next().is_some() || stay.leaves_behind(group);
    let n_free = job.replicas().saturating_sub(pods.counts().terminating);
    if !is_killing && n_free >= job.status.min_available { JobPhase::Pending } else { JobPhase::Restarting }
}

/// Why the job failed.
fn failure(job: &Job<'_>, pods: &Pods<'_>) -> (String, String) {
    if *job.phase() == JobPhase::Restarting {
        let message =
            format!("all {} retries are used up; the last: {}", job.spec.max_retry, job.status.state.message);
        return ("RetriesExhausted".to_owned(), message);
    }
    let hopeless: Vec<&str> = dependency::hopeless(job, pods).into_iter().collect();
    if !hopeless.is_empty() {
        let message = format!("what these tasks depend on has failed for good: {}", hopeless.join(", "));
        return ("DependencyFailed".to_owned(), message);
    }
    let needed = job.spec.min_success.unwrap_or(job.spec.min_available);
    let message =
        format!("{} of {} pods succeeded, the job needs {needed}", pods.counts().succeeded, job.replicas());
    ("TooFewSucceeded".to_owned(), message)
}
