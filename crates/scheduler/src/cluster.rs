//! Everything that a decision looks at, read from the observed objects once.

use std::collections::{BTreeMap, HashMap};

use krafla_api::volcano::PodGroupPhase;
use krafla_api::{Key, Kind, Time, Uid, labels};
use krafla_plan::object::{Pod, PriorityClass};
use krafla_plan::{Body, Object, Objects};

use crate::Scheduler;
use crate::allocate;
use crate::board::Board;
use crate::gang::{Gang, Member, State, wanted_queue};
use crate::neighbours::Neighbours;
use crate::node::{Ground, Hosts};
use crate::queue::{QueueId, Queues};
use crate::reclaim::Tenant;
use crate::resources::{Amounts, Names};

/// Which pods a gang starts with, among equals in priority, if it may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    Largest,
    Smallest,
}

/// Nodes, queues and gangs.
#[derive(Debug)]
pub(crate) struct Cluster<'a> {
    objects: &'a Objects,
    pub(crate) names: Names,
    pub(crate) board: Board<'a>,
    pub(crate) queues: Queues<'a>,
    pub(crate) gangs: Vec<Gang<'a>>,
    /// The pods that want a node, by the namespace and name of their PodGroup, which does not exist.
    pub(crate) orphans: BTreeMap<(&'a str, &'a str), Vec<&'a Object>>,
    /// Pods that are being deleted and still use room.
    pub(crate) leaving: Vec<Tenant<'a>>,
    /// Whether gangs make room for those of their queue with a higher priority.
    pub(crate) preempts: bool,
    /// Other pods that use room and are in no gang.
    pub(crate) lone: Vec<Tenant<'a>>,
    /// Gangs by the namespace and name of their PodGroup. Every pod looks up its own here; it is never gone through, so
    /// nothing depends on its order.
    by_podgroup: HashMap<(&'a str, &'a str), usize>,
    /// When the first pod of each owner was made, of pods in no gang.
    first_of_owner: HashMap<&'a Uid, Time>,
    priorities: BTreeMap<&'a str, i32>,
    /// The priority of what names no class, or one that is not there.
    default_priority: i32,
}

