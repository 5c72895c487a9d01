//! Observed pods of the job: counters, and pods that must be deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use krafla_api::volcano::{JobPhase, TaskState};
use krafla_api::{Kind, Time, Uid, labels};

use super::completed::{self, Completed};
use super::intent::Targets;
use super::phase::Next;
use super::policy::Vacancies;
use super::{Job, dependency};
use crate::object::{ContainerStatus, EndOrder, Pod, PodPhase};
use crate::{Object, Snapshot};

/// How far the clock of a node may be behind the server's. Whoever tells the two apart by less takes a pod that was cut short for
/// one that had done its work, and a job ends with some of it undone; by more, and work is done twice.
const CLOCK_SKEW: Duration = Duration::from_secs(1);

/// All pods that the job owns, by UID.
pub(super) struct Pods<'a> {
    all: Vec<Observed<'a>>,
    version: i32,
    completed: Completed<'a>,
    by_task: BTreeMap<&'a str, Counts>,
    total: Counts,
    /// Tasks and indexes of pods that went away while no controller ran.
    lost_unseen: Vec<(&'a str, i32)>,
}

/// One pod of the job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed<'a> {
    object: &'a Object,
    pod: &'a Pod,
    pub(super) task: &'a str,
    pub(super) index: i32,
    pub(super) version: i32,
    pub(super) retry_count: i32,
    pub(super) partition: Option<&'a str>,
}

/// How many pods are in which state. Each pod is in exactly one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) pending: i32,
    pub(super) running: i32,
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    pub(super) unknown: i32,
    pub(super) terminating: i32,
}

impl Counts {
    fn counter(&mut self, pod: &Observed<'_>) -> &mut i32 {
        match pod.pod.status.phase {
            _ if pod.is_deleting() => &mut self.terminating,
            PodPhase::Pending => &mut self.pending,
            PodPhase::Running => &mut self.running,
            PodPhase::Succeeded => &mut self.succeeded,
            PodPhase::Failed => &mut self.failed,
            PodPhase::Unknown => &mut self.unknown,
        }
    }

    fn add(&mut self, pod: &Observed<'_>) {
        let counter = self.counter(pod);
        *counter = counter.saturating_add(1);
    }

    /// Counts a pod as terminating that was counted as what it was, or not at all if it was surplus.
    fn doom(&mut self, pod: &Observed<'_>, was_counted: bool) {
        let counter = self.counter(pod);
        *counter = counter.saturating_sub(was_counted.into());
        self.terminating = self.terminating.saturating_add(1);
    }

    fn staying(&self) -> [(PodPhase, i32); 5] {
        [
            (PodPhase::Pending, self.pending),
            (PodPhase::Running, self.running),
            (PodPhase::Succeeded, self.succeeded),
            (PodPhase::Failed, self.failed),
            (PodPhase::Unknown, self.unknown),
        ]
    }
}

/// Looks at the pods that the job owns.
pub(super) fn observe<'a>(job: &'a Job<'a>, snapshot: &Snapshot<'a>) -> Pods<'a> {
    let all: Vec<Observed<'a>> =
        snapshot.children(Kind::Pod).filter_map(|object| Observed::new(object)).collect();
    let completed = completed::observe(job, &all, snapshot);
    let mut by_task: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut total = Counts::default();
    // What is more than the job asks for goes, and does not count as done, neither while it is there nor afterwards.
    for pod in all.iter().filter(|pod| pod.is_deleting() || job.wants(pod.task, pod.index)) {
        total.add(pod);
        by_task.entry(pod.task).or_default().add(pod);
    }
    for (task, n) in completed.counts() {
        total.succeeded = total.succeeded.saturating_add(n);
        if let Some(counts) = by_task.get_mut(task) {
            counts.succeeded = counts.succeeded.saturating_add(n);
        } else if let Some(task) = job.task(task) {
            by_task.insert(&task.name, Counts { succeeded: n, ..Counts::default() });
        }
    }
    if job.phase().is_finished() {
        keep_finished(job, &mut by_task, &mut total);
    }
    let lost_unseen = Vec::new();
    let mut pods = Pods { all, version: job.status.version, completed, by_task, total, lost_unseen };
    if snapshot.is_first_look {
        pods.lost_unseen = pods.find_lost(job);
    }
    pods
}

