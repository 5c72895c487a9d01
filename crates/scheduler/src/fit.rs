//! Which nodes a pod may go to, and why not to the others.
//!
//! Everything here looks at one pod and one node. The words of the reasons are Kubernetes' own, because people search
//! for them.

use std::collections::BTreeMap;

use krafla_api::meta::{LabelSelector, LabelSelectorRequirement};
use krafla_plan::Meta;
use krafla_plan::object::PodSpec;
use krafla_plan::placement::{NodeSelector, NodeSelectorTerm, Taint, Toleration};

use crate::node::Host;

/// Why a node will not do, apart from the room on it. `None` means that it will.
pub(crate) fn objection(spec: &PodSpec, host: &Host<'_>) -> Option<&'static str> {
    if let Some(reason) = host.closed() {
        return Some(reason);
    }
    if host.node.spec.taints.iter().any(|taint| repels(taint) && !is_tolerated(taint, &spec.tolerations)) {
        return Some("node(s) had untolerated taint(s)");
    }
    if !has_labels(&host.meta.labels, &spec.node_selector) || !suits_affinity(spec, host.meta) {
        return Some("node(s) didn't match Pod's node affinity/selector");
    }
    None
}

fn repels(taint: &Taint) -> bool {
    taint.effect == "NoSchedule" || taint.effect == "NoExecute"
}

fn is_tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    tolerations.iter().any(|toleration| {
        let same_effect = toleration.effect.is_empty() || toleration.effect == taint.effect;
        let same_key = toleration.key == taint.key;
        same_effect
            && match toleration.operator.as_str() {
                "Exists" => toleration.key.is_empty() || same_key,
                "" | "Equal" => same_key && toleration.value == taint.value,
                _ => false,
            }
    })
}

fn has_labels(labels: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

fn suits_affinity(spec: &PodSpec, node: &Meta) -> bool {
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    match affinity.and_then(|affinity| affinity.required.as_ref()) {
        Some(NodeSelector { node_selector_terms }) => {
            node_selector_terms.iter().any(|term| holds(term, node))
        }
        None => true,
    }
}

fn holds(term: &NodeSelectorTerm, node: &Meta) -> bool {
    let NodeSelectorTerm { match_expressions, match_fields } = term;
    let is_empty = match_expressions.is_empty() && match_fields.is_empty();
    let field = |key: &str| (key == "metadata.name").then_some(&*node.key.name);
    !is_empty
        && match_expressions.iter().all(|it| is_met(it, node.labels.get(&it.key).map(String::as_str)))
        && match_fields.iter().all(|it| is_met(it, field(&it.key)))
}

/// Whether a selector picks something with these labels. An empty one picks everything.
pub(crate) fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    has_labels(labels, &selector.match_labels)
        && selector.match_expressions.iter().all(|it| is_met(it, labels.get(&it.key).map(String::as_str)))
}

/// Whether a label's value (or its absence) meets a requirement. An operator newer than this program is not met: a pod
/// that waits and says so is better than one in the wrong place.
fn is_met(requirement: &LabelSelectorRequirement, value: Option<&str>) -> bool {
    let is_listed = |value: &str| requirement.values.iter().any(|listed| listed == value);
    match requirement.operator.as_str() {
        "In" => value.is_some_and(is_listed),
        "NotIn" => !value.is_some_and(is_listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compare(value, &requirement.values).is_some_and(|(value, bound)| value > bound),
        "Lt" => compare(value, &requirement.values).is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

fn compare(value: Option<&str>, bounds: &[String]) -> Option<(i64, i64)> {
    let [bound] = bounds else { return None };
    Some((value?.parse().ok()?, bound.parse().ok()?))
}
