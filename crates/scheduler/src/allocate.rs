//! Giving nodes to gangs, all or nothing.
//!
//! ```text
//!   gangs of which a part has nodes already (a plan was cut short)          first
//!   then, again and again, the queue that has least of its share:
//!       its first gang, by priority, those that cannot start yet, age
//!           starts: as many pods as it needs, or none
//!           or, if it has started, grows by one pod
//! ```
//!
//! What then is free and of no use to queues below their shares goes to the others (`leftover.rs`).
//!
//! A gang that finds no room does not hold back the others, unless its queue is first in, first out. Volcano: the
//! allocate action.
//!
//! A gang that has only just come gets no more at once than what its queue would have if all queues wanted something: jobs
//! that are submitted together do not arrive together, and the first must not take the shares of those behind it. What it
//! may have beyond that, it gets when it has been there for [`SETTLES_WITHIN`].
//!
//! Why a gang does not start, its PodGroup and its pods say. Why it does not grow, its pods say that wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Key, Time};
use krafla_why::{Pending, Reason};

use crate::board::{NoNode, Search, ShapeId};
use crate::cluster::{Cluster, Pick};
use crate::gang::{Gang, NOT_ENOUGH_RESOURCES, QUEUE_NOT_FOUND, State, Waits, WhyNot, number};
use crate::leftover;
use crate::place::{Placement, Share, place, place_one, put};
use crate::queue::{Full, QueueId};
use crate::resources::Amounts;

/// How long jobs of other queues may take to arrive behind a job with which they were submitted. Times of creation are whole
/// seconds, so it is one second at least. Volcano looks once in a second.
pub(crate) const SETTLES_WITHIN: Duration = Duration::from_secs(2);

/// When to look again at gangs that have only just come and have not got all that they might.
pub(crate) fn settles_at(cluster: &Cluster<'_>) -> Option<Time> {
    let waits = |gang: &&Gang<'_>| gang.is_admitted() && gang.waiting_shapes().next().is_some();
    cluster.gangs.iter().filter(waits).filter_map(|gang| gang.settles_at).min()
}

/// Gives nodes to all gangs that can have them.
pub(crate) fn allocate(cluster: &mut Cluster<'_>) {
    let mut half_placed: Vec<(Turn, QueueId)> = Vec::new();
    let mut queueless: Vec<Turn> = Vec::new();
    let mut lines = Lines::new();
    for (index, gang) in cluster.gangs.iter().enumerate() {
        match (Turn::of(index, gang), gang.queue) {
            (Some(turn), None) => queueless.push(turn),
            (Some(turn), Some(queue)) if turn.is_half_placed => half_placed.push((turn, queue)),
            (Some(turn), Some(queue)) => lines.entry(queue).or_default().push(turn),
            (None, _) => {}
        }
    }
    for turn in queueless {
        hold(cluster, &turn, Held::NoQueue);
    }
    half_placed.sort_unstable_by(|one, other| other.cmp(one));
    let mut round = Round { share: Share::Ignored, left: None };
    for (mut turn, queue) in half_placed {
        if start(cluster, &mut turn, &mut round) && !turn.waiting.is_empty() {
            lines.entry(queue).or_default().push(turn);
        }
    }
    serve_all(cluster, lines, &mut Round { share: Share::Kept, left: None });
    leftover::hand_out(cluster);
    say_who_is_stuck(cluster);
}

/// Serves the gangs that wait because their queues have their shares, from what is free on the board and no more than is
/// left in all.
pub(crate) fn serve_leftovers(cluster: &mut Cluster<'_>, left: Amounts) {
    let mut lines = Lines::new();
    for (index, gang) in cluster.gangs.iter().enumerate() {
        let turn = Turn::of(index, gang).filter(|_| gang.waits.for_share);
        if let (Some(turn), Some(queue)) = (turn, gang.queue) {
            lines.entry(queue).or_default().push(turn);
        }
    }
    serve_all(cluster, lines, &mut Round { share: Share::Ignored, left: Some(left) });
}

/// The gangs of each queue that wait for nodes.
type Lines = BTreeMap<QueueId, BinaryHeap<Turn>>;

/// How gangs are served.
#[derive(Debug)]
struct Round {
    share: Share,
    /// What may be given away in all; without it, whatever is free.
    left: Option<Amounts>,
}

impl Round {
    fn has_left(&self, needs: &Amounts) -> bool {
        self.left.as_ref().is_none_or(|left| needs.fits_in(left))
    }

    fn take(&mut self, needs: &Amounts) {
        if let Some(left) = &mut self.left {
            left.sub(needs);
        }
    }
}

