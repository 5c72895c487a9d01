//! Making room: pods of queues beyond their share go for a gang whose queue is below its own (reclaim), and pods of gangs with
//! a lower priority go for a gang of the same queue that could not start otherwise (preempt).
//!
//! ```text
//!   gang that finds no room to start or to grow, in a queue that would stay within its share
//!      └─ would the pods that are leaving already make room?      wait for them
//!      └─ else: pods that queues beyond their share can spare,
//!               the least important and youngest first            let them go until it fits,
//!                                                                 bring back who takes nothing from it,
//!                                                                 delete the others, and wait
//! ```
//!
//! A queue spares only what is beyond its share, only if it is reclaimable, and a gang only pods beyond its minimum: no
//! gang is broken to start another. Volcano: the actions reclaim and preempt, which its default configuration leaves out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use krafla_api::{Key, Time};
use krafla_cluster::Step;
use krafla_plan::Object;
use krafla_why::Reason;

use crate::Scheduler;
use crate::allocate::Obstacle;
use crate::board::ShapeId;
use crate::cluster::{Cluster, Pick};
use crate::gang::{Gang, NOT_ENOUGH_RESOURCES, Shortfall};
use crate::node::Ground;
use crate::place::{self, Placement, Share};
use crate::queue::QueueId;
use crate::resources::Amounts;

/// A pod that uses room on a node.
#[derive(Clone, Debug)]
pub(crate) struct Tenant<'a> {
    pub(crate) object: &'a Object,
    pub(crate) queue: Option<QueueId>,
    pub(crate) host: usize,
    pub(crate) uses: Amounts,
    /// The priority of its gang.
    pub(crate) priority: i32,
}

/// By what right pods must go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Their gang has a lower priority, in the same queue.
    Preempt,
    /// Their queue has more than its share.
    Reclaim,
}

impl Way {
    /// The ways that a scheduler goes, in the order of Volcano's actions.
    pub(crate) fn all(scheduler: &Scheduler) -> Vec<Way> {
        let preempt = scheduler.preempts.then_some(Way::Preempt);
        preempt.into_iter().chain(scheduler.reclaims.then_some(Way::Reclaim)).collect()
    }
}

/// What a gang waits for: enough nodes to start, or one for this pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Start(usize),
    Grow(usize, usize),
}

/// The pods that must go so that gangs can start, and those that run can grow, to which that is due. Nobody is bound by
/// this: the room is free when the pods are gone, and until then the gangs say that they wait for it.
pub(crate) fn reclaim<'a>(cluster: &mut Cluster<'a>, ways: &[Way]) -> Vec<Tenant<'a>> {
    if ways.is_empty() {
        return Vec::new();
    }
    let mut due: Vec<usize> = (0..cluster.gangs.len()).collect();
    due.retain(|index| cluster.gangs.get(*index).is_some_and(|gang| must_start(gang) || would_grow(gang)));
    due.sort_by_key(|index| cluster.gangs.get(*index).map(|gang| (!must_start(gang), gang.rank())));
    let mut victims = Vec::new();
    if due.is_empty() {
        return victims;
    }
    let mut spare = spare(cluster);
    for tenant in std::mem::take(&mut cluster.leaving) {
        tenant.leave(cluster);
    }
    cluster.board.renew_hope();
    // What found no help finds none later: what can be spared only gets less.
    let mut helpless: BTreeSet<Sort<'a>> = BTreeSet::new();
    for want in due.into_iter().flat_map(|gang| wants(cluster, gang)).collect::<Vec<_>>() {
        let Some(sort) = sort(cluster, want).filter(|sort| !helpless.contains(sort)) else { continue };
        let tenants = match place(cluster, want) {
            Some(_) => Some(Vec::new()),
            None => ways.iter().find_map(|way| make_room(cluster, want, *way, &mut spare)),
        };
        match tenants {
            Some(tenants) => {
                victims.extend(tenants);
                say_that_it_waits(cluster, want);
            }
            None => drop(helpless.insert(sort)),
        }
    }
    victims
}

fn must_start(gang: &Gang<'_>) -> bool {
    let finds_no_room = gang.why_not.as_ref().is_some_and(|why_not| why_not.reason == NOT_ENOUGH_RESOURCES);
    finds_no_room && !gang.is_held && gang.is_admitted() && gang.is_possible && gang.has_enough_pods()
}

fn would_grow(gang: &Gang<'_>) -> bool {
    gang.waits.for_room && gang.why_not.is_none() && gang.is_possible
}

