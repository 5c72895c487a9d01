//! Everything that a decision looks at, read from the observed objects once.

use std::collections::BTreeMap;

use krafla_api::volcano::PodGroupPhase;
use krafla_api::{Kind, labels};
use krafla_plan::object::Pod;
use krafla_plan::{Body, Object, Objects};

use crate::board::Board;
use crate::gang::{Gang, Member, State};
use crate::neighbours::Neighbours;
use crate::node::Hosts;
use crate::queue::{DEFAULT, Queues};
use crate::resources::{Amounts, Names};

/// The key that Volcano's scheduler also reads for [`labels::GROUP_NAME`].
const GROUP_NAME_VOLCANO: &str = "scheduling.volcano.sh/group-name";
/// The queue that a lone pod wants to be counted in.
const QUEUE_NAME: &str = "scheduling.volcano.sh/queue-name";

/// Nodes, queues and gangs.
#[derive(Debug)]
pub(crate) struct Cluster<'a> {
    pub(crate) names: Names,
    pub(crate) board: Board<'a>,
    pub(crate) queues: Queues<'a>,
    pub(crate) gangs: Vec<Gang<'a>>,
    /// Gangs by the namespace and name of their PodGroup.
    by_podgroup: BTreeMap<(&'a str, &'a str), usize>,
    priorities: BTreeMap<&'a str, i32>,
}

impl<'a> Cluster<'a> {
    /// Reads the nodes, the queues, the PodGroups, and the pods that name one of `schedulers`.
    pub(crate) fn observe(objects: &'a Objects, schedulers: &[String]) -> Cluster<'a> {
        let mut names = Names::new();
        let mut cluster = Cluster {
            board: Board::new(Hosts::observe(objects, &mut names), Neighbours::observe(objects)),
            queues: Queues::observe(objects, &mut names),
            names,
            gangs: Vec::new(),
            by_podgroup: BTreeMap::new(),
            priorities: priorities(objects),
        };
        for object in objects.all(Kind::PodGroup) {
            cluster.read_podgroup(object);
        }
        for object in objects.all(Kind::Pod) {
            cluster.read_pod(object, schedulers);
        }
        cluster.keep_accounts();
        cluster
    }

    fn read_podgroup(&mut self, object: &'a Object) {
        let Some(podgroup) = object.as_podgroup() else { return };
        let mut gang = Gang::of_podgroup(object, podgroup);
        gang.priority = self.priority(&podgroup.spec.priority_class_name);
        gang.queue = self.queues.find(&podgroup.spec.queue);
        if let Some(list) = &podgroup.spec.min_resources {
            gang.min_resources = self.names.amounts(list);
        }
        self.by_podgroup.insert((&object.meta.key.namespace, &object.meta.key.name), self.gangs.len());
        self.gangs.push(gang);
    }

    fn read_pod(&mut self, object: &'a Object, schedulers: &[String]) {
        let Some(pod) = object.as_pod() else { return };
        let uses = self.occupy(object, pod);
        if !schedulers.contains(&pod.spec.scheduler_name) {
            return;
        }
        let shape = pod.spec.node_name.is_empty().then(|| {
            let needs = self.names.of_pod(&pod.spec);
            self.board.shape(object, &pod.spec, needs)
        });
        let Some(state) = State::of(object, pod, shape) else { return };
        let member = Member::new(object, self.priority(&pod.spec.priority_class_name), state);
        match group_name(object) {
            Some(name) => {
                let gang = self
                    .by_podgroup
                    .get(&(&*object.meta.key.namespace, name))
                    .and_then(|index| self.gangs.get_mut(*index));
                if let Some(gang) = gang {
                    gang.members.push(member);
                    gang.allocated.add(&uses);
                }
            }
            None => self.read_lone_pod(member, &uses),
        }
    }

    /// What a pod uses. If it has a node and has not ended, it uses room there, whoever put it there.
    fn occupy(&mut self, object: &'a Object, pod: &Pod) -> Amounts {
        if pod.spec.node_name.is_empty() || pod.status.phase.is_finished() {
            return Amounts::default();
        }
        let needs = self.names.of_pod(&pod.spec);
        if let Some(host) = self.board.hosts.find(&pod.spec.node_name) {
            self.board.occupy(object, host, &needs);
        }
        needs
    }

    fn read_lone_pod(&mut self, member: Member<'a>, uses: &Amounts) {
        let wanted = member.object.meta.annotations.get(QUEUE_NAME).map_or(DEFAULT, String::as_str);
        let queue = self.queues.find(wanted);
        if let Some(queue) = queue {
            self.queues.allocate(queue, uses);
            self.queues.demand(queue, uses);
        }
        if matches!(member.state, State::Waiting(_)) {
            self.gangs.push(Gang::of_lone_pod(member, queue));
        }
    }

    /// Books what gangs have and want with their queues, and divides the cluster among these.
    fn keep_accounts(&mut self) {
        let total = self.board.hosts.total();
        for index in 0..self.gangs.len() {
            let wants = self.wants(index, &total);
            let Some(gang) = self.gangs.get_mut(index) else { continue };
            gang.settle();
            gang.is_possible = wants.is_some();
            let Some(queue) = gang.queue else { continue };
            self.queues.allocate(queue, &gang.allocated);
            self.queues.demand(queue, &gang.allocated);
            if let Some(wants) = wants {
                self.queues.demand(queue, &wants);
            }
            if gang.phase == PodGroupPhase::Inqueue {
                self.queues.promise(queue, &gang.promised());
            }
        }
        self.queues.settle(&total);
    }

    /// What a gang wants beside what it has; none if this cluster could not serve it even if it were empty. What can
    /// never be given must not count as demand, or it would lie idle for ever.
    fn wants(&mut self, index: usize, total: &Amounts) -> Option<Amounts> {
        let Cluster { board, gangs, .. } = self;
        let gang = gangs.get(index)?;
        let mut shortfall = gang.shortfall();
        let (mut wants, mut to_start) = (Amounts::default(), gang.allocated.clone());
        for member in &gang.members {
            let State::Waiting(shape) = member.state else { continue };
            if !board.is_possible(shape) {
                continue;
            }
            let needs = board.needs(shape)?;
            wants.add(needs);
            if shortfall.needs_pods() {
                to_start.add(needs);
            }
            shortfall.fill(member.task);
        }
        wants.raise_to(&gang.promised());
        // As long as pods are missing, what they will need is not known.
        let can_start = !gang.has_enough_pods() || (shortfall.is_nothing() && to_start.fits_in(total));
        (can_start && gang.min_resources.fits_in(total)).then_some(wants)
    }

    /// A class that is not there counts as zero, as for a pod that names none.
    fn priority(&self, class: &str) -> i32 {
        self.priorities.get(class).copied().unwrap_or(0)
    }
}

fn priorities(objects: &Objects) -> BTreeMap<&str, i32> {
    let value =
        |object: &Object| if let Body::PriorityClass(value) = object.body { Some(value) } else { None };
    let classes = objects.all(Kind::PriorityClass);
    classes.filter_map(|object| Some((&*object.meta.key.name, value(object)?))).collect()
}

/// The PodGroup that a pod says it belongs to.
fn group_name(pod: &Object) -> Option<&str> {
    let annotations = &pod.meta.annotations;
    let name = annotations.get(labels::GROUP_NAME).or_else(|| annotations.get(GROUP_NAME_VOLCANO))?;
    (!name.is_empty()).then_some(name)
}