/// Serves one gang after the other until all have what they can have.
fn serve_all(cluster: &mut Cluster<'_>, mut lines: Lines, round: &mut Round) {
    while let Some(queue) = lines.keys().min_by_key(|queue| cluster.queues.turn(**queue)).copied() {
        let Some(line) = lines.get_mut(&queue) else { break };
        serve(cluster, queue, line, round);
        if line.is_empty() {
            lines.remove(&queue);
        }
    }
}

/// Serves the first gang of a queue.
fn serve(cluster: &mut Cluster<'_>, queue: QueueId, line: &mut BinaryHeap<Turn>, round: &mut Round) {
    let Some(mut turn) = line.pop() else { return };
    if !turn.must_start {
        if grow(cluster, &mut turn, round) {
            line.push(turn);
        }
        return;
    }
    let has_started = start(cluster, &mut turn, round);
    let is_fifo = cluster.queues.get(queue).is_some_and(|queue| queue.is_fifo);
    if has_started && !turn.waiting.is_empty() {
        line.push(turn);
    } else if !has_started && is_fifo {
        let gang = cluster.gangs.get(turn.gang);
        let is_only_early = gang.is_some_and(|gang| gang.settles_at.is_some() && gang.why_not.is_none());
        for behind in line.drain().filter(|_| !is_only_early) {
            hold(cluster, &behind, Held::Behind(turn.gang));
        }
    }
}

/// A gang's place in its queue's line; the greatest comes first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    is_half_placed: bool,
    priority: i32,
    must_start: bool,
    since: Reverse<Option<Time>>,
    key: Reverse<Key>,
    gang: usize,
    /// Its pods that want a node, most urgent last.
    waiting: Vec<usize>,
}

impl Turn {
    fn of(index: usize, gang: &Gang<'_>) -> Option<Turn> {
        let waiting = gang.waiting();
        if waiting.is_empty() || !gang.is_admitted() || !gang.has_enough_pods() {
            return None;
        }
        let must_start = !gang.shortfall().is_nothing();
        let has_nodes = gang.count(|state| matches!(state, State::Bound | State::Running)) > 0;
        Some(Turn {
            is_half_placed: must_start && has_nodes,
            priority: gang.priority,
            must_start,
            since: Reverse(gang.object()?.meta.created_at),
            key: Reverse(gang.object()?.meta.key.clone()),
            gang: index,
            waiting: waiting.into_iter().rev().collect(),
        })
    }

    /// Its pods that want a node, most urgent first.
    fn in_order(&self) -> Vec<usize> {
        self.waiting.iter().rev().copied().collect()
    }
}

/// What keeps a pod from getting a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stuck {
    /// The queue, or one above it, may not use more of something.
    Limit(Full),
    /// The queue, or one above it, has its share of something that others want too.
    Share(Full),
    /// The gang has only just come, and the queue, or one above it, has what it would have if all queues wanted something.
    Early,
    /// No node will do.
    Nodes(ShapeId),
}

/// Why a gang is not tried at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// The queue is first in, first out, and this gang of it comes before.
    Behind(usize),
    /// Its queue does not exist.
    NoQueue,
}

/// The pods of a gang in the order in which they are tried; none if it can not start with what may be given away. If that is
/// not enough for its largest pods, it may be for its smallest.
fn order(cluster: &mut Cluster<'_>, turn: &Turn, round: &Round) -> Option<Vec<usize>> {
    let mut is_left = |pick| {
        round.left.is_none()
            || cluster.needs_to_start(turn.gang, pick).is_some_and(|needs| round.has_left(&needs))
    };
    let may_start_large = is_left(Pick::Largest);
    if !may_start_large && !is_left(Pick::Smallest) {
        return None;
    }
    let mut order = turn.in_order();
    if !may_start_large {
        cluster.gangs.get(turn.gang)?.put_smallest_first(&mut order);
    }
    Some(order)
}

/// Gives nodes to as many pods as the gang needs to start, or to none. Says whether it starts.
fn start(cluster: &mut Cluster<'_>, turn: &mut Turn, round: &mut Round) -> bool {
    let Some(order) = order(cluster, turn, round) else { return false };
    let placements = place(cluster, turn.gang, &order, round.share);
    let Some(gang) = cluster.gangs.get_mut(turn.gang) else { return false };
    match placements {
        Ok(placements) => {
            let needs = placements.iter().filter_map(|placement| cluster.board.needs(placement.shape));
            needs.for_each(|needs| round.take(needs));
            for Placement { member, host, .. } in placements {
                if let Some(member) = gang.members.get_mut(member) {
                    member.state = State::Placed(host);
                }
            }
            turn.waiting.retain(|index| gang.is_waiting(*index));
            turn.must_start = false;
            turn.is_half_placed = false;
            gang.why_not = None;
            gang.is_held = false;
            gang.waits = Waits::default();
            true
        }
        Err(obstacle) if obstacle.is_early => {
            gang.is_held = true;
            false
        }
        Err(obstacle) => {
            // The first answer stands: what is tried later is tried on less.
            if gang.why_not.is_none() {
                gang.why_not = Some(obstacle.why_not(gang));
                gang.waits = obstacle.waits;
            }
            false
        }
    }
}

