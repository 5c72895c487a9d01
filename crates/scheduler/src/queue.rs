//! Queues: who may use how much, and whose turn it is.
//!
//! ```text
//!   root                     may use     the cluster: all open nodes
//!   ├── default              allocated   what pods of the queue, and of those below it, have of the cluster
//!   └── research             outside     what they have on nodes that are closed or gone
//!       ├── vision           promised    what gangs that were let in may still take
//!       └── speech           capability  what it may have at most, wherever that is
//!                            left        what others' guarantees leave to it of the cluster, at least its own guarantee
//!                            deserved    its fair share of what its parent deserves, by weight
//! ```
//!
//! Limits are hard. Shares are soft: a queue that has its share waits while others below theirs want the same resource,
//! and whatever nobody below its share can use is free for all. Volcano: the proportion and capacity plugins.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use krafla_api::volcano::{DequeueStrategy, QueueSpec, QueueState};
use krafla_api::{Kind, Time};
use krafla_plan::{Object, Objects};

use crate::node::Ground;
use crate::resources::{Amounts, Limits, Names};
use crate::share::{self, Claim};

/// The queue of which all others are children.
pub(crate) const ROOT: &str = "root";
/// The queue of gangs that name none, and of lone pods.
pub(crate) const DEFAULT: &str = "default";

/// One queue.
#[derive(Debug)]
pub(crate) struct Queue<'a> {
    pub(crate) name: &'a str,
    /// None for `root` and `default` before they have been made.
    pub(crate) object: Option<&'a Object>,
    parent: Option<QueueId>,
    weight: u32,
    pub(crate) priority: i32,
    pub(crate) is_fifo: bool,
    /// Whether it takes new gangs.
    pub(crate) is_open: bool,
    /// Whether others may take back what it has beyond its share.
    is_reclaimable: bool,
    guarantee: Amounts,
    /// The share that its spec asks for, where it says so.
    wished: Amounts,
    capability: Limits,
    left: Limits,
    allocated: Amounts,
    outside: Amounts,
    promised: Amounts,
    demand: Amounts,
    deserved: Amounts,
    /// What it would deserve if all open queues wanted as much as they may have.
    nominal: Amounts,
    /// Since when the first of its gangs, or of those below it, waits for room.
    waits_since: Option<Time>,
}

/// A queue among [`Queues`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueId(usize);

/// Why a queue does not let something in: the queue, itself or one above, and the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Full {
    pub(crate) queue: QueueId,
    pub(crate) place: usize,
}

/// All queues; `root` is the first.
#[derive(Debug)]
pub(crate) struct Queues<'a> {
    all: Vec<Queue<'a>>,
    by_name: BTreeMap<&'a str, QueueId>,
}

const ROOT_ID: QueueId = QueueId(0);

