//! What may be said about the requests that a webhook or a policy is about.

use krafla_cel::{Builds, Type};

use crate::Verdict;
use crate::json::At;
use crate::names;
use crate::policy::Environment;

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];
/// How many conditions one webhook or policy may have.
const CONDITIONS_MAX: usize = 64;

/// Says what is wrong with a rule.
pub(crate) fn validate(rule: &At<'_>, verdict: &mut Verdict) {
    let operations = rule.get("operations");
    require_alone(&operations, "operations", verdict);
    for operation in operations.list() {
        if !OPERATIONS.contains(&operation.text()) {
            verdict.unsupported(operation.path(), operation.text(), &OPERATIONS);
        }
    }
    require_alone(&rule.get("apiGroups"), "API groups", verdict);
    let versions = rule.get("apiVersions");
    require_alone(&versions, "API versions", verdict);
    for version in versions.list().iter().filter(|version| version.text().is_empty()) {
        verdict.required(version.path(), "");
    }
    validate_resources(&rule.get("resources"), verdict);
    validate_word(&rule.get("scope"), &SCOPES, verdict);
}

/// A list that is not empty, and in which `*` has no company.
fn require_alone(words: &At<'_>, what: &str, verdict: &mut Verdict) {
    let list = words.list();
    if list.is_empty() {
        verdict.required(words.path(), "");
    } else if list.len() > 1 && list.iter().any(|word| word.text() == "*") {
        let why = format!("if '*' is present, must not specify other {what}");
        verdict.invalid(words.path(), words.value(), why);
    }
}

/// `pods`, `pods/status`, `pods/*`, `*/status`, `*`, `*/*`; none of them may be covered by another one before it.
fn validate_resources(resources: &At<'_>, verdict: &mut Verdict) {
    let list = resources.list();
    if list.is_empty() {
        verdict.required(resources.path(), "");
    }
    let (mut all_parts_of, mut part_of_all) = (Vec::new(), Vec::new());
    // Only the last resource without a part counts, as upstream has it.
    let mut has_plain = false;
    for resource in &list {
        let text = resource.text();
        if text.is_empty() {
            verdict.required(resource.path(), "");
            continue;
        }
        let Some((of, part)) = text.split_once('/') else {
            has_plain = text != "*";
            continue;
        };
        for (is_covered, pattern) in [
            (all_parts_of.contains(&of), format!("{of}/*")),
            (part_of_all.contains(&part), format!("*/{part}")),
        ] {
            if is_covered {
                let why = format!("if '{pattern}' is present, must not specify {text}");
                verdict.invalid(resource.path(), text, why);
            }
        }
        if part == "*" {
            all_parts_of.push(of);
        }
        if of == "*" {
            part_of_all.push(part);
        }
    }
    let has = |text: &str| list.iter().any(|resource| resource.text() == text);
    if list.len() > 1 && has("*/*") {
        let why = "if '*/*' is present, must not specify other resources";
        verdict.invalid(resources.path(), resources.value(), why);
    }
    if has("*") && has_plain {
        let why = "if '*' is present, must not specify other resources without subresources";
        verdict.invalid(resources.path(), resources.value(), why);
    }
}

/// One of some words, if it is given.
pub(crate) fn validate_word(at: &At<'_>, words: &[&str], verdict: &mut Verdict) {
    if at.is_set() && !words.contains(&at.text()) {
        verdict.unsupported(at.path(), at.text(), words);
    }
}

/// Says what is wrong with expressions that must hold for a webhook or a policy to be asked.
pub(crate) fn validate_conditions(conditions: &At<'_>, environment: &Environment, verdict: &mut Verdict) {
    let list = conditions.list();
    if list.len() > CONDITIONS_MAX {
        verdict.too_many(conditions.path(), list.len(), CONDITIONS_MAX);
    }
    let mut seen = Vec::new();
    for condition in list {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        let source = expression.text().trim();
        if source.is_empty() {
            verdict.required(expression.path(), "");
        } else if let Err(why) = environment.check(source, Builds::Nothing, &[Type::Bool]) {
            verdict.invalid(expression.path(), source, why);
        }
        if name.text().is_empty() {
            verdict.required(name.path(), "");
            continue;
        }
        verdict.invalid_each(name.path(), name.text(), names::qualified_name(name.text()));
        if seen.contains(&name.text()) {
            verdict.duplicate(name.path(), name.text());
        }
        seen.push(name.text());
    }
}
