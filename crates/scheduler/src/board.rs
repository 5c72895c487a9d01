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

use krafla_plan::Object;
use krafla_plan::object::PodSpec;

use crate::demand::{DemandId, Demands};
use crate::fit;
use crate::neighbours::{Neighbours, Ties};
use crate::node::{Host, Hosts};
use crate::resources::{Amounts, Names};

/// Everything that matters about a pod when a node is sought for it.
#[derive(Debug)]
struct Shape<'a> {
    needs: Amounts,
    demand: DemandId,
    ties: Ties,
    /// A claim that its pods name and that does not exist: until it does, no node will do.
    missing_claim: Option<&'a str>,
    /// The first pod of this shape speaks for all.
    spec: &'a PodSpec,
    /// Whether there is a node that would do if it were empty. Found out when first asked for.
    is_possible: Option<bool>,
    /// No node has room, and none will have before this decision ends.
    is_hopeless: bool,
}

impl<'a> Shape<'a> {
    /// Whether a node has room, and the right pods around it.
    fn has_room(&self, host: &Host<'a>, neighbours: &Neighbours<'a>) -> bool {
        self.needs.fits_in(&host.free) && neighbours.objection(&self.ties, host).is_none()
    }
}

/// A shape on one board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShapeId(usize);

/// Nodes, shapes, and the moves tried so far.
#[derive(Debug)]
pub(crate) struct Board<'a> {
    pub(crate) hosts: Hosts<'a>,
    neighbours: Neighbours<'a>,
    /// Nodes by how much of them is free, emptiest first: load spreads, and most searches end at the first node. Made when
    /// first asked for: most decisions have no pod to place.
    emptiest: Option<BTreeSet<(Reverse<u32>, usize)>>,
    demands: Demands<'a>,
    shapes: Vec<Shape<'a>>,
    known: BTreeMap<(Amounts, DemandId, Ties, Option<&'a str>), ShapeId>,
    /// The moves since `begin`, and the shapes that lost hope meanwhile.
    moves: Vec<(ShapeId, usize)>,
    lost_hope: Vec<ShapeId>,
}

