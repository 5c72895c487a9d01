//! Giving away what nobody below its share can use.
//!
//! ```text
//!   a gang waits because its queue has its share
//!      └─ imagine that the pods of all queues that have their shares are gone
//!      └─ put there the gangs of queues below their shares that found no room: they are ghosts
//!      └─ bring the pods back beside the ghosts
//!      └─ what is free now, nobody below its share can use: serve the gangs that wait from that
//! ```
//!
//! Without the ghosts a queue that has its share would fill every gap, and a large gang of another queue would never find
//! one. Without this step the gaps that are of no use to that gang, on nodes where it may not run for instance, would lie
//! idle for as long as it waits.

use crate::allocate;
use crate::board::ShapeId;
use crate::cluster::Cluster;
use crate::gang::{Gang, State};
use crate::place::{Placement, Share};
use crate::queue::QueueId;
use crate::reclaim::Tenant;
use crate::resources::Amounts;

/// A pod that would get this node if those were gone that have more than their share.
#[derive(Clone, Copy, Debug)]
struct Ghost {
    queue: QueueId,
    shape: ShapeId,
    host: usize,
}

/// Serves gangs of queues that have their shares with what others cannot use.
pub(crate) fn hand_out(cluster: &mut Cluster<'_>) {
    if !cluster.gangs.iter().any(|gang| gang.waits.for_share) {
        return;
    }
    let ghosts = ghosts(cluster);
    let mut left = cluster.board.hosts.room();
    left.sub(&awaited(cluster));
    allocate::serve_leftovers(cluster, left);
    for Ghost { queue, shape, host } in ghosts {
        let Cluster { board, queues, .. } = cluster;
        if let Some(needs) = board.needs(shape) {
            queues.give_back(queue, needs, board.hosts.ground(Some(host)));
        }
        board.give_room_back(shape, host);
    }
    cluster.board.renew_hope();
}

/// What queues below their shares would take. Their room is taken on the board when this returns; as neighbours of other
/// pods they do not count, because they are not there.
fn ghosts(cluster: &mut Cluster<'_>) -> Vec<Ghost> {
    let mut claimants: Vec<usize> =
        (0..cluster.gangs.len()).filter(|index| is_claimant(cluster, *index)).collect();
    if claimants.is_empty() {
        return Vec::new();
    }
    let away = those_who_would_go(cluster);
    cluster.board.lose_order();
    away.iter().for_each(|tenant| tenant.leave(cluster));
    cluster.board.renew_hope();
    // In the order in which they would get it.
    claimants.sort_by_cached_key(|index| {
        let gang = cluster.gangs.get(*index);
        (gang.and_then(|gang| gang.queue).map(|queue| cluster.queues.turn(queue)), gang.map(Gang::rank))
    });
    let mut ghosts = Vec::new();
    for gang in claimants {
        let Some(queue) = cluster.gangs.get(gang).and_then(|gang| gang.queue) else { continue };
        let placements = allocate::place_or_grow(cluster, gang, Share::Kept);
        ghosts.extend(placements.into_iter().map(|Placement { shape, host, .. }| Ghost {
            queue,
            shape,
            host,
        }));
    }
    cluster.board.lose_order();
    away.iter().for_each(|tenant| tenant.return_to(cluster));
    for Ghost { shape, host, .. } in &ghosts {
        cluster.board.fade(*shape, *host);
    }
    ghosts
}

/// Whether a gang found no room that would have had it by its queue's share.
fn is_claimant(cluster: &Cluster<'_>, index: usize) -> bool {
    cluster.gangs.get(index).is_some_and(|gang| gang.waits.for_room && gang.is_possible)
}

/// What is kept for pods of queues below their shares that are not made yet. Where they will go nobody knows.
fn awaited(cluster: &Cluster<'_>) -> Amounts {
    let mut awaited = Amounts::default();
    for gang in cluster.gangs.iter().filter(|gang| gang.is_admitted() && !gang.has_enough_pods()) {
        let reserved = gang.reserved();
        let has_its_share = |queue| cluster.queues.over_share(queue, &reserved).is_some();
        if !gang.queue.is_none_or(has_its_share) {
            awaited.add(&reserved);
        }
    }
    awaited
}

/// The pods that are leaving, and those of queues that have their shares: the ones that were there before and the ones that
/// this decision puts there.
fn those_who_would_go<'a>(cluster: &mut Cluster<'a>) -> Vec<Tenant<'a>> {
    let Cluster { names, gangs, lone, leaving, queues, .. } = cluster;
    let has_its_share = |tenant: &Tenant<'a>| {
        tenant.queue.is_some_and(|queue| queues.over_share(queue, &tenant.uses).is_some())
    };
    let mut tenants: Vec<Tenant<'a>> = lone.iter().filter(|tenant| has_its_share(tenant)).cloned().collect();
    for gang in gangs.iter() {
        for member in &gang.members {
            let (host, uses) = match member.state {
                State::Placed(host) => {
                    (Some(host), member.object.as_pod().map(|pod| names.of_pod(&pod.spec)))
                }
                State::Bound | State::Running => (member.host, Some(member.uses.clone())),
                State::Waiting(_)
                | State::Gated
                | State::Leaving
                | State::Cancelled
                | State::Succeeded
                | State::Failed => continue,
            };
            let (Some(host), Some(uses)) = (host, uses) else { continue };
            tenants.push(Tenant {
                object: member.object,
                queue: gang.queue,
                host,
                uses,
                priority: gang.priority,
            });
        }
    }
    tenants.retain(has_its_share);
    tenants.extend(leaving.iter().cloned());
    tenants
}
