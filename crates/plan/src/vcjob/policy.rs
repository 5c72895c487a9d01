//! Lifecycle policies: what was observed, and what the user wants done about it.
//!
//! There is no event: a failed pod of the job's present version *is* the trigger, for as long as it is there. The action it
//! leads to makes a new version, and with it the trigger is used up.

use krafla_api::Time;
use krafla_api::volcano::{Action, Event, LifecyclePolicy};

use super::Job;
use super::pods::{Observed, Pods};

/// What policies ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    /// What to do now.
    pub(super) action: Option<Action>,
    /// When a delayed policy falls due.
    pub(super) look_again_at: Option<Time>,
}

/// The first policy, in the order of pods, whose condition holds and whose time has come.
pub(super) fn decide(job: &Job<'_>, pods: &Pods<'_>) -> Decision {
    let mut decision = Decision::default();
    for pod in pods.current().filter(|pod| pod.has_failed()) {
        let Some(policy) = policy_for_failure(job, pod) else { continue };
        let due_at = policy.timeout.map(|delay| pod.failed_at(job.now).after(delay.to_std()));
        match due_at {
            Some(due_at) if due_at > job.now => {
                let soonest = decision.look_again_at.map_or(due_at, |at| at.min(due_at));
                decision.look_again_at = Some(soonest);
            }
            Some(_) | None => return Decision { action: Some(policy.action.clone()), look_again_at: None },
        }
    }
    decision
}

/// The task's policies come first; what they do not answer falls through to the job's.
fn policy_for_failure<'a>(job: &'a Job<'_>, pod: &Observed<'_>) -> Option<&'a LifecyclePolicy> {
    let task = job.spec.tasks.iter().find(|task| task.name == pod.task);
    let policies = task.into_iter().flat_map(|task| &task.policies).chain(&job.spec.policies);
    policies.into_iter().find(|policy| {
        let answers_event = policy.all_events().any(|event| matches!(event, Event::Any | Event::PodFailed));
        answers_event || policy.exit_code.is_some_and(|code| pod.exit_codes().any(|c| c == code))
    })
}
