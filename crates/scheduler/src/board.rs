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
use krafla_plan::object::{HostPort, PodSpec};
use krafla_why::{Lack, Lacks, Reason};

use crate::demand::{DemandId, Demands};
use crate::fit;
use crate::lacks;
use crate::neighbours::{Neighbours, TermId, Ties};
use crate::node::{Host, Hosts};
use crate::ports::{self, Ports};
use crate::resources::{Amounts, Names};

/// Everything that matters about a pod when a node is sought for it.
#[derive(Debug)]
struct Shape<'a> {
    needs: Amounts,
    demand: DemandId,
    ties: Ties,
    /// The ports that it wants of its node.
    ports: Vec<&'a HostPort>,
    /// A claim that its pods name and that does not exist: until it does, no node will do.
    missing_claim: Option<&'a str>,
    /// The first pod of this shape speaks for all.
    spec: &'a PodSpec,
    /// The largest part of the cluster that it asks for, of any resource.
    size: u64,
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

/// What makes two pods alike.
type Key<'a> = (Amounts, DemandId, Ties, Vec<&'a HostPort>, Option<&'a str>);

/// How a node is sought.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Search<'a> {
    pub(crate) order: Order,
    /// Where those must go that demand what this term picks near them, if that is not left to the first of them.
    pub(crate) domain: Option<(TermId, &'a str)>,
}

/// Which of the nodes that will do is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// The one of which the largest part is free: load spreads.
    #[default]
    Emptiest,
    /// The one with least room: large pieces stay whole.
    Tightest,
}

/// Nodes, shapes, and the moves tried so far.
#[derive(Debug)]
pub(crate) struct Board<'a> {
    pub(crate) hosts: Hosts<'a>,
    neighbours: Neighbours<'a>,
    ports: Ports<'a>,
    /// Nodes by how much of them is free, emptiest first: load spreads, and most searches end at the first node. Made when
    /// first asked for: most decisions have no pod to place.
    emptiest: Option<BTreeSet<(Reverse<u32>, usize)>>,
    /// Nodes by how much room they have, least first. Made when first asked for: few gangs need it.
    tightest: Option<BTreeSet<(u32, usize)>>,
    /// What all open nodes have together, and what the largest node has of each resource.
    total: Amounts,
    largest: Amounts,
    demands: Demands<'a>,
    shapes: Vec<Shape<'a>>,
    known: BTreeMap<Key<'a>, ShapeId>,
    /// The moves since `begin`, and the shapes that lost hope meanwhile.
    moves: Vec<(ShapeId, usize)>,
    /// The last answer to why no node will do, which holds until something changes: a line of equal gangs in a full cluster
    /// asks the same again and again.
    told: Option<(ShapeId, NoNode)>,
    lost_hope: Vec<ShapeId>,
}

