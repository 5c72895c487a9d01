//! Lifecycle policies: the action for each trigger.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::volcano::{Action, Event, LifecyclePolicy};
use krafla_api::{Time, Uid};

use super::Job;
use super::intent::{Intent, Targets};
use super::since::Moments;
use super::trigger::Trigger;

/// Since when the places of evicted pods, by task and index, are vacant.
pub(super) type Vacancies = BTreeMap<(String, i32), Time>;

/// What policies ask for.
#[derive(Debug, Default)]
pub(super) struct Decision {
    /// What to do now.
    pub(super) intents: Vec<Intent>,
    /// When a delayed policy falls due.
    pub(super) look_again_at: Option<Time>,
    /// Evidence that a delayed policy still needs.
    pub(super) awaited: Vec<Uid>,
    /// What is to be done later, for people.
    pub(super) announced: BTreeSet<String>,
    /// The places of evicted pods that a policy gives time to be filled, and since when they are vacant.
    pub(super) vacant: Vacancies,
    /// Since when that holds which a policy gives time and of which no object tells the beginning.
    pub(super) moments: Moments,
}

/// What all triggers together lead to. A policy whose time has not come is looked at again when it comes, and one that gives
/// time is not needed for what has mended itself.
pub(super) fn decide(job: &Job<'_>, triggers: &[Trigger<'_>]) -> Decision {
    let mut decision = Decision::default();
    for trigger in triggers {
        let answer = answer(job, trigger);
        let due_at =
            answer.and_then(|policy| policy.timeout).map(|delay| trigger.since.after(delay.to_std()));
        if let (Some(_), Some(name)) = (due_at, &trigger.kept_as) {
            decision.moments.insert(name.clone(), trigger.since);
        }
        match (answer, due_at) {
            (Some(_), Some(_)) if trigger.is_mended => {}
            (Some(_), Some(due_at)) if due_at > job.now => {
                let soonest = decision.look_again_at.map_or(due_at, |at| at.min(due_at));
                decision.look_again_at = Some(soonest);
                decision.awaited.extend(trigger.evidence.cloned());
                decision.announced.extend(announcement(answer, trigger));
                if let (Some(task), Some(index)) = (trigger.task, trigger.vacant) {
                    decision.vacant.insert((task.to_owned(), index), trigger.since);
                }
            }
            (Some(policy), _) => decision.intents.push(intent(&policy.action, trigger)),
            (None, _) => {}
        }
    }
    decision
}

/// What a policy that waits will do. Thousands of pods may wait for the same: it is said once.
fn announcement(policy: Option<&LifecyclePolicy>, trigger: &Trigger<'_>) -> Option<String> {
    let LifecyclePolicy { action, timeout: Some(timeout), .. } = policy? else { return None };
    Some(format!("{action} after {timeout} of {}", trigger.event))
}

/// The policy that answers a trigger: the task's come first; what they do not answer falls through to the job's.
fn answer<'a>(job: &'a Job<'_>, trigger: &Trigger<'_>) -> Option<&'a LifecyclePolicy> {
    let task = job.spec.tasks.iter().find(|task| trigger.task == Some(task.name.as_str()));
    let mut policies = task.into_iter().flat_map(|task| &task.policies).chain(&job.spec.policies);
    policies.find(|policy| answers(policy, trigger))
}

fn answers(policy: &LifecyclePolicy, trigger: &Trigger<'_>) -> bool {
    let by_event = policy.all_events().any(|event| *event == Event::Any || *event == trigger.event);
    // Every pod is pending at first: only a policy that says how long is meant.
    let is_meant = trigger.event != Event::PodPending || policy.timeout.is_some();
    (by_event && is_meant) || policy.exit_code.is_some_and(|code| trigger.exit_codes.contains(&code))
}

fn intent(action: &Action, trigger: &Trigger<'_>) -> Intent {
    Intent {
        action: action.clone(),
        targets: targets(action, trigger),
        cause: trigger.cause.clone(),
        retry_count: trigger.retry_count,
        evidence: trigger.evidence.into_iter().cloned().collect(),
        is_about_vacancy: trigger.vacant.is_some(),
        is_command: false,
    }
}

/// Which part of the job an action is about. A pod outside of any partition stands for itself.
fn targets(action: &Action, trigger: &Trigger<'_>) -> Targets {
    let mut targets = Targets::default();
    match (action, trigger.task, &trigger.partition) {
        (Action::RestartTask, Some(task), _) => {
            targets.tasks.insert(task.to_owned());
        }
        (Action::RestartPartition, Some(task), Some(partition)) => {
            targets.partitions.insert((task.to_owned(), partition.to_owned()));
        }
        (Action::RestartPod | Action::RestartPartition, Some(_), _) => {
            targets.pods.extend(trigger.pod.cloned());
        }
        _ => {}
    }
    targets
}
