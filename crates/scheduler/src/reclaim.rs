//! Taking back what is due: pods of queues beyond their share make room for a gang whose queue is below its own.
//!
//! ```text
//!   gang that finds no room, in a queue that would stay within its share
//!      └─ would the pods that are leaving already make room?      wait for them
//!      └─ else: pods that queues beyond their share can spare,
//!               the least important and youngest first            delete them, and wait
//! ```
//!
//! A queue spares only what is beyond its share, only if it is reclaimable, and a gang only pods beyond its minimum: no
//! gang is broken to start another. Volcano: the reclaim action, which its default configuration leaves out.

use std::cmp::Reverse;

use krafla_api::{Key, Time};
use krafla_plan::{Object, Step};

use crate::allocate::{self, Obstacle, Placement, Share};
use crate::cluster::Cluster;
use crate::gang::{Gang, NOT_ENOUGH_RESOURCES};
use crate::queue::QueueId;
use crate::resources::Amounts;

/// A pod that uses room on a node.
#[derive(Clone, Debug)]
pub(crate) struct Tenant<'a> {
    pub(crate) object: &'a Object,
    pub(crate) queue: Option<QueueId>,
    pub(crate) host: usize,
    pub(crate) uses: Amounts,
}

/// The pods that must go so that gangs which are due can start. Nobody is bound by this: the room is free when the pods
/// are gone, and until then the gangs say that they wait for it.
pub(crate) fn reclaim<'a>(cluster: &mut Cluster<'a>) -> Vec<Tenant<'a>> {
    let mut due: Vec<usize> = (0..cluster.gangs.len()).collect();
    due.retain(|index| cluster.gangs.get(*index).is_some_and(is_due));
    due.sort_by_key(|index| cluster.gangs.get(*index).map(Gang::rank));
    let mut victims = Vec::new();
    if due.is_empty() {
        return victims;
    }
    let mut spare = spare(cluster);
    for tenant in std::mem::take(&mut cluster.leaving) {
        vacate(cluster, &tenant);
    }
    for gang in due {
        let tenants = match place(cluster, gang) {
            Some(_) => Some(Vec::new()),
            None => make_room(cluster, gang, &mut spare),
        };
        if let (Some(tenants), Some(gang)) = (tenants, cluster.gangs.get_mut(gang)) {
            gang.why_not = Some(Obstacle::whole("waits for pods that are leaving").why_not(gang));
            victims.extend(tenants);
        }
    }
    victims
}

fn is_due(gang: &Gang<'_>) -> bool {
    let finds_no_room = gang.why_not.as_ref().is_some_and(|why_not| why_not.reason == NOT_ENOUGH_RESOURCES);
    finds_no_room && gang.is_admitted() && gang.is_possible && gang.has_enough_pods()
}

/// The pods that their gangs can do without, the first to go first.
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
            spare.push((importance, Tenant { object, queue: gang.queue, host, uses: member.uses.clone() }));
        }
    }
    spare.sort_by_key(|(importance, _)| *importance);
    spare.into_iter().map(|(_, tenant)| tenant).collect()
}

/// The priorities of a pod's queue, of its gang and its own, then its age: what is least goes first.
type Importance<'a> = (i32, i32, i32, Reverse<Option<Time>>, &'a Key);

/// The pods that must go for a gang to start, if their going helps. Their room is then the gang's on the board, and they
/// are no longer among the spare ones.
fn make_room<'a>(
    cluster: &mut Cluster<'a>,
    gang: usize,
    spare: &mut Vec<Tenant<'a>>,
) -> Option<Vec<Tenant<'a>>> {
    let queue = cluster.gangs.get(gang)?.queue?;
    let needs = cluster.needs_to_start(gang)?;
    if !cluster.queues.is_below_share(queue, &needs) {
        return None;
    }
    let mut vacated: Vec<usize> = Vec::new();
    for (index, tenant) in spare.iter().enumerate() {
        if !may_take_from(cluster, tenant, queue, &needs) {
            continue;
        }
        vacate(cluster, tenant);
        vacated.push(index);
        let could_do =
            needs.fits_in(&cluster.board.hosts.free()) && cluster.queues.is_within_shares(queue, &needs);
        if let Some(placements) = could_do.then(|| place(cluster, gang)).flatten() {
            return Some(keep_the_useless(cluster, spare, &vacated, &placements));
        }
    }
    for tenant in vacated.iter().filter_map(|index| spare.get(*index)) {
        move_back(cluster, tenant);
    }
    None
}

/// Of the pods that were to go, those whose room the gang does not use may stay.
fn keep_the_useless<'a>(
    cluster: &mut Cluster<'a>,
    spare: &mut Vec<Tenant<'a>>,
    vacated: &[usize],
    placements: &[Placement],
) -> Vec<Tenant<'a>> {
    let mut victims = Vec::new();
    let mut still_spare = Vec::new();
    for (index, tenant) in spare.drain(..).enumerate() {
        let has_gone = vacated.contains(&index);
        if has_gone && placements.iter().any(|placement| placement.host == tenant.host) {
            victims.push(tenant);
            continue;
        }
        if has_gone {
            move_back(cluster, &tenant);
        }
        still_spare.push(tenant);
    }
    *spare = still_spare;
    victims
}

/// Whether a pod's queue has to give back something that the gang needs and that the pod has.
fn may_take_from(cluster: &Cluster<'_>, tenant: &Tenant<'_>, to: QueueId, needs: &Amounts) -> bool {
    let Some(from) = tenant.queue else { return false };
    cluster.queues.must_give_back(from, to, |place| needs.get(place) > 0 && tenant.uses.get(place) > 0)
}

fn place(cluster: &mut Cluster<'_>, gang: usize) -> Option<Vec<Placement>> {
    let waiting = cluster.gangs.get(gang)?.waiting();
    allocate::place(cluster, gang, waiting.iter(), Share::Kept).ok()
}

fn vacate<'a>(cluster: &mut Cluster<'a>, tenant: &Tenant<'a>) {
    cluster.board.vacate(tenant.object, tenant.host, &tenant.uses);
    if let Some(queue) = tenant.queue {
        cluster.queues.give_back(queue, &tenant.uses);
    }
}

fn move_back<'a>(cluster: &mut Cluster<'a>, tenant: &Tenant<'a>) {
    cluster.board.occupy(tenant.object, tenant.host, &tenant.uses);
    if let Some(queue) = tenant.queue {
        cluster.queues.allocate(queue, &tenant.uses);
    }
}

/// The deletion of a pod that must go.
pub(crate) fn eviction(tenant: &Tenant<'_>) -> Step {
    Step::delete(tenant.object)
}
