//! Queues: who may use how much, and whose turn it is.
//!
//! ```text
//!   root                     may use     the cluster
//!   ├── default              allocated   what pods of the queue, and of those below it, have
//!   └── research             promised    what gangs that were let in may still take
//!       ├── vision           limit       its capability, and what others' guarantees leave
//!       └── speech           deserved    its fair share of what its parent deserves, by weight
//! ```
//!
//! Limits are hard. Shares are soft: a queue that has its share waits while others below theirs want the same resource,
//! and whatever nobody below its share can use is free for all. Volcano: the proportion and capacity plugins.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use krafla_api::Kind;
use krafla_api::volcano::{DequeueStrategy, QueueSpec, QueueState};
use krafla_plan::{Object, Objects};

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
    limit: Limits,
    pub(crate) allocated: Amounts,
    promised: Amounts,
    demand: Amounts,
    deserved: Amounts,
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
        self.get(queue).map_or(i64::MAX, |queue| queue.limit.get(place))
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
    pub(crate) fn allocate(&mut self, id: QueueId, needs: &Amounts) {
        self.for_lineage(id, |queue| queue.allocated.add(needs));
    }

    /// Pods that were to get nodes do not.
    pub(crate) fn give_back(&mut self, id: QueueId, needs: &Amounts) {
        self.for_lineage(id, |queue| queue.allocated.sub(needs));
    }

    /// A gang of the queue was let in and may take so much more.
    pub(crate) fn promise(&mut self, id: QueueId, needs: &Amounts) {
        self.for_lineage(id, |queue| queue.promised.add(needs));
    }

    /// Gangs of the queue have, or want, so much.
    pub(crate) fn demand(&mut self, id: QueueId, wants: &Amounts) {
        self.for_lineage(id, |queue| queue.demand.add(wants));
    }

    /// Sets limits and fair shares, when all that is allocated and wanted is known. `total` is what the cluster has.
    pub(crate) fn settle(&mut self, total: &Amounts) {
        if let Some(root) = self.all.first_mut() {
            root.deserved = total.clone();
        }
        // Parents before children, each level at once.
        let mut level = vec![ROOT_ID];
        while !level.is_empty() {
            let mut below = Vec::new();
            for parent in level {
                let children = self.children(parent);
                self.settle_children(parent, &children, total);
                below.extend(children);
            }
            level = below;
        }
    }

    fn children(&self, parent: QueueId) -> Vec<QueueId> {
        let all = self.all.iter().enumerate();
        all.filter(|(_, queue)| queue.parent == Some(parent)).map(|(index, _)| QueueId(index)).collect()
    }

    fn settle_children(&mut self, parent: QueueId, children: &[QueueId], total: &Amounts) {
        let Some(Queue { limit, deserved, .. }) = self.get(parent) else { return };
        let (available, deserved) = (limit.or(total), deserved.clone());
        let mut guaranteed = Amounts::default();
        for child in children.iter().filter_map(|id| self.get(*id)) {
            guaranteed.add(&child.guarantee);
        }
        for id in children {
            if let Some(child) = self.all.get_mut(id.0) {
                let mut of_others = guaranteed.clone();
                of_others.sub(&child.guarantee);
                child.limit.leave(&available, &of_others);
            }
        }
        for place in 0..deserved.len() {
            let claims: Vec<Claim> =
                children.iter().filter_map(|id| self.get(*id)).map(|child| child.claim(place)).collect();
            for (id, share) in children.iter().zip(share::divide(deserved.get(place), &claims)) {
                if let Some(child) = self.all.get_mut(id.0) {
                    child.deserved.set(place, share);
                }
            }
        }
    }

    /// Why a pod may not use what the queue has, if it may not.
    pub(crate) fn full(&self, id: QueueId, needs: &Amounts) -> Option<Full> {
        self.exceeded(id, needs, |queue| queue.allocated.clone())
    }

    /// Why a gang may not be let in, if it may not: what was promised counts too.
    pub(crate) fn full_for_gang(&self, id: QueueId, needs: &Amounts) -> Option<Full> {
        self.exceeded(id, needs, |queue| {
            let mut taken = queue.allocated.clone();
            taken.add(&queue.promised);
            taken
        })
    }

    fn exceeded(&self, id: QueueId, needs: &Amounts, taken: impl Fn(&Queue<'a>) -> Amounts) -> Option<Full> {
        self.lineage(id).find_map(|id| {
            let queue = self.get(id)?;
            if queue.limit.is_none() {
                return None;
            }
            queue.limit.exceeded(&taken(queue), needs).map(|place| Full { queue: id, place })
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
        self.branch(id).take(1).all(|queue| needs.fits_in(&queue.share_left()))
    }

    /// Whether so much more would leave the queue, and those above it, within their fair shares.
    pub(crate) fn is_within_shares(&self, id: QueueId, needs: &Amounts) -> bool {
        self.branch(id).all(|queue| needs.fits_in(&queue.share_left()))
    }

    /// A queue and those above it, without `root`, whose share is everything.
    fn branch(&self, id: QueueId) -> impl Iterator<Item = &Queue<'a>> {
        self.lineage(id).filter(|id| *id != ROOT_ID).filter_map(|id| self.get(id))
    }

    /// Whether a queue has more than its share of something that matters and must give it back to another. What both have
    /// above them in common is not between them.
    pub(crate) fn must_give_back(&self, from: QueueId, to: QueueId, matters: impl Fn(usize) -> bool) -> bool {
        let is_reclaimable = self.get(from).is_some_and(|queue| queue.is_reclaimable);
        let mut apart = self.lineage(from).take_while(|id| !self.lineage(to).any(|other| other == *id));
        is_reclaimable
            && apart.any(|id| {
                self.get(id).is_some_and(|Queue { allocated, deserved, .. }| {
                    (0..allocated.len())
                        .any(|place| matters(place) && allocated.get(place) > deserved.get(place))
                })
            })
    }

    /// Why the queue must wait for others, if it must: it has its share of something that the pod needs.
    pub(crate) fn over_share(&self, id: QueueId, needs: &Amounts) -> Option<Full> {
        let below_root = self.lineage(id).filter(|id| *id != ROOT_ID);
        below_root.into_iter().find_map(|id| {
            let left = self.get(id)?.share_left();
            needs.exhausted(&left).map(|place| Full { queue: id, place })
        })
    }

    /// Whose turn it is: the least first. From the top of the hierarchy down, the queue with the higher priority and then
    /// the one that has the smaller part of its share goes first; before all, what is in no queue.
    pub(crate) fn turn(&self, id: Option<QueueId>) -> impl Ord + use<> {
        let below_root = id.into_iter().flat_map(|id| self.lineage(id)).filter(|id| *id != ROOT_ID);
        let mut turn: Vec<(Reverse<i32>, u64, QueueId)> = below_root
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
            limit: names.limits(&spec.capability),
            allocated: Amounts::default(),
            promised: Amounts::default(),
            demand: Amounts::default(),
            deserved: Amounts::default(),
        }
    }

    /// What is left of its fair share; negative where it has more.
    fn share_left(&self) -> Amounts {
        let mut left = self.deserved.clone();
        left.sub(&self.allocated);
        left
    }

    fn wanted_parent(&self) -> &'a str {
        let queue = self.object.and_then(Object::as_queue);
        queue.map_or(ROOT, |queue| queue.spec.parent.as_str())
    }

    /// What it may get of one resource: at least its guarantee, at most what it wants and may have, and what it wishes for
    /// before it shares the rest by weight.
    fn claim(&self, place: usize) -> Claim {
        let guarantee = self.guarantee.get(place);
        let cap = self.demand.get(place).min(self.limit.get(place)).max(guarantee);
        Claim { weight: self.weight, floor: self.wished.get(place).min(cap).max(guarantee), cap }
    }
}