/// What finished, and was counted before the job had, stays counted, also when its pods are collected.
fn keep_finished<'a>(job: &'a Job<'_>, by_task: &mut BTreeMap<&'a str, Counts>, total: &mut Counts) {
    for (task, recorded) in &job.status.task_status_count {
        let counts = by_task.entry(task).or_default();
        let keep = |phase: PodPhase, counter: &mut i32, sum: &mut i32| {
            let recorded = recorded.phase.get(phase.as_str()).copied().unwrap_or(0);
            let n_removed = recorded.saturating_sub(*counter).max(0);
            *counter = counter.saturating_add(n_removed);
            *sum = sum.saturating_add(n_removed);
        };
        keep(PodPhase::Succeeded, &mut counts.succeeded, &mut total.succeeded);
        keep(PodPhase::Failed, &mut counts.failed, &mut total.failed);
    }
}

impl<'a> Pods<'a> {
    /// All pods counted.
    pub(super) fn counts(&self) -> Counts {
        self.total
    }

    /// All pods counted as status is to show them.
    pub(super) fn counts_after(&self, job: &Job<'_>, next: &Next) -> Counts {
        let mut total = self.total;
        self.shown_to_go(job, next).for_each(|pod| total.doom(pod, job.wants(pod.task, pod.index)));
        total
    }

    /// The pods that this plan deletes and that status counts as terminating already, as in Volcano: they may be gone before the
    /// next plan, and clients wait to see `terminating` in a job that is stopped or restarted. Where a job ends by
    /// itself, status shows the counts by which it ended.
    fn shown_to_go(&self, job: &Job<'_>, next: &Next) -> impl Iterator<Item = &Observed<'a>> {
        let ends_now = next.phase.is_finished() && !job.phase().is_finished();
        self.doomed(job, next).filter(move |_| !ends_now)
    }

    /// One task's pods counted; nothing if it has none that stay.
    pub(super) fn counts_of(&self, task: &str) -> Option<Counts> {
        self.by_task.get(task).copied().filter(|counts| counts.staying().iter().any(|(_, n)| *n > 0))
    }

    /// The pods that this version of the job runs and that nobody removes.
    pub(super) fn current(&self) -> impl Iterator<Item = &Observed<'a>> {
        self.all.iter().filter(|pod| pod.version >= self.version && !pod.is_deleting())
    }