impl<'a> Board<'a> {
    pub(crate) fn new(hosts: Hosts<'a>, neighbours: Neighbours<'a>) -> Board<'a> {
        let mut largest = Amounts::default();
        hosts.iter().for_each(|host| largest.raise_to(&host.total));
        Board {
            emptiest: None,
            tightest: None,
            total: hosts.total(),
            largest,
            hosts,
            neighbours,
            ports: Ports::default(),
            demands: Demands::default(),
            shapes: Vec::new(),
            known: BTreeMap::new(),
            moves: Vec::new(),
            told: None,
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
        let (demand, ties, ports) =
            (self.demands.of(spec), self.neighbours.ties(object), ports::wanted(spec));
        let next = ShapeId(self.shapes.len());
        let key = (needs.clone(), demand, ties.clone(), ports.clone(), missing_claim);
        let id = *self.known.entry(key).or_insert(next);
        if id == next {
            let (is_possible, is_hopeless) = (missing_claim.map(|_| false), false);
            let size = needs.largest_part_of(&self.total);
            let shape =
                Shape { needs, demand, ties, ports, missing_claim, spec, size, is_possible, is_hopeless };
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
        if let Some(pod) = object.as_pod() {
            self.ports.take(index, &ports::wanted(&pod.spec));
        }
    }

    /// A pod that is on a node goes. When all are gone that go, there is hope again.
    pub(crate) fn vacate(&mut self, object: &'a Object, index: usize, needs: &Amounts) {
        self.change(index, |hosts| hosts.give_back(index, needs));
        if let Some(host) = self.hosts.get(index) {
            let ties = self.neighbours.ties(object);
            self.neighbours.leave(&ties, host);
        }
        if let Some(pod) = object.as_pod() {
            self.ports.give_back(index, &ports::wanted(&pod.spec));
        }
    }

    /// Whether a pod that has gone may come back beside those that were put on nodes since: there is room for it where one of
    /// them is, and none of them minds it as a neighbour, nor it them.
    pub(crate) fn may_return(
        &mut self,
        object: &'a Object,
        index: usize,
        needs: &Amounts,
        since: &[(ShapeId, usize)],
    ) -> bool {
        let Board { hosts, neighbours, ports, shapes, .. } = self;
        let Some(host) = hosts.get(index) else { return true };
        let wanted = object.as_pod().map(|pod| ports::wanted(&pod.spec)).unwrap_or_default();
        let has_room = || needs.fits_in(&host.free) && ports.are_free(index, &wanted);
        if since.iter().any(|(_, there)| *there == index) && !has_room() {
            return false;
        }
        let ties = neighbours.ties(object);
        if ties == Ties::default() {
            return true;
        }
        neighbours.arrive(&ties, host);
        let mut is_content = |id: &ShapeId, host: &usize| {
            let (Some(shape), Some(host)) = (shapes.get(id.0), hosts.get(*host)) else { return true };
            neighbours.leave(&shape.ties, host);
            let objection = neighbours.objection(&shape.ties, host);
            neighbours.arrive(&shape.ties, host);
            objection.is_none()
        };
        let are_content = since.iter().all(|(id, host)| is_content(id, host));
        neighbours.leave(&ties, host);
        are_content
    }

    /// Room has come back: what found none may find some.
    pub(crate) fn renew_hope(&mut self) {
        self.shapes.iter_mut().for_each(|shape| shape.is_hopeless = false);
    }

    /// Many pods come or go at once: nodes are put in order again when that is over.
    pub(crate) fn lose_order(&mut self) {
        self.emptiest = None;
        self.tightest = None;
    }

    /// A pod that was put on a node is no neighbour to others there. Its room stays taken.
    pub(crate) fn fade(&mut self, id: ShapeId, index: usize) {
        self.told = None;
        if let (Some(shape), Some(host)) = (self.shapes.get(id.0), self.hosts.get(index)) {
            self.neighbours.leave(&shape.ties, host);
        }
    }

    /// The room of a pod that has faded is free again.
    pub(crate) fn give_room_back(&mut self, id: ShapeId, index: usize) {
        let Some(Shape { needs, ports, .. }) = self.shapes.get(id.0) else { return };
        self.ports.give_back(index, ports);
        let needs = needs.clone();
        self.change(index, |hosts| hosts.give_back(index, &needs));
    }

    /// What all open nodes have together.
    pub(crate) fn total(&self) -> &Amounts {
        &self.total
    }

    /// What a pod of this shape asks for.
    pub(crate) fn needs(&self, shape: ShapeId) -> Option<&Amounts> {
        self.shapes.get(shape.0).map(|shape| &shape.needs)
    }

    /// How large a pod of this shape is.
    pub(crate) fn size(&self, shape: ShapeId) -> u64 {
        self.shapes.get(shape.0).map_or(0, |shape| shape.size)
    }

    /// Whether a pod of this shape could ever run here, were it alone.
    pub(crate) fn is_possible(&mut self, id: ShapeId) -> bool {
        let Board { hosts, demands, shapes, .. } = self;
        let Some(Shape { needs, demand, is_possible, .. }) = shapes.get_mut(id.0) else { return false };
        *is_possible.get_or_insert_with(|| {
            let suitable = demands.nodes(*demand, hosts).into_iter().flat_map(|nodes| &nodes.suitable);
            hosts.iter().zip(suitable).any(|(host, is_suitable)| *is_suitable && needs.fits_in(&host.total))
        })
    }

    /// Whether neighbours matter to a pod of this shape, or it to them.
    pub(crate) fn is_tied(&self, id: ShapeId) -> bool {
        self.shapes.get(id.0).is_some_and(|shape| shape.ties != Ties::default())
    }

    /// Whether a pod matters to any as a neighbour.
    pub(crate) fn has_ties(&self, object: &'a Object) -> bool {
        self.neighbours.ties(object) != Ties::default()
    }

    /// The nodes that would do for a pod of one of these shapes, whatever the room there.
    pub(crate) fn suitable(&mut self, ids: &BTreeSet<ShapeId>) -> Vec<bool> {
        let Board { hosts, demands, shapes, .. } = self;
        let mut suitable = vec![false; hosts.len()];
        let distinct: BTreeSet<DemandId> =
            ids.iter().filter_map(|id| shapes.get(id.0)).map(|shape| shape.demand).collect();
        for nodes in distinct {
            let nodes = demands.nodes(nodes, hosts).into_iter().flat_map(|nodes| &nodes.suitable);
            suitable.iter_mut().zip(nodes).for_each(|(mine, theirs)| *mine |= *theirs);
        }
        suitable
    }

    /// Whether a node has room for a pod of this shape.
    pub(crate) fn has_room_on(&self, id: ShapeId, host: usize) -> bool {
        let shape = self.shapes.get(id.0);
        let needs_and_host = shape.and_then(|shape| Some((&shape.needs, self.hosts.get(host)?)));
        needs_and_host.is_some_and(|(needs, host)| needs.fits_in(&host.free))
    }

    /// What can be given to pods on these nodes.
    pub(crate) fn room_where(&self, is_it: impl Fn(usize) -> bool) -> Amounts {
        let mut room = Amounts::default();
        for host in self.hosts.open().filter(|host| is_it(host.index)) {
            room.add_what_is_there(&host.free);
        }
        room
    }

    /// Starts a try.
    pub(crate) fn begin(&mut self) {
        self.moves.clear();
        self.lost_hope.clear();
    }

    /// The first node that will do for a pod, if there is one.
    pub(crate) fn find(&mut self, id: ShapeId, search: Search<'_>) -> Option<usize> {
        let Board { hosts, neighbours, ports, emptiest, tightest, largest, demands, shapes, .. } = self;
        let may_find = |shape: &&mut Shape<'_>| !shape.is_hopeless && shape.missing_claim.is_none();
        let shape = shapes.get_mut(id.0).filter(may_find)?;
        let nodes = demands.nodes(shape.demand, hosts)?;
        let domain = search.domain.filter(|(term, _)| shape.ties.joins(*term));
        let is_there = |host: &Host<'a>| domain.is_none_or(|(term, it)| neighbours.is_in(term, it, host));
        let will_do = |index: &usize| {
            nodes.suitable.get(*index) == Some(&true)
                && ports.are_free(*index, &shape.ports)
                && hosts.get(*index).is_some_and(|host| is_there(host) && shape.has_room(host, neighbours))
        };
        let found = match search.order {
            Order::Emptiest => {
                let all = hosts.iter().map(|host| Reverse(host.emptiness())).zip(0..);
                let emptiest = emptiest.get_or_insert_with(|| all.collect());
                nodes.best(emptiest.iter().map(|(_, index)| *index).filter(will_do))
            }
            Order::Tightest => {
                let all = hosts.iter().map(|host| host.free.share_of(largest)).zip(0..);
                let tightest = tightest.get_or_insert_with(|| all.collect());
                // Who has to be packed can not choose. Nodes with less room than the pod asks for need not be looked at.
                let least = (shape.needs.share_of(largest), 0);
                tightest.range(least..).map(|(_, index)| *index).find(will_do)
            }
        };
        if found.is_none() && !shape.ties.wants_company() {
            shape.is_hopeless = true;
            self.lost_hope.push(id);
        }
        found
    }

    /// A term by which a pod demands its own kind near it while there is none anywhere: the first decides for all.
    pub(crate) fn founds(&self, id: ShapeId) -> Option<TermId> {
        self.shapes.get(id.0).and_then(|shape| self.neighbours.founds(&shape.ties))
    }

    /// Whether a pod demands what the term picks near it.
    pub(crate) fn joins(&self, id: ShapeId, term: TermId) -> bool {
        self.shapes.get(id.0).is_some_and(|shape| shape.ties.joins(term))
    }

    /// The domains of a term with so much room in all, the one with most room first.
    pub(crate) fn roomiest_domains(&self, term: TermId, needs: &Amounts) -> Vec<&'a str> {
        let mut rooms: BTreeMap<&'a str, Amounts> = BTreeMap::new();
        for host in self.hosts.open() {
            if let Some(domain) = self.neighbours.domain(term, host) {
                rooms.entry(domain).or_default().add_what_is_there(&host.free);
            }
        }
        rooms.retain(|_, room| needs.fits_in(room));
        let mut domains: Vec<(&'a str, Amounts)> = rooms.into_iter().collect();
        domains.sort_by_key(|(_, room)| Reverse(room.share_of(&self.total)));
        domains.into_iter().map(|(domain, _)| domain).collect()
    }

    /// Puts a pod on a node.
    pub(crate) fn put(&mut self, id: ShapeId, host: usize) {
        self.carry_out(id, host, Hosts::take, Neighbours::arrive, Ports::take);
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
            self.carry_out(id, host, Hosts::give_back, Neighbours::leave, Ports::give_back);
        }
    }

