//! Finding nodes for a gang: for as many pods as it needs to start, or for none.
//!
//! ```text
//!   the largest pods first, each on the emptiest node       most gangs that fit at all fit so, and load spreads
//!      └─ else each on the tightest node that will do       if its pods differ: a large one needs room in one piece
//!      └─ else all in one domain, the roomiest first        if its pods must be near each other
//!      └─ else the smallest pods first                      if it may choose which of its pods it starts with
//! ```
//!
//! A way is tried only where it can make a difference: if some pods found nodes and there is room enough in all. So gangs
//! that wait in a full cluster cost one try each, and no gang costs more than a few.

use std::collections::BTreeMap;

use crate::allocate::{Obstacle, Stuck};
use crate::board::{Board, Order, Search, ShapeId};
use crate::cluster::{Cluster, Pick};
use crate::gang::State;
use crate::node::Ground;
use crate::queue::{QueueId, Queues};
use crate::resources::Amounts;

/// How many domains are tried for pods that must be near each other.
const DOMAINS_MAX: usize = 8;

/// Whether a queue must leave to others what is beyond its fair share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    Kept,
    /// And it has no more, either, than what would be its share if all queues wanted something.
    KeptAtFirst,
    Ignored,
}

impl Share {
    /// The same for a gang that has only just come.
    pub(crate) fn at_first(self) -> Share {
        if self == Share::Kept { Share::KeptAtFirst } else { self }
    }
}

/// A pod of a gang, and the node found for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) member: usize,
    pub(crate) shape: ShapeId,
    pub(crate) host: usize,
}

/// Finds nodes for as many of the waiting pods as the gang needs to start, and takes the room there. If that cannot be, it
/// takes none and says why.
pub(crate) fn place(
    cluster: &mut Cluster<'_>,
    gang: usize,
    waiting: &[usize],
    share: Share,
) -> Result<Vec<Placement>, Obstacle> {
    let mut obstacle = Obstacle::default();
    let note = |stuck: &BTreeMap<usize, Stuck>, cluster: &mut Cluster<'_>| {
        obstacle = Obstacle::of(stuck.values(), cluster);
    };
    find_places(cluster, gang, waiting, share, note).ok_or(obstacle)
}

/// The same for those who need not know why: whoever does may note what pods run into at the first try.
pub(crate) fn find_places(
    cluster: &mut Cluster<'_>,
    gang: usize,
    waiting: &[usize],
    share: Share,
    note: impl FnOnce(&BTreeMap<usize, Stuck>, &mut Cluster<'_>),
) -> Option<Vec<Placement>> {
    let first = attempt(cluster, gang, waiting, share, Search::default());
    if first.is_whole {
        return Some(first.placements);
    }
    note(&first.stuck, cluster);
    let found_some = !first.placements.is_empty();
    take_back(cluster, gang, first.placements);
    if found_some { try_other_ways(cluster, gang, waiting, share) } else { None }
}

fn try_other_ways(
    cluster: &mut Cluster<'_>,
    gang: usize,
    waiting: &[usize],
    share: Share,
) -> Option<Vec<Placement>> {
    let least = cluster.needs_to_start(gang, Pick::Smallest)?;
    if !least.fits_in(&cluster.board.hosts.room()) {
        return None;
    }
    let may_choose = cluster.needs_to_start(gang, Pick::Largest)? != least;
    let tightly = Search { order: Order::Tightest, domain: None };
    let in_one_place = domains(cluster, gang, waiting, &least);
    let packed = is_mixed(cluster, gang, waiting).then_some(tightly);
    for search in packed.into_iter().chain(in_one_place) {
        let found = retry(cluster, gang, waiting, share, search);
        if found.is_some() {
            return found;
        }
    }
    let mut waiting = waiting.to_vec();
    cluster.gangs.get(gang)?.put_smallest_first(&mut waiting);
    if may_choose { retry(cluster, gang, &waiting, share, tightly) } else { None }
}

/// Whether the pods differ. Of pods that are all alike the same number fits in whatever order.
fn is_mixed(cluster: &Cluster<'_>, gang: usize, waiting: &[usize]) -> bool {
    let Some(gang) = cluster.gangs.get(gang) else { return false };
    let mut states = waiting.iter().filter_map(|index| gang.members.get(*index)).map(|member| member.state);
    let first = states.next();
    states.any(|state| Some(state) != first)
}

/// Where pods might go that demand their own kind near them and are the first of it: the domains with most room.
fn domains<'a>(cluster: &Cluster<'a>, gang: usize, waiting: &[usize], least: &Amounts) -> Vec<Search<'a>> {
    let Cluster { board, gangs, .. } = cluster;
    let Some(gang) = gangs.get(gang) else { return Vec::new() };
    let shapes = waiting.iter().filter_map(|index| gang.shape(*index));
    let Some(term) = shapes.clone().find_map(|shape| board.founds(shape)) else { return Vec::new() };
    let nothing = Amounts::default();
    let needs = if shapes.clone().all(|shape| board.joins(shape, term)) { least } else { &nothing };
    let domains = board.roomiest_domains(term, needs).into_iter().take(DOMAINS_MAX);
    domains.map(|domain| Search { order: Order::Tightest, domain: Some((term, domain)) }).collect()
}

