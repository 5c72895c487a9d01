//! What pods demand of a node besides room, and what they would like: selectors, affinities, tolerations. Pods with equal
//! demands are asked about once.

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
    /// None if all that meet the demand are liked alike, as mostly they are.
    likings: Option<Likings>,
}

/// How well nodes are liked.
#[derive(Debug)]
struct Likings {
    /// The rank of each node, the best with the greatest number.
    ranks: Vec<usize>,
    /// The rank of the best of those that meet the demand.
    best: usize,
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
        let suitable: Vec<bool> = hosts.iter().map(|host| fit::objection(spec, host).is_none()).collect();
        let likings = if fit::has_likings(spec, hosts) { Likings::of(spec, hosts, &suitable) } else { None };
        Nodes { suitable, likings }
    }

    /// The first of the nodes that will do, unless a later one is liked better. The first of those that are liked best ends
    /// the search.
    pub(crate) fn best(&self, mut will_do: impl Iterator<Item = usize>) -> Option<usize> {
        let Some(Likings { ranks, best }) = &self.likings else { return will_do.next() };
        let rank = |index: usize| ranks.get(index).copied().unwrap_or(0);
        let mut found: Option<usize> = None;
        for index in will_do {
            if found.is_none_or(|found| rank(index) > rank(found)) {
                found = Some(index);
            }
            if rank(index) >= *best {
                break;
            }
        }
        found
    }
}

impl Likings {
    /// None if all nodes that meet the demand are liked alike.
    fn of(spec: &PodSpec, hosts: &Hosts<'_>, suitable: &[bool]) -> Option<Likings> {
        let likings: Vec<_> = hosts.iter().map(|host| fit::liking(spec, host)).collect();
        let ranks: BTreeSet<_> =
            likings.iter().zip(suitable).filter(|(_, is_it)| **is_it).map(|(it, _)| it).collect();
        let best = ranks.len().checked_sub(1).filter(|best| *best > 0)?;
        let ranks: BTreeMap<_, usize> = ranks.into_iter().zip(0..).collect();
        Some(Likings { ranks: likings.iter().map(|it| ranks.get(it).copied().unwrap_or(0)).collect(), best })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_ends_at_the_first_node_that_is_liked_best() {
        let nodes =
            Nodes { suitable: vec![true; 5], likings: Some(Likings { ranks: vec![0, 1, 2, 2, 0], best: 2 }) };
        for (order, best, n_seen) in [
            (&[0, 1, 2, 3, 4][..], Some(2), 3),
            (&[3, 2, 0], Some(3), 1),
            (&[4, 1, 0], Some(1), 3),
            (&[4, 0], Some(4), 2),
            (&[], None, 0),
        ] {
            let mut seen = 0;
            let will_do = order.iter().copied().inspect(|_| seen += 1);
            assert_eq!(nodes.best(will_do), best, "{order:?}");
            assert_eq!(seen, n_seen, "{order:?}");
        }
    }
}