    /// All pods, in order of their names.
    pub(super) fn all(&self) -> impl Iterator<Item = &Observed<'a>> {
        self.all.iter()
    }

    /// Tasks and indexes of pods that went away while no controller ran.
    pub(super) fn lost_unseen(&self) -> impl Iterator<Item = (&'a str, i32)> {
        self.lost_unseen.iter().copied()
    }

    /// What is done although its pod is gone.
    pub(super) fn completed(&self) -> &Completed<'a> {
        &self.completed
    }

    /// How many pods of a task are what a dependent task waits for: those that run and are ready, and all that ever succeeded,
    /// be they of an earlier version of a job that was resumed, or removed since.
    pub(super) fn n_ready(&self, task: &str) -> i32 {
        let running = self.current().filter(|pod| pod.task == task && pod.is_running_and_ready()).count();
        let n_succeeded = self.counts_of(task).map_or(0, |counts| counts.succeeded);
        n_succeeded.saturating_add(i32::try_from(running).unwrap_or(i32::MAX))
    }

    /// The pods that are to go now and that nobody removes yet.
    pub(super) fn doomed(&self, job: &Job<'_>, next: &Next) -> impl Iterator<Item = &Observed<'a>> {
        self.all.iter().filter(move |pod| !pod.is_deleting() && pod.is_doomed(job, next))
    }

    /// Whether something of an earlier version is yet to be removed. What goes before it may then not be gone either.
    pub(super) fn has_doomed_outdated(&self, job: &Job<'_>, next: &Next) -> bool {
        self.doomed(job, next).any(|pod| pod.version < next.version)
    }

    /// Whether nothing runs, waits or ends any more. A pod whose node is lost does not hold up the end.
    pub(super) fn is_quiet(&self) -> bool {
        !self.all.iter().any(|pod| pod.is_alive() || pod.is_deleting())
    }

    /// How many pods will never be created, because what their task depends on has failed for good.
    pub(super) fn n_never(&self, job: &Job<'_>) -> i32 {
        let hopeless = dependency::hopeless(job, self);
        let replicas = hopeless.iter().filter_map(|name| Some(job.task(name)?.replicas));
        replicas.fold(0, i32::saturating_add)
    }

    /// `status.taskStatusCount`: per task, the pods that stay, by phase. While the job runs, one that somebody else removes
    /// stays counted as what it was until it is gone and its eviction is answered: only this record survives a crash.
    /// So does one that is gone, until another has its place, if a policy gives that time. And one that this plan deletes counts
    /// no more, even if it succeeded: a success that is missing later was removed by others.
    pub(super) fn task_status_count(
        &self,
        job: &Job<'_>,
        next: &Next,
        vacant: &Vacancies,
    ) -> BTreeMap<String, TaskState> {
        let mut by_task = self.by_task.clone();
        let is_steady = matches!(next.phase, JobPhase::Pending | JobPhase::Running);
        if is_steady && !vacant.is_empty() {
            let filled: BTreeSet<(&str, i32)> = self.all.iter().map(|pod| (pod.task, pod.index)).collect();
            let open = vacant.keys().filter(|(task, index)| !filled.contains(&(task.as_str(), *index)));
            for task in open.filter_map(|(task, _)| job.task(task)) {
                let counts = by_task.entry(&task.name).or_default();
                counts.running = counts.running.saturating_add(1);
            }
        }
        for pod in self.all.iter().filter(|pod| is_steady && pod.is_being_evicted(job)) {
            let counts = by_task.entry(pod.task).or_default();
            let counter = if pod.is_pending() { &mut counts.pending } else { &mut counts.running };
            *counter = counter.saturating_add(1);
        }
        for pod in self.shown_to_go(job, next) {
            by_task.entry(pod.task).or_default().doom(pod, job.wants(pod.task, pod.index));
        }
        let per_task = by_task.into_iter().filter_map(|(task, counts)| {
            let phases = counts.staying().into_iter().filter(|(_, n)| *n > 0);
            let phase: BTreeMap<String, i32> =
                phases.map(|(phase, n)| (phase.as_str().to_owned(), n)).collect();
            (!phase.is_empty()).then(|| (task.to_owned(), TaskState { phase }))
        });
        per_task.collect()
    }

    /// Compares what status counted with what is there, the first time anybody looks: what is missing and was not removed on
    /// purpose was evicted meanwhile.
    fn find_lost(&self, job: &'a Job<'_>) -> Vec<(&'a str, i32)> {
        if !matches!(job.phase(), JobPhase::Pending | JobPhase::Running) {
            return Vec::new();
        }
        let mut lost = Vec::new();
        for task in &job.spec.tasks {
            let Some(recorded) = job.status.task_status_count.get(&task.name) else { continue };
            let of_phase = |phase: PodPhase| recorded.phase.get(phase.as_str()).copied().unwrap_or(0);
            let n_alive: i32 =
                [PodPhase::Pending, PodPhase::Running, PodPhase::Unknown].map(of_phase).iter().sum();
            let n_finished = of_phase(PodPhase::Succeeded).saturating_add(of_phase(PodPhase::Failed));
            let there = self.all.iter().filter(|pod| pod.task == task.name && job.wants(pod.task, pod.index));
            let n_completed = self.completed.n_without_pod(&task.name);
            let (mut n_there, mut n_finished_there) = (n_completed, n_completed);
            let mut indexes: BTreeSet<i32> = BTreeSet::new();
            for pod in there {
                indexes.insert(pod.index);
                n_there = n_there.saturating_add(1);
                n_finished_there =
                    n_finished_there.saturating_add((pod.is_finished() && !pod.is_cut_short()).into());
            }
            // Pods that were alive may have finished meanwhile, and finished ones may have been removed.
            let n_newly_finished = n_finished_there.saturating_sub(n_finished).max(0);
            let n_alive_there = n_there.saturating_sub(n_finished_there).saturating_add(n_newly_finished);
            let n_missing = task.replicas.saturating_sub(n_there).max(0);
            let n_lost = n_alive.saturating_sub(n_alive_there).min(n_missing).max(0);
            let completed = self.completed.of(&task.name);
            let is_done = |index: i32| u32::try_from(index).is_ok_and(|index| completed.contains(index));
            let missing = (0..task.replicas).filter(|index| !indexes.contains(index) && !is_done(*index));
            let n_lost = usize::try_from(n_lost).unwrap_or(0);
            lost.extend(missing.take(n_lost).map(|index| (task.name.as_str(), index)));
        }
        lost
    }
}