fn retry(
    cluster: &mut Cluster<'_>,
    gang: usize,
    waiting: &[usize],
    share: Share,
    search: Search<'_>,
) -> Option<Vec<Placement>> {
    let Attempt { placements, is_whole, .. } = attempt(cluster, gang, waiting, share, search);
    if is_whole {
        return Some(placements);
    }
    take_back(cluster, gang, placements);
    None
}

/// What became of one try. The room of its placements is taken.
#[derive(Debug, Default)]
struct Attempt {
    placements: Vec<Placement>,
    /// Why the others found no node.
    stuck: BTreeMap<usize, Stuck>,
    /// Whether the gang can start.
    is_whole: bool,
}

fn attempt(
    cluster: &mut Cluster<'_>,
    gang: usize,
    waiting: &[usize],
    share: Share,
    search: Search<'_>,
) -> Attempt {
    let Cluster { board, queues, gangs, .. } = cluster;
    let Some(gang) = gangs.get(gang) else { return Attempt::default() };
    // What could never start cannot take anything from others; let it find out why.
    let mut share = if gang.is_possible { share } else { Share::Ignored };
    if gang.settles_at.is_some() {
        share = share.at_first();
    }
    let mut shortfall = gang.shortfall();
    let mut is_placed = vec![false; gang.members.len()];
    let mut attempt = Attempt::default();
    // The shape that found no node: until another pod gets one, the next of it finds none either.
    let mut stuck = None;
    board.begin();
    // First the pods without which a task has too few, then any others.
    for only_missing_tasks in [true, false] {
        for index in waiting {
            let (Some(member), Some(is_placed)) = (gang.members.get(*index), is_placed.get_mut(*index))
            else {
                continue;
            };
            let State::Waiting(shape) = member.state else { continue };
            if !shortfall.needs(member.task, only_missing_tasks) || *is_placed {
                continue;
            }
            if stuck == Some(Stuck::Nodes(shape)) {
                attempt.stuck.insert(*index, Stuck::Nodes(shape));
                continue;
            }
            match put(queues, board, gang.queue, shape, share, search) {
                Ok(host) => {
                    stuck = None;
                    *is_placed = true;
                    attempt.stuck.remove(index);
                    shortfall.fill(member.task);
                    attempt.placements.push(Placement { member: *index, shape, host });
                    // A gang is never stopped half-way by its queue's share: it may reach beyond it once.
                    share = Share::Ignored;
                }
                Err(reason) => {
                    stuck = Some(reason);
                    attempt.stuck.insert(*index, reason);
                }
            }
        }
    }
    attempt.is_whole = shortfall.is_nothing();
    attempt
}

/// Gives back what a try has taken.
fn take_back(cluster: &mut Cluster<'_>, gang: usize, placements: Vec<Placement>) {
    let queue = cluster.gangs.get(gang).and_then(|gang| gang.queue);
    let Cluster { board, queues, .. } = cluster;
    board.undo();
    for Placement { shape, host, .. } in placements {
        if let (Some(queue), Some(needs)) = (queue, board.needs(shape)) {
            queues.give_back(queue, needs, board.hosts.ground(Some(host)));
        }
    }
}

/// Finds a node for one pod of a gang that runs, and takes the room there.
pub(crate) fn place_one(
    cluster: &mut Cluster<'_>,
    gang: usize,
    member: usize,
    share: Share,
) -> Option<Placement> {
    let Cluster { board, queues, gangs, .. } = cluster;
    let gang = gangs.get(gang)?;
    let shape = gang.shape(member)?;
    board.begin();
    let share = gang.settles_at.map_or(share, |_| share.at_first());
    let host = put(queues, board, gang.queue, shape, share, Search::default()).ok()?;
    Some(Placement { member, shape, host })
}

/// Puts one pod on a node, within what its queue may use.
pub(crate) fn put(
    queues: &mut Queues<'_>,
    board: &mut Board<'_>,
    queue: Option<QueueId>,
    shape: ShapeId,
    share: Share,
    search: Search<'_>,
) -> Result<usize, Stuck> {
    let nowhere = Stuck::Nodes(shape);
    let needs = board.needs(shape).ok_or(nowhere)?.clone();
    if let Some(full) = queue.and_then(|queue| queues.full(queue, &needs)) {
        return Err(Stuck::Limit(full));
    }
    if share == Share::KeptAtFirst && queue.is_some_and(|queue| queues.is_over_nominal_share(queue, &needs)) {
        return Err(Stuck::Early);
    }
    let host = board.find(shape, search).ok_or(nowhere)?;
    let ground = board.hosts.ground(Some(host));
    if let Some(queue) = queue {
        let is_shared = share != Share::Ignored && ground == Ground::Shared;
        if let Some(full) = queues.over_share(queue, &needs).filter(|_| is_shared) {
            return Err(Stuck::Share(full));
        }
        queues.allocate(queue, &needs, ground);
    }
    board.put(shape, host);
    Ok(host)
}
