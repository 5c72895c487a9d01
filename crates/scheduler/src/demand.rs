//! What pods demand of a node besides room, and what they would like: selectors, affinities, tolerations. Pods with equal
//! demands are asked about once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use krafla_plan::object::PodSpec;

use crate::fit;
use crate::node::Hosts;

/// A demand among [`Demands`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DemandId(usize);

/// One demand, and the nodes that meet it.
#[derive(Debug)]
struct Demand<'a> {
    /// The first pod with this demand speaks for all.
    spec: &'a PodSpec,
    /// Found out when first asked for.
    nodes: Option<Nodes>,
}

/// What a demand means for each node.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    /// Whether it meets the demand.
    pub(crate) suitable: Vec<bool>,
    /// How well it is liked, the best with the greatest number; none if all are liked alike, as mostly they are.
    pub(crate) likings: Option<Vec<usize>>,
}

/// All demands that occur.
#[derive(Debug, Default)]
pub(crate) struct Demands<'a> {
    all: Vec<Demand<'a>>,
    /// Demands by how they are written.
    known: BTreeMap<String, DemandId>,
}

impl<'a> Demands<'a> {
    /// The demand of a pod.
    pub(crate) fn of(&mut self, spec: &'a PodSpec) -> DemandId {
        let id = DemandId(self.all.len());
        let id = *self.known.entry(written(spec)).or_insert(id);
        if id.0 == self.all.len() {
            self.all.push(Demand { spec, nodes: None });
        }
        id
    }

    /// What the demand means for each node.
    pub(crate) fn nodes(&mut self, id: DemandId, hosts: &Hosts<'a>) -> Option<&Nodes> {
        let Demand { spec, nodes } = self.all.get_mut(id.0)?;
        Some(nodes.get_or_insert_with(|| Nodes::of(spec, hosts)))
    }
}

impl Nodes {
    fn of(spec: &PodSpec, hosts: &Hosts<'_>) -> Nodes {
        Nodes {
            suitable: hosts.iter().map(|host| fit::objection(spec, host).is_none()).collect(),
            likings: fit::has_likings(spec, hosts).then(|| Nodes::likings(spec, hosts)),
        }
    }

    fn likings(spec: &PodSpec, hosts: &Hosts<'_>) -> Vec<usize> {
        let likings: Vec<_> = hosts.iter().map(|host| fit::liking(spec, host)).collect();
        let ranks: BTreeSet<_> = likings.iter().collect();
        let ranks: BTreeMap<_, usize> = ranks.into_iter().zip(0..).collect();
        likings.iter().map(|liking| ranks.get(liking).copied().unwrap_or(0)).collect()
    }

    /// The first of the nodes that will do, unless a later one is liked better.
    pub(crate) fn best(&self, mut will_do: impl Iterator<Item = usize>) -> Option<usize> {
        let Some(likings) = &self.likings else { return will_do.next() };
        will_do.min_by_key(|index| Reverse(likings.get(*index)))
    }
}

/// Most pods demand nothing, and that is quickly said.
fn written(spec: &PodSpec) -> String {
    let PodSpec { node_selector, tolerations, affinity, .. } = spec;
    let node_affinity = affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    if node_selector.is_empty() && tolerations.is_empty() && node_affinity.is_none() {
        return String::new();
    }
    format!("{node_selector:?} {tolerations:?} {node_affinity:?}")
}
