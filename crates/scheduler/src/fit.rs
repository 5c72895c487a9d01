//! Which nodes a pod may go to, and why not to the others.
//!
//! Everything here looks at one pod and one node. The words of the reasons are Kubernetes' own, because people search
//! for them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use krafla_api::Pairs;
use krafla_plan::Meta;
use krafla_plan::object::PodSpec;
use krafla_plan::placement::{NodeSelector, NodeSelectorTerm, Taint, Toleration, is_met};
use krafla_why::Lack;

use crate::lacks;
use crate::node::{Host, Hosts};

/// The taint that a cordoned node has, whether it is written down there or not.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Why a node will not do, apart from the room on it. `None` means that it will.
pub(crate) fn objection(spec: &PodSpec, host: &Host<'_>) -> Option<&'static Lack> {
    let may_be_cordoned = host.node.spec.unschedulable && tolerates_cordon(&spec.tolerations);
    if let Some(reason) = host.closed(may_be_cordoned) {
        return Some(reason);
    }
    if is_repelled(spec, host) {
        return Some(&lacks::TAINTS);
    }
    if !suits_selectors(spec, host) {
        return Some(&lacks::SELECTOR);
    }
    None
}

/// How well a pod likes a node that will do: first of all nodes without taints that advise against it, then those that its
/// affinity prefers. Only the order among the likings of one pod means anything.
pub(crate) fn liking(spec: &PodSpec, host: &Host<'_>) -> (Reverse<usize>, i64) {
    let is_unwelcome = |taint: &&Taint| advises_against(taint) && !is_tolerated(taint, &spec.tolerations);
    let n_unwelcome = host.node.spec.taints.iter().filter(is_unwelcome).count();
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let preferred = affinity.into_iter().flat_map(|affinity| &affinity.preferred);
    let met = preferred.filter(|it| holds(&it.preference, host.meta)).map(|it| i64::from(it.weight));
    (Reverse(n_unwelcome), met.fold(0, i64::saturating_add))
}

/// Whether a pod may like some nodes better than others.
pub(crate) fn has_likings(spec: &PodSpec, hosts: &Hosts<'_>) -> bool {
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    affinity.is_some_and(|affinity| !affinity.preferred.is_empty())
        || hosts.iter().any(|host| host.node.spec.taints.iter().any(advises_against))
}

fn advises_against(taint: &Taint) -> bool {
    taint.effect == "PreferNoSchedule"
}

/// Whether a taint keeps a pod away from a node.
pub(crate) fn is_repelled(spec: &PodSpec, host: &Host<'_>) -> bool {
    host.node.spec.taints.iter().any(|taint| repels(taint) && !is_tolerated(taint, &spec.tolerations))
}

/// Whether a pod's selector and its affinity allow a node.
pub(crate) fn suits_selectors(spec: &PodSpec, host: &Host<'_>) -> bool {
    has_labels(&host.meta.labels, &spec.node_selector) && suits_affinity(spec, host.meta)
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

fn tolerates_cordon(tolerations: &[Toleration]) -> bool {
    let (key, effect) = (UNSCHEDULABLE.to_owned(), "NoSchedule".to_owned());
    is_tolerated(&Taint { key, effect, ..Taint::default() }, tolerations)
}

fn has_labels(labels: &Pairs, wanted: &BTreeMap<String, String>) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value.as_str()))
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
        && match_expressions.iter().all(|it| is_met(it, node.labels.get(&it.key)))
        && match_fields.iter().all(|it| is_met(it, field(&it.key)))
}

#[cfg(test)]
mod tests {
    use krafla_api::meta::LabelSelectorRequirement;

    use super::*;

    #[test]
    fn a_toleration_is_compared_by_key_value_and_effect() {
        let taint = |key: &str, value: &str, effect: &str| Taint {
            key: key.to_owned(),
            value: value.to_owned(),
            effect: effect.to_owned(),
        };
        let toleration = |key: &str, operator: &str, value: &str, effect: &str| Toleration {
            key: key.to_owned(),
            operator: operator.to_owned(),
            value: value.to_owned(),
            effect: effect.to_owned(),
        };
        let gpu = taint("gpu", "a100", "NoSchedule");
        let table = [
            (toleration("gpu", "Equal", "a100", "NoSchedule"), true),
            (toleration("gpu", "", "a100", ""), true),
            (toleration("gpu", "Equal", "h100", ""), false),
            (toleration("disk", "Equal", "a100", ""), false),
            (toleration("gpu", "Equal", "a100", "NoExecute"), false),
            (toleration("gpu", "Exists", "", ""), true),
            (toleration("disk", "Exists", "", ""), false),
            (toleration("", "Exists", "", ""), true),
            (toleration("gpu", "Newer", "a100", ""), false),
        ];
        for (toleration, expected) in table {
            assert_eq!(is_tolerated(&gpu, std::slice::from_ref(&toleration)), expected, "{toleration:?}");
        }
        assert!(repels(&taint("gpu", "", "NoExecute")));
        assert!(!repels(&taint("gpu", "", "PreferNoSchedule")));
    }

    #[test]
    fn a_requirement_is_about_a_labels_value_or_its_absence() {
        let table = [
            ("In", &["a", "b"][..], [true, false, false]),
            ("NotIn", &["a", "b"], [false, true, true]),
            ("Exists", &[], [true, true, false]),
            ("DoesNotExist", &[], [false, false, true]),
            ("Gt", &["5"], [false, true, false]),
            ("Lt", &["10"], [false, true, false]),
            ("Lt", &["5"], [false, false, false]),
            ("Gt", &["5", "6"], [false, false, false]),
            ("Newer", &["a"], [false, false, false]),
        ];
        for (operator, values, expected) in table {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            let requirement =
                LabelSelectorRequirement { key: "any".to_owned(), operator: operator.to_owned(), values };
            let met = [Some("a"), Some("7"), None].map(|value| is_met(&requirement, value));
            assert_eq!(met, expected, "{requirement:?}");
        }
    }

    #[test]
    fn one_term_must_hold_in_full_and_an_empty_one_never_does() {
        let meta = Meta {
            key: krafla_api::Key::new("", "one"),
            labels: [("zone", "a")].into_iter().collect(),
            ..Meta::default()
        };
        let is_in = |key: &str, value: &str| LabelSelectorRequirement {
            key: key.to_owned(),
            operator: "In".to_owned(),
            values: vec![value.to_owned()],
        };
        let term = |labels: Vec<_>, fields: Vec<_>| NodeSelectorTerm {
            match_expressions: labels,
            match_fields: fields,
        };
        assert!(holds(&term(vec![is_in("zone", "a")], vec![is_in("metadata.name", "one")]), &meta));
        assert!(!holds(&term(vec![is_in("zone", "a")], vec![is_in("metadata.name", "two")]), &meta));
        assert!(!holds(&term(vec![is_in("zone", "b")], Vec::new()), &meta));
        assert!(!holds(&term(Vec::new(), vec![is_in("spec.other", "one")]), &meta));
        assert!(!holds(&NodeSelectorTerm::default(), &meta));
    }
}