impl<'a> Board<'a> {
    pub(crate) fn new(hosts: Hosts<'a>, neighbours: Neighbours<'a>) -> Board<'a> {
        Board {
            emptiest: None,
            hosts,
            neighbours,
            demands: Demands::default(),
            shapes: Vec::new(),
            known: BTreeMap::new(),
            moves: Vec::new(),
            lost_hope: Vec::new(),
        }
    }

    /// The shape of a pod.
    pub(crate) fn shape(
        &mut self,
        object: &'a Object,
        spec: &'a PodSpec,
        needs: Amounts,
        missing_claim: Option<&'a str>,
    ) -> ShapeId {
        let (demand, ties) = (self.demands.of(spec), self.neighbours.ties(object));
        let next = ShapeId(self.shapes.len());
        let key = (needs.clone(), demand, ties.clone(), missing_claim);
        let id = *self.known.entry(key).or_insert(next);
        if id == next {
            let (is_possible, is_hopeless) = (missing_claim.map(|_| false), false);
            let shape = Shape { needs, demand, ties, missing_claim, spec, is_possible, is_hopeless };
            self.shapes.push(shape);
        }
        id
    }

    /// A pod is on a node already.
    pub(crate) fn occupy(&mut self, object: &'a Object, index: usize, needs: &Amounts) {
        self.change(index, |hosts| hosts.take(index, needs));
        if let Some(host) = self.hosts.get(index) {
            let ties = self.neighbours.ties(object);
            self.neighbours.arrive(&ties, host);
        }
    }

    /// A pod that is on a node goes. Room that comes back brings hope back.
    pub(crate) fn vacate(&mut self, object: &'a Object, index: usize, needs: &Amounts) {
        self.change(index, |hosts| hosts.give_back(index, needs));
        if let Some(host) = self.hosts.get(index) {
            let ties = self.neighbours.ties(object);
            self.neighbours.leave(&ties, host);
        }
        self.shapes.iter_mut().for_each(|shape| shape.is_hopeless = false);
    }

    /// What a pod of this shape asks for.
    pub(crate) fn needs(&self, shape: ShapeId) -> Option<&Amounts> {
        self.shapes.get(shape.0).map(|shape| &shape.needs)
    }

    /// Whether a pod of this shape could ever run here, were it alone.
    pub(crate) fn is_possible(&mut self, id: ShapeId) -> bool {
        let Board { hosts, demands, shapes, .. } = self;
        let Some(Shape { needs, demand, is_possible, .. }) = shapes.get_mut(id.0) else { return false };
        *is_possible.get_or_insert_with(|| {
            let suitable = demands.suitable(*demand, hosts);
            hosts.iter().zip(suitable).any(|(host, is_suitable)| *is_suitable && needs.fits_in(&host.total))
        })
    }

    /// Starts a try.
    pub(crate) fn begin(&mut self) {
        self.moves.clear();
        self.lost_hope.clear();
    }

    /// The emptiest node that will do for a pod, if there is one.
    pub(crate) fn find(&mut self, id: ShapeId) -> Option<usize> {
        let Board { hosts, neighbours, emptiest, demands, shapes, .. } = self;
        let may_find = |shape: &&mut Shape<'_>| !shape.is_hopeless && shape.missing_claim.is_none();
        let shape = shapes.get_mut(id.0).filter(may_find)?;
        let suitable = demands.suitable(shape.demand, hosts);
        let will_do = |index: &usize| {
            suitable.get(*index) == Some(&true)
                && hosts.get(*index).is_some_and(|host| shape.has_room(host, neighbours))
        };
        let emptiest = emptiest
            .get_or_insert_with(|| hosts.iter().map(|host| Reverse(host.emptiness())).zip(0..).collect());
        let found = emptiest.iter().map(|(_, index)| *index).find(will_do);
        if found.is_none() && !shape.ties.wants_company() {
            shape.is_hopeless = true;
            self.lost_hope.push(id);
        }
        found
    }

    /// Puts a pod on a node.
    pub(crate) fn put(&mut self, id: ShapeId, host: usize) {
        self.carry_out(id, host, Hosts::take, Neighbours::arrive);
        self.moves.push((id, host));
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
        for (id, host) in moves {
            self.carry_out(id, host, Hosts::give_back, Neighbours::leave);
        }
    }

    fn carry_out(
        &mut self,
        id: ShapeId,
        index: usize,
        room: fn(&mut Hosts<'a>, usize, &Amounts),
        company: fn(&mut Neighbours<'a>, &Ties, &Host<'a>),
    ) {
        let Some(Shape { needs, ties, .. }) = self.shapes.get(id.0) else { return };
        if let Some(host) = self.hosts.get(index) {
            company(&mut self.neighbours, ties, host);
        }
        let needs = needs.clone();
        self.change(index, |hosts| room(hosts, index, &needs));
    }

    fn change(&mut self, index: usize, change: impl FnOnce(&mut Hosts<'a>)) {
        let Board { hosts, emptiest, .. } = self;
        let Some(emptiest) = emptiest else { return change(hosts) };
        let place = |hosts: &Hosts<'a>| (Reverse(hosts.get(index).map_or(0, Host::emptiness)), index);
        emptiest.remove(&place(hosts));
        change(hosts);
        emptiest.insert(place(hosts));
    }

    /// Why no node will do for a pod of this shape.
    pub(crate) fn why_not(&self, id: ShapeId, names: &Names) -> NoNode {
        if let Some(claim) = self.shapes.get(id.0).and_then(|shape| shape.missing_claim) {
            let lacks = format!("persistentvolumeclaim {claim:?} not found");
            return NoNode { sentence: self.no_node_because(&lacks), lacks };
        }
        let mut reasons: BTreeMap<Reason, usize> = BTreeMap::new();
        for host in self.hosts.iter() {
            self.reasons(id, host, |reason| *reasons.entry(reason).or_default() += 1);
        }
        // Among equals the first: what is short comes before all else.
        let most = reasons.iter().max_by_key(|(reason, n)| (**n, Reverse(**reason)));
        let lacks = most.map_or_else(|| "Unschedulable".to_owned(), |(reason, _)| reason.text(names));
        let reasons: Vec<String> =
            reasons.iter().map(|(reason, n)| format!("{n} {}", reason.text(names))).collect();
        NoNode { lacks, sentence: self.no_node_because(&reasons.join(", ")) }
    }

    fn no_node_because(&self, reasons: &str) -> String {
        let separator = if reasons.is_empty() { "" } else { ": " };
        format!("0/{} nodes are available{separator}{reasons}", self.hosts.len())
    }

    fn reasons(&self, id: ShapeId, host: &Host<'a>, mut found: impl FnMut(Reason)) {
        let Some(shape) = self.shapes.get(id.0) else { return };
        let company = || self.neighbours.objection(&shape.ties, host);
        match fit::objection(shape.spec, host).or_else(company) {
            Some(objection) => found(Reason::Objection(objection)),
            None => shape.needs.shortages(&host.free).for_each(|place| found(Reason::Short(place))),
        }
    }
}

/// Why no node will do for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoNode {
    /// What most nodes lack, in a few words.
    pub(crate) lacks: String,
    /// All of it, as `kubectl describe` words it.
    pub(crate) sentence: String,
}

/// Why one node will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// It has too little of a resource.
    Short(usize),
    Objection(&'static str),
}

impl Reason {
    fn text(self, names: &Names) -> String {
        match self {
            Reason::Short(place) => names.shortage(place),
            Reason::Objection(objection) => objection.to_owned(),
        }
    }
}
