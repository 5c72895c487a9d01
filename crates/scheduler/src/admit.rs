//! Letting gangs in: a PodGroup becomes Inqueue when what it needs at least is there, and only then does the Job
//! controller make its pods. Volcano: the enqueue action and the overcommit plugin.

use std::collections::BTreeMap;

use krafla_api::Time;
use krafla_api::volcano::PodGroupPhase;
use krafla_plan::Object;
use krafla_why::{Name, Reason};

use crate::allocate::waits_behind;
use crate::cluster::Cluster;
use crate::gang::{Gang, NOT_ENOUGH_RESOURCES, PATIENCE, QUEUE_NOT_FOUND, WhyNot};
use crate::queue::QueueId;
use crate::resources::Amounts;

/// Gangs are let in up to this part of the cluster's resources, in percent: a few more than fit, so that pods wait for
/// nodes and not the other way round. Volcano's default.
const OVERCOMMIT_PERCENT: i64 = 120;

/// The word for a gang whose queue does not take it.
const QUEUE_CLOSED: &str = "QueueClosed";

/// Lets in all gangs for which there is room, the first in line first. Behind one that has to wait in a queue that is first
/// in, first out, all others of that queue wait too.
pub(crate) fn admit(cluster: &mut Cluster<'_>) {
    let mut left = room_left(cluster);
    let spare = spare_by_priority(cluster);
    let mut line: Vec<usize> = (0..cluster.gangs.len()).collect();
    line.retain(|index| cluster.gangs.get(*index).is_some_and(|gang| !gang.is_admitted()));
    line.sort_by_cached_key(|index| cluster.gangs.get(*index).map(|gang| place_in_line(cluster, gang)));
    let mut held: BTreeMap<QueueId, usize> = BTreeMap::new();
    for index in line {
        let Some(gang) = cluster.gangs.get(index) else { continue };
        let before = gang.queue.and_then(|queue| held.get(&queue));
        let answer = match before {
            Some(before) => Err(no(NOT_ENOUGH_RESOURCES, waits_behind(cluster, *before))),
            None => may_enter(cluster, gang, &left_for(gang, &left, &spare)),
        };
        let finds_no_room = answer.as_ref().is_err_and(|why_not| why_not.reason == NOT_ENOUGH_RESOURCES);
        if let Some(queue) = gang.queue.filter(|queue| finds_no_room && is_fifo(cluster, *queue)) {
            held.entry(queue).or_insert(index);
        }
        let reserved = gang.reserved();
        let Cluster { queues, gangs, .. } = cluster;
        let Some(gang) = gangs.get_mut(index) else { continue };
        match answer {
            Ok(queue) => {
                queues.promise(queue, &reserved);
                left.sub(&reserved);
                gang.phase = PodGroupPhase::Inqueue;
            }
            Err(why_not) => gang.why_not = Some(why_not),
        }
    }
}

fn is_fifo(cluster: &Cluster<'_>, queue: QueueId) -> bool {
    cluster.queues.get(queue).is_some_and(|queue| queue.is_fifo)
}

fn no(word: &'static str, because: Reason) -> WhyNot {
    WhyNot::new(word, &Reason::NotAdmitted { because: Box::new(because) })
}

/// Queues by priority; within a queue the highest priority, among equals the oldest.
fn place_in_line<'a>(cluster: &Cluster<'a>, gang: &Gang<'a>) -> impl Ord + use<'a> {
    let queue = gang.queue.and_then(|id| cluster.queues.get(id));
    (std::cmp::Reverse(queue.map(|queue| queue.priority)), gang.rank())
}

/// The queue that a gang may enter, or why it may not. What is left is not told in numbers: it changes with every pod, and
/// every waiting gang would be written each time.
fn may_enter(cluster: &Cluster<'_>, gang: &Gang<'_>, left: &Amounts) -> Result<QueueId, WhyNot> {
    let Cluster { names, queues, board, .. } = cluster;
    let Some((id, queue)) = gang.queue.and_then(|id| Some((id, queues.get(id)?))) else {
        return Err(no(QUEUE_NOT_FOUND, Reason::NoQueue { queue: gang.wanted_queue().into() }));
    };
    if !queue.is_open {
        return Err(no(QUEUE_CLOSED, Reason::QueueIsClosed { queue: queue.name.into() }));
    }
    let needs = gang.promised();
    let amount = |place: usize, units: i64| Name::from(names.amount(place, units).to_string());
    let need = |place: usize| (amount(place, needs.get(place)), Name::from(names.name(place)));
    if let Some(full) = queues.full_for_gang(id, &needs) {
        let (queue, units) = (queues.name(full.queue).into(), queues.limit(full));
        let ((need, resource), limit) = (need(full.place), amount(full.place, units));
        let because = if needs.get(full.place) > units {
            Reason::NeverFitsQueue { need, resource, queue, limit }
        } else {
            Reason::QueueFull { need, resource, queue, limit }
        };
        return Err(no(NOT_ENOUGH_RESOURCES, because));
    }
    // What pods tolerate is not known before they are made: a gang for cordoned nodes is let in by what the others have.
    let total = board.total();
    // Before there is any node, nobody knows what will fit.
    if let Some(place) = needs.shortages(total).next().filter(|_| board.hosts.open().next().is_some()) {
        let ((need, resource), limit) = (need(place), amount(place, total.get(place)));
        return Err(no(NOT_ENOUGH_RESOURCES, Reason::NeverFitsNodes { need, resource, limit }));
    }
    // A queue below its fair share gets its gangs in even when others have filled the cluster: those will have to wait.
    match needs.shortages(left).next().filter(|_| !queues.is_entitled(id, &needs)) {
        Some(place) => {
            let ((need, resource), limit) = (need(place), amount(place, total.get(place)));
            Err(no(NOT_ENOUGH_RESOURCES, Reason::ClusterFull { need, resource, limit }))
        }
        None => Ok(id),
    }
}

