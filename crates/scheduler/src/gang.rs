//! A gang: pods that start together or not at all.
//!
//! A pod that belongs to no PodGroup is a gang of one. Volcano: the job of a scheduling session, and the gang plugin.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use krafla_api::volcano::{PodGroupCondition, PodGroupPhase, PodGroupSpec};
use krafla_api::{Key, Time, labels};
use krafla_plan::Object;
use krafla_plan::object::{Pod, PodGroup, PodPhase};
use krafla_why::{Reason, Tally};

use crate::allocate::Stuck;
use crate::board::ShapeId;
use crate::node::Ground;
use crate::queue::{DEFAULT, QueueId};
use crate::resources::Amounts;

/// The condition of a PodGroup that says why its gang waits.
pub(crate) const UNSCHEDULABLE: &str = "Unschedulable";
/// How long pods that a gang needs may be missing before that is worth a word, and then before it loses its claim to room.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Volcano's word for a gang that waits for room.
pub(crate) const NOT_ENOUGH_RESOURCES: &str = "NotEnoughResources";
/// Volcano's word for a gang that waits for pods to be made.
const NOT_ENOUGH_TASKS: &str = "NotEnoughTasks";
/// Volcano's word for a gang that waits for pods of one task.
const NOT_ENOUGH_PODS_OF_TASK: &str = "NotEnoughPodsOfTask";
/// The word for a gang whose queue does not exist.
pub(crate) const QUEUE_NOT_FOUND: &str = "QueueNotFound";

/// A PodGroup with its pods, or one pod alone.
#[derive(Debug)]
pub(crate) struct Gang<'a> {
    /// What the pods are grouped by; none for a pod alone.
    pub(crate) podgroup: Option<(&'a Object, &'a PodGroup)>,
    /// How many pods must be placed at once.
    pub(crate) min_member: usize,
    /// How many of each task, where that adds anything.
    min_task_member: BTreeMap<&'a str, usize>,
    /// The queue whose resources it uses; none if there is no such queue.
    pub(crate) queue: Option<QueueId>,
    /// What must be there before it is let in.
    pub(crate) min_resources: Amounts,
    /// The value of its priority class.
    pub(crate) priority: i32,
    pub(crate) members: Vec<Member<'a>>,
    /// What its pods on open nodes use.
    pub(crate) allocated: Amounts,
    /// What its pods use on nodes that are closed or gone.
    pub(crate) outside: Amounts,
    /// What its pods asked for that have ended well.
    pub(crate) done: Amounts,
    /// Whether the cluster could serve it if it were empty.
    pub(crate) is_possible: bool,
    /// Whether something outside the scheduler keeps it from starting, however much room there is.
    pub(crate) is_blocked: bool,
    /// Until when it is taken to have only just come.
    pub(crate) settles_at: Option<Time>,
    /// The phase as this decision leaves it.
    pub(crate) phase: PodGroupPhase,
    /// Why it is not placed, if it is not.
    pub(crate) why_not: Option<WhyNot>,
    /// Whether it was not tried: it would not start if there were room.
    pub(crate) is_held: bool,
    /// What its pods wait for.
    pub(crate) waits: Waits,
    /// The shapes of pods beyond its minimum that got no node, and why.
    pub(crate) stuck: BTreeMap<ShapeId, Stuck>,
}

/// What keeps a gang from starting or growing. Some of its pods may wait for the one, and others for the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// For a pod no node will do.
    pub(crate) for_room: bool,
    /// For a pod there is a node, but its queue has its share; or the gang before it in line waits for that.
    pub(crate) for_share: bool,
}

impl Waits {
    /// Both what these wait for and what those do.
    pub(crate) fn and(self, other: Waits) -> Waits {
        Waits { for_room: self.for_room || other.for_room, for_share: self.for_share || other.for_share }
    }
}

/// Why a gang is not placed: a word for programs and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WhyNot {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl WhyNot {
    pub(crate) fn new(word: &'static str, reason: &Reason) -> WhyNot {
        WhyNot { reason: word, message: reason.to_string() }
    }
}

/// A count as it stands in sentences.
pub(crate) fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// One pod of a gang.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) object: &'a Object,
    pub(crate) task: &'a str,
    pub(crate) priority: i32,
    pub(crate) state: State,
    /// How large it is while it waits: the largest part of the cluster that it asks for.
    pub(crate) size: u64,
    /// What it uses, and where; nothing before it has a node or after it ended.
    pub(crate) uses: Amounts,
    pub(crate) host: Option<usize>,
    /// Whether it names a gang scheduler, so that it may be deleted for others.
    pub(crate) is_managed: bool,
    /// Why it has no node, where that is its own matter and not the gang's.
    pub(crate) why_not: Option<Arc<str>>,
}

