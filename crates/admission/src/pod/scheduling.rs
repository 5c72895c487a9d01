//! Where a pod may run: affinity, tolerations, spreading, gates.

use std::collections::BTreeSet;

use crate::json::At;
use crate::{Verdict, names};

use super::check;
use super::spec::Dialect;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks which nodes and which neighbours a pod wants.
pub(super) fn validate_affinity(affinity: &At<'_>, verdict: &mut Verdict) {
    let nodes = affinity.get("nodeAffinity");
    let required = nodes.get(REQUIRED);
    if required.is_set() {
        node_selector(&required, verdict);
    }
    for term in nodes.items(PREFERRED) {
        validate_weight(&term.get("weight"), verdict);
        // A wish may name a label value that no node can have.
        validate_node_term(&term.get("preference"), false, verdict);
    }
    for pods in ["podAffinity", "podAntiAffinity"].map(|name| affinity.get(name)) {
        pods.items(REQUIRED).iter().for_each(|term| validate_pod_term(term, verdict));
        for term in pods.items(PREFERRED) {
            validate_weight(&term.get("weight"), verdict);
            validate_pod_term(&term.get("podAffinityTerm"), verdict);
        }
    }
}

/// Which nodes will do: those that meet one of the terms.
pub(crate) fn node_selector(selector: &At<'_>, verdict: &mut Verdict) {
    let terms = selector.get("nodeSelectorTerms");
    if terms.is_empty() {
        verdict.required(terms.path(), "must have at least one node selector term");
    }
    terms.list().iter().for_each(|term| validate_node_term(term, true, verdict));
}

fn validate_weight(weight: &At<'_>, verdict: &mut Verdict) {
    let number = weight.int().unwrap_or(0);
    if !(1..=100).contains(&number) {
        verdict.invalid(weight.path(), number, "must be in the range 1-100");
    }
}

