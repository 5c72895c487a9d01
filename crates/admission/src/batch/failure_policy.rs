//! What follows from the failure of a pod: rules by exit code and by condition.

use std::collections::BTreeSet;

use crate::json::At;
use crate::{Reason, Verdict, names};

const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const CONDITIONS_MAX: usize = 20;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

/// Checks the rules of a Job.
pub(super) fn validate(spec: &At<'_>, verdict: &mut Verdict) {
    let rules = spec.get("podFailurePolicy").get("rules");
    let list = rules.list();
    if list.len() > RULES_MAX {
        verdict.too_many(rules.path(), list.len(), RULES_MAX);
    }
    let pod = spec.get("template").get("spec");
    let containers = ["containers", "initContainers"].map(|kind| pod.items(kind)).concat();
    let names: BTreeSet<&str> = containers.iter().map(|container| container.str("name")).collect();
    for rule in list {
        validate_rule(spec, &rule, &names, verdict);
    }
}

fn validate_rule(spec: &At<'_>, rule: &At<'_>, containers: &BTreeSet<&str>, verdict: &mut Verdict) {
    let action = rule.get("action");
    match action.text() {
        "" => verdict.required(action.path(), &format!("valid values: {}", listed(&ACTIONS))),
        "FailIndex" if !spec.get("backoffLimitPerIndex").is_set() => {
            verdict.invalid(action.path(), action.text(), "requires the backoffLimitPerIndex to be set");
        }
        other if !ACTIONS.contains(&other) => verdict.unsupported(action.path(), other, &ACTIONS),
        _ => {}
    }
    let (codes, conditions) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
    if codes.is_set() {
        validate_exit_codes(&codes, containers, verdict);
    }
    if !conditions.is_empty() {
        validate_conditions(&conditions, verdict);
    }
    let wrong = match (codes.is_set(), !conditions.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        (true, false) | (false, true) => return,
    };
    verdict.refuse(rule.path(), Reason::Invalid, format!("Invalid value: {wrong}"));
}

fn validate_exit_codes(codes: &At<'_>, containers: &BTreeSet<&str>, verdict: &mut Verdict) {
    const OPERATORS: [&str; 2] = ["In", "NotIn"];
    let operator = codes.get("operator");
    if operator.text().is_empty() {
        verdict.required(operator.path(), &format!("valid values: {}", listed(&OPERATORS)));
    } else if !OPERATORS.contains(&operator.text()) {
        verdict.unsupported(operator.path(), operator.text(), &OPERATORS);
    }
    let container = codes.get("containerName");
    if container.is_set() && !containers.contains(container.text()) {
        let rule = "must be one of the container or initContainer names in the pod template";
        verdict.invalid(container.path(), container.text(), rule);
    }
    let values = codes.get("values");
    let list = values.list();
    if list.is_empty() {
        verdict.invalid(values.path(), values.value(), "at least one value is required");
    } else if list.len() > EXIT_CODES_MAX {
        verdict.too_many(values.path(), list.len(), EXIT_CODES_MAX);
    }
    let mut seen = BTreeSet::new();
    for value in &list {
        let Some(code) = value.int() else { continue };
        if operator.text() == "In" && code == 0 {
            verdict.invalid(value.path(), code, "must not be 0 for the In operator");
        }
        if !seen.insert(code) {
            verdict.duplicate(value.path(), code);
        }
    }
    if !list.is_sorted_by_key(At::int) {
        verdict.invalid(values.path(), values.value(), "must be ordered");
    }
}

fn validate_conditions(conditions: &At<'_>, verdict: &mut Verdict) {
    const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
    let list = conditions.list();
    if list.len() > CONDITIONS_MAX {
        verdict.too_many(conditions.path(), list.len(), CONDITIONS_MAX);
    }
    for condition in list {
        let (name, status) = (condition.get("type"), condition.get("status"));
        verdict.invalid_each(name.path(), name.text(), names::qualified_name(name.text()));
        if status.text().is_empty() {
            verdict.required(status.path(), &format!("valid values: {}", listed(&STATUSES)));
        } else if !STATUSES.contains(&status.text()) {
            verdict.unsupported(status.path(), status.text(), &STATUSES);
        }
    }
}

/// Words as some of upstream's messages list them: `["In" "NotIn"]`.
fn listed(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    format!("[{}]", words.join(" "))
}
