//! Letting gangs in: a PodGroup becomes Inqueue when what it needs at least is there, and only then does the Job
//! controller make its pods. Volcano: the enqueue action and the overcommit plugin.

use std::time::Duration;

use krafla_api::Time;
use krafla_api::volcano::PodGroupPhase;

use crate::cluster::Cluster;
use crate::gang::{Gang, WhyNot};
use crate::resources::Amounts;

/// Gangs are let in up to this part of the cluster's resources, in percent: a few more than fit, so that pods wait for
/// nodes and not the other way round. Volcano's default.
const OVERCOMMIT_PERCENT: i64 = 120;

/// How long the pods of a young gang may take to be made before that is worth a word.
const PATIENCE: Duration = Duration::from_secs(30);

/// Volcano's words for a gang that waits for room, and for one that waits for pods.
pub(crate) const NOT_ENOUGH_RESOURCES: &str = "NotEnoughResources";
const NOT_ENOUGH_TASKS: &str = "NotEnoughTasks";

/// Lets in all gangs for which there is room, the first in line first.
pub(crate) fn admit(cluster: &mut Cluster<'_>) {
    let mut left = room_left(cluster);
    let mut line: Vec<usize> = (0..cluster.gangs.len()).collect();
    line.retain(|index| cluster.gangs.get(*index).is_some_and(|gang| !gang.is_admitted()));
    line.sort_by_key(|index| cluster.gangs.get(*index).map(Gang::rank));
    for index in line {
        let Cluster { names, gangs, .. } = cluster;
        let Some(gang) = gangs.get_mut(index) else { continue };
        let needs = gang.min_resources().map(|list| names.amounts(list)).unwrap_or_default();
        let short: Vec<&str> = needs.shortages(&left).map(|place| names.name(place)).collect();
        if short.is_empty() {
            left.sub(&needs);
            gang.phase = PodGroupPhase::Inqueue;
        } else {
            let message = format!("not admitted: the cluster has not enough {} left", short.join(", "));
            gang.why_not = Some(WhyNot { reason: NOT_ENOUGH_RESOURCES, message });
        }
    }
}

/// Says so when the pods of a gang that was let in do not come. Answers when to look again, if that is too early to say.
pub(crate) fn await_pods(cluster: &mut Cluster<'_>, now: Time) -> Option<Time> {
    let mut look_again_at: Option<Time> = None;
    for gang in cluster.gangs.iter_mut().filter(|gang| gang.was_let_in_before()) {
        let created_at = gang.object().and_then(|object| object.meta.created_at);
        let due_at = created_at.map_or(now, |at| at.after(PATIENCE));
        if gang.has_enough_pods() {
            continue;
        } else if due_at <= now {
            gang.why_not = Some(WhyNot { reason: NOT_ENOUGH_TASKS, message: gang.too_few_pods() });
        } else {
            look_again_at = Some(look_again_at.map_or(due_at, |at| at.min(due_at)));
        }
    }
    look_again_at
}

/// What the cluster has beside what is used and what has been promised to gangs that were let in.
fn room_left(cluster: &mut Cluster<'_>) -> Amounts {
    let Cluster { names, board, gangs } = cluster;
    let mut left = board.hosts.total().percent(OVERCOMMIT_PERCENT);
    left.sub(&board.hosts.used());
    for gang in gangs.iter().filter(|gang| gang.phase == PodGroupPhase::Inqueue) {
        let mut promised = gang.min_resources().map(|list| names.amounts(list)).unwrap_or_default();
        promised.sub(&gang.allocated);
        promised.clear_overdrawn();
        left.sub(&promised);
    }
    left
}