/// Where a pod stands in the scheduler's eyes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// It wants a node.
    Waiting(ShapeId),
    /// A scheduling gate keeps it from wanting one.
    Gated,
    /// This decision gives it that node.
    Placed(usize),
    /// It has a node and has not started.
    Bound,
    /// It runs.
    Running,
    /// It is being deleted, and had a node.
    Leaving,
    /// It is being deleted, and never had a node.
    Cancelled,
    /// It ended well.
    Succeeded,
    /// It did not.
    Failed,
}

impl State {
    /// Where a pod stands. One that wants a node must have a shape.
    pub(crate) fn of(object: &Object, pod: &Pod, shape: Option<ShapeId>) -> Option<State> {
        let has_node = !pod.spec.node_name.is_empty();
        Some(match pod.status.phase {
            PodPhase::Succeeded => State::Succeeded,
            PodPhase::Failed => State::Failed,
            _ if object.meta.is_deleting() && has_node => State::Leaving,
            _ if object.meta.is_deleting() => State::Cancelled,
            PodPhase::Running => State::Running,
            _ if has_node => State::Bound,
            _ if !pod.spec.scheduling_gates.is_empty() => State::Gated,
            PodPhase::Pending | PodPhase::Unknown => State::Waiting(shape?),
        })
    }

    /// Whether the pod fills a place of the gang. Volcano: `ReadyTaskNum`.
    fn counts(self) -> bool {
        matches!(self, State::Placed(_) | State::Bound | State::Running | State::Succeeded)
    }

    /// Whether the pod fills a place of the gang, or could.
    fn may_count(self) -> bool {
        self.counts() || matches!(self, State::Waiting(_))
    }

    /// Whether the pod has, or had, a node.
    pub(crate) fn is_scheduled(self) -> bool {
        self.counts() || matches!(self, State::Leaving | State::Failed)
    }

    /// Kubernetes' and Volcano's word for it.
    fn word(self) -> &'static str {
        match self {
            State::Waiting(_) | State::Cancelled => "Pending",
            State::Gated => "Gated",
            State::Placed(_) | State::Bound => "Bound",
            State::Running => "Running",
            State::Leaving => "Releasing",
            State::Succeeded => "Succeeded",
            State::Failed => "Failed",
        }
    }
}