/// What a gang waits for, the most urgent first. What can never run is not waited for.
fn wants(cluster: &mut Cluster<'_>, index: usize) -> Vec<Want> {
    let Cluster { board, gangs, .. } = cluster;
    let Some(gang) = gangs.get(index) else { return Vec::new() };
    if must_start(gang) {
        return vec![Want::Start(index)];
    }
    let mut waiting = gang.waiting();
    waiting.retain(|member| gang.shape(*member).is_some_and(|shape| board.is_possible(shape)));
    waiting.into_iter().map(|member| Want::Grow(index, member)).collect()
}

/// What wants of one sort have in common: the queue, the pods that are to be placed, and how many of them a gang needs to start.
type Sort<'a> = (QueueId, Vec<(ShapeId, &'a str)>, Option<Shortfall<'a>>);

fn sort<'a>(cluster: &Cluster<'a>, want: Want) -> Option<Sort<'a>> {
    let (Want::Start(gang) | Want::Grow(gang, _)) = want;
    let gang = cluster.gangs.get(gang)?;
    let shape = |member: usize| Some((gang.shape(member)?, gang.members.get(member)?.task));
    Some(match want {
        Want::Start(_) => {
            let shapes = gang.waiting().into_iter().filter_map(shape).collect();
            (gang.queue?, shapes, Some(gang.shortfall()))
        }
        Want::Grow(_, member) => (gang.queue?, vec![(gang.shape(member)?, "")], None),
    })
}

/// A gang that runs speaks through its pods.
fn say_that_it_waits(cluster: &mut Cluster<'_>, want: Want) {
    match want {
        Want::Start(gang) => {
            if let Some(gang) = cluster.gangs.get_mut(gang) {
                gang.why_not = Some(Obstacle::whole(Reason::PodsLeaving).why_not(gang));
            }
        }
        Want::Grow(gang, member) => {
            let member = cluster.gangs.get_mut(gang).and_then(|gang| gang.members.get_mut(member));
            if let Some(why_not) = member.and_then(|member| member.why_not.as_mut()) {
                *why_not = Reason::PodsLeaving.to_string().into();
            }
        }
    }
}

/// The pods that their gangs can do without, the first to go first. On a closed node their room is of no use to anybody.
/// A pod in no PodGroup is never asked to go, nor one that names another scheduler: this one does not manage it.
fn spare<'a>(cluster: &Cluster<'a>) -> Vec<Tenant<'a>> {
    let mut spare: Vec<(Importance<'a>, Tenant<'a>)> = Vec::new();
    for gang in &cluster.gangs {
        let queue_priority =
            gang.queue.and_then(|id| cluster.queues.get(id)).map_or(0, |queue| queue.priority);
        for member in gang.spare_members() {
            let (Some(host), object) = (member.host, member.object) else { continue };
            let meta = &object.meta;
            let importance =
                (queue_priority, gang.priority, member.priority, Reverse(meta.created_at), &meta.key);
            let (queue, uses, priority) = (gang.queue, member.uses.clone(), gang.priority);
            spare.push((importance, Tenant { object, queue, host, uses, priority }));
        }
    }
    spare.retain(|(_, tenant)| cluster.board.hosts.ground(Some(tenant.host)) == Ground::Shared);
    spare.sort_by_key(|(importance, _)| *importance);
    spare.into_iter().map(|(_, tenant)| tenant).collect()
}

/// The priorities of a pod's queue, of its gang and its own, then its age: what is least goes first.
type Importance<'a> = (i32, i32, i32, Reverse<Option<Time>>, &'a Key);

/// The pods that must go for a gang to start, if their going helps. Their room is then the gang's on the board, and they
/// are no longer among the spare ones.
fn make_room<'a>(
    cluster: &mut Cluster<'a>,
    want: Want,
    way: Way,
    spare: &mut Vec<Tenant<'a>>,
) -> Option<Vec<Tenant<'a>>> {
    let (Want::Start(gang) | Want::Grow(gang, _)) = want;
    let queue = cluster.gangs.get(gang)?.queue?;
    let (least, needs) = (needs(cluster, want, Pick::Smallest)?, needs(cluster, want, Pick::Largest)?);
    let may_ask = match way {
        Way::Preempt => matches!(want, Want::Start(_)),
        Way::Reclaim => cluster.queues.is_below_share(queue, &needs),
    };
    if !may_ask {
        return None;
    }
    let priority = cluster.gangs.get(gang)?.priority;
    let mut clearing = Clearing { way, priority, ..Clearing::of(cluster, want, queue, needs) };
    let mut vacated: Vec<usize> = Vec::new();
    let mut tries = Tries::default();
    for index in 0..spare.len() {
        let Some(is_changed) = spare.get(index).and_then(|tenant| clearing.vacate(cluster, tenant)) else {
            continue;
        };
        vacated.push(index);
        let is_due = is_changed && clearing.could_do(cluster, &least) && tries.is_due(vacated.len());
        if let Some(placements) = is_due.then(|| place_anew(cluster, want)).flatten() {
            return Some(clearing.keep_the_harmless(cluster, spare, &vacated, &placements));
        }
    }
    let is_due = tries.last_at < vacated.len() && clearing.could_do(cluster, &least);
    if let Some(placements) = is_due.then(|| place_anew(cluster, want)).flatten() {
        return Some(clearing.keep_the_harmless(cluster, spare, &vacated, &placements));
    }
    for tenant in vacated.iter().filter_map(|index| spare.get(*index)) {
        tenant.return_to(cluster);
    }
    None
}