impl<'a> Cluster<'a> {
    /// Reads the nodes, the queues, the PodGroups, and the pods that name this scheduler.
    pub(crate) fn observe(objects: &'a Objects, scheduler: &Scheduler, now: Time) -> Cluster<'a> {
        let mut names = Names::new();
        let hosts = Hosts::observe(objects, &mut names);
        let neighbours = Neighbours::observe(objects, &hosts);
        let mut cluster = Cluster {
            objects,
            board: Board::new(hosts, neighbours),
            queues: Queues::observe(objects, &mut names),
            names,
            gangs: Vec::new(),
            orphans: BTreeMap::new(),
            leaving: Vec::new(),
            lone: Vec::new(),
            preempts: scheduler.preempts,
            by_podgroup: HashMap::new(),
            first_of_owner: HashMap::new(),
            priorities: priorities(objects),
            default_priority: default_priority(objects),
        };
        for object in objects.all(Kind::PodGroup) {
            cluster.read_podgroup(object);
        }
        for object in objects.all(Kind::Pod) {
            cluster.read_pod(object, scheduler);
        }
        cluster.keep_accounts(now);
        cluster
    }

    fn read_podgroup(&mut self, object: &'a Object) {
        let Some(podgroup) = object.as_podgroup() else { return };
        let mut gang = Gang::of_podgroup(object, podgroup);
        gang.priority = self.priority(&podgroup.spec.priority_class_name);
        gang.queue = self.queues.find(&podgroup.spec.queue);
        if let Some(list) = &podgroup.spec.min_resources {
            gang.min_resources = self.names.needs(list);
        }
        self.by_podgroup.insert((&object.meta.key.namespace, &object.meta.key.name), self.gangs.len());
        self.gangs.push(gang);
    }

    fn read_pod(&mut self, object: &'a Object, scheduler: &Scheduler) {
        let Some(pod) = object.as_pod() else { return };
        let host = self.board.hosts.find(&pod.spec.node_name).filter(|_| !pod.status.phase.is_finished());
        let uses = self.occupy(object, pod, host);
        let ground = self.board.hosts.ground(host);
        let may_be_alone = scheduler.lone_names.contains(&pod.spec.scheduler_name);
        let is_ours = may_be_alone || scheduler.gang_names.contains(&pod.spec.scheduler_name);
        let group = group_name(object).filter(|_| is_ours);
        let gang = group.and_then(|name| self.by_podgroup.get(&(&*object.meta.key.namespace, name))).copied();
        let queue = match gang.and_then(|index| self.gangs.get(index)) {
            Some(gang) => gang.queue,
            None if is_ours => self.book_lone_pod(object, &uses, ground),
            None => None,
        };
        if let Some(host) = host.filter(|_| object.meta.is_deleting()) {
            self.leaving.push(Tenant { object, queue, host, uses: uses.clone(), priority: i32::MAX });
        }
        if gang.is_none() {
            self.note_owner(object);
        }
        let Some(state) = self.state(object, pod).filter(|_| is_ours) else { return };
        let priority = self.priority(&pod.spec.priority_class_name);
        let size = match state {
            State::Waiting(shape) => self.board.size(shape),
            _ => 0,
        };
        let is_managed = scheduler.gang_names.contains(&pod.spec.scheduler_name);
        let member = Member { uses, host, size, is_managed, ..Member::new(object, priority, state) };
        match gang.and_then(|index| self.gangs.get_mut(index)) {
            Some(gang) => {
                gang.account(ground).add(&member.uses);
                if state == State::Succeeded && !gang.min_resources.is_nothing() {
                    gang.done.add(&self.names.of_pod(&pod.spec));
                }
                gang.members.push(member);
            }
            None if matches!(state, State::Bound | State::Running) => {
                self.lone.extend(host.map(|host| Tenant {
                    object,
                    queue,
                    host,
                    uses: member.uses,
                    priority: i32::MAX,
                }));
            }
            None if !matches!(state, State::Waiting(_)) => {}
            None => match group {
                Some(name) => {
                    self.orphans.entry((&object.meta.key.namespace, name)).or_default().push(object);
                }
                None if may_be_alone => {
                    let is_open = queue.and_then(|id| self.queues.get(id)).is_some_and(|queue| queue.is_open);
                    self.gangs.push(Gang::of_lone_pod(member, queue, is_open));
                }
                None => {}
            },
        }
    }

    fn note_owner(&mut self, object: &'a Object) {
        if let (Some(owner), Some(made)) = (object.meta.controller_uid(), object.meta.created_at) {
            let first = self.first_of_owner.entry(owner).or_insert(made);
            *first = made.min(*first);
        }
    }

    /// Since when a gang has been there: its PodGroup, or the first pod of whoever made a pod that is alone.
    fn is_there_since(&self, gang: &Gang<'_>) -> Option<Time> {
        let meta = &gang.object()?.meta;
        let owner = meta.controller_uid().filter(|_| gang.podgroup.is_none());
        owner.and_then(|uid| self.first_of_owner.get(uid)).copied().or(meta.created_at)
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

    /// Counts what a pod in no gang uses, in the queue that it names or else in the default one. A pod whose PodGroup is gone
    /// is in none either, and uses room all the same.
    fn book_lone_pod(&mut self, object: &Object, uses: &Amounts, ground: Ground) -> Option<QueueId> {
        let queue = self.queues.find(wanted_queue(object))?;
        self.queues.allocate(queue, uses, ground);
        Some(queue)
    }

    /// Books what gangs have and want with their queues, and divides the cluster among these.
    fn keep_accounts(&mut self, now: Time) {
        let total = self.board.total().clone();
        self.queues.settle_limits(&total);
        for index in 0..self.gangs.len() {
            let Some(gang) = self.gangs.get_mut(index) else { continue };
            gang.settle();
            gang.is_blocked = gang.is_blocked_at(now);
            let settles_at = self.gangs.get(index).and_then(|gang| self.is_there_since(gang));
            let settles_at = settles_at.map(|since| since.after(allocate::SETTLES_WITHIN));
            let Some(gang) = self.gangs.get_mut(index) else { continue };
            gang.settles_at = settles_at.filter(|at| *at > now);
            let wants = self.wants(index, &total);
            let Some(gang) = self.gangs.get_mut(index) else { continue };
            gang.is_possible = wants.is_some();
            let Some(queue) = gang.queue else { continue };
            self.queues.allocate(queue, &gang.allocated, Ground::Shared);
            self.queues.allocate(queue, &gang.outside, Ground::Outside);
            if let Some(wants) = wants.filter(|wants| !wants.is_nothing()) {
                self.queues.demand(queue, &wants);
                self.queues.wait_since(queue, gang.object().and_then(|object| object.meta.created_at));
            }
            if gang.phase == PodGroupPhase::Inqueue {
                self.queues.promise(queue, &gang.reserved());
            }
        }
        self.queues.settle_shares(&total);
    }

    /// What a gang wants beside what it has; none if this cluster, or its queue, could not serve it even if there were
    /// nothing else. What can never be given must not count as demand, or it would lie idle for ever.
    fn wants(&mut self, index: usize, total: &Amounts) -> Option<Amounts> {
        let needs_to_start = self.needs_to_start(index, Pick::Smallest);
        let Cluster { board, gangs, queues, .. } = self;
        let gang = gangs.get(index)?;
        let queue = gang.queue.and_then(|id| Some((id, queues.get(id)?)));
        let is_let_in = gang.is_admitted() || queue.is_some_and(|(_, queue)| queue.is_open);
        if gang.is_blocked || !is_let_in {
            return Some(Amounts::default());
        }
        let mut wants = Amounts::default();
        for member in &gang.members {
            let State::Waiting(shape) = member.state else { continue };
            if board.is_possible(shape) {
                wants.add(board.needs(shape)?);
            }
        }
        let promised = gang.promised();
        wants.raise_to(&promised);
        let fits = |mut needs: Amounts| {
            needs.add(&gang.allocated);
            let in_cluster = needs.fits_in(total);
            needs.add(&gang.outside);
            in_cluster && queue.is_none_or(|(id, _)| queues.may_ever_have(id, &needs))
        };
        // As long as pods are missing, what they will need is not known.
        let can_start = !gang.has_enough_pods() || needs_to_start.is_some_and(fits);
        (can_start && fits(promised)).then_some(wants)
    }

    /// What the pods ask for that a gang needs beside those it has, in order to start; none if there are too few that
    /// could ever run here. They are chosen as `place::place` chooses them: first those without which a task has too few,
    /// then any others, the most urgent first.
    pub(crate) fn needs_to_start(&mut self, index: usize, pick: Pick) -> Option<Amounts> {
        let Cluster { board, gangs, .. } = self;
        let gang = gangs.get(index)?;
        let mut shortfall = gang.shortfall();
        let mut needs = Amounts::default();
        if shortfall.is_nothing() {
            return Some(needs);
        }
        let mut left = gang.waiting();
        if pick == Pick::Smallest {
            gang.put_smallest_first(&mut left);
        }
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

    /// The value of a priority class.
    pub(crate) fn priority(&self, class: &str) -> i32 {
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

/// The PodGroup that a pod says it belongs to, under one of the two keys that Volcano's scheduler reads.
pub(crate) fn group_name(pod: &Object) -> Option<&str> {
    let annotations = &pod.meta.annotations;
    let name = annotations.get(labels::GROUP_NAME).or_else(|| annotations.get(labels::VOLCANO_GROUP_NAME))?;
    (!name.is_empty()).then_some(name)
}