impl<'a> Gang<'a> {
    /// The gang of a PodGroup, without its pods.
    pub(crate) fn of_podgroup(object: &'a Object, podgroup: &'a PodGroup) -> Gang<'a> {
        let PodGroupSpec { min_member, min_task_member, .. } = &podgroup.spec;
        let min_member = count(*min_member);
        let tasks = min_task_member.iter().map(|(task, min)| (task.as_str(), count(*min)));
        let mut min_task_member: BTreeMap<&str, usize> = tasks.collect();
        // A job that may start with fewer pods than its tasks have together chooses freely among them.
        if min_member < min_task_member.values().sum() {
            min_task_member.clear();
        }
        let phase = podgroup.status.phase.clone();
        Gang { podgroup: Some((object, podgroup)), min_member, min_task_member, ..Gang::empty(phase) }
    }

    /// The gang of a pod that is in no PodGroup. It need not be let in, unless its queue does not take it.
    pub(crate) fn of_lone_pod(member: Member<'a>, queue: Option<QueueId>, is_open: bool) -> Gang<'a> {
        let phase = if is_open { PodGroupPhase::Inqueue } else { PodGroupPhase::Pending };
        Gang { min_member: 1, queue, priority: member.priority, members: vec![member], ..Gang::empty(phase) }
    }

    fn empty(phase: PodGroupPhase) -> Gang<'a> {
        Gang {
            podgroup: None,
            min_member: 0,
            min_task_member: BTreeMap::new(),
            queue: None,
            min_resources: Amounts::default(),
            priority: 0,
            members: Vec::new(),
            allocated: Amounts::default(),
            outside: Amounts::default(),
            done: Amounts::default(),
            is_possible: true,
            is_blocked: false,
            settles_at: None,
            phase,
            why_not: None,
            is_held: false,
            waits: Waits::default(),
            stuck: BTreeMap::new(),
        }
    }

    /// Whether its pods may be placed. Before it is admitted to its queue, they may not.
    pub(crate) fn is_admitted(&self) -> bool {
        !matches!(self.phase, PodGroupPhase::Unset | PodGroupPhase::Pending)
    }

    /// Whether pods of it can be expected: an earlier decision let it in, or some are there already and wait.
    pub(crate) fn awaits_pods(&self) -> bool {
        let let_in_before = |podgroup: &PodGroup| podgroup.status.phase == PodGroupPhase::Inqueue;
        self.podgroup.is_some_and(|(_, podgroup)| {
            let_in_before(podgroup) || (self.is_admitted() && !self.waiting().is_empty())
        })
    }

    /// When its last pod, or it itself, was made.
    pub(crate) fn last_grown_at(&self) -> Option<Time> {
        let made_at = |object: &Object| object.meta.created_at;
        self.members
            .iter()
            .map(|member| made_at(member.object))
            .chain([self.object().and_then(made_at)])
            .max()?
    }

    /// What stands for the gang: its PodGroup, or the lone pod.
    pub(crate) fn object(&self) -> Option<&'a Object> {
        let lone_pod = self.members.first().map(|member| member.object);
        self.podgroup.map(|(object, _)| object).or(lone_pod)
    }

    /// The queue that it wants to be in.
    pub(crate) fn wanted_queue(&self) -> &'a str {
        let of_pod = || self.object().map_or("", wanted_queue);
        self.podgroup.map_or_else(of_pod, |(_, podgroup)| podgroup.spec.queue.as_str())
    }

    /// The first in line is the one with the highest priority; among equals the oldest.
    pub(crate) fn rank(&self) -> (Reverse<i32>, Option<Time>, Option<&'a Key>) {
        let meta = self.object().map(|object| &object.meta);
        (Reverse(self.priority), meta.and_then(|meta| meta.created_at), meta.map(|meta| &meta.key))
    }

    /// A gang that had nodes and has none any more starts anew.
    pub(crate) fn settle(&mut self) {
        let has_phase = matches!(self.phase, PodGroupPhase::Inqueue | PodGroupPhase::Completed);
        if !has_phase && self.count(State::is_scheduled) == 0 {
            self.phase = PodGroupPhase::Pending;
        }
    }

    pub(crate) fn account(&mut self, ground: Ground) -> &mut Amounts {
        match ground {
            Ground::Shared => &mut self.allocated,
            Ground::Outside => &mut self.outside,
        }
    }

    /// What the gang may still take of what it was promised when it was let in. Once it has enough pods with nodes, it has
    /// had all of that, and so has one that is complete.
    pub(crate) fn promised(&self) -> Amounts {
        let has_started = !self.members.is_empty() && self.shortfall().is_nothing();
        if self.min_resources.is_nothing() || has_started || self.phase == PodGroupPhase::Completed {
            return Amounts::default();
        }
        let mut promised = self.min_resources.clone();
        for had in [&self.allocated, &self.outside, &self.done] {
            promised.sub(had);
        }
        promised.clear_overdrawn();
        promised
    }

    /// What is kept free for the gang: what it was promised, unless it could not start there now. What waits for a reason
    /// outside the scheduler must not keep room from others.
    pub(crate) fn reserved(&self) -> Amounts {
        if self.is_possible && !self.is_blocked { self.promised() } else { Amounts::default() }
    }

    /// Whether the gang waits for pods that are gated, or for pods that have been missing for so long that nobody seems to
    /// make them.
    pub(crate) fn is_blocked_at(&self, now: Time) -> bool {
        if self.has_enough_pods() {
            return false;
        }
        let mut missing_without_gates = self.missing();
        let gated = self.members.iter().filter(|member| member.state == State::Gated);
        gated.for_each(|member| missing_without_gates.fill(member.task));
        let said_since = self.lacks_pods_since().map(|since| since.after(PATIENCE));
        missing_without_gates.is_nothing() || said_since.is_some_and(|due_at| due_at <= now)
    }

    /// Since when its PodGroup says that pods are missing.
    pub(crate) fn lacks_pods_since(&self) -> Option<Time> {
        let (_, podgroup) = self.podgroup?;
        let reasons = [NOT_ENOUGH_TASKS, NOT_ENOUGH_PODS_OF_TASK];
        let lacks_pods = |it: &&PodGroupCondition| {
            it.condition_type == UNSCHEDULABLE && it.status == "True" && reasons.contains(&it.reason.as_str())
        };
        podgroup.status.conditions.iter().find(lacks_pods)?.last_transition_time
    }

    /// Whether a member still wants a node.
    pub(crate) fn is_waiting(&self, index: usize) -> bool {
        self.shape(index).is_some()
    }

    /// The shape of a member that wants a node.
    pub(crate) fn shape(&self, index: usize) -> Option<ShapeId> {
        match self.members.get(index)?.state {
            State::Waiting(shape) => Some(shape),
            State::Gated
            | State::Placed(_)
            | State::Bound
            | State::Running
            | State::Leaving
            | State::Cancelled
            | State::Succeeded
            | State::Failed => None,
        }
    }

    /// Whether this decision gives it a node.
    pub(crate) fn gets_nodes(&self) -> bool {
        self.members.iter().any(|member| matches!(member.state, State::Placed(_)))
    }

    /// How many pods are in a state that answers yes.
    pub(crate) fn count(&self, is_it: impl Fn(State) -> bool) -> usize {
        self.members.iter().filter(|member| is_it(member.state)).count()
    }

    /// How many more pods must find a place, in all and of each task, before any may start.
    ///
    /// A pod that failed and stays is not replaced by anybody. It fills the place that no other pod is there to fill: the
    /// rest of a gang that began to start, and lost a pod before it was whole, would wait for ever. Volcano lets it wait.
    pub(crate) fn shortfall(&self) -> Shortfall<'a> {
        let mut shortfall = self.shortfall_if(State::counts);
        let mut unfilled = self.shortfall_if(State::may_count);
        for task in self.lost_members() {
            if unfilled.needs_pods() || unfilled.needs_task(task) {
                unfilled.fill(task);
                shortfall.fill(task);
            }
        }
        shortfall
    }

    /// Whether enough pods exist for the gang to start.
    pub(crate) fn has_enough_pods(&self) -> bool {
        self.missing().is_nothing()
    }

    /// How many pods would have to be made before the gang can start.
    fn missing(&self) -> Shortfall<'a> {
        let mut missing = self.shortfall_if(State::may_count);
        self.lost_members().for_each(|task| missing.fill(task));
        missing
    }

    /// The tasks of the pods that failed and stay.
    fn lost_members(&self) -> impl Iterator<Item = &'a str> {
        let is_lost = |it: &&Member<'_>| it.state == State::Failed && !it.object.meta.is_deleting();
        self.members.iter().filter(is_lost).map(|member| member.task)
    }

    fn shortfall_if(&self, is_it: impl Fn(State) -> bool) -> Shortfall<'a> {
        let mut shortfall = Shortfall { pods: self.min_member, tasks: self.min_task_member.clone() };
        for member in self.members.iter().filter(|member| is_it(member.state)) {
            shortfall.fill(member.task);
        }
        shortfall
    }

    /// The pods that want a node, most urgent first. Among equals the largest come first: a small one fits into what they
    /// leave, and not the other way round.
    pub(crate) fn waiting(&self) -> Vec<usize> {
        let all = self.members.iter().enumerate();
        let waiting = all.filter(|(_, member)| matches!(member.state, State::Waiting(_)));
        let mut waiting: Vec<usize> = waiting.map(|(index, _)| index).collect();
        waiting.sort_by_key(|index| self.members.get(*index).map(Member::urgency));
        waiting
    }

    /// The shapes of the pods that want a node, in no particular order.
    pub(crate) fn waiting_shapes(&self) -> impl Iterator<Item = ShapeId> {
        (0..self.members.len()).filter_map(|index| self.shape(index))
    }

    /// The same pods, where among equals the smallest come first.
    pub(crate) fn put_smallest_first(&self, waiting: &mut [usize]) {
        waiting.sort_by_key(|index| self.members.get(*index).map(Member::urgency_of_the_small));
    }

    /// The pods that it can do without, the least important and youngest first. A gang of one, and a gang that needs only
    /// one, can do without any.
    pub(crate) fn spare_members(&self) -> Vec<&Member<'a>> {
        let has_node = |state: State| matches!(state, State::Bound | State::Running);
        let may_go = |it: &&Member<'a>| has_node(it.state) && it.is_managed && !is_protected(it.object);
        let mut members: Vec<&Member<'a>> = self.members.iter().filter(may_go).collect();
        if self.min_member <= 1 {
            return members;
        }
        members.sort_by_key(|member| (member.priority, Reverse(member.object.meta.created_at)));
        let mut n_pods = self.count(State::counts);
        let mut n_of_task: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.members.iter().filter(|member| member.state.counts()) {
            *n_of_task.entry(member.task).or_default() += 1;
        }
        members.retain(|member| {
            let n_task = n_of_task.entry(member.task).or_default();
            let min_task = self.min_task_member.get(member.task).copied().unwrap_or(0);
            let is_spare = n_pods > self.min_member && *n_task > min_task;
            if is_spare {
                n_pods -= 1;
                *n_task -= 1;
            }
            is_spare
        });
        members
    }

    /// What is missing, when there are too few pods.
    pub(crate) fn too_few_pods(&self) -> WhyNot {
        let missing = self.missing();
        let summary = self.summary();
        match missing.tasks.iter().find(|(_, n)| **n > 0) {
            Some((task, n)) if missing.pods == 0 => {
                let reason = Reason::PodsOfTaskMissing { summary, missing: number(*n), task: (*task).into() };
                WhyNot::new(NOT_ENOUGH_PODS_OF_TASK, &reason)
            }
            _ => {
                WhyNot::new(NOT_ENOUGH_TASKS, &Reason::PodsMissing { summary, missing: number(missing.pods) })
            }
        }
    }

    /// `3 Pending, 1 Running`.
    pub(crate) fn summary(&self) -> Tally {
        let mut words: BTreeMap<&str, usize> = BTreeMap::new();
        for member in &self.members {
            *words.entry(member.state.word()).or_default() += 1;
        }
        Tally(words.into_iter().map(|(word, n)| (number(n), word.to_owned())).collect())
    }
}

