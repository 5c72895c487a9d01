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
//! A gang that finds no room does not hold back the others, unless its queue is first in, first out. Volcano: the
//! allocate action.
//!
//! Why a gang does not start, its PodGroup says. Why it does not grow, the last pod of each shape says, which will be the
//! last to get a node: so a job of thousands of pods that take their turns is written to once, and not for each of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use krafla_api::{Key, Time};

use crate::board::{Board, NoNode, ShapeId};
use crate::cluster::Cluster;
use crate::gang::{Gang, NOT_ENOUGH_RESOURCES, State, WhyNot};
use crate::queue::{Full, QueueId, Queues};

/// Gives nodes to all gangs that can have them.
pub(crate) fn allocate(cluster: &mut Cluster<'_>) {
    let mut half_placed: Vec<Turn> = Vec::new();
    let mut lines: BTreeMap<Option<QueueId>, BinaryHeap<Turn>> = BTreeMap::new();
    for (index, gang) in cluster.gangs.iter().enumerate() {
        match Turn::of(index, gang) {
            Some(turn) if turn.is_half_placed => half_placed.push(turn),
            Some(turn) => lines.entry(gang.queue).or_default().push(turn),
            None => {}
        }
    }
    half_placed.sort_unstable_by(|one, other| other.cmp(one));
    for mut turn in half_placed {
        let queue = cluster.gangs.get(turn.gang).and_then(|gang| gang.queue);
        if start(cluster, &mut turn, Share::Ignored) && !turn.waiting.is_empty() {
            lines.entry(queue).or_default().push(turn);
        }
    }
    while let Some(queue) = lines.keys().min_by_key(|queue| cluster.queues.turn(**queue)).copied() {
        let Some(line) = lines.get_mut(&queue) else { break };
        serve(cluster, queue, line);
        if line.is_empty() {
            lines.remove(&queue);
        }
    }
    say_who_is_stuck(cluster);
}

/// Serves the first gang of a queue.
fn serve(cluster: &mut Cluster<'_>, queue: Option<QueueId>, line: &mut BinaryHeap<Turn>) {
    let Some(mut turn) = line.pop() else { return };
    if !turn.must_start {
        if grow(cluster, &mut turn) {
            line.push(turn);
        }
        return;
    }
    let has_started = start(cluster, &mut turn, Share::Kept);
    let is_fifo = queue.and_then(|id| cluster.queues.get(id)).is_some_and(|queue| queue.is_fifo);
    if has_started && !turn.waiting.is_empty() {
        line.push(turn);
    } else if !has_started && is_fifo {
        for behind in line.drain() {
            hold_behind(cluster, &behind, turn.gang);
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
}

/// Whether a queue must leave to others what is beyond its fair share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    Kept,
    Ignored,
}

/// What keeps a pod from getting a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stuck {
    /// The queue, or one above it, may not use more of something.
    Limit(Full),
    /// The queue, or one above it, has its share of something that others want too.
    Share(Full),
    /// No node will do.
    Nodes(ShapeId),
    /// The queue is first in, first out, and this gang of it comes before.
    Behind(usize),
}

/// Gives nodes to as many pods as the gang needs to start, or to none. Says whether it starts.
fn start(cluster: &mut Cluster<'_>, turn: &mut Turn, share: Share) -> bool {
    let placements = place(cluster, turn.gang, turn.waiting.iter().rev(), share);
    let Some(gang) = cluster.gangs.get_mut(turn.gang) else { return false };
    match placements {
        Ok(placements) => {
            for Placement { member, host, .. } in placements {
                if let Some(member) = gang.members.get_mut(member) {
                    member.state = State::Placed(host);
                }
            }
            turn.waiting.retain(|index| gang.is_waiting(*index));
            turn.must_start = false;
            turn.is_half_placed = false;
            true
        }
        Err(obstacle) => {
            gang.why_not = Some(obstacle.why_not(gang));
            false
        }
    }
}

/// A pod of a gang, and the node found for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    member: usize,
    shape: ShapeId,
    pub(crate) host: usize,
}