impl<'a> Queues<'a> {
    pub(crate) fn observe(objects: &'a Objects, names: &mut Names) -> Queues<'a> {
        let mut specs: BTreeMap<&'a str, Option<(&'a Object, &'a krafla_plan::object::Queue)>> =
            BTreeMap::new();
        specs.extend([(ROOT, None), (DEFAULT, None)]);
        for object in objects.all(Kind::Queue) {
            if let Some(queue) = object.as_queue() {
                specs.insert(&object.meta.key.name, Some((object, queue)));
            }
        }
        let root = specs.remove(ROOT).flatten();
        let in_order: Vec<_> = std::iter::once((ROOT, root)).chain(specs).collect();
        let by_name: BTreeMap<&str, QueueId> =
            in_order.iter().enumerate().map(|(index, (name, _))| (*name, QueueId(index))).collect();
        let mut queues = Queues { all: Vec::new(), by_name };
        for (name, observed) in in_order {
            let queue = Queue::of(name, observed, names);
            queues.all.push(queue);
        }
        queues.link();
        queues
    }

    /// Finds every queue's parent. One whose parents lead nowhere, or round in a circle, hangs below `root`.
    fn link(&mut self) {
        for index in 1..self.all.len() {
            let parent = self.all.get(index).map(|queue| queue.wanted_parent()).unwrap_or_default();
            let parent = self.by_name.get(parent).copied().unwrap_or(ROOT_ID);
            if let Some(queue) = self.all.get_mut(index) {
                queue.parent = Some(parent);
            }
        }
        for index in 1..self.all.len() {
            let reaches_root = self.lineage(QueueId(index)).take(self.all.len()).any(|id| id == ROOT_ID);
            if let Some(queue) = self.all.get_mut(index).filter(|_| !reaches_root) {
                queue.parent = Some(ROOT_ID);
            }
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<QueueId> {
        self.by_name.get(if name.is_empty() { DEFAULT } else { name }).copied()
    }

    pub(crate) fn get(&self, id: QueueId) -> Option<&Queue<'a>> {
        self.all.get(id.0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queue<'a>> {
        self.all.iter()
    }

    /// What the queue may use of a resource at most.
    pub(crate) fn limit(&self, Full { queue, place }: Full) -> i64 {
        self.get(queue).map_or(i64::MAX, |queue| queue.limit(place))
    }

    pub(crate) fn name(&self, id: QueueId) -> &'a str {
        self.get(id).map_or("?", |queue| queue.name)
    }

    /// A queue and those above it, up to `root`.
    fn lineage(&self, id: QueueId) -> impl Iterator<Item = QueueId> {
        std::iter::successors(Some(id), |id| self.get(*id)?.parent)
    }

    fn for_lineage(&mut self, id: QueueId, mut change: impl FnMut(&mut Queue<'a>)) {
        let mut next = Some(id);
        while let Some(queue) = next.and_then(|id| self.all.get_mut(id.0)) {
            change(queue);
            next = queue.parent;
        }
    }

    /// Pods of the queue have, or get, nodes.
    pub(crate) fn allocate(&mut self, id: QueueId, needs: &Amounts, ground: Ground) {
        self.for_lineage(id, |queue| queue.account(ground).add(needs));
    }

    /// Pods that were to get nodes do not.
    pub(crate) fn give_back(&mut self, id: QueueId, needs: &Amounts, ground: Ground) {
        self.for_lineage(id, |queue| queue.account(ground).sub(needs));
    }

    /// A gang of the queue was let in and may take so much more.
    pub(crate) fn promise(&mut self, id: QueueId, needs: &Amounts) {
        self.for_lineage(id, |queue| queue.promised.add(needs));
    }

    /// Gangs of the queue want so much beside what they have.
    pub(crate) fn demand(&mut self, id: QueueId, wants: &Amounts) {
        if let Some(queue) = self.all.get_mut(id.0) {
            queue.demand.add(wants);
        }
    }

    /// A gang of the queue has waited for room since then.
    pub(crate) fn wait_since(&mut self, id: QueueId, since: Option<Time>) {
        self.for_lineage(id, |queue| {
            queue.waits_since = [queue.waits_since, since].into_iter().flatten().min()
        });
    }

    /// Sets what the guarantees of each queue leave to its siblings. `total` is what the cluster has.
    pub(crate) fn settle_limits(&mut self, total: &Amounts) {
        for parent in self.top_down() {
            let Some(Queue { capability, left, .. }) = self.get(parent) else { continue };
            let mut available = total.clone();
            capability.cut(&mut available);
            left.cut(&mut available);
            let children = self.children(parent);
            let mut guaranteed = Amounts::default();
            for child in children.iter().filter_map(|id| self.get(*id)) {
                guaranteed.add(&child.guarantee);
            }
            for id in children {
                if let Some(child) = self.all.get_mut(id.0) {
                    let mut of_others = guaranteed.clone();
                    of_others.sub(&child.guarantee);
                    child.left.leave(&available, &of_others, &child.guarantee);
                }
            }
        }
    }

    /// Sets fair shares, when all that is allocated and wanted is known.
    pub(crate) fn settle_shares(&mut self, total: &Amounts) {
        let top_down = self.top_down();
        for id in top_down.iter().rev() {
            self.pass_demand_on(*id);
        }
        if let Some(root) = self.all.first_mut() {
            root.deserved = total.clone();
            root.nominal = total.clone();
        }
        for id in top_down {
            self.divide_among_children(id);
            self.divide_nominally(id);
        }
    }

    /// All queues, parents before children.
    fn top_down(&self) -> Vec<QueueId> {
        let mut all = vec![ROOT_ID];
        let mut n_seen = 0;
        while let Some(parent) = all.get(n_seen).copied() {
            all.extend(self.children(parent));
            n_seen += 1;
        }
        all
    }

    fn children(&self, parent: QueueId) -> Vec<QueueId> {
        let all = self.all.iter().enumerate();
        all.filter(|(_, queue)| queue.parent == Some(parent)).map(|(index, _)| QueueId(index)).collect()
    }

    /// What a queue wants is wanted of its parent too, but no more than it may use: the rest would lie idle there.
    fn pass_demand_on(&mut self, id: QueueId) {
        let Some(queue) = self.all.get_mut(id.0) else { return };
        for place in 0..queue.demand.len() {
            let room = queue.room(place).saturating_sub(queue.allocated.get(place)).max(0);
            queue.demand.set(place, queue.demand.get(place).min(room));
        }
        let (parent, demand) = (queue.parent, queue.demand.clone());
        if let Some(parent) = parent {
            self.demand(parent, &demand);
        }
    }

    fn divide_among_children(&mut self, parent: QueueId) {
        let Some(deserved) = self.get(parent).map(|parent| parent.deserved.clone()) else { return };
        let mut line = self.children(parent);
        for place in 0..deserved.len() {
            line.sort_by_cached_key(|id| self.get(*id).map(|child| (child.place_in_line(place), *id)));
            let claims: Vec<Claim> =
                line.iter().filter_map(|id| self.get(*id)).map(|child| child.claim(place)).collect();
            for (id, share) in line.iter().zip(share::divide(deserved.get(place), &claims)) {
                if let Some(child) = self.all.get_mut(id.0) {
                    child.deserved.set(place, share);
                }
            }
        }
    }

    /// Divides among a queue's children what they would deserve if all wanted as much as they may have.
    fn divide_nominally(&mut self, parent: QueueId) {
        let Some(nominal) = self.get(parent).map(|parent| parent.nominal.clone()) else { return };
        let children = self.children(parent);
        for place in 0..nominal.len() {
            let claims = children.iter().filter_map(|id| self.get(*id));
            let claims: Vec<Claim> = claims.map(|child| child.nominal_claim(place)).collect();
            for (id, share) in children.iter().zip(share::divide(nominal.get(place), &claims)) {
                if let Some(child) = self.all.get_mut(id.0) {
                    child.nominal.set(place, share);
                }
            }
        }
    }

    /// Whether the queue, and those above it, might ever have so much, were nothing else in them.
    pub(crate) fn may_ever_have(&self, id: QueueId, amounts: &Amounts) -> bool {
        let is_within =
            |queue: &Queue<'a>| amounts.places().all(|place| amounts.get(place) <= queue.limit(place));
        self.lineage(id).filter_map(|id| self.get(id)).all(is_within)
    }

    /// Why a pod may not use what the queue has, if it may not.
    pub(crate) fn full(&self, id: QueueId, needs: &Amounts) -> Option<Full> {
        self.lineage(id).find_map(|id| {
            let place = self.get(id)?.exceeded(needs)?;
            Some(Full { queue: id, place })
        })
    }

    /// Why a gang may not be let in, if it may not: what was promised counts too.
    pub(crate) fn full_for_gang(&self, id: QueueId, needs: &Amounts) -> Option<Full> {
        self.lineage(id).find_map(|id| {
            let queue = self.get(id)?;
            let mut more = queue.promised.clone();
            more.add(needs);
            // What is promised already may be too much; a gang that asks for nothing of that is not to blame.
            let place = needs.places().find(|place| queue.is_exceeded(*place, more.get(*place)))?;
            Some(Full { queue: id, place })
        })
    }

    /// Whether letting a gang in keeps the queue, and those above it, within their fair shares.
    pub(crate) fn is_entitled(&self, id: QueueId, needs: &Amounts) -> bool {
        self.branch(id).all(|queue| {
            let mut left = queue.share_left();
            left.sub(&queue.promised);
            needs.fits_in(&left)
        })
    }

    /// Whether so much more would leave the queue itself within its fair share.
    pub(crate) fn is_below_share(&self, id: QueueId, needs: &Amounts) -> bool {
        id == ROOT_ID || self.get(id).is_none_or(|queue| needs.fits_in(&queue.share_left()))
    }

    /// Whether so much more would leave the queue, and those above it, within their fair shares.
    pub(crate) fn is_within_shares(&self, id: QueueId, needs: &Amounts) -> bool {
        self.branch(id).all(|queue| needs.fits_in(&queue.share_left()))
    }

    /// A queue and those above it, without `root`, whose share is everything.
    fn branch(&self, id: QueueId) -> impl Iterator<Item = &Queue<'a>> {
        self.below_root(id).filter_map(|id| self.get(id))
    }

    fn below_root(&self, id: QueueId) -> impl Iterator<Item = QueueId> {
        self.lineage(id).filter(|id| *id != ROOT_ID)
    }

    /// Whether a queue has more than its share of something that matters and must give it back to another. What both have
    /// above them in common is not between them; of all queues that are, each must have more than its share of it: who is
    /// within its own does not pay for a sibling.
    pub(crate) fn must_give_back(&self, from: QueueId, to: QueueId, matters: impl Fn(usize) -> bool) -> bool {
        let is_between = |id: &QueueId| !self.lineage(to).any(|other| other == *id);
        let between = || self.lineage(from).take_while(is_between).filter_map(|id| self.get(id));
        let Some(giver) = between().next().filter(|giver| giver.is_reclaimable) else { return false };
        let has_too_much =
            |place: usize| between().all(|it| it.allocated.get(place) > it.deserved.get(place));
        giver.allocated.places().any(|place| matters(place) && has_too_much(place))
    }

    /// Whether a queue may have so much more, of what matters, beside another: what both have above them in common stays within
    /// its limits and its fair share.
    pub(crate) fn may_have_beside(
        &self,
        id: QueueId,
        more: &Amounts,
        beside: QueueId,
        matters: impl Fn(usize) -> bool,
    ) -> bool {
        let mut common = self.lineage(beside).filter(|above| self.lineage(id).any(|it| it == *above));
        common.all(|id| {
            let Some(queue) = self.get(id) else { return true };
            let share_left = queue.share_left();
            let keeps_share = |place| id == ROOT_ID || more.get(place) <= share_left.get(place);
            let mut places = more.places().filter(|place| matters(*place));
            places.all(|place| keeps_share(place) && !queue.is_exceeded(place, more.get(place)))
        })
    }

    /// Whether something that a queue has above it in common with another keeps it from having so much more: limits, or a fair
    /// share.
    pub(crate) fn is_bound_beside(&self, id: QueueId, needs: &Amounts, other: QueueId) -> bool {
        let mut common = self.lineage(id).filter(|above| self.lineage(other).any(|it| it == *above));
        common.any(|id| {
            self.get(id).is_some_and(|queue| {
                let has_its_share = || id != ROOT_ID && !needs.fits_in(&queue.share_left());
                queue.exceeded(needs).is_some() || has_its_share()
            })
        })
    }

    /// Why the queue must wait for others, if it must: it has its share of something that the pod needs.
    pub(crate) fn over_share(&self, id: QueueId, needs: &Amounts) -> Option<Full> {
        self.below_root(id).find_map(|id| {
            let left = self.get(id)?.share_left();
            needs.exhausted(&left).map(|place| Full { queue: id, place })
        })
    }

    /// Whether nothing is left to the queue, of something that the pod needs, of what it would deserve if all queues wanted
    /// something.
    pub(crate) fn is_over_nominal_share(&self, id: QueueId, needs: &Amounts) -> bool {
        self.branch(id).any(|queue| {
            let mut left = queue.nominal.clone();
            left.sub(&queue.allocated);
            needs.exhausted(&left).is_some()
        })
    }

    /// Whose turn it is: the least first. From the top of the hierarchy down, the queue with the higher priority and then
    /// the one that has the smaller part of its share goes first.
    pub(crate) fn turn(&self, id: QueueId) -> impl Ord + use<> {
        let mut turn: Vec<(Reverse<i32>, u64, QueueId)> = self
            .below_root(id)
            .filter_map(|id| Some((id, self.get(id)?)))
            .map(|(id, queue)| {
                (Reverse(queue.priority), queue.allocated.largest_part_of(&queue.deserved), id)
            })
            .collect();
        turn.reverse();
        turn
    }
}

impl<'a> Queue<'a> {
    fn of(
        name: &'a str,
        observed: Option<(&'a Object, &'a krafla_plan::object::Queue)>,
        names: &mut Names,
    ) -> Queue<'a> {
        let nothing = QueueSpec::default();
        let spec = observed.map_or(&nothing, |(_, queue)| &queue.spec);
        let state = observed.map(|(_, queue)| &queue.status.state);
        Queue {
            name,
            object: observed.map(|(object, _)| object),
            parent: None,
            weight: u32::try_from(spec.weight).unwrap_or(1).max(1),
            priority: spec.priority,
            is_fifo: spec.dequeue_strategy == DequeueStrategy::Fifo,
            is_open: !matches!(state, Some(QueueState::Closed | QueueState::Closing)),
            is_reclaimable: spec.reclaimable.unwrap_or(true),
            guarantee: names.amounts(&spec.guarantee.resource),
            wished: names.amounts(&spec.deserved),
            capability: names.limits(&spec.capability),
            left: Limits::default(),
            allocated: Amounts::default(),
            outside: Amounts::default(),
            promised: Amounts::default(),
            demand: Amounts::default(),
            deserved: Amounts::default(),
            nominal: Amounts::default(),
            waits_since: None,
        }
    }

    fn account(&mut self, ground: Ground) -> &mut Amounts {
        match ground {
            Ground::Shared => &mut self.allocated,
            Ground::Outside => &mut self.outside,
        }
    }

    /// All that its pods have, wherever that is.
    pub(crate) fn in_use(&self) -> Amounts {
        let mut in_use = self.allocated.clone();
        in_use.add(&self.outside);
        in_use
    }

    /// What it may use of a resource at most.
    fn limit(&self, place: usize) -> i64 {
        self.capability.get(place).min(self.left.get(place))
    }

    /// What it may use of a resource on open nodes at most.
    fn room(&self, place: usize) -> i64 {
        self.capability.get(place).saturating_sub(self.outside.get(place)).min(self.left.get(place))
    }

    /// A resource of which it may not use so much more.
    fn exceeded(&self, needs: &Amounts) -> Option<usize> {
        let is_limited = !self.capability.is_none() || !self.left.is_none();
        needs.places().filter(|_| is_limited).find(|place| self.is_exceeded(*place, needs.get(*place)))
    }

    fn is_exceeded(&self, place: usize, more: i64) -> bool {
        let shared = self.allocated.get(place).saturating_add(more);
        let all = shared.saturating_add(self.outside.get(place));
        shared > self.left.get(place) || all > self.capability.get(place)
    }

    /// What is left of its fair share; negative where it has more.
    fn share_left(&self) -> Amounts {
        let mut left = self.deserved.clone();
        left.sub(&self.allocated);
        left
    }

    /// Who gets what cannot be divided: whoever has it already, so that nobody has to give it back, and then whoever
    /// waits longest, so that queues take turns.
    fn place_in_line(&self, place: usize) -> impl Ord + use<> {
        (Reverse(self.allocated.get(place)), self.waits_since.is_none(), self.waits_since)
    }

    fn wanted_parent(&self) -> &'a str {
        let queue = self.object.and_then(Object::as_queue);
        queue.map_or(ROOT, |queue| queue.spec.parent.as_str())
    }

    /// What it may get of one resource: at least its guarantee, at most what it wants and may have, and what it wishes for
    /// before it shares the rest by weight.
    fn claim(&self, place: usize) -> Claim {
        let guarantee = self.guarantee.get(place);
        let wanted = self.allocated.get(place).saturating_add(self.demand.get(place));
        let cap = wanted.min(self.room(place)).max(guarantee);
        Claim { weight: self.weight, floor: self.wished.get(place).min(cap).max(guarantee), cap }
    }

    /// The same if it wanted as much as it may have. A closed queue takes nothing new.
    fn nominal_claim(&self, place: usize) -> Claim {
        let guarantee = self.guarantee.get(place);
        let room = if self.is_open { self.room(place) } else { self.allocated.get(place) };
        let cap = room.max(guarantee);
        Claim { weight: self.weight, floor: self.wished.get(place).min(cap).max(guarantee), cap }
    }
}