/// Pods go one after the other until a gang finds what it needs.
#[derive(Debug)]
struct Clearing {
    way: Way,
    queue: QueueId,
    /// The priority of the gang.
    priority: i32,
    needs: Amounts,
    grounds: Grounds,
    /// What can be given away where it is of use.
    room: Amounts,
    /// Whether pods of a queue keep something above it and the gang's at its limit or share, as long as nobody goes.
    bounds: BTreeMap<QueueId, bool>,
}

impl Clearing {
    fn of(cluster: &mut Cluster<'_>, want: Want, queue: QueueId, needs: Amounts) -> Clearing {
        let grounds = Grounds::of(cluster, want);
        let room = cluster.board.room_where(|host| grounds.is_useful(host));
        let (way, priority) = (Way::Reclaim, 0);
        Clearing { way, queue, priority, needs, grounds, room, bounds: BTreeMap::new() }
    }

    /// Lets a pod go, if its queue has to give it back and that may be of use. Says whether a try can end better now.
    fn vacate<'a>(&mut self, cluster: &mut Cluster<'a>, tenant: &Tenant<'a>) -> Option<bool> {
        let own = tenant.queue?;
        let is_useful = self.grounds.is_useful(tenant.host);
        let is_bound = || cluster.queues.is_bound_beside(self.queue, &self.needs, own);
        let frees_a_bound = *self.bounds.entry(own).or_insert_with(is_bound);
        let is_minded = self.grounds.are_tied && cluster.board.has_ties(tenant.object);
        if !(is_useful || frees_a_bound || is_minded) || !self.may_take_from(cluster, tenant) {
            return None;
        }
        let before = cluster.board.hosts.room_on(tenant.host);
        tenant.leave(cluster);
        if is_useful {
            self.room.sub(&before);
            self.room.add(&cluster.board.hosts.room_on(tenant.host));
        }
        self.bounds.clear();
        Some(frees_a_bound || is_minded || self.grounds.has_room(cluster, tenant.host))
    }

    /// Whether there is enough in all, and within the shares of the gang's queues.
    fn could_do(&self, cluster: &Cluster<'_>, least: &Amounts) -> bool {
        // Who goes for a gang of the same queue leaves it the queue's share.
        let is_due = self.way == Way::Preempt || cluster.queues.is_within_shares(self.queue, &self.needs);
        least.fits_in(&self.room) && is_due
    }

    /// Whether a pod has to go for the gang, and has something that it needs.
    fn may_take_from(&self, cluster: &Cluster<'_>, tenant: &Tenant<'_>) -> bool {
        let Some(from) = tenant.queue else { return false };
        let matters = |place: usize| self.needs.get(place) > 0 && tenant.uses.get(place) > 0;
        match self.way {
            Way::Preempt => {
                from == self.queue && tenant.priority < self.priority && self.needs.places().any(matters)
            }
            Way::Reclaim => cluster.queues.must_give_back(from, self.queue, matters),
        }
    }

    /// Of the pods that have gone, those may come back, the most important first, that take nothing from the gang: not its room,
    /// nor its neighbourhood, nor what its queue and those above it may use. The others must go.
    fn keep_the_harmless<'a>(
        &self,
        cluster: &mut Cluster<'a>,
        spare: &mut Vec<Tenant<'a>>,
        vacated: &[usize],
        placements: &[Placement],
    ) -> Vec<Tenant<'a>> {
        let placed: Vec<(ShapeId, usize)> = placements.iter().map(|it| (it.shape, it.host)).collect();
        let mut must_go: BTreeSet<usize> = vacated.iter().copied().collect();
        for index in vacated.iter().rev() {
            if let Some(tenant) =
                spare.get(*index).filter(|it| it.may_return(cluster, self.queue, &self.needs, &placed))
            {
                tenant.return_to(cluster);
                must_go.remove(index);
            }
        }
        // Before the last of them went the gang found no place, whatever else might do: it would wait for ever.
        if let Some((index, tenant)) = vacated.last().and_then(|it| Some((*it, spare.get(*it)?)))
            && must_go.is_empty()
        {
            tenant.leave(cluster);
            must_go.insert(index);
        }
        let (victims, still_spare): (Vec<_>, Vec<_>) =
            spare.drain(..).enumerate().partition(|(index, _)| must_go.contains(index));
        spare.extend(still_spare.into_iter().map(|(_, tenant)| tenant));
        victims.into_iter().map(|(_, tenant)| tenant).collect()
    }
}

