//! Everything that a decision looks at, read from the observed objects once.

use std::collections::BTreeMap;

use krafla_api::{Key, Kind, labels};
use krafla_plan::object::Pod;
use krafla_plan::{Body, Object, Objects};

use crate::board::Board;
use crate::gang::{Gang, Member, State};
use crate::node::Hosts;
use crate::resources::{Amounts, Names};

/// The key that Volcano's scheduler also reads for [`labels::GROUP_NAME`].
const GROUP_NAME_VOLCANO: &str = "scheduling.volcano.sh/group-name";

/// Nodes, gangs and queues.
#[derive(Debug)]
pub(crate) struct Cluster<'a> {
    pub(crate) names: Names,
    pub(crate) board: Board<'a>,
    pub(crate) gangs: Vec<Gang<'a>>,
}

impl<'a> Cluster<'a> {
    /// Reads the nodes, the PodGroups, and the pods that name one of `schedulers`.
    pub(crate) fn observe(objects: &'a Objects, schedulers: &[String]) -> Cluster<'a> {
        let mut names = Names::new();
        let hosts = Hosts::observe(objects, &mut names);
        let mut cluster = Cluster { names, board: Board::new(hosts), gangs: Vec::new() };
        let priorities = priorities(objects);
        let mut by_key: BTreeMap<&Key, usize> = BTreeMap::new();
        for object in objects.all(Kind::PodGroup) {
            let Some(podgroup) = object.as_podgroup() else { continue };
            let priority = priority(&priorities, &podgroup.spec.priority_class_name);
            by_key.insert(&object.meta.key, cluster.gangs.len());
            cluster.gangs.push(Gang::of_podgroup(object, podgroup, priority));
        }
        for object in objects.all(Kind::Pod) {
            let Some(pod) = object.as_pod() else { continue };
            let is_ours = schedulers.contains(&pod.spec.scheduler_name);
            let Some((member, uses)) = cluster.member(object, pod, &priorities) else { continue };
            let group = group_key(object);
            let gang = group
                .as_ref()
                .and_then(|key| by_key.get(key))
                .and_then(|index| cluster.gangs.get_mut(*index));
            match gang {
                Some(gang) if is_ours => {
                    gang.members.push(member);
                    gang.allocated.add(&uses);
                }
                None if is_ours && group.is_none() && matches!(member.state, State::Waiting(_)) => {
                    cluster.gangs.push(Gang::of_lone_pod(member));
                }
                _ => {}
            }
        }
        cluster.gangs.iter_mut().for_each(Gang::settle);
        cluster
    }

    /// Takes in one pod, and what it uses. If it has a node and has not ended, it uses room there, whoever put it there.
    fn member(
        &mut self,
        object: &'a Object,
        pod: &'a Pod,
        priorities: &Priorities<'a>,
    ) -> Option<(Member<'a>, Amounts)> {
        let priority = priority(priorities, &pod.spec.priority_class_name);
        if pod.status.phase.is_finished() {
            return Some((Member::new(object, priority, State::of(object, pod, None)?), Amounts::default()));
        }
        let needs = self.names.of_pod(&pod.spec);
        if let Some(host) = self.board.hosts.find(&pod.spec.node_name) {
            self.board.occupy(host, &needs);
        }
        if !pod.spec.node_name.is_empty() {
            return Some((Member::new(object, priority, State::of(object, pod, None)?), needs));
        }
        let shape = self.board.shape(&pod.spec, needs);
        Some((Member::new(object, priority, State::of(object, pod, Some(shape))?), Amounts::default()))
    }
}

/// Priority classes by name.
type Priorities<'a> = BTreeMap<&'a str, i32>;

fn priorities(objects: &Objects) -> Priorities<'_> {
    let value =
        |object: &Object| if let Body::PriorityClass(value) = object.body { Some(value) } else { None };
    let classes = objects.all(Kind::PriorityClass);
    classes.filter_map(|object| Some((&*object.meta.key.name, value(object)?))).collect()
}

/// A class that is not there counts as zero, as for a pod that names none.
fn priority(priorities: &Priorities<'_>, class: &str) -> i32 {
    priorities.get(class).copied().unwrap_or(0)
}

/// The PodGroup that a pod says it belongs to.
fn group_key(pod: &Object) -> Option<Key> {
    let annotations = &pod.meta.annotations;
    let name = annotations.get(labels::GROUP_NAME).or_else(|| annotations.get(GROUP_NAME_VOLCANO))?;
    let namespace = pod.meta.key.namespace.clone();
    (!name.is_empty()).then(|| Key { namespace, name: name.as_str().into() })
}
