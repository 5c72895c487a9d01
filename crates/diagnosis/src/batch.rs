//! Why a Kubernetes Job waits, is stopped, or failed.

use std::time::Duration;

use krafla_api::Time;
use krafla_why::Reason;
use serde_json::Value;

use crate::facts::{Facts, count, field, list, number, text, time, true_condition};
use crate::resource::Resource;
use crate::{Link, Subject, pod};

/// The controller of Jobs that name none.
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";
/// The first pause after a failure, and the longest.
const PAUSE: Duration = Duration::from_secs(10);
const PAUSE_MAX: Duration = Duration::from_secs(600);

fn link(job: &Value, reason: Reason, since: Option<Time>) -> Link {
    Link { about: Subject::new(Resource::Job, job), reason, since }
}

/// The state of a Job in one word.
pub(crate) fn phase(job: &Value) -> &'static str {
    let is_suspended = job.pointer("/spec/suspend") == Some(&Value::Bool(true));
    if true_condition(job, "Complete").is_some() || true_condition(job, "SuccessCriteriaMet").is_some() {
        "Complete"
    } else if true_condition(job, "Failed").is_some() || true_condition(job, "FailureTarget").is_some() {
        "Failed"
    } else if is_suspended {
        "Suspended"
    } else if count(job, "status.active") > 0 {
        "Running"
    } else {
        "Pending"
    }
}

/// The causes of a Job's state.
pub(crate) fn chain(facts: &Facts, job: &Value) -> Vec<Link> {
    let made = time(job, "metadata.creationTimestamp");
    match phase(job) {
        "Complete" => return Vec::new(),
        "Failed" => return failed(facts, job),
        "Suspended" => return vec![link(job, Reason::Suspended, suspended_since(job).or(made))],
        _ => {}
    }
    let manager =
        Some(text(job, "spec.managedBy")).filter(|name| !name.is_empty() && *name != JOB_CONTROLLER);
    let is_new = facts.age_seconds(job).is_some_and(|age| age < crate::vcjob::TAKEN_UP_WITHIN_SECONDS);
    if time(job, "status.startTime").is_none() {
        let managed = manager.map(|manager| Reason::ManagedBy { manager: manager.into() });
        let reason = managed.unwrap_or_else(|| Reason::NoController { lease: facts.lease.clone() });
        return if is_new { Vec::new() } else { vec![link(job, reason, made)] };
    }
    if number(job, "spec.parallelism") == Some(0) {
        return vec![link(job, Reason::NoParallelism, made)];
    }
    let waits = facts.owned(job, Resource::Pod).filter(|it| pod::waits(facts, it));
    if let Some(pod) = waits.into_iter().next() {
        return crate::chain(facts, Resource::Pod, pod);
    }
    let wanted = count(job, "spec.parallelism").max(1);
    let is_short = count(job, "status.active") < wanted;
    let refused = facts.events(job).into_iter().rfind(|it| it.is_warning && it.reason == "FailedCreate");
    let n_failed = count(job, "status.failed");
    let last_failed = last_failed(facts, job);
    let failed_at = last_failed.and_then(finished_at);
    if let Some(event) = refused.filter(|it| is_short && it.at >= failed_at) {
        return vec![link(job, Reason::parse(&event.message), event.at)];
    }
    if n_failed > 0 && count(job, "status.active") == 0 {
        let first = link(job, Reason::BackOff { failed: n_failed }, failed_at);
        let below = last_failed.map(pod::failed).unwrap_or_default();
        return std::iter::once(first).chain(below).collect();
    }
    Vec::new()
}

fn suspended_since(job: &Value) -> Option<Time> {
    time(true_condition(job, "Suspended")?, "lastTransitionTime")
}

fn last_failed<'a>(facts: &'a Facts, job: &'a Value) -> Option<&'a Value> {
    let failed = facts.owned(job, Resource::Pod).filter(|it| text(it, "status.phase") == "Failed");
    failed.max_by_key(|it| finished_at(it))
}

fn finished_at(pod: &Value) -> Option<Time> {
    let ends = list(pod, "status.containerStatuses").filter_map(|it| time(it, "state.terminated.finishedAt"));
    ends.max().or_else(|| time(pod, "metadata.creationTimestamp"))
}

/// The time of the next try, if failures hold it back.
pub(crate) fn next_try(facts: &Facts, job: &Value) -> Option<Time> {
    let last = finished_at(last_failed(facts, job)?)?;
    let doublings = count(job, "status.failed").saturating_sub(1).min(16);
    Some(last.after(PAUSE.saturating_mul(1 << doublings).min(PAUSE_MAX)))
}

fn failed(facts: &Facts, job: &Value) -> Vec<Link> {
    let condition = true_condition(job, "Failed").or_else(|| true_condition(job, "FailureTarget"));
    let Some(condition) = condition else { return Vec::new() };
    let (since, message) = (time(condition, "lastTransitionTime"), text(condition, "message"));
    let reason = match text(condition, "reason") {
        "BackoffLimitExceeded" => {
            let limit = field(job, "spec.backoffLimit").as_u64().and_then(|it| u32::try_from(it).ok());
            Reason::BackoffLimit { limit: limit.unwrap_or(6) }
        }
        "DeadlineExceeded" => Reason::DeadlineExceeded { seconds: count(job, "spec.activeDeadlineSeconds") },
        "PodFailurePolicy" => Reason::FailurePolicy { why: message.to_owned() },
        "FailedIndexes" | "MaxFailedIndexesExceeded" => {
            Reason::IndexesFailed { indexes: text(job, "status.failedIndexes").to_owned() }
        }
        _ => Reason::parse(message),
    };
    let is_of_time = matches!(reason, Reason::DeadlineExceeded { .. });
    let below = last_failed(facts, job).filter(|_| !is_of_time).map(pod::failed).unwrap_or_default();
    std::iter::once(link(job, reason, since)).chain(below).collect()
}
