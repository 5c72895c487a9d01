//! Giving nodes to gangs, all or nothing.
//!
//! Gangs come in this order: those of which a part already has nodes (a plan was cut short), then by priority, then those
//! that cannot start yet before those that could grow, then by age. A gang that finds no room does not hold back the
//! others. Volcano: the allocate action.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use krafla_api::{Key, Time};

use crate::admit::NOT_ENOUGH_RESOURCES;
use crate::board::ShapeId;
use crate::cluster::Cluster;
use crate::gang::{Gang, State, WhyNot};

/// Gives nodes to all gangs that can have them.
pub(crate) fn allocate(cluster: &mut Cluster<'_>) {
    let gangs = cluster.gangs.iter().enumerate();
    let mut turns: BinaryHeap<Turn> = gangs.filter_map(|(index, gang)| Turn::of(index, gang)).collect();
    while let Some(mut turn) = turns.pop() {
        let goes_on = if turn.must_start { start(cluster, &mut turn) } else { grow(cluster, &mut turn) };
        if goes_on && !turn.waiting.is_empty() {
            turns.push(turn);
        }
    }
}

/// A gang's place in the line; the greatest comes first.
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

/// Places as many pods as the gang needs to start, or none. Says whether it starts.
fn start(cluster: &mut Cluster<'_>, turn: &mut Turn) -> bool {
    let Cluster { names, board, gangs } = cluster;
    let Some(gang) = gangs.get_mut(turn.gang) else { return false };
    let mut shortfall = gang.shortfall();
    let mut placed: Vec<(usize, ShapeId)> = Vec::new();
    let mut stuck = None;
    board.begin();
    // First the pods without which a task has too few, then any others.
    for only_missing_tasks in [true, false] {
        for index in turn.waiting.iter().rev() {
            let Some(member) = gang.members.get_mut(*index) else { continue };
            let State::Waiting(shape) = member.state else { continue };
            let is_needed =
                if only_missing_tasks { shortfall.needs_task(member.task) } else { shortfall.needs_pods() };
            if !is_needed {
                continue;
            }
            match board.put(shape) {
                Some(host) => {
                    member.state = State::Placed(host);
                    shortfall.fill(member.task);
                    placed.push((*index, shape));
                }
                None => stuck = stuck.or(Some(shape)),
            }
        }
    }
    if shortfall.is_nothing() {
        turn.waiting.retain(|index| gang.is_waiting(*index));
        turn.must_start = false;
        turn.is_half_placed = false;
        return true;
    }
    let nodes = stuck.map(|shape| board.why_not(shape, names)).unwrap_or_default();
    board.undo();
    for (index, shape) in placed {
        if let Some(member) = gang.members.get_mut(index) {
            member.state = State::Waiting(shape);
        }
    }
    gang.why_not = Some(unschedulable(gang, &nodes));
    false
}

/// Places one more pod of a gang that has started. Says whether to go on with it.
fn grow(cluster: &mut Cluster<'_>, turn: &mut Turn) -> bool {
    let Some(gang) = cluster.gangs.get_mut(turn.gang) else { return false };
    let Some(member) = turn.waiting.pop().and_then(|index| gang.members.get_mut(index)) else { return false };
    let State::Waiting(shape) = member.state else { return true };
    cluster.board.begin();
    if let Some(host) = cluster.board.put(shape) {
        member.state = State::Placed(host);
    }
    true
}

/// Volcano's sentence, with Kubernetes' account of the nodes behind it.
fn unschedulable(gang: &Gang<'_>, nodes: &str) -> WhyNot {
    let (n_waiting, n_members) = (gang.waiting().len(), gang.members.len());
    let summary = gang.summary();
    let gang_says =
        format!("{n_waiting}/{n_members} tasks in gang unschedulable: pod group is not ready, {summary}");
    let message = if gang.podgroup.is_none() { nodes.to_owned() } else { format!("{gang_says}; {nodes}") };
    WhyNot { reason: NOT_ENOUGH_RESOURCES, message }
}
