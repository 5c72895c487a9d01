//! The gang scheduler: which pods go where, decided as a pure function over the whole cluster.
//!
//! ```text
//!   Objects ── observe ──> Cluster { nodes, gangs, queues }
//!                             │ admit      PodGroups for which there is room get Inqueue, so that their pods are made
//!                             │ allocate   gangs get nodes, all or nothing
//!                             │ reclaim    if asked for: gangs of a lower priority make room for those of a higher one, and
//!                             │            queues give back what is beyond their share
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
mod lacks;
mod leftover;
mod neighbours;
mod node;
mod place;
mod pod;
mod podgroup;
mod ports;
mod queue;
mod queue_status;
mod reclaim;
mod resources;
mod share;
mod spread;
#[cfg(test)]
mod tests;

use krafla_api::{Key, Kind};
use krafla_cluster::Step;
use krafla_plan::{Controller, Note, Object, Objects, Plan, Snapshot};

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
    /// Whether Events say where pods go and why they wait. Each is a write, so it is for where people look.
    pub tells: bool,
    /// Whether pods of queues beyond their share are deleted for gangs of queues below theirs. As in Volcano, this is a
    /// choice: without it, a queue waits until others have finished.
    pub reclaims: bool,
    /// Whether pods of gangs with a lower priority are deleted for gangs of the same queue that find no room to start. As in
    /// Volcano, this is a choice: without it, priority only decides who goes first.
    pub preempts: bool,
}

impl Default for Scheduler {
    /// Places the pods of Volcano and those that name no scheduler: where this scheduler runs there is no other.
    fn default() -> Scheduler {
        Scheduler {
            gang_names: vec!["volcano".to_owned()],
            lone_names: ["default-scheduler", ""].map(str::to_owned).into(),
            tells: false,
            reclaims: false,
            preempts: false,
        }
    }
}

impl Controller for Scheduler {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn event_source(&self) -> &'static str {
        "volcano"
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

    fn n_read(&self, _: &Key, objects: &Objects) -> usize {
        objects.len(Kind::Pod)
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        let mut cluster = Cluster::observe(snapshot.objects, self, snapshot.now);
        admit::admit(&mut cluster);
        let wake_at = admit::await_pods(&mut cluster, snapshot.now);
        let (orphans, look_again_at) = admit::await_podgroups(&cluster, snapshot.now);
        allocate::allocate(&mut cluster);
        let wake_at = admit::earlier(admit::earlier(wake_at, look_again_at), allocate::settles_at(&cluster));
        let queue_writes = queue_status::writes(&cluster);
        let victims = reclaim::reclaim(&mut cluster, &reclaim::Way::all(self));
        let (placed, others): (Vec<_>, Vec<_>) = cluster.gangs.iter().partition(|gang| gang.gets_nodes());
        let now = snapshot.now;

        let mut writes = Writes { tells: self.tells, ..Writes::default() };
        writes.add(placed.iter().flat_map(|gang| bindings(&cluster, gang)));
        // True once the bindings are made.
        writes.add(placed.iter().filter_map(|gang| podgroup::report(gang, now)));
        let n_steps = writes.steps.len();
        // What is true already. One of them that is refused is the trouble of one gang, and of nobody else.
        writes.add(others.iter().filter_map(|gang| podgroup::report(gang, now)));
        let of_orphans = orphans.iter().filter_map(|(pod, why)| pod::report(pod, why, now));
        let of_waiting = others.iter().flat_map(|gang| pod::reports(gang, now));
        writes.add(of_orphans.chain(of_waiting).take(pod::REPORTS_MAX));
        let Writes { mut steps, notes, .. } = writes;
        let mut aside = steps.split_off(n_steps);
        aside.extend(queue_writes);
        aside.extend(victims.iter().map(reclaim::eviction));
        Plan { steps, aside, notes, wake_at, ..Plan::nothing() }
    }
}

/// A write, and what a person should know about its object once it is made.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) step: Step,
    pub(crate) note: Option<Note>,
}

/// The writes of a decision. Those of one sort stand together, so that they can be made side by side.
#[derive(Default)]
struct Writes {
    steps: Vec<Step>,
    notes: Vec<Note>,
    tells: bool,
}

impl Writes {
    fn add(&mut self, all: impl Iterator<Item = Told>) {
        for Told { step, note } in all {
            self.notes.extend(note.filter(|_| self.tells).map(|note| note.about(&step)));
            self.steps.push(step);
        }
    }
}

fn bindings(cluster: &Cluster<'_>, gang: &Gang<'_>) -> impl Iterator<Item = Told> {
    gang.members.iter().filter_map(|member| {
        let State::Placed(host) = member.state else { return None };
        let meta = &member.object.meta;
        let node = cluster.board.hosts.get(host)?.name().to_owned();
        let said = format!("Successfully assigned {} to {node}", meta.key);
        let step = Step::Bind { pod: meta.key.clone(), uid: meta.uid.clone(), node };
        Some(Told { step, note: Some(Note::normal("Scheduled", said)) })
    })
}
