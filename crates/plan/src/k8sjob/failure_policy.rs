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
    let held = &pod.pod.status.conditions;
    let scheduled = held.scheduled.iter().map(|it| (it.condition_type.as_str(), it.status.as_str()));
    let mut conditions = held.statuses.iter().chain(scheduled);
    let is_wanted = |(name, status): &(&str, &str)| {
        wanted.iter().any(|it| it.condition_type == *name && it.status == *status)
    };
    conditions.find(is_wanted).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use krafla_api::Kind;
    use serde_json::{Value, json};

    use super::*;
    use crate::Object;

    /// What a policy of these rules says about a failed pod with this status.
    fn judged(rules: &Value, status: &Value) -> Verdict {
        let pod = json!({ "metadata": { "namespace": "ns", "name": "p" }, "status": status });
        let pod = Object::decode(Kind::Pod, pod.to_string().as_bytes());
        let policy = serde_json::from_value(json!({ "rules": rules })).unwrap();
        judge(Some(&policy), &Ended { meta: &pod.meta, pod: pod.as_pod().unwrap() })
    }

    fn on_codes(action: &str, operator: &str, values: &[i32]) -> Value {
        json!({ "action": action, "onExitCodes": { "operator": operator, "values": values } })
    }

    fn on_condition(action: &str, status: &str) -> Value {
        json!({ "action": action, "onPodConditions": [{ "type": "DisruptionTarget", "status": status }] })
    }

    fn ended(codes: &[i32]) -> Value {
        let container = |(n, code): (usize, &i32)| json!({ "name": format!("c{n}"), "state": { "terminated": { "exitCode": code } } });
        codes.iter().enumerate().map(container).collect()
    }

    #[test]
    fn exit_codes_of_containers_that_failed_are_compared() {
        let fail_job = |name: &str, code: i32| {
            let why = format!("Container {name} for pod ns/p failed with exit code {code}");
            Verdict::FailJob(format!("{why} matching FailJob rule at index 0"))
        };
        for (rule, codes, expected) in [
            (on_codes("FailJob", "In", &[2, 3]), &[1, 3][..], fail_job("c1", 3)),
            (on_codes("FailJob", "In", &[-1]), &[-1], fail_job("c0", -1)),
            (on_codes("FailJob", "In", &[2, 3]), &[4], Verdict::Count),
            (on_codes("FailJob", "NotIn", &[2, 3]), &[2, 9], fail_job("c1", 9)),
            // One that succeeded is not asked, although zero is not in the list.
            (on_codes("FailJob", "NotIn", &[2, 3]), &[0, 2], Verdict::Count),
            (on_codes("Ignore", "In", &[5]), &[5], Verdict::Ignore),
            (on_codes("FailIndex", "In", &[5]), &[5], Verdict::FailIndex),
            (on_codes("Count", "In", &[5]), &[5], Verdict::Count),
            (on_codes("FailJob", "Between", &[5]), &[5], Verdict::Count),
            (on_codes("Explode", "In", &[5]), &[5], Verdict::Count),
        ] {
            let status = json!({ "phase": "Failed", "containerStatuses": ended(codes) });
            assert_eq!(judged(&json!([rule]), &status), expected, "{rule} {codes:?}");
        }
    }

    #[test]
    fn a_rule_may_be_about_one_container_and_init_containers_count_too() {
        let rule = |name: &str| json!([{ "action": "Ignore", "onExitCodes": { "containerName": name, "operator": "In", "values": [7] } }]);
        let ran = json!({ "phase": "Failed", "containerStatuses": ended(&[7, 1]) });
        assert_eq!(judged(&rule("c0"), &ran), Verdict::Ignore);
        assert_eq!(judged(&rule("c1"), &ran), Verdict::Count);
        let never_ran = json!({ "phase": "Failed", "initContainerStatuses": ended(&[7]) });
        assert_eq!(judged(&rule("c0"), &never_ran), Verdict::Ignore);
        let runs =
            json!({ "phase": "Failed", "containerStatuses": [{ "name": "c0", "state": { "running": {} } }] });
        assert_eq!(judged(&rule("c0"), &runs), Verdict::Count);
    }

    #[test]
    fn conditions_are_compared_with_the_status_that_the_rule_names() {
        for (wanted, held, expected) in [
            ("True", "True", Verdict::Ignore),
            ("False", "False", Verdict::Ignore),
            ("Unknown", "Unknown", Verdict::Ignore),
            ("True", "False", Verdict::Count),
            ("False", "True", Verdict::Count),
        ] {
            let status =
                json!({ "phase": "Failed", "conditions": [{ "type": "DisruptionTarget", "status": held }] });
            let rules = json!([on_condition("Ignore", wanted)]);
            assert_eq!(judged(&rules, &status), expected, "{wanted} {held}");
        }
        let unscheduled =
            json!({ "phase": "Failed", "conditions": [{ "type": "PodScheduled", "status": "False" }] });
        let rule = json!([{ "action": "Ignore", "onPodConditions": [{ "type": "PodScheduled", "status": "False" }] }]);
        assert_eq!(judged(&rule, &unscheduled), Verdict::Ignore, "also by what the scheduler says");
        let without = json!({ "phase": "Failed" });
        assert_eq!(judged(&json!([on_condition("Ignore", "True")]), &without), Verdict::Count);
    }

    #[test]
    fn the_first_rule_that_fits_decides_and_one_that_is_not_known_does_not() {
        let status = json!({
            "phase": "Failed", "containerStatuses": ended(&[5]),
            "conditions": [{ "type": "DisruptionTarget", "status": "True" }],
        });
        let codes = |action| on_codes(action, "In", &[5]);
        let rules = json!([codes("Explode"), on_condition("Ignore", "True"), codes("FailIndex")]);
        assert_eq!(judged(&rules, &status), Verdict::Ignore);
        assert_eq!(
            judged(&json!([codes("FailIndex"), on_condition("Ignore", "True")]), &status),
            Verdict::FailIndex
        );
        assert_eq!(judged(&json!([]), &status), Verdict::Count);
    }
}
