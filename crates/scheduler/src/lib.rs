//! The gang scheduler: which pods go where, decided as a pure function over the whole cluster.
//!
//! ```text
//!   Objects ── observe ──> Cluster { nodes, gangs, queues }
//!                             │ admit      PodGroups for which there is room get Inqueue, so that their pods are made
//!                             │ allocate   gangs get nodes, all or nothing
//!                             │ reclaim    if asked for: queues give back what is beyond their share
//!                             v
//!                           Plan           bind pods, write status, delete pods that must go
//! ```
//!
//! There is one decision for the whole cluster, because every gang competes with every other for the same nodes. Its root
//! is the queue `root`, of which all queues are children.
//!
//! **Invariant:** a gang gets nodes for at least as many pods as it needs to start, or for none.

mod admit;
mod allocate;
mod board;
mod cluster;
mod demand;
mod fit;
mod gang;
mod neighbours;
mod node;
mod pod;
mod podgroup;
mod queue;
mod queue_status;
mod reclaim;
mod resources;
mod share;
#[cfg(test)]
mod tests;

use krafla_api::{Key, Kind, Time};
use krafla_plan::{Controller, Object, Objects, Plan, Snapshot, Step};

use crate::cluster::Cluster;
use crate::gang::{Gang, State};

/// The gang scheduler.
#[derive(Clone, Debug)]
pub struct Scheduler {
    /// Pods that name one of these in `spec.schedulerName` are placed with their PodGroup, and wait until they have one: before
    /// that nobody knows in which queue they are, nor with how many others they must start.
    pub gang_names: Vec<String>,
    /// Pods that name one of these are placed too, and alone if they are in no PodGroup. Pods of others are only counted.
    pub lone_names: Vec<String>,
    /// Whether pods of queues beyond their share are deleted for gangs of queues below theirs. As in Volcano, this is a
    /// choice: without it, a queue waits until others have finished.
    pub reclaims: bool,
}

impl Default for Scheduler {
    /// Places the pods of Volcano and those that name no scheduler: where this scheduler runs there is no other.
    fn default() -> Scheduler {
        Scheduler {
            gang_names: vec!["volcano".to_owned()],
            lone_names: ["default-scheduler", ""].map(str::to_owned).into(),
            reclaims: false,
        }
    }
}

impl Controller for Scheduler {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn root(&self) -> Kind {
        Kind::Queue
    }

    fn watches(&self) -> &'static [Kind] {
        &[
            Kind::Namespace,
            Kind::Node,
            Kind::PersistentVolumeClaim,
            Kind::Pod,
            Kind::PodGroup,
            Kind::PriorityClass,
        ]
    }

    fn keys(&self, _: &Object, _: &Objects) -> Vec<Key> {
        vec![Key::new("", queue::ROOT)]
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        let mut cluster = Cluster::observe(snapshot.objects, self);
        admit::admit(&mut cluster);
        let wake_at = admit::await_pods(&mut cluster, snapshot.now);
        let (orphans, look_again_at) = admit::await_podgroups(&cluster, snapshot.now);
        allocate::allocate(&mut cluster);
        let queue_writes = queue_status::writes(&cluster);
        let victims = if self.reclaims { reclaim::reclaim(&mut cluster) } else { Vec::new() };
        let said = orphans.iter().filter_map(|(pod, why)| pod::status_patch(pod, why, snapshot.now));
        let mut steps: Vec<Step> = said.collect();
        steps.extend(gang_writes(&cluster, snapshot.now));
        steps.extend(queue_writes);
        steps.extend(victims.iter().map(reclaim::eviction));
        Plan { steps, wake_at: admit::earlier(wake_at, look_again_at), ..Plan::nothing() }
    }
}

/// What is known already, then the bindings, then what is true once they are made. Writes of one sort stand together, so
/// that they can be made side by side.
fn gang_writes(cluster: &Cluster<'_>, now: Time) -> Vec<Step> {
    let (placed, others): (Vec<_>, Vec<_>) = cluster.gangs.iter().partition(|gang| gang.gets_nodes());
    let mut steps: Vec<Step> = others.iter().filter_map(|gang| podgroup::status_patch(gang, now)).collect();
    steps.extend(others.iter().flat_map(|gang| pod::status_patches(gang, now)));
    steps.extend(placed.iter().flat_map(|gang| bindings(cluster, gang)));
    steps.extend(placed.iter().filter_map(|gang| podgroup::status_patch(gang, now)));
    steps
}

fn bindings(cluster: &Cluster<'_>, gang: &Gang<'_>) -> impl Iterator<Item = Step> {
    gang.members.iter().filter_map(|member| {
        let State::Placed(host) = member.state else { return None };
        let meta = &member.object.meta;
        let node = cluster.board.hosts.get(host)?.name().to_owned();
        Some(Step::Bind { pod: meta.key.clone(), uid: meta.uid.clone(), node })
    })
}
