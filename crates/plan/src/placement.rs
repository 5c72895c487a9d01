//! Placement: fields of pods and nodes that only the scheduler reads.
//!
//! Of preferences only those about nodes are here. They never decide whether a pod fits.

use krafla_api::Pairs;
use krafla_api::meta::{LabelSelector, LabelSelectorRequirement};
use serde::Deserialize;

/// A mark on a node that keeps pods away.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// Its name.
    pub key: String,
    /// What tolerations compare.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// A taint that a pod puts up with.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// The taint's name; empty with `Exists` means every taint.
    pub key: String,
    /// `Equal` (also when empty) or `Exists`.
    pub operator: String,
    /// The taint's value, for `Equal`.
    pub value: String,
    /// The taint's effect; empty means every effect.
    pub effect: String,
}

/// What a pod demands of its node and of the pods around it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    /// Which nodes will do.
    pub node_affinity: Option<NodeAffinity>,
    /// Which pods must be near.
    pub pod_affinity: Option<PodAffinity>,
    /// Which pods must not be near.
    pub pod_anti_affinity: Option<PodAffinity>,
}

/// Which nodes will do.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    /// A must.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
    /// A wish.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: Vec<PreferredNodes>,
}

/// Nodes that are liked better than others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PreferredNodes {
    /// How much better.
    pub weight: i32,
    /// Which nodes.
    pub preference: NodeSelectorTerm,
}

/// Nodes for which at least one term holds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// The terms.
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// Holds when all of its requirements hold; one without requirements never does.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    /// About the node's labels; besides the usual operators there are `Gt` and `Lt`.
    pub match_expressions: Vec<LabelSelectorRequirement>,
    /// About the node's fields; `metadata.name` is the only one.
    pub match_fields: Vec<LabelSelectorRequirement>,
}

/// Which pods must, or must not, be near.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodAffinity {
    /// A must.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Vec<PodAffinityTerm>,
}

/// Pods, and what near means.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAffinityTerm {
    /// Which pods; none at all without it.
    pub label_selector: Option<LabelSelector>,
    /// In which namespaces; the pod's own when neither this nor the selector is given.
    pub namespaces: Vec<String>,
    /// Namespaces by their labels, besides those named.
    pub namespace_selector: Option<LabelSelector>,
    /// Nodes with equal values of this label are near each other.
    pub topology_key: String,
}

/// How evenly pods must be spread.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologySpreadConstraint {
    /// By how many pods domains may differ.
    pub max_skew: i32,
    /// Nodes with equal values of this label are one domain.
    pub topology_key: String,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    pub when_unsatisfiable: String,
    /// Which pods; none at all without it.
    pub label_selector: Option<LabelSelector>,
    /// Labels of which pods must have the same value as the pod itself.
    pub match_label_keys: Vec<String>,
    /// As long as there are fewer domains, one without pods is taken to exist.
    pub min_domains: i32,
    /// Whether only nodes count that the pod's selectors allow: `Honor`, also when empty, or `Ignore`.
    pub node_affinity_policy: String,
    /// Whether only nodes count whose taints the pod tolerates: `Honor`, or `Ignore`, also when empty.
    pub node_taints_policy: String,
}

/// A lock on a pod: it is not placed before all are gone.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SchedulingGate {
    /// Its name.
    pub name: String,
}

/// Whether a selector picks something with these labels. An empty one picks everything.
pub fn selects(selector: &LabelSelector, labels: &Pairs) -> bool {
    selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value.as_str()))
        && selector.match_expressions.iter().all(|it| is_met(it, labels.get(&it.key)))
}

/// Whether a label's value (or its absence) meets a requirement. An operator newer than this program is not met: a pod
/// that waits and says so is better than one in the wrong place.
pub fn is_met(requirement: &LabelSelectorRequirement, value: Option<&str>) -> bool {
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
