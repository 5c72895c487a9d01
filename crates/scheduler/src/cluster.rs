//! Everything that a decision looks at, read from the observed objects once.

use std::collections::BTreeMap;

use krafla_api::volcano::PodGroupPhase;
use krafla_api::{Key, Kind, labels};
use krafla_plan::object::{Pod, PriorityClass};
use krafla_plan::{Body, Object, Objects};

use crate::Scheduler;
use crate::board::Board;
use crate::gang::{Gang, Member, State};
use crate::neighbours::Neighbours;
use crate::node::Hosts;
use crate::queue::{DEFAULT, QueueId, Queues};
use crate::reclaim::Tenant;
use crate::resources::{Amounts, Names};

/// The key that Volcano's scheduler also reads for [`labels::GROUP_NAME`].
const GROUP_NAME_VOLCANO: &str = "scheduling.volcano.sh/group-name";
/// The queue that a lone pod wants to be counted in.
const QUEUE_NAME: &str = "scheduling.volcano.sh/queue-name";

/// Nodes, queues and gangs.
#[derive(Debug)]
pub(crate) struct Cluster<'a> {
    objects: &'a Objects,
    pub(crate) names: Names,
    pub(crate) board: Board<'a>,
    pub(crate) queues: Queues<'a>,
    pub(crate) gangs: Vec<Gang<'a>>,
    /// The last of the pods that want a node, by the namespace and name of their PodGroup, which does not exist. It
    /// speaks for all: a gang may be on its way out, of which the PodGroup goes first.
    pub(crate) orphans: BTreeMap<(&'a str, &'a str), &'a Object>,
    /// Pods that are being deleted and still use room.
    pub(crate) leaving: Vec<Tenant<'a>>,
    /// Gangs by the namespace and name of their PodGroup.
    by_podgroup: BTreeMap<(&'a str, &'a str), usize>,
    priorities: BTreeMap<&'a str, i32>,
    /// The priority of what names no class, or one that is not there.
    default_priority: i32,
}

