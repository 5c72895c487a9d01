//! Outcome of a Job: whether it ends, and why.

use krafla_api::Time;

use super::failure_policy::Verdict;
use super::pods::JobPod;
use super::success_policy;
use super::tally::Tally;
use super::{Job, condition};
use crate::object::PodPhase;

/// How a Job is to end. It is on record, and its pods go, before the Job has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) is_success: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Outcome {
    fn success(reason: &str, message: impl Into<String>) -> Outcome {
        Outcome { is_success: true, reason: reason.to_owned(), message: message.into() }
    }

    fn failure(reason: &str, message: impl Into<String>) -> Outcome {
        Outcome { is_success: false, reason: reason.to_owned(), message: message.into() }
    }

    /// The condition that says so beforehand, and the one that says so at the end.
    pub(super) fn conditions(&self) -> [&'static str; 2] {
        if self.is_success {
            [condition::SUCCESS_CRITERIA_MET, condition::COMPLETE]
        } else {
            [condition::FAILURE_TARGET, condition::FAILED]
        }
    }
}

/// What is decided before pods are created or removed. What is on record stays; failure goes before success.
pub(super) fn decide(job: &Job<'_>, pods: &[JobPod<'_>], tally: &Tally<'_>) -> Option<Outcome> {
    recorded(job)
        .or_else(|| failed_by_policy(pods))
        .or_else(|| failed_too_often(job, pods, tally))
        .or_else(|| took_too_long(job))
        .or_else(|| failed_indexes(job, tally))
        .or_else(|| succeeded_by_policy(job, tally))
}

/// Whether everything is done, decided after pods are created or removed.
pub(super) fn completions_reached(job: &Job<'_>, tally: &Tally<'_>) -> Option<Outcome> {
    let wanted = job.completions().map_or(1, i64::from);
    let is_reached = tally.active == 0 && tally.succeeded >= wanted;
    is_reached.then(|| Outcome::success("CompletionsReached", "Reached expected number of succeeded pods"))
}

/// When the Job runs out of time, unless it is suspended.
pub(super) fn deadline(job: &Job<'_>) -> Option<Time> {
    let seconds = job.spec.active_deadline_seconds.filter(|_| !job.is_suspended())?;
    let allowed = std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    Some(job.status.start_time.unwrap_or(job.now).after(allowed))
}

fn recorded(job: &Job<'_>) -> Option<Outcome> {
    let held = |name: &str| job.status.condition(name);
    let success = held(condition::SUCCESS_CRITERIA_MET).map(|it| Outcome::success(&it.reason, &it.message));
    success.or_else(|| held(condition::FAILURE_TARGET).map(|it| Outcome::failure(&it.reason, &it.message)))
}

fn failed_by_policy(pods: &[JobPod<'_>]) -> Option<Outcome> {
    pods.iter().find_map(|pod| match &pod.verdict {
        Verdict::FailJob(why) => Some(Outcome::failure("PodFailurePolicy", why)),
        Verdict::FailIndex | Verdict::Ignore | Verdict::Count => None,
    })
}

fn failed_too_often(job: &Job<'_>, pods: &[JobPod<'_>], tally: &Tally<'_>) -> Option<Outcome> {
    let limit = job.backoff_limit();
    let is_exceeded = tally.failed > limit || restarted_too_often(job, pods, limit);
    let message = "Job has reached the specified backoff limit";
    is_exceeded.then(|| Outcome::failure("BackoffLimitExceeded", message))
}

/// Containers that are started again in place count as well. Reaching the limit is enough: upstream's rule is one less
/// than the one for pods.
fn restarted_too_often(job: &Job<'_>, pods: &[JobPod<'_>], limit: i64) -> bool {
    let restarts = pods
        .iter()
        .filter(|pod| matches!(pod.pod.status.phase, PodPhase::Running | PodPhase::Pending))
        .flat_map(|pod| {
            pod.pod.status.container_statuses.iter().chain(&pod.pod.status.init_container_statuses)
        })
        .map(|container| i64::from(container.restart_count))
        .sum::<i64>();
    job.restarts_containers() && restarts >= limit.max(1)
}

fn took_too_long(job: &Job<'_>) -> Option<Outcome> {
    let is_over = deadline(job).is_some_and(|at| job.now >= at);
    let message = "Job was active longer than specified deadline";
    is_over.then(|| Outcome::failure("DeadlineExceeded", message))
}

fn failed_indexes(job: &Job<'_>, tally: &Tally<'_>) -> Option<Outcome> {
    job.spec.backoff_limit_per_index.filter(|_| job.is_indexed())?;
    let (failed, completions) = (tally.failed_indexes.len(), i64::from(job.completions()?));
    if job.spec.max_failed_indexes.is_some_and(|max| failed > i64::from(max)) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(Outcome::failure("MaxFailedIndexesExceeded", message));
    }
    let is_over = failed > 0 && failed + tally.completed.len() >= completions;
    is_over.then(|| Outcome::failure("FailedIndexes", "Job has failed indexes"))
}

fn succeeded_by_policy(job: &Job<'_>, tally: &Tally<'_>) -> Option<Outcome> {
    let policy = job.spec.success_policy.as_ref().filter(|_| job.is_indexed())?;
    let rule = success_policy::met_rule(policy, &tally.completed, job.completions()?)?;
    Some(Outcome::success("SuccessPolicy", format!("Matched rules at index {rule}")))
}