    fn carry_out(
        &mut self,
        id: ShapeId,
        index: usize,
        room: fn(&mut Hosts<'a>, usize, &Amounts),
        company: fn(&mut Neighbours<'a>, &Ties, &Host<'a>),
        occupation: fn(&mut Ports<'a>, usize, &[&'a HostPort]),
    ) {
        let Some(Shape { needs, ties, ports, .. }) = self.shapes.get(id.0) else { return };
        occupation(&mut self.ports, index, ports);
        if let Some(host) = self.hosts.get(index) {
            company(&mut self.neighbours, ties, host);
        }
        let needs = needs.clone();
        self.change(index, |hosts| room(hosts, index, &needs));
    }

    fn change(&mut self, index: usize, change: impl FnOnce(&mut Hosts<'a>)) {
        self.told = None;
        let Board { hosts, emptiest, tightest, largest, .. } = self;
        let emptiness = |hosts: &Hosts<'a>| (Reverse(hosts.get(index).map_or(0, Host::emptiness)), index);
        let room =
            |hosts: &Hosts<'a>| (hosts.get(index).map_or(0, |host| host.free.share_of(largest)), index);
        if let Some(emptiest) = emptiest {
            emptiest.remove(&emptiness(hosts));
        }
        if let Some(tightest) = tightest {
            tightest.remove(&room(hosts));
        }
        change(hosts);
        if let Some(emptiest) = emptiest {
            emptiest.insert(emptiness(hosts));
        }
        if let Some(tightest) = tightest {
            tightest.insert(room(hosts));
        }
    }

    /// Why no node will do for a pod of this shape.
    pub(crate) fn why_not(&mut self, id: ShapeId, names: &Names) -> NoNode {
        if let Some((_, told)) = self.told.as_ref().filter(|(of, _)| *of == id) {
            return told.clone();
        }
        let answer = self.look_why_not(id, names);
        self.told = Some((id, answer.clone()));
        answer
    }

    fn look_why_not(&self, id: ShapeId, names: &Names) -> NoNode {
        if let Some(claim) = self.shapes.get(id.0).and_then(|shape| shape.missing_claim) {
            let lack = Lack::NotFound { kind: "persistentvolumeclaim".into(), name: claim.into() };
            return NoNode { lacks: lack.to_string(), reason: self.no_node_because(vec![(None, lack)]) };
        }
        let mut found: BTreeMap<Shortcoming, u32> = BTreeMap::new();
        for (index, host) in self.hosts.iter().enumerate() {
            self.shortcomings(id, index, host, |it| *found.entry(it).or_default() += 1);
        }
        // Among equals the first: what is short comes before all else.
        let most = found.iter().max_by_key(|(it, n)| (**n, Reverse(**it)));
        let lacks = most.map_or_else(|| "Unschedulable".to_owned(), |(it, _)| it.lack(names).to_string());
        let all = found.iter().map(|(it, n)| (Some(*n), it.lack(names))).collect();
        NoNode { lacks, reason: self.no_node_because(all) }
    }

    fn no_node_because(&self, lacks: Vec<(Option<u32>, Lack)>) -> Reason {
        let nodes = u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
        Reason::NoNode { nodes, lacks: Lacks(lacks) }
    }

    fn shortcomings(&self, id: ShapeId, index: usize, host: &Host<'a>, mut found: impl FnMut(Shortcoming)) {
        let Some(shape) = self.shapes.get(id.0) else { return };
        let ports = || {
            let are_taken = !self.ports.are_free(index, &shape.ports);
            are_taken.then_some(&lacks::PORTS)
        };
        let company = || self.neighbours.objection(&shape.ties, host);
        match fit::objection(shape.spec, host).or_else(ports).or_else(company) {
            Some(objection) => found(Shortcoming::Objection(objection)),
            None => shape.needs.shortages(&host.free).for_each(|place| found(Shortcoming::Short(place))),
        }
    }
}

/// Why no node will do for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoNode {
    /// What most nodes lack, in a few words.
    pub(crate) lacks: String,
    /// All of it.
    pub(crate) reason: Reason,
}

/// Why one node will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shortcoming {
    /// It has too little of a resource.
    Short(usize),
    Objection(&'static Lack),
}

impl Shortcoming {
    fn lack(self, names: &Names) -> Lack {
        match self {
            Shortcoming::Short(place) => names.shortage(place),
            Shortcoming::Objection(objection) => objection.clone(),
        }
    }
}