/// Finds nodes for a gang that waits: for as many pods as it needs to start, or for all that it may grow by. The room
/// there is taken; the gang is not told.
pub(crate) fn place_or_grow(cluster: &mut Cluster<'_>, index: usize, share: Share) -> Vec<Placement> {
    let Some(turn) = cluster.gangs.get(index).and_then(|gang| Turn::of(index, gang)) else {
        return Vec::new();
    };
    if turn.must_start {
        return place(cluster, index, &turn.in_order(), share).unwrap_or_default();
    }
    let shape = |cluster: &Cluster<'_>, member| cluster.gangs.get(index)?.shape(member);
    let mut placements = Vec::new();
    // Where one pod of a shape finds nothing, the next one does not either.
    let mut stuck: BTreeSet<Option<ShapeId>> = BTreeSet::new();
    for member in turn.in_order() {
        let shape = shape(cluster, member);
        if stuck.contains(&shape) {
            continue;
        }
        match place_one(cluster, index, member, share) {
            Some(placement) => placements.push(placement),
            None => drop(stuck.insert(shape)),
        }
    }
    placements
}

/// Places one more pod of a gang that has started. Says whether to go on with it.
fn grow(cluster: &mut Cluster<'_>, turn: &mut Turn, round: &mut Round) -> bool {
    let Cluster { board, queues, gangs, .. } = cluster;
    let Some(gang) = gangs.get_mut(turn.gang) else { return false };
    let Some(index) = turn.waiting.pop() else { return false };
    let Some(member) = gang.members.get_mut(index) else { return false };
    if let State::Waiting(shape) = member.state {
        board.begin();
        let Some(needs) = board.needs(shape).filter(|needs| round.has_left(needs)).cloned() else {
            return !turn.waiting.is_empty();
        };
        let share = gang.settles_at.map_or(round.share, |_| round.share.at_first());
        match put(queues, board, gang.queue, shape, share, Search::default()) {
            Ok(host) => {
                member.state = State::Placed(host);
                round.take(&needs);
            }
            Err(Stuck::Early) => return false,
            // The first answer stands here too.
            Err(_) if round.share == Share::Ignored => {}
            Err(stuck) => {
                gang.waits = gang.waits.and(stuck.waits());
                gang.stuck.insert(shape, stuck);
            }
        }
    }
    !turn.waiting.is_empty()
}

/// Puts into words why gangs that run do not grow. All nodes are given by now: what is true of one pod of a shape is true
/// of all.
fn say_who_is_stuck(cluster: &mut Cluster<'_>) {
    let mut sentences: BTreeMap<Stuck, Arc<str>> = BTreeMap::new();
    for index in 0..cluster.gangs.len() {
        let Some(gang) = cluster.gangs.get_mut(index).filter(|gang| !gang.gets_nodes()) else { continue };
        for (shape, stuck) in std::mem::take(&mut gang.stuck) {
            let sentence =
                sentences.entry(stuck).or_insert_with(|| stuck.explain(cluster).reason.to_string().into());
            let waiting = cluster.gangs.get_mut(index).into_iter().flat_map(|gang| &mut gang.members);
            for member in waiting.filter(|member| member.state == State::Waiting(shape)) {
                member.why_not = Some(Arc::clone(sentence));
            }
        }
    }
}

impl Stuck {
    /// What the pod waits for, unless it waits for its own queue.
    fn waits(self) -> Waits {
        Waits { for_room: matches!(self, Stuck::Nodes(_)), for_share: matches!(self, Stuck::Share(_)) }
    }

