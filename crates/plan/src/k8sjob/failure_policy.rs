//! What a Job's failure policy says about a failed pod: the first rule that fits.

use krafla_api::batch::{OnExitCodes, OnPodCondition, PodFailurePolicy, PodFailureRule};

use super::pods::Ended;

/// What follows from a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The Job fails, for this reason.
    FailJob(String),
    /// The index fails, without another try.
    FailIndex,
    /// Nothing: the pod is replaced and its failure not counted.
    Ignore,
    /// The failure counts. So it does where no rule fits.
    Count,
}

/// What the policy says about a failed pod.
pub(super) fn judge(policy: Option<&PodFailurePolicy>, pod: &Ended<'_>) -> Verdict {
    let rules = policy.into_iter().flat_map(|policy| &policy.rules).enumerate();
    rules.filter_map(|(position, rule)| apply(rule, position, pod)).next().unwrap_or(Verdict::Count)
}

/// What the first rule that fits says, in the policy's own word.
pub(super) fn matched_action<'a>(policy: &'a PodFailurePolicy, pod: &Ended<'_>) -> Option<&'a str> {
    let mut rules = policy.rules.iter();
    rules.find(|rule| apply(rule, 0, pod).is_some()).map(|rule| rule.action.as_str())
}

/// A rule newer than this program never fits.
fn apply(rule: &PodFailureRule, position: usize, pod: &Ended<'_>) -> Option<Verdict> {
    let (namespace, name) = (&pod.meta.key.namespace, &pod.meta.key.name);
    let why = match &rule.on_exit_codes {
        Some(codes) => {
            let (container, code) = failed_container(codes, pod)?;
            format!("Container {container} for pod {namespace}/{name} failed with exit code {code}")
        }
        None => {
            let condition = held_condition(&rule.on_pod_conditions, pod)?;
            format!("Pod {namespace}/{name} has condition {condition}")
        }
    };
    match rule.action.as_str() {
        "FailJob" => Some(Verdict::FailJob(format!("{why} matching FailJob rule at index {position}"))),
        "FailIndex" => Some(Verdict::FailIndex),
        "Ignore" => Some(Verdict::Ignore),
        "Count" => Some(Verdict::Count),
        _ => None,
    }
}

/// The first container that failed with such an exit code. One that succeeded says nothing.
fn failed_container<'a>(codes: &OnExitCodes, pod: &Ended<'a>) -> Option<(&'a str, i32)> {
    let status = &pod.pod.status;
    let containers = status.container_statuses.iter().chain(&status.init_container_statuses);
    let mut named = containers.filter(|it| codes.container_name.as_ref().is_none_or(|name| *name == it.name));
    named.find_map(|container| {
        let code = container.state.terminated.as_ref()?.exit_code;
        let is_listed = codes.values.contains(&code);
        let fits = match codes.operator.as_str() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        };
        (code != 0 && fits).then_some((container.name.as_str(), code))
    })
}

fn held_condition<'a>(wanted: &[OnPodCondition], pod: &Ended<'a>) -> Option<&'a str> {
    let mut conditions = pod.pod.status.conditions.statuses.iter();
    let is_wanted = |(name, status): &(&str, &str)| {
        wanted.iter().any(|it| it.condition_type == *name && it.status == *status)
    };
    conditions.find(is_wanted).map(|(name, _)| name)
}