impl<'a> Observed<'a> {
    /// Reads a pod of a job.
    pub(super) fn new(object: &'a Object) -> Option<Observed<'a>> {
        let pod = object.as_pod()?;
        let annotation = |key: &str| object.meta.annotations.get(key).unwrap_or_default();
        Some(Observed {
            object,
            pod,
            task: annotation(labels::TASK_SPEC),
            index: annotation(labels::TASK_INDEX).parse().unwrap_or(-1),
            version: annotation(labels::JOB_VERSION).parse().unwrap_or(0),
            retry_count: annotation(labels::JOB_RETRY_COUNT).parse().unwrap_or(0),
            partition: object.meta.labels.get(labels::PARTITION_ID),
        })
    }

    pub(super) fn object(&self) -> &'a Object {
        self.object
    }

    pub(super) fn name(&self) -> &'a str {
        &self.object.meta.key.name
    }

    pub(super) fn uid(&self) -> &'a Uid {
        &self.object.meta.uid
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.object.meta.is_deleting()
    }

    /// Whether somebody set out to remove it, mostly we ourselves: its going is no eviction, and it does go.
    pub(super) fn is_marked(&self) -> bool {
        self.object.meta.annotations.contains_key(labels::OUT_OF_SYNC)
    }

    /// Whether somebody else removes a pod that the job wants to run. One that ends while it is removed is cut short.
    fn is_being_evicted(&self, job: &Job<'_>) -> bool {
        let is_wanted = self.version >= job.status.version && job.wants(self.task, self.index);
        is_wanted && !self.is_marked() && self.is_cut_short()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.pod.status.phase == PodPhase::Failed
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.pod.status.phase == PodPhase::Succeeded
    }

    /// Whether it succeeded by itself. A pod that ends well because it is asked to go has not done its work: its success counts
    /// only if it is known to have come before the request. Times are in whole seconds, so the same second says nothing.
    pub(super) fn has_completed(&self) -> bool {
        let Some(asked_at) = self.object.meta.deletion_asked_at() else { return self.has_succeeded() };
        let ended_before_that = |margin: Duration| {
            self.finished_at().is_some_and(|end| end.whole_seconds().after(margin) < asked_at)
        };
        let came_first = match self.pod.end_order {
            EndOrder::EndedFirst => true,
            EndOrder::Unknown => ended_before_that(Duration::ZERO),
            // A node that could not say so in time says it afterwards, by its own clock.
            EndOrder::AskedFirst => ended_before_that(CLOCK_SKEW),
        };
        self.has_succeeded() && came_first
    }

    /// Whether it is removed before its work is done, however it ends.
    pub(super) fn is_cut_short(&self) -> bool {
        self.is_deleting() && !self.has_completed()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.pod.status.phase.is_finished()
    }

    pub(super) fn is_pending(&self) -> bool {
        self.pod.status.phase == PodPhase::Pending
    }

    pub(super) fn is_alive(&self) -> bool {
        matches!(self.pod.status.phase, PodPhase::Pending | PodPhase::Running)
    }

    pub(super) fn is_running(&self) -> bool {
        self.pod.status.phase == PodPhase::Running
    }

    /// Whether it runs with every container ready.
    fn is_running_and_ready(&self) -> bool {
        self.is_running() && self.pod.status.container_statuses.iter().all(|status| status.ready)
    }

    /// Whether the pod is not to stay, given where the job goes.
    pub(super) fn is_doomed(&self, job: &Job<'_>, next: &Next) -> bool {
        let is_outdated = self.version < next.version;
        match next.phase {
            JobPhase::Unset | JobPhase::Pending | JobPhase::Running => {
                self.is_surplus(job) || ((is_outdated || self.is_marked()) && !self.is_finished())
            }
            JobPhase::Restarting => {
                let keeps_finished = next.is_resumed() || next.is_last_try(job);
                let is_victim = is_outdated || self.is_hit(next);
                self.is_surplus(job) || (is_victim && !(keeps_finished && self.is_finished()))
            }
            JobPhase::Aborting
            | JobPhase::Aborted
            | JobPhase::Completing
            | JobPhase::Completed
            | JobPhase::Terminating
            | JobPhase::Terminated
            | JobPhase::Failed => !self.is_finished(),
            JobPhase::Other(_) => false,
        }
    }

    /// More than its task asks for. Pods of a task that the job no longer has are left alone.
    fn is_surplus(&self, job: &Job<'_>) -> bool {
        job.task(self.task).is_some_and(|task| self.index >= task.replicas)
    }

    /// Whether a partial restart is about this pod. A pod of the new try is not hit by the restart that made it.
    fn is_hit(&self, next: &Next) -> bool {
        let Targets { pods, tasks, partitions } = &next.targets;
        let is_in = |(task, partition): &(String, String)| {
            self.task == task && self.partition == Some(partition.as_str())
        };
        let is_of_part = || tasks.contains(self.task) || partitions.iter().any(is_in);
        pods.contains(self.uid()) || (self.retry_count < next.retry_count && is_of_part())
    }

    fn statuses(&self) -> impl Iterator<Item = &'a ContainerStatus> + use<'a> {
        let status = &self.pod.status;
        status.init_container_statuses.iter().chain(&status.container_statuses)
    }

    /// The codes other than 0 with which its containers ended.
    pub(super) fn exit_codes(&self) -> impl Iterator<Item = i32> + use<'a> {
        let ended =
            self.pod.status.container_statuses.iter().filter_map(|status| status.state.terminated.as_ref());
        ended.map(|terminated| terminated.exit_code).filter(|code| *code != 0)
    }

    /// When the pod was evicted that this one stands in for, if a policy gives it time to run.
    pub(super) fn evicted_at(&self) -> Option<Time> {
        self.object.meta.annotations.get(labels::EVICTED_AT)?.parse().ok().map(Time)
    }

    pub(super) fn created_at(&self) -> Option<Time> {
        self.object.meta.created_at
    }

    /// When the last of its containers ended. Of a pod that its node rejected or lost nobody says so; then it is when
    /// something last changed about it. Never the present moment: what is counted from there would never be over.
    pub(super) fn ended_at(&self) -> Option<Time> {
        let status = &self.pod.status;
        self.finished_at().or(status.conditions.changed_at).or(status.start_time).or(self.created_at())
    }

    /// When the last of its containers ended, if anybody says so.
    fn finished_at(&self) -> Option<Time> {
        self.statuses().filter_map(|status| status.state.terminated.as_ref()?.finished_at).max()
    }

    /// How often its containers were started again.
    pub(super) fn restarts(&self) -> i32 {
        self.statuses().fold(0, |sum, status| sum.saturating_add(status.restart_count))
    }

    /// When one of its containers last ended before it was started again.
    pub(super) fn restarted_at(&self) -> Option<Time> {
        self.statuses().filter_map(|status| status.last_state.terminated.as_ref()?.finished_at).max()
    }
}