    fn explain(self, cluster: &mut Cluster<'_>) -> NoNode {
        let Cluster { names, board, queues, .. } = cluster;
        match self {
            Stuck::Limit(Full { queue, place }) => {
                let (queue, name) = (queues.name(queue), names.name(place));
                let reason = Reason::QueueLimit { queue: queue.into(), resource: name.into() };
                NoNode { lacks: format!("over queue {queue}'s limit"), reason }
            }
            Stuck::Share(Full { queue, place }) => {
                let (queue, name) = (queues.name(queue), names.name(place));
                let reason = Reason::QueueShare { queue: queue.into(), resource: name.into() };
                NoNode { lacks: format!("over queue {queue}'s share"), reason }
            }
            Stuck::Early => NoNode { lacks: "too early".to_owned(), reason: Reason::TooEarly },
            Stuck::Nodes(shape) => board.why_not(shape, names),
        }
    }
}

/// How many different answers are looked into: pods of a gang are mostly alike.
const ANSWERS_MAX: usize = 16;

/// What keeps a gang from starting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// How many of its pods lack what.
    lacks: BTreeMap<String, usize>,
    /// The reason of the first of them, or of all.
    because: Option<Box<Reason>>,
    waits: Waits,
    /// Whether only the youth of the gang does.
    is_early: bool,
}

impl Obstacle {
    /// What these pods ran into.
    pub(crate) fn of<'s>(stuck: impl Iterator<Item = &'s Stuck>, cluster: &mut Cluster<'_>) -> Obstacle {
        let mut answers: Vec<(Stuck, usize)> = Vec::new();
        for answer in stuck {
            let n_answers = answers.len();
            match answers.iter_mut().find(|(known, _)| known == answer) {
                Some((_, n_pods)) => *n_pods += 1,
                None if n_answers < ANSWERS_MAX => answers.push((*answer, 1)),
                None => {}
            }
        }
        let mut obstacle = Obstacle::default();
        for (answer, n_pods) in answers {
            obstacle.waits = obstacle.waits.and(answer.waits());
            obstacle.is_early |= answer == Stuck::Early;
            let NoNode { lacks, reason } = answer.explain(cluster);
            *obstacle.lacks.entry(lacks).or_default() += n_pods;
            obstacle.because.get_or_insert_with(|| Box::new(reason));
        }
        obstacle
    }

    /// What concerns the gang as a whole.
    pub(crate) fn whole(because: Reason) -> Obstacle {
        Obstacle { because: Some(Box::new(because)), ..Obstacle::default() }
    }

    /// Volcano's sentence, which ends in what pods lack and in one reason in full.
    pub(crate) fn why_not(&self, gang: &Gang<'_>) -> WhyNot {
        let because = self.because.as_deref().cloned().unwrap_or(Reason::Unstated);
        if gang.podgroup.is_none() {
            return WhyNot::new(NOT_ENOUGH_RESOURCES, &because);
        }
        let lacks = self.lacks.iter().map(|(what, n_pods)| (number(*n_pods), what.clone()));
        let reason = Reason::Gang {
            waiting: number(gang.waiting().len()),
            members: number(gang.members.len()),
            summary: gang.summary(),
            min: number(gang.min_member),
            pending: Pending(lacks.collect()),
            because: Box::new(because),
        };
        WhyNot::new(NOT_ENOUGH_RESOURCES, &reason)
    }
}

/// Lets a gang wait without a try: to start, or to grow. One that waits behind another waits for its queue's share if that one
/// does.
fn hold(cluster: &mut Cluster<'_>, turn: &Turn, held: Held) {
    let (reason, because, for_share) = match held {
        Held::Behind(before) => {
            let for_share = cluster.gangs.get(before).is_some_and(|gang| gang.waits.for_share);
            (NOT_ENOUGH_RESOURCES, waits_behind(cluster, before), for_share)
        }
        Held::NoQueue => {
            let wanted = cluster.gangs.get(turn.gang).map_or("", Gang::wanted_queue);
            (QUEUE_NOT_FOUND, Reason::NoQueue { queue: wanted.into() }, false)
        }
    };
    let Some(gang) = cluster.gangs.get_mut(turn.gang) else { return };
    gang.is_held = true;
    gang.waits = Waits { for_room: false, for_share };
    if turn.must_start {
        gang.why_not = Some(WhyNot { reason, ..Obstacle::whole(because).why_not(gang) });
        return;
    }
    gang.stuck.clear();
    let because: Arc<str> = because.to_string().into();
    for member in gang.members.iter_mut().filter(|member| matches!(member.state, State::Waiting(_))) {
        member.why_not = Some(Arc::clone(&because));
    }
}

/// What is said of a gang that waits for the one before it.
pub(crate) fn waits_behind(cluster: &Cluster<'_>, before: usize) -> Reason {
    let before = cluster.gangs.get(before).and_then(Gang::object).map(|object| object.meta.key.clone());
    Reason::Behind { first: before.unwrap_or_default().to_string().into() }
}