/// Finds nodes for as many of the waiting pods as the gang needs to start, and takes the room there. If that cannot be, it
/// takes none and says why.
pub(crate) fn place<'w>(
    cluster: &mut Cluster<'_>,
    gang: usize,
    waiting: impl Iterator<Item = &'w usize> + Clone,
    share: Share,
) -> Result<Vec<Placement>, Obstacle> {
    let Cluster { board, queues, gangs, .. } = &mut *cluster;
    let Some(gang) = gangs.get(gang) else { return Err(Obstacle::default()) };
    // What could never start cannot take anything from others; let it find out why.
    let mut share = if gang.is_possible { share } else { Share::Ignored };
    let mut shortfall = gang.shortfall();
    let mut is_placed = vec![false; gang.members.len()];
    let mut placements: Vec<Placement> = Vec::new();
    let mut stuck: BTreeMap<usize, Stuck> = BTreeMap::new();
    board.begin();
    // First the pods without which a task has too few, then any others.
    for only_missing_tasks in [true, false] {
        for index in waiting.clone() {
            let (Some(member), Some(is_placed)) = (gang.members.get(*index), is_placed.get_mut(*index))
            else {
                continue;
            };
            let State::Waiting(shape) = member.state else { continue };
            if !shortfall.needs(member.task, only_missing_tasks) || *is_placed {
                continue;
            }
            match put(queues, board, gang.queue, shape, share) {
                Ok(host) => {
                    *is_placed = true;
                    stuck.remove(index);
                    shortfall.fill(member.task);
                    placements.push(Placement { member: *index, shape, host });
                    // A gang is never stopped half-way by its queue's share: it may reach beyond it once.
                    share = Share::Ignored;
                }
                Err(reason) => drop(stuck.insert(*index, reason)),
            }
        }
    }
    if shortfall.is_nothing() {
        return Ok(placements);
    }
    let queue = gang.queue;
    let obstacle = Obstacle::of(stuck.values(), cluster);
    let Cluster { board, queues, .. } = cluster;
    board.undo();
    for Placement { shape, .. } in placements {
        if let (Some(queue), Some(needs)) = (queue, board.needs(shape)) {
            queues.give_back(queue, needs);
        }
    }
    Err(obstacle)
}

/// Places one more pod of a gang that has started. Says whether to go on with it.
fn grow(cluster: &mut Cluster<'_>, turn: &mut Turn) -> bool {
    let Cluster { board, queues, gangs, .. } = cluster;
    let Some(gang) = gangs.get_mut(turn.gang) else { return false };
    let Some(index) = turn.waiting.pop() else { return false };
    let Some(member) = gang.members.get_mut(index) else { return false };
    if let State::Waiting(shape) = member.state {
        board.begin();
        match put(queues, board, gang.queue, shape, Share::Kept) {
            Ok(host) => member.state = State::Placed(host),
            Err(stuck) => drop(gang.stuck.insert(shape, (index, stuck))),
        }
    }
    !turn.waiting.is_empty()
}

/// Puts into words why gangs that run do not grow. All nodes are given by now: what is true of one pod of a shape is true
/// of all.
fn say_who_is_stuck(cluster: &mut Cluster<'_>) {
    let mut sentences: BTreeMap<Stuck, String> = BTreeMap::new();
    for index in 0..cluster.gangs.len() {
        let Some(gang) = cluster.gangs.get_mut(index).filter(|gang| !gang.gets_nodes()) else { continue };
        for (member, stuck) in std::mem::take(&mut gang.stuck).into_values() {
            let sentence = sentences.entry(stuck).or_insert_with(|| stuck.explain(cluster).sentence).clone();
            let gang = cluster.gangs.get_mut(index);
            if let Some(member) = gang.and_then(|gang| gang.members.get_mut(member)) {
                member.why_not = Some(sentence);
            }
        }
    }
}

/// Puts one pod on a node, within what its queue may use.
fn put(
    queues: &mut Queues<'_>,
    board: &mut Board<'_>,
    queue: Option<QueueId>,
    shape: ShapeId,
    share: Share,
) -> Result<usize, Stuck> {
    let nowhere = Stuck::Nodes(shape);
    let needs = board.needs(shape).ok_or(nowhere)?.clone();
    if let Some(full) = queue.and_then(|queue| queues.full(queue, &needs)) {
        return Err(Stuck::Limit(full));
    }
    let host = board.find(shape).ok_or(nowhere)?;
    if let Some(queue) = queue {
        if let Some(full) = queues.over_share(queue, &needs).filter(|_| share == Share::Kept) {
            return Err(Stuck::Share(full));
        }
        queues.allocate(queue, &needs);
    }
    board.put(shape, host);
    Ok(host)
}