fn validate_node_term(term: &At<'_>, checks_values: bool, verdict: &mut Verdict) {
    for requirement in term.items("matchExpressions") {
        let (operator, values) = (requirement.get("operator"), requirement.get("values"));
        let n_values = values.list().len();
        match operator.text() {
            "In" | "NotIn" if n_values == 0 => {
                verdict.required(values.path(), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if n_values > 0 => {
                verdict.forbidden(
                    values.path(),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                );
            }
            "Gt" | "Lt" if n_values != 1 => {
                verdict.required(
                    values.path(),
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                );
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => verdict.invalid(operator.path(), other, "not a valid selector operator"),
        }
        check::label_key(&requirement.get("key"), verdict);
        if checks_values {
            check::label_values(&values, verdict);
        }
    }
    for requirement in term.items("matchFields") {
        validate_node_field(&requirement, verdict);
    }
}

/// The only field of a node that can be asked for is its name.
fn validate_node_field(requirement: &At<'_>, verdict: &mut Verdict) {
    let (operator, values, key) =
        (requirement.get("operator"), requirement.get("values"), requirement.get("key"));
    match operator.text() {
        "In" | "NotIn" if values.list().len() != 1 => {
            let rule = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            verdict.required(values.path(), rule);
        }
        "In" | "NotIn" => {}
        other => verdict.invalid(operator.path(), other, "not a valid selector operator"),
    }
    if key.text() != "metadata.name" {
        verdict.invalid(key.path(), key.text(), "not a valid field selector key");
        return;
    }
    for value in values.list() {
        verdict.invalid_each(value.path(), value.text(), names::dns_subdomain(value.text()));
    }
}

fn validate_pod_term(term: &At<'_>, verdict: &mut Verdict) {
    let selector = term.get("labelSelector");
    check::label_selector(&selector, verdict);
    check::label_selector(&term.get("namespaceSelector"), verdict);
    for namespace in term.items("namespaces") {
        let name = namespace.text();
        verdict.invalid_each(&term.path().field("namespace"), name, names::dns_label(name));
    }
    validate_label_keys(term, Dialect::Kubernetes, verdict);
    let topology = term.get("topologyKey");
    if topology.text().is_empty() {
        verdict.required(topology.path(), "can not be empty");
    }
    check::label_key(&topology, verdict);
}

/// Labels whose values a term takes from the pod. By the time of these checks they stand in the selector of a new pod.
fn validate_label_keys(term: &At<'_>, dialect: Dialect, verdict: &mut Verdict) {
    let selector = term.get("labelSelector");
    let (matching, mismatching) = (term.get("matchLabelKeys"), term.get("mismatchLabelKeys"));
    for keys in [&matching, &mismatching] {
        if !keys.is_empty() && !selector.is_set() {
            verdict.forbidden(keys.path(), "must not be specified when labelSelector is not set");
        } else {
            keys.list().iter().for_each(|key| check::label_key(key, verdict));
        }
    }
    let keys = matching.list();
    let mut used: BTreeSet<&str> =
        selector.get("matchLabels").entries().into_iter().map(|(key, _)| key).collect();
    let rule = "exists in both matchLabelKeys and labelSelector";
    for expression in selector.items("matchExpressions") {
        let key = expression.str("key");
        let at = keys.iter().rposition(|wanted| wanted.text() == key);
        if let (Some(at), false, Dialect::Kubernetes) = (at, used.insert(key), dialect) {
            // Upstream leaves the name of the list out.
            verdict.invalid(&term.path().index(at), key, rule);
        }
    }
    for key in keys.iter().filter(|key| dialect == Dialect::Volcano && used.contains(key.text())) {
        verdict.invalid(key.path(), key.text(), rule);
    }
    let others: BTreeSet<&str> = mismatching.list().iter().map(|key| key.text()).collect();
    for key in keys.iter().filter(|key| others.contains(key.text())) {
        verdict.invalid(key.path(), key.text(), "exists in both matchLabelKeys and mismatchLabelKeys");
    }
}

/// Checks which tainted nodes a pod puts up with.
pub(crate) fn validate_tolerations(tolerations: &At<'_>, verdict: &mut Verdict) {
    for toleration in tolerations.list() {
        let (operator, effect) = (toleration.get("operator"), toleration.get("effect"));
        let (key, value) = (toleration.get("key"), toleration.str("value"));
        check::name(&key, names::qualified_name, verdict);
        if key.text().is_empty() && operator.text() != "Exists" {
            let rule =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            verdict.invalid(operator.path(), operator.text(), rule);
        }
        if toleration.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            let rule = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            verdict.invalid(effect.path(), effect.text(), rule);
        }
        match operator.text() {
            "" | "Equal" => {
                let wrong = names::label_value(value);
                if !wrong.is_empty() {
                    verdict.invalid(operator.path(), value, wrong.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                verdict.invalid(operator.path(), value, "value must be empty when `operator` is 'Exists'");
            }
            "Exists" => {}
            other @ ("Lt" | "Gt") => {
                verdict.unsupported(operator.path(), other, &["Equal", "Exists", "Lt", "Gt"])
            }
            other => verdict.unsupported(operator.path(), other, &["Equal", "Exists"]),
        }
        check::word_or_default(&effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"], verdict);
    }
}

/// Checks what holds a pod back from being scheduled.
pub(super) fn validate_gates(gates: &At<'_>, verdict: &mut Verdict) {
    let mut seen = BTreeSet::new();
    for gate in gates.list() {
        let name = gate.str("name");
        verdict.invalid_each(gate.path(), name, names::qualified_name(name));
        if !seen.insert(name) {
            verdict.duplicate(gate.path(), name);
        }
    }
}

/// Checks how evenly pods are to be spread.
pub(super) fn validate_topology_spread(constraints: &At<'_>, dialect: Dialect, verdict: &mut Verdict) {
    let list = constraints.list();
    for (index, constraint) in list.iter().enumerate() {
        let skew = constraint.get("maxSkew");
        if skew.int().unwrap_or(0) <= 0 {
            verdict.invalid(skew.path(), skew.int().unwrap_or(0), "must be greater than zero");
        }
        let (topology, action) = (constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"));
        if topology.text().is_empty() {
            verdict.required(topology.path(), "can not be empty");
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        if !actions.contains(&action.text()) {
            verdict.unsupported(action.path(), action.text(), &actions);
        }
        let is_same = |other: &At<'_>| {
            other.str("topologyKey") == topology.text() && other.str("whenUnsatisfiable") == action.text()
        };
        if list.iter().skip(index + 1).any(is_same) {
            let pair = format!("{{{}, {}}}", topology.text(), action.text());
            verdict.duplicate(&constraint.path().field("{topologyKey, whenUnsatisfiable}"), pair);
        }
        validate_spread_details(constraint, action.text(), dialect, verdict);
    }
}

fn validate_spread_details(constraint: &At<'_>, action: &str, dialect: Dialect, verdict: &mut Verdict) {
    let domains = constraint.get("minDomains");
    if let Some(number) = domains.int() {
        if number <= 0 {
            verdict.invalid(domains.path(), number, "must be greater than zero");
        }
        if action != "DoNotSchedule" {
            let rule = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            verdict.invalid(domains.path(), number, rule);
        }
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        check::word(&constraint.get(policy), &["Honor", "Ignore"], verdict);
    }
    validate_label_keys(constraint, dialect, verdict);
    check::label_selector(&constraint.get("labelSelector"), verdict);
}