/// What pods have that may have to go for others of their queue, by queue and by the priority of their gangs.
type Spare = BTreeMap<QueueId, BTreeMap<i32, Amounts>>;

fn spare_by_priority(cluster: &Cluster<'_>) -> Spare {
    let mut spare = Spare::new();
    for gang in cluster.gangs.iter().filter(|_| cluster.preempts) {
        let Some(queue) = gang.queue else { continue };
        for member in gang.spare_members() {
            spare.entry(queue).or_default().entry(gang.priority).or_default().add(&member.uses);
        }
    }
    spare
}

/// What is left for a gang: what is free, and what it may take from gangs with a lower priority.
fn left_for(gang: &Gang<'_>, left: &Amounts, spare: &Spare) -> Amounts {
    let mut left = left.clone();
    let of_queue = gang.queue.and_then(|queue| spare.get(&queue)).into_iter().flatten();
    of_queue.filter(|(priority, _)| **priority < gang.priority).for_each(|(_, amounts)| left.add(amounts));
    left
}

/// Says so when pods that a gang needs do not come. Answers when to look again, if it is too early to say.
pub(crate) fn await_pods(cluster: &mut Cluster<'_>, now: Time) -> Option<Time> {
    let mut look_again_at: Option<Time> = None;
    for gang in cluster.gangs.iter_mut().filter(|gang| gang.awaits_pods() && !gang.has_enough_pods()) {
        match due_at(gang.last_grown_at(), now) {
            None => {
                gang.why_not = Some(gang.too_few_pods());
                // What is kept for it is given up later, which others must not miss.
                let gives_up_at = due_at(gang.lacks_pods_since().or(Some(now)), now);
                look_again_at = earlier(look_again_at, gives_up_at.filter(|_| !gang.is_blocked));
            }
            Some(at) => look_again_at = earlier(look_again_at, at),
        }
    }
    look_again_at
}

/// The pods whose PodGroup does not come, with what is to be said of each. Answers when to look again, if it is too early
/// to say.
pub(crate) fn await_podgroups<'a>(
    cluster: &Cluster<'a>,
    now: Time,
) -> (Vec<(&'a Object, String)>, Option<Time>) {
    let (mut orphans, mut look_again_at) = (Vec::new(), None);
    for ((_, group), pods) in &cluster.orphans {
        // The last of them speaks for all: a gang may be on its way out, of which the PodGroup goes first.
        match due_at(pods.iter().filter_map(|pod| pod.meta.created_at).max(), now) {
            None => orphans.extend(pods.iter().map(|pod| (*pod, podgroup_missing(group)))),
            Some(at) => look_again_at = earlier(look_again_at, at),
        }
    }
    (orphans, look_again_at)
}

fn podgroup_missing(group: &str) -> String {
    Reason::NotFound { kind: "podgroup".into(), name: group.into() }.to_string()
}

/// When patience ends, if it has not ended already.
fn due_at(since: Option<Time>, now: Time) -> Option<Time> {
    since.map(|at| at.after(PATIENCE)).filter(|due_at| *due_at > now)
}

pub(crate) fn earlier(one: Option<Time>, other: impl Into<Option<Time>>) -> Option<Time> {
    [one, other.into()].into_iter().flatten().min()
}

/// What the cluster has beside what is used and what has been promised to gangs that were let in.
fn room_left(cluster: &Cluster<'_>) -> Amounts {
    let board = &cluster.board;
    let mut left = board.total().percent(OVERCOMMIT_PERCENT);
    left.sub(&board.hosts.used());
    for gang in cluster.gangs.iter().filter(|gang| gang.phase == PodGroupPhase::Inqueue) {
        left.sub(&gang.reserved());
    }
    left
}
