//! How evenly pods must be spread: topology spread constraints that a pod insists on.
//!
//! ```text
//!   rule       pods that a selector picks, and the label that says which nodes are one domain
//!   eligible   the nodes that count for it: they have the labels, and the pod may run there
//!   skew       how many more picked pods there would be in a domain than in the one with fewest
//! ```
//!
//! Only rules of pods that wait are kept, and where none has any, nothing here costs anything. Kubernetes: the filter of the
//! PodTopologySpread plugin.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::meta::LabelSelector;
use krafla_plan::Object;
use krafla_plan::object::PodSpec;
use krafla_plan::placement::{TopologySpreadConstraint, selects};

use crate::fit;
use crate::lacks;
use crate::node::{Host, Hosts};

/// A rule among [`Spread`].
type RuleId = usize;

/// What rules mean for a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Standing {
    /// The rules that it must keep.
    keeps: Vec<RuleId>,
    /// The rules that pick it.
    counts: Vec<RuleId>,
}

impl Standing {
    /// Whether a pod that is put elsewhere can make a node good for this one.
    pub(crate) fn is_bound(&self) -> bool {
        !self.keeps.is_empty()
    }
}

#[derive(Debug)]
struct Rule<'a> {
    namespace: &'a str,
    /// Without one, no pod is picked.
    selector: Option<&'a LabelSelector>,
    /// Labels besides, whose values the rule takes from the pod that brought it.
    same: Vec<(&'a str, &'a str)>,
    topology_key: &'a str,
    max_skew: usize,
    min_domains: usize,
    is_eligible: Vec<bool>,
    /// How many picked pods there are in each domain that has an eligible node.
    n_pods: BTreeMap<&'a str, usize>,
    /// How many domains have that many, so that the least is known at once.
    n_domains: BTreeMap<usize, usize>,
}

/// All rules, and where the pods are that they are about.
#[derive(Debug, Default)]
pub(crate) struct Spread<'a> {
    rules: Vec<Rule<'a>>,
    /// Rules by how they are written, so that equal ones are counted once.
    known: BTreeMap<String, RuleId>,
    /// Rules by one label that picked pods must have, so that a pod is not compared with all rules.
    by_label: BTreeMap<(&'a str, &'a str), Vec<RuleId>>,
    /// Rules that demand no particular label.
    without_label: Vec<RuleId>,
}

impl<'a> Spread<'a> {
    /// Reads the rules of a pod, if it waits for a node.
    pub(crate) fn learn(&mut self, pod: &'a Object, hosts: &Hosts<'a>) {
        for (spec, constraint) in constraints_of(pod) {
            let id = self.rules.len();
            if *self.known.entry(written(pod, spec, constraint)).or_insert(id) == id {
                let rule = Rule::of(pod, spec, constraint, hosts);
                match rule.label() {
                    _ if rule.selector.is_none() => {}
                    Some(label) => self.by_label.entry(label).or_default().push(id),
                    None => self.without_label.push(id),
                }
                self.rules.push(rule);
            }
        }
    }

    /// What the rules mean for a pod. One that is being deleted is not counted any more.
    pub(crate) fn standing(&self, pod: &'a Object) -> Standing {
        if self.rules.is_empty() {
            return Standing::default();
        }
        let keeps = constraints_of(pod)
            .filter_map(|(spec, constraint)| self.known.get(&written(pod, spec, constraint)).copied());
        let by_label = pod.meta.labels.iter().filter_map(|label| self.by_label.get(&label));
        let candidates = by_label.flatten().chain(&self.without_label).filter(|_| !pod.meta.is_deleting());
        let picks = |id: &RuleId| self.rules.get(*id).is_some_and(|rule| rule.picks(pod));
        let mut counts: Vec<RuleId> = candidates.copied().filter(picks).collect();
        counts.sort_unstable();
        Standing { keeps: keeps.collect(), counts }
    }

    /// A pod comes to a node, or goes.
    pub(crate) fn count(&mut self, standing: &Standing, host: &Host<'a>, change: impl Fn(&mut usize)) {
        for id in &standing.counts {
            if let Some(rule) = self.rules.get_mut(*id) {
                rule.count(host, &change);
            }
        }
    }

    /// Why a node will not do because of the pods that there are elsewhere. `None` means that it will.
    pub(crate) fn objection(
        &self,
        standing: &Standing,
        host: &Host<'_>,
    ) -> Option<&'static krafla_why::Lack> {
        standing.keeps.iter().find_map(|id| {
            let rule = self.rules.get(*id)?;
            let Some(domain) = host.meta.labels.get(rule.topology_key) else {
                return Some(&lacks::SPREAD_LABEL);
            };
            let there = rule.n_pods.get(domain).copied().unwrap_or(0);
            let with_it = there.saturating_add(usize::from(standing.counts.contains(id)));
            let skew = with_it.saturating_sub(rule.least());
            (skew > rule.max_skew).then_some(&lacks::SPREAD)
        })
    }
}

