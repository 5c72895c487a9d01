//! Lifecycle policies: what to do when something happens.

use std::collections::BTreeSet;

use krafla_api::volcano::{Action, Event, LifecyclePolicy};

use crate::{Path, Reason, Verdict};

/// Checks one list of policies: a job's own or a task's.
pub(super) fn validate(policies: &[LifecyclePolicy], path: &Path, verdict: &mut Verdict) {
    let (mut events, mut exit_codes) = (BTreeSet::new(), BTreeSet::new());
    for (index, policy) in policies.iter().enumerate() {
        let path = path.index(index);
        validate_trigger(policy, &path, verdict);
        validate_action(policy, &path, verdict);
        let own: BTreeSet<&Event> = policy.all_events().collect();
        for event in own {
            if !events.insert(event) {
                let message = format!("duplicate event {event}  across different policy");
                verdict.refuse(&path.field("event"), Reason::Duplicate, message);
            }
        }
        if let Some(code) = policy.exit_code.filter(|code| !exit_codes.insert(*code)) {
            verdict.refuse(&path.field("exitCode"), Reason::Duplicate, format!("duplicate exitCode {code}"));
        }
    }
    if events.contains(&Event::Any) && events.len() > 1 {
        verdict.refuse(path, Reason::Invalid, "if there's * here, no other policy should be here");
    }
}

/// A policy acts either upon events or upon an exit code.
fn validate_trigger(policy: &LifecyclePolicy, path: &Path, verdict: &mut Verdict) {
    let has_events = !policy.event.is_unset() || !policy.events.is_empty();
    match (has_events, policy.exit_code) {
        (true, Some(_)) => {
            verdict.refuse(path, Reason::Forbidden, "must not specify event and exitCode simultaneously");
        }
        (false, None) => {
            verdict.refuse(path, Reason::Required, "either event and exitCode should be specified")
        }
        (false, Some(0)) => {
            verdict.refuse(&path.field("exitCode"), Reason::Invalid, "0 is not a valid error code");
        }
        (true, None) | (false, Some(_)) => {}
    }
    let named = policy.events.iter().chain(Some(&policy.event).filter(|event| !event.is_unset()));
    for event in named.filter(|event| !may_trigger(event)) {
        verdict.invalid(
            &path.field("event"),
            event.as_str(),
            format!("invalid policy event; use one of {EVENTS}"),
        );
    }
    if policy.all_events().any(|event| *event == Event::PodPending) && policy.timeout.is_none() {
        verdict.warn(path, "a PodPending policy without a timeout never acts: every pod is pending at first");
    }
}

/// Actions of exit-code policies are checked like all others: a job whose policy can never act is no use to anybody.
fn validate_action(policy: &LifecyclePolicy, path: &Path, verdict: &mut Verdict) {
    if !may_be_asked_for(&policy.action) {
        let detail = format!("invalid policy action; use one of {ACTIONS}");
        verdict.invalid(&path.field("action"), policy.action.as_str(), detail);
    }
    // Everything else that may happen is about a pod, or about a task and a pod of it.
    let is_about_job = |event: &Event| matches!(event, Event::JobUnknown | Event::JobUpdated);
    let restarts_part =
        matches!(policy.action, Action::RestartTask | Action::RestartPod | Action::RestartPartition);
    if restarts_part && policy.exit_code.is_none() && policy.all_events().all(is_about_job) {
        let message = format!("{} has nothing to restart when the whole job is concerned", policy.action);
        verdict.warn(&path.field("action"), message);
    }
}

const EVENTS: &str = "*, PodPending, PodFailed, PodEvicted, Unknown, TaskCompleted, TaskFailed, JobUpdated";
const ACTIONS: &str =
    "AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition, TerminateJob, CompleteJob, ResumeJob";

/// The other events are the controller's own.
fn may_trigger(event: &Event) -> bool {
    match event {
        Event::Any
        | Event::PodPending
        | Event::PodFailed
        | Event::PodEvicted
        | Event::JobUnknown
        | Event::TaskCompleted
        | Event::TaskFailed
        | Event::JobUpdated => true,
        Event::PodRunning | Event::OutOfSync | Event::CommandIssued | Event::Unset | Event::Other(_) => false,
    }
}

/// The other actions are the controllers' own.
fn may_be_asked_for(action: &Action) -> bool {
    match action {
        Action::AbortJob
        | Action::RestartJob
        | Action::RestartTask
        | Action::RestartPod
        | Action::RestartPartition
        | Action::TerminateJob
        | Action::CompleteJob
        | Action::ResumeJob => true,
        Action::SyncJob
        | Action::EnqueueJob
        | Action::SyncQueue
        | Action::OpenQueue
        | Action::CloseQueue
        | Action::Unset
        | Action::Other(_) => false,
    }
}