impl<'a> Cluster<'a> {
    /// Reads the nodes, the queues, the PodGroups, and the pods that name this scheduler.
    pub(crate) fn observe(objects: &'a Objects, scheduler: &Scheduler) -> Cluster<'a> {
        let mut names = Names::new();
        let mut cluster = Cluster {
            objects,
            board: Board::new(Hosts::observe(objects, &mut names), Neighbours::observe(objects)),
            queues: Queues::observe(objects, &mut names),
            names,
            gangs: Vec::new(),
            orphans: BTreeMap::new(),
            leaving: Vec::new(),
            by_podgroup: BTreeMap::new(),
            priorities: priorities(objects),
            default_priority: default_priority(objects),
        };
        for object in objects.all(Kind::PodGroup) {
            cluster.read_podgroup(object);
        }
        for object in objects.all(Kind::Pod) {
            cluster.read_pod(object, scheduler);
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

    fn read_pod(&mut self, object: &'a Object, scheduler: &Scheduler) {
        let Some(pod) = object.as_pod() else { return };
        let host = self.board.hosts.find(&pod.spec.node_name).filter(|_| !pod.status.phase.is_finished());
        let uses = self.occupy(object, pod, host);
        let may_be_alone = scheduler.lone_names.contains(&pod.spec.scheduler_name);
        let is_ours = may_be_alone || scheduler.gang_names.contains(&pod.spec.scheduler_name);
        let group = group_name(object).filter(|_| is_ours);
        let gang = group.and_then(|name| self.by_podgroup.get(&(&*object.meta.key.namespace, name))).copied();
        let queue = match (group, gang.and_then(|index| self.gangs.get(index))) {
            (_, Some(gang)) => gang.queue,
            (None, None) if is_ours => self.book_lone_pod(object, &uses),
            _ => None,
        };
        if let Some(host) = host.filter(|_| object.meta.is_deleting()) {
            self.leaving.push(Tenant { object, queue, host, uses: uses.clone() });
        }
        let Some(state) = self.state(object, pod).filter(|_| is_ours) else { return };
        let priority = self.priority(&pod.spec.priority_class_name);
        let member = Member { uses, host, ..Member::new(object, priority, state) };
        match gang.and_then(|index| self.gangs.get_mut(index)) {
            Some(gang) => {
                gang.allocated.add(&member.uses);
                gang.members.push(member);
            }
            None if !matches!(state, State::Waiting(_)) => {}
            None => match group {
                Some(name) => drop(self.orphans.insert((&object.meta.key.namespace, name), object)),
                None if may_be_alone => self.gangs.push(Gang::of_lone_pod(member, queue)),
                None => {}
            },
        }
    }

    fn state(&mut self, object: &'a Object, pod: &'a Pod) -> Option<State> {
        let shape = pod.spec.node_name.is_empty().then(|| {
            let needs = self.names.of_pod(&pod.spec);
            let missing_claim = self.missing_claim(object, pod);
            self.board.shape(object, &pod.spec, needs, missing_claim)
        });
        State::of(object, pod, shape)
    }

    /// The first claim that a pod's volumes are made of and that does not exist.
    fn missing_claim(&self, object: &Object, pod: &'a Pod) -> Option<&'a str> {
        let exists = |name: &str| {
            let key = Key::new(&object.meta.key.namespace, name);
            self.objects.get(Kind::PersistentVolumeClaim, &key).is_some()
        };
        pod.spec.claims.iter().map(String::as_str).find(|name| !exists(name))
    }

    /// What a pod uses. If it has a node and has not ended, it uses room there, whoever put it there.
    fn occupy(&mut self, object: &'a Object, pod: &Pod, host: Option<usize>) -> Amounts {
        if pod.spec.node_name.is_empty() || pod.status.phase.is_finished() {
            return Amounts::default();
        }
        let needs = self.names.of_pod(&pod.spec);
        if let Some(host) = host {
            self.board.occupy(object, host, &needs);
        }
        needs
    }

    /// Counts what a pod in no gang uses, in the queue that it names or else in the default one.
    fn book_lone_pod(&mut self, object: &Object, uses: &Amounts) -> Option<QueueId> {
        let wanted = object.meta.annotations.get(QUEUE_NAME).unwrap_or(DEFAULT);
        let queue = self.queues.find(wanted)?;
        self.queues.allocate(queue, uses);
        self.queues.demand(queue, uses);
        Some(queue)
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
        let needs_to_start = self.needs_to_start(index);
        let Cluster { board, gangs, .. } = self;
        let gang = gangs.get(index)?;
        let mut wants = Amounts::default();
        for member in &gang.members {
            let State::Waiting(shape) = member.state else { continue };
            if board.is_possible(shape) {
                wants.add(board.needs(shape)?);
            }
        }
        wants.raise_to(&gang.promised());
        // As long as pods are missing, what they will need is not known.
        let can_start = !gang.has_enough_pods()
            || needs_to_start.is_some_and(|mut needs| {
                needs.add(&gang.allocated);
                needs.fits_in(total)
            });
        (can_start && gang.min_resources.fits_in(total)).then_some(wants)
    }

    /// What the pods ask for that a gang needs beside those it has, in order to start; none if there are too few that
    /// could ever run here. They are chosen as `allocate::place` chooses them: first those without which a task has too
    /// few, then any others, the most urgent first.
    pub(crate) fn needs_to_start(&mut self, index: usize) -> Option<Amounts> {
        let Cluster { board, gangs, .. } = self;
        let gang = gangs.get(index)?;
        let mut shortfall = gang.shortfall();
        let mut needs = Amounts::default();
        if shortfall.is_nothing() {
            return Some(needs);
        }
        let mut left = gang.waiting();
        for only_missing_tasks in [true, false] {
            let mut passed_over = Vec::new();
            for member in left {
                let Member { task, state: State::Waiting(shape), .. } = gang.members.get(member)? else {
                    continue;
                };
                if !board.is_possible(*shape) {
                    continue;
                }
                if shortfall.needs(task, only_missing_tasks) {
                    needs.add(board.needs(*shape)?);
                    shortfall.fill(task);
                } else {
                    passed_over.push(member);
                }
            }
            left = passed_over;
        }
        shortfall.is_nothing().then_some(needs)
    }

    fn priority(&self, class: &str) -> i32 {
        self.priorities.get(class).copied().unwrap_or(self.default_priority)
    }
}

fn classes(objects: &Objects) -> impl Iterator<Item = (&str, PriorityClass)> {
    objects.all(Kind::PriorityClass).filter_map(|object| match object.body {
        Body::PriorityClass(class) => Some((&*object.meta.key.name, class)),
        _ => None,
    })
}

fn priorities(objects: &Objects) -> BTreeMap<&str, i32> {
    classes(objects).map(|(name, class)| (name, class.value)).collect()
}

/// Of several classes that are meant for all, Kubernetes takes the least. Without one it is zero.
fn default_priority(objects: &Objects) -> i32 {
    let defaults = classes(objects).filter(|(_, class)| class.global_default);
    defaults.map(|(_, class)| class.value).min().unwrap_or(0)
}

/// The PodGroup that a pod says it belongs to.
fn group_name(pod: &Object) -> Option<&str> {
    let annotations = &pod.meta.annotations;
    let name = annotations.get(labels::GROUP_NAME).or_else(|| annotations.get(GROUP_NAME_VOLCANO))?;
    (!name.is_empty()).then_some(name)
}