fn place_anew(cluster: &mut Cluster<'_>, want: Want) -> Option<Vec<Placement>> {
    cluster.board.renew_hope();
    place(cluster, want)
}

/// Where room is of use to a gang.
#[derive(Debug)]
struct Grounds {
    /// The different pods that are to be placed.
    shapes: BTreeSet<ShapeId>,
    /// Whether neighbours matter to them.
    are_tied: bool,
    /// The nodes that would do for one of them.
    hosts: Vec<bool>,
}

impl Grounds {
    fn of(cluster: &mut Cluster<'_>, want: Want) -> Grounds {
        let Cluster { board, gangs, .. } = cluster;
        let shapes: BTreeSet<ShapeId> = match want {
            Want::Start(gang) => gangs.get(gang).into_iter().flat_map(Gang::waiting_shapes).collect(),
            Want::Grow(gang, member) => {
                gangs.get(gang).and_then(|gang| gang.shape(member)).into_iter().collect()
            }
        };
        let are_tied = shapes.iter().any(|shape| board.is_tied(*shape));
        let hosts = board.suitable(&shapes);
        Grounds { shapes, are_tied, hosts }
    }

    /// Whether room on a node is of any use.
    fn is_useful(&self, host: usize) -> bool {
        self.hosts.get(host) == Some(&true)
    }

    /// Whether there is room for one of the pods on a node.
    fn has_room(&self, cluster: &Cluster<'_>, host: usize) -> bool {
        self.shapes.iter().any(|shape| cluster.board.has_room_on(*shape, host))
    }
}

/// When a gang is tried while pods go one after the other: at first each time, so that none goes in vain, and after that at
/// twice as many each time, so that what can not be placed does not cost a try for each pod of a large cluster.
#[derive(Debug, Default)]
struct Tries {
    n_tries: usize,
    /// How many pods had gone at the last one.
    last_at: usize,
}

impl Tries {
    const EACH_TIME: usize = 16;

    fn is_due(&mut self, n_gone: usize) -> bool {
        let is_due = self.n_tries < Tries::EACH_TIME || n_gone >= self.last_at.saturating_mul(2);
        if is_due {
            self.n_tries += 1;
            self.last_at = n_gone;
        }
        is_due
    }
}

fn needs(cluster: &mut Cluster<'_>, want: Want, pick: Pick) -> Option<Amounts> {
    match want {
        Want::Start(gang) => cluster.needs_to_start(gang, pick),
        Want::Grow(gang, member) => {
            let shape = cluster.gangs.get(gang)?.shape(member)?;
            cluster.board.needs(shape).cloned()
        }
    }
}

fn place(cluster: &mut Cluster<'_>, want: Want) -> Option<Vec<Placement>> {
    match want {
        Want::Start(gang) => {
            let waiting = cluster.gangs.get(gang)?.waiting();
            place::find_places(cluster, gang, &waiting, Share::Kept, |_, _| ())
        }
        Want::Grow(gang, member) => Some(vec![place::place_one(cluster, gang, member, Share::Kept)?]),
    }
}

impl<'a> Tenant<'a> {
    /// Its room is free, on the board and in its queue's account.
    pub(crate) fn leave(&self, cluster: &mut Cluster<'a>) {
        let Cluster { board, queues, .. } = cluster;
        board.vacate(self.object, self.host, &self.uses);
        if let Some(queue) = self.queue {
            queues.give_back(queue, &self.uses, board.hosts.ground(Some(self.host)));
        }
    }

    /// Whether it may be there again beside a gang of that queue, which needs so much and was placed meanwhile.
    fn may_return(
        &self,
        cluster: &mut Cluster<'a>,
        queue: QueueId,
        needs: &Amounts,
        placed: &[(ShapeId, usize)],
    ) -> bool {
        let Cluster { board, queues, .. } = cluster;
        let matters = |place: usize| needs.get(place) > 0;
        let within = |own: QueueId| queues.may_have_beside(own, &self.uses, queue, matters);
        self.queue.is_none_or(within) && board.may_return(self.object, self.host, &self.uses, placed)
    }

    /// It is there again.
    pub(crate) fn return_to(&self, cluster: &mut Cluster<'a>) {
        let Cluster { board, queues, .. } = cluster;
        board.occupy(self.object, self.host, &self.uses);
        if let Some(queue) = self.queue {
            queues.allocate(queue, &self.uses, board.hosts.ground(Some(self.host)));
        }
    }
}

/// The deletion of a pod that must go.
pub(crate) fn eviction(tenant: &Tenant<'_>) -> Step {
    tenant.object.deletion()
}