/// How many more pods must find a place before any of the gang may start.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shortfall<'a> {
    pods: usize,
    tasks: BTreeMap<&'a str, usize>,
}

impl Shortfall<'_> {
    /// A pod of this task has found a place.
    pub(crate) fn fill(&mut self, task: &str) {
        self.pods = self.pods.saturating_sub(1);
        if let Some(n) = self.tasks.get_mut(task) {
            *n = n.saturating_sub(1);
        }
    }

    /// Whether pods of this very task are needed.
    pub(crate) fn needs_task(&self, task: &str) -> bool {
        self.tasks.get(task).is_some_and(|n| *n > 0)
    }

    /// Whether any pods are needed.
    pub(crate) fn needs_pods(&self) -> bool {
        self.pods > 0
    }

    /// Whether a pod of this task is needed: because its task has too few, or else because the gang has.
    pub(crate) fn needs(&self, task: &str, only_missing_tasks: bool) -> bool {
        if only_missing_tasks { self.needs_task(task) } else { self.needs_pods() }
    }

    /// Whether the gang may start.
    pub(crate) fn is_nothing(&self) -> bool {
        self.pods == 0 && self.tasks.values().all(|n| *n == 0)
    }
}

impl<'a> Member<'a> {
    pub(crate) fn new(object: &'a Object, priority: i32, state: State) -> Member<'a> {
        let task =
            object.meta.labels.get(labels::TASK_SPEC).or(object.meta.annotations.get(labels::TASK_SPEC));
        let task = task.unwrap_or_default();
        Member {
            object,
            task,
            priority,
            state,
            size: 0,
            uses: Amounts::default(),
            host: None,
            is_managed: false,
            why_not: None,
        }
    }

    fn urgency(&self) -> (Reverse<i32>, Reverse<u64>) {
        (Reverse(self.priority), Reverse(self.size))
    }

    /// The same where the smallest come first.
    fn urgency_of_the_small(&self) -> (Reverse<i32>, u64) {
        (Reverse(self.priority), self.size)
    }
}

/// Whether a pod must not be sent away for others: somebody has said so, or the cluster itself depends on it. Volcano: the
/// conformance plugin.
pub(crate) fn is_protected(pod: &Object) -> bool {
    let meta = &pod.meta;
    let said = meta.annotations.get(labels::PREEMPTABLE).or_else(|| meta.labels.get(labels::PREEMPTABLE));
    let class = pod.as_pod().map_or("", |pod| pod.spec.priority_class_name.as_str());
    said.is_some_and(|value| value == "false")
        || ["system-cluster-critical", "system-node-critical"].contains(&class)
        || &*meta.key.namespace == "kube-system"
}

/// The queue that a pod wants to be counted in if no PodGroup says it. A job's pods carry the name of the job's own queue.
pub(crate) fn wanted_queue(pod: &Object) -> &str {
    let annotations = &pod.meta.annotations;
    annotations.get(labels::WANTED_QUEUE).or_else(|| annotations.get(labels::QUEUE_NAME)).unwrap_or(DEFAULT)
}

fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}
