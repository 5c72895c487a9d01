//! What happens without any action, and when.

use std::time::Duration;

use krafla_api::{GoDuration, Time};
use krafla_why::{Decider, Reason};
use serde_json::Value;

use crate::facts::{Facts, list, number, text, time, true_condition};
use crate::resource::Resource;
use crate::{Link, batch, cron};

/// What happens without any action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// What happens.
    pub what: String,
    /// The time, where it is known.
    pub at: Option<Time>,
}

fn at(what: impl Into<String>, at: Time) -> Next {
    Next { what: what.into(), at: Some(at) }
}

fn soon(what: impl Into<String>) -> Next {
    Next { what: what.into(), at: None }
}

/// What happens next to an object.
pub(crate) fn next(facts: &Facts, resource: Resource, object: &Value, chain: &[Link]) -> Vec<Next> {
    let mut next = Vec::new();
    match resource {
        Resource::VcJob => of_vcjob(facts, object, &mut next),
        Resource::Job => of_job(facts, object, &mut next),
        Resource::Pod => of_pod(object, &mut next),
        Resource::CronJob | Resource::VcCronJob => {
            let run = cron::next_run(facts, object).filter(|_| cron::phase(object) != "Suspended");
            next.extend(run.map(|(time, _)| at("the next run is due", time)));
        }
        _ => {}
    }
    next.extend(chain.last().and_then(of_reason));
    next
}

/// What becomes of a reason by itself.
fn of_reason(link: &Link) -> Option<Next> {
    let what = match link.reason.root() {
        Reason::LargerThanNodes { .. }
        | Reason::NeverFitsNodes { .. }
        | Reason::NeverFitsQueue { .. }
        | Reason::ResourceUnknown { .. }
        | Reason::SelectorUnmatched { .. }
        | Reason::AffinityUnmatched
        | Reason::Tainted { .. }
        | Reason::NodesCordoned { .. } => "nothing, until the nodes, the queue or the request change",
        Reason::CrashLoop { .. }
        | Reason::Exited { .. }
        | Reason::OutOfMemory { .. }
        | Reason::StartFailed { .. } => {
            return None;
        }
        Reason::ImagePull { .. } | Reason::ImagePullFailed { .. } => {
            "the node tries to pull the image again, at most every 5 minutes"
        }
        Reason::NotFound { .. } | Reason::KeyMissing { .. } | Reason::VolumesLate { .. } => {
            "the node tries again every few seconds; the container starts once the object exists"
        }
        Reason::Suspended | Reason::CronSuspended | Reason::Aborted => "nothing, until it is resumed",
        Reason::Deleted { .. } => "the object is removed once the last finalizer is gone",
        Reason::NextRun { .. } | Reason::Progress { .. } => return None,
        _ => match link.reason.decider() {
            Decider::Scheduler => "the scheduler tries again whenever a pod ends, or a node or queue changes",
            Decider::ApiServer => "the controller tries again, at the latest after a minute",
            Decider::Controller | Decider::Node | Decider::Author => return None,
        },
    };
    Some(soon(what))
}

fn seconds(object: &Value, path: &str) -> Option<Duration> {
    number(object, path).and_then(|it| u64::try_from(it).ok()).map(Duration::from_secs)
}

fn of_vcjob(facts: &Facts, job: &Value, next: &mut Vec<Next>) {
    let phase = text(job, "status.state.phase");
    let since = time(job, "status.state.lastTransitionTime");
    if matches!(phase, "Completed" | "Failed" | "Terminated") {
        let due =
            since.zip(seconds(job, "spec.ttlSecondsAfterFinished")).map(|(since, ttl)| since.after(ttl));
        next.extend(due.map(|due| at("the job is deleted (ttlSecondsAfterFinished)", due)));
        return;
    }
    if phase == "Restarting" {
        let max = number(job, "spec.maxRetry").unwrap_or(3);
        let used = number(job, "status.retryCount").unwrap_or(0);
        next.push(soon(format!("the pods are created again (try {used} of {max})")));
    }
    // Policies that give time.
    let of_tasks = list(job, "spec.tasks").flat_map(|task| list(task, "policies"));
    for policy in list(job, "spec.policies").chain(of_tasks) {
        let Ok(timeout) = text(policy, "timeout").parse::<GoDuration>() else { continue };
        let event = Some(text(policy, "event")).filter(|it| !it.is_empty()).unwrap_or("Any");
        let pods = facts.owned(job, Resource::Pod).filter(|it| is_meant(event, it));
        let oldest = pods.filter_map(|it| time(it, "metadata.creationTimestamp")).min();
        if let Some(oldest) = oldest {
            let what = format!("the policy {} of {event} acts, unless it passes", text(policy, "action"));
            next.push(at(what, oldest.after(timeout.to_std())));
        }
    }
}

fn is_meant(event: &str, pod: &Value) -> bool {
    match event {
        "PodPending" => text(pod, "status.phase") == "Pending",
        "PodFailed" => text(pod, "status.phase") == "Failed",
        _ => false,
    }
}

fn of_job(facts: &Facts, job: &Value, next: &mut Vec<Next>) {
    let ended = true_condition(job, "Complete").or_else(|| true_condition(job, "Failed"));
    if let Some(ended) = ended {
        let since = time(job, "status.completionTime").or_else(|| time(ended, "lastTransitionTime"));
        let due =
            since.zip(seconds(job, "spec.ttlSecondsAfterFinished")).map(|(since, ttl)| since.after(ttl));
        next.extend(due.map(|due| at("the job is deleted (ttlSecondsAfterFinished)", due)));
        return;
    }
    if batch::phase(job) == "Suspended" {
        return;
    }
    let failed = number(job, "status.failed").unwrap_or(0);
    if failed > 0 && number(job, "status.active").unwrap_or(0) == 0 {
        let limit = number(job, "spec.backoffLimit").unwrap_or(6);
        let what = format!("the next try starts ({failed} of backoffLimit {limit} failed)");
        next.push(Next { what, at: batch::next_try(facts, job) });
    }
    let start = time(job, "status.startTime");
    let deadline =
        start.zip(seconds(job, "spec.activeDeadlineSeconds")).map(|(start, limit)| start.after(limit));
    next.extend(deadline.map(|due| at("the job fails (activeDeadlineSeconds)", due)));
}

fn of_pod(pod: &Value, next: &mut Vec<Next>) {
    if matches!(text(pod, "status.phase"), "Succeeded" | "Failed") {
        return;
    }
    let start = time(pod, "status.startTime");
    let deadline =
        start.zip(seconds(pod, "spec.activeDeadlineSeconds")).map(|(start, limit)| start.after(limit));
    next.extend(deadline.map(|due| at("the pod fails (activeDeadlineSeconds)", due)));
    for container in list(pod, "status.containerStatuses") {
        let waiting = text(container, "state.waiting.reason") == "CrashLoopBackOff";
        let ended = time(container, "lastState.terminated.finishedAt").filter(|_| waiting);
        let delay = text(container, "state.waiting.message").strip_prefix("back-off ");
        let delay = delay.and_then(|rest| rest.split(' ').next()?.parse::<GoDuration>().ok());
        if let (Some(ended), Some(delay)) = (ended, delay) {
            next.push(at(
                format!("container {} starts again", text(container, "name")),
                ended.after(delay.to_std()),
            ));
        }
    }
}