impl<'a> Rule<'a> {
    fn of(
        pod: &'a Object,
        spec: &'a PodSpec,
        constraint: &'a TopologySpreadConstraint,
        hosts: &Hosts<'a>,
    ) -> Rule<'a> {
        let TopologySpreadConstraint { topology_key, match_label_keys, .. } = constraint;
        let keys = match_label_keys.iter();
        let same = keys.filter_map(|key| Some((key.as_str(), pod.meta.labels.get(key)?))).collect();
        let is_eligible: Vec<bool> = hosts.iter().map(|host| is_eligible(spec, constraint, host)).collect();
        let eligible = hosts.iter().zip(&is_eligible).filter(|(_, is_eligible)| **is_eligible);
        let domains: BTreeSet<&'a str> =
            eligible.filter_map(|(host, _)| host.meta.labels.get(topology_key)).collect();
        let number = |number: i32| usize::try_from(number).unwrap_or(0);
        Rule {
            namespace: &pod.meta.key.namespace,
            selector: constraint.label_selector.as_ref(),
            same,
            topology_key,
            max_skew: number(constraint.max_skew).max(1),
            min_domains: number(constraint.min_domains),
            is_eligible,
            n_domains: BTreeMap::from([(0, domains.len())]),
            n_pods: domains.into_iter().map(|domain| (domain, 0)).collect(),
        }
    }

    /// A label that a pod must have to be picked, if there is one.
    fn label(&self) -> Option<(&'a str, &'a str)> {
        let labels = self.selector.and_then(|selector| selector.match_labels.first_key_value());
        labels.map(|(key, value)| (key.as_str(), value.as_str())).or_else(|| self.same.first().copied())
    }

    fn picks(&self, pod: &Object) -> bool {
        let labels = &pod.meta.labels;
        &*pod.meta.key.namespace == self.namespace
            && self.selector.is_some_and(|selector| selects(selector, labels))
            && self.same.iter().all(|(key, value)| labels.get(key) == Some(value))
    }

    fn count(&mut self, host: &Host<'a>, change: impl Fn(&mut usize)) {
        let domain = host.meta.labels.get(self.topology_key);
        let domain = domain.filter(|_| self.is_eligible.get(host.index) == Some(&true));
        let Some(n_pods) = domain.and_then(|domain| self.n_pods.get_mut(domain)) else { return };
        let before = *n_pods;
        change(n_pods);
        *self.n_domains.entry(*n_pods).or_default() += 1;
        if let Some(n_domains) = self.n_domains.get_mut(&before) {
            *n_domains = n_domains.saturating_sub(1);
            if *n_domains == 0 {
                self.n_domains.remove(&before);
            }
        }
    }

    /// How many picked pods there are where there are fewest. As long as there are too few domains, that is in one that does
    /// not exist yet.
    fn least(&self) -> usize {
        let least = self.n_domains.keys().next().copied().unwrap_or(0);
        if self.n_pods.len() < self.min_domains { 0 } else { least }
    }
}

/// Whether a node counts for a rule. By default nodes count where the pod's selectors allow it, whatever their taints.
fn is_eligible(spec: &PodSpec, constraint: &TopologySpreadConstraint, host: &Host<'_>) -> bool {
    let all_keys = spec.spread_constraints.iter().map(|it| &it.topology_key);
    let has_labels = all_keys.into_iter().all(|key| host.meta.labels.get(key).is_some());
    let heeds_selectors = constraint.node_affinity_policy != "Ignore";
    let heeds_taints = constraint.node_taints_policy == "Honor";
    has_labels
        && (!heeds_selectors || fit::suits_selectors(spec, host))
        && (!heeds_taints || !fit::is_repelled(spec, host))
}

/// The rules of a pod that waits for a node.
fn constraints_of(pod: &Object) -> impl Iterator<Item = (&PodSpec, &TopologySpreadConstraint)> {
    let spec = pod.as_pod().filter(|pod| !pod.status.phase.is_finished()).map(|pod| &pod.spec);
    let waiting = spec.filter(|spec| spec.node_name.is_empty());
    waiting.into_iter().flat_map(|spec| spec.spread_constraints.iter().map(move |it| (spec, it)))
}

/// A rule as it is written, with everything that it depends on.
fn written(pod: &Object, spec: &PodSpec, constraint: &TopologySpreadConstraint) -> String {
    let PodSpec { node_selector, affinity, tolerations, spread_constraints, .. } = spec;
    let node_affinity = affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let keys = constraint.match_label_keys.iter();
    let same: Vec<Option<&str>> = keys.map(|key| pod.meta.labels.get(key)).collect();
    let all_keys: Vec<&str> = spread_constraints.iter().map(|it| it.topology_key.as_str()).collect();
    let namespace = &pod.meta.key.namespace;
    format!(
        "{namespace} {constraint:?} {same:?} {all_keys:?} {node_selector:?} {node_affinity:?} {tolerations:?}"
    )
}
