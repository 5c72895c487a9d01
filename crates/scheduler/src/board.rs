//! The board on which a decision is tried out: nodes with their room, pods by shape, moves that can be taken back.
//!
//! ```text
//!   begin ── put ── put ── put ──> keep      the gang is complete
//!                          └─────> undo      it is not, and nothing happened
//! ```
//!
//! Pods that ask for the same things are of one [`Shape`]. A shape that found no node finds none for the rest of the
//! decision either, because room only gets less; so a long queue of equal pods costs one search, not one each.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use krafla_plan::object::PodSpec;

use crate::fit;
use crate::node::{Host, Hosts};
use crate::resources::{Amounts, Names};

/// How many shapes with equal needs are compared before a pod simply gets a shape of its own.
const ALIKE_COMPARED_MAX: usize = 8;

/// Everything that matters about a pod when a node is sought for it.
#[derive(Debug)]
struct Shape<'a> {
    needs: Amounts,
    /// The first pod of this shape speaks for all.
    spec: &'a PodSpec,
    /// The nodes that will do, apart from the room on them; found out when first asked for.
    suitable: Option<Vec<bool>>,
    /// No node has room, and none will have before this decision ends.
    is_hopeless: bool,
}

/// A shape on one board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShapeId(usize);

/// Nodes, shapes, and the moves tried so far.
#[derive(Debug)]
pub(crate) struct Board<'a> {
    pub(crate) hosts: Hosts<'a>,
    /// Nodes by how much of them is free, emptiest first: load spreads, and most searches end at the first node.
    emptiest: BTreeSet<(Reverse<u32>, usize)>,
    shapes: Vec<Shape<'a>>,
    by_needs: BTreeMap<Amounts, Vec<ShapeId>>,
    /// The moves since `begin`, and the shapes that lost hope meanwhile.
    moves: Vec<(ShapeId, usize)>,
    lost_hope: Vec<ShapeId>,
}

impl<'a> Board<'a> {
    pub(crate) fn new(hosts: Hosts<'a>) -> Board<'a> {
        Board {
            emptiest: hosts.iter().map(|host| Reverse(host.emptiness())).zip(0..).collect(),
            hosts,
            shapes: Vec::new(),
            by_needs: BTreeMap::new(),
            moves: Vec::new(),
            lost_hope: Vec::new(),
        }
    }

    /// The shape of a pod.
    pub(crate) fn shape(&mut self, spec: &'a PodSpec, needs: Amounts) -> ShapeId {
        let alike = self.by_needs.entry(needs.clone()).or_default();
        let known = alike.iter().rev().take(ALIKE_COMPARED_MAX).copied();
        for id in known {
            if self.shapes.get(id.0).is_some_and(|shape| wants_same_nodes(shape.spec, spec)) {
                return id;
            }
        }
        let id = ShapeId(self.shapes.len());
        alike.push(id);
        self.shapes.push(Shape { needs, spec, suitable: None, is_hopeless: false });
        id
    }

    /// A pod is on a node already.
    pub(crate) fn occupy(&mut self, host: usize, needs: &Amounts) {
        self.change(host, |hosts| hosts.take(host, needs));
    }

    /// What a pod of this shape asks for.
    pub(crate) fn needs(&self, shape: ShapeId) -> Option<&Amounts> {
        self.shapes.get(shape.0).map(|shape| &shape.needs)
    }

    /// Starts a try.
    pub(crate) fn begin(&mut self) {
        self.moves.clear();
        self.lost_hope.clear();
    }

    /// Puts one pod on the emptiest node that will do. `None` if there is none.
    pub(crate) fn put(&mut self, id: ShapeId) -> Option<usize> {
        let Board { hosts, emptiest, shapes, .. } = self;
        let shape = shapes.get_mut(id.0).filter(|shape| !shape.is_hopeless)?;
        let suitable = shape.suitable.get_or_insert_with(|| {
            hosts.iter().map(|host| fit::objection(shape.spec, host).is_none()).collect()
        });
        let will_do = |index: &usize| {
            let has_room = hosts.get(*index).is_some_and(|host| shape.needs.fits_in(&host.free));
            has_room && suitable.get(*index) == Some(&true)
        };
        let Some(found) = emptiest.iter().map(|(_, index)| *index).find(will_do) else {
            shape.is_hopeless = true;
            self.lost_hope.push(id);
            return None;
        };
        let needs = shape.needs.clone();
        self.change(found, |hosts| hosts.take(found, &needs));
        self.moves.push((id, found));
        Some(found)
    }

    /// Takes back everything since `begin`. Room that comes back brings hope back.
    pub(crate) fn undo(&mut self) {
        let moves = std::mem::take(&mut self.moves);
        if !moves.is_empty() {
            for id in std::mem::take(&mut self.lost_hope) {
                if let Some(shape) = self.shapes.get_mut(id.0) {
                    shape.is_hopeless = false;
                }
            }
        }
        for (id, index) in moves {
            if let Some(needs) = self.needs(id).cloned() {
                self.change(index, |hosts| hosts.give_back(index, &needs));
            }
        }
    }

    fn change(&mut self, index: usize, change: impl FnOnce(&mut Hosts<'a>)) {
        let emptiness = |hosts: &Hosts<'a>| hosts.get(index).map_or(0, Host::emptiness);
        self.emptiest.remove(&(Reverse(emptiness(&self.hosts)), index));
        change(&mut self.hosts);
        self.emptiest.insert((Reverse(emptiness(&self.hosts)), index));
    }

    /// Why no node will do for a pod of this shape, as `kubectl describe` words it.
    pub(crate) fn why_not(&self, id: ShapeId, names: &Names) -> String {
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for host in self.hosts.iter() {
            for reason in self.objections(id, host, names) {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        let reasons: Vec<String> = reasons.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
        match reasons.as_slice() {
            [] => format!("0/{} nodes are available", self.hosts.len()),
            reasons => format!("0/{} nodes are available: {}", self.hosts.len(), reasons.join(", ")),
        }
    }

    fn objections(&self, id: ShapeId, host: &Host<'a>, names: &Names) -> Vec<String> {
        let Some(shape) = self.shapes.get(id.0) else { return Vec::new() };
        match fit::objection(shape.spec, host) {
            Some(reason) => vec![reason.to_owned()],
            None => shape.needs.shortages(&host.free).map(|place| names.shortage(place)).collect(),
        }
    }
}

fn wants_same_nodes(one: &PodSpec, other: &PodSpec) -> bool {
    one.node_selector == other.node_selector
        && one.tolerations == other.tolerations
        && one.affinity == other.affinity
}