impl Stuck {
    fn explain(self, cluster: &Cluster<'_>) -> NoNode {
        let Cluster { names, board, queues, .. } = cluster;
        let (lacks, sentence) = match self {
            Stuck::Limit(Full { queue, place }) => {
                let (queue, name) = (queues.name(queue), names.name(place));
                (format!("over queue {queue}'s limit"), format!("queue {queue} may not use more {name}"))
            }
            Stuck::Share(Full { queue, place }) => {
                let (queue, name) = (queues.name(queue), names.name(place));
                let sentence = format!("queue {queue} has its share of {name}, and others wait for it");
                (format!("over queue {queue}'s share"), sentence)
            }
            Stuck::Nodes(shape) => return board.why_not(shape, names),
            Stuck::Behind(before) => ("its turn".to_owned(), waits_behind(cluster, before)),
        };
        NoNode { lacks, sentence }
    }
}

/// How many different answers are looked into: pods of a gang are mostly alike.
const ANSWERS_MAX: usize = 16;

/// What keeps a gang from starting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// How many of its pods lack what.
    lacks: BTreeMap<String, usize>,
    /// One sentence about the first of them, or about all.
    because: String,
}

impl Obstacle {
    /// What these pods ran into.
    fn of<'s>(stuck: impl Iterator<Item = &'s Stuck>, cluster: &Cluster<'_>) -> Obstacle {
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
            let NoNode { lacks, sentence } = answer.explain(cluster);
            *obstacle.lacks.entry(lacks).or_default() += n_pods;
            if obstacle.because.is_empty() {
                obstacle.because = sentence;
            }
        }
        obstacle
    }

    /// What concerns the gang as a whole.
    pub(crate) fn whole(because: &str) -> Obstacle {
        Obstacle { lacks: BTreeMap::new(), because: because.to_owned() }
    }

    /// Volcano's sentence, which ends in what pods lack and in one reason in full.
    pub(crate) fn why_not(&self, gang: &Gang<'_>) -> WhyNot {
        let Obstacle { lacks, because } = self;
        if gang.podgroup.is_none() {
            return WhyNot { reason: NOT_ENOUGH_RESOURCES, message: because.clone() };
        }
        let (n_waiting, n_members) = (gang.waiting().len(), gang.members.len());
        let (summary, min_member) = (gang.summary(), gang.min_member);
        let lacks: Vec<String> = lacks.iter().map(|(what, n_pods)| format!("{n_pods} {what}")).collect();
        let pending =
            if lacks.is_empty() { String::new() } else { format!("Pending: {}; ", lacks.join(", ")) };
        let message = format!(
            "{n_waiting}/{n_members} tasks in gang unschedulable: pod group is not ready, \
             {summary}, {min_member} minAvailable; {pending}{because}"
        );
        WhyNot { reason: NOT_ENOUGH_RESOURCES, message }
    }
}

/// In a queue that is first in, first out, a gang waits for the one before it: to start, or to grow.
fn hold_behind(cluster: &mut Cluster<'_>, turn: &Turn, before: usize) {
    let because = waits_behind(cluster, before);
    let Some(gang) = cluster.gangs.get_mut(turn.gang) else { return };
    if turn.must_start {
        gang.why_not = Some(Obstacle::whole(&because).why_not(gang));
        return;
    }
    for index in turn.waiting.iter().rev() {
        if let Some(State::Waiting(shape)) = gang.members.get(*index).map(|member| member.state) {
            gang.stuck.insert(shape, (*index, Stuck::Behind(before)));
        }
    }
}

fn waits_behind(cluster: &Cluster<'_>, before: usize) -> String {
    let before = cluster.gangs.get(before).and_then(Gang::object).map(|object| object.meta.key.clone());
    format!("waits behind {} in its first in, first out queue", before.unwrap_or_default())
}
