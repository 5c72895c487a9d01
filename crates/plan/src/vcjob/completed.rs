//! Indexes that are done although their pod is gone. A pod that succeeded and was then removed by somebody (a node that is
//! scaled in, a collector of pods) has succeeded all the same: it is neither forgotten nor run again.
//!
//! Which they are stands in `status.controlledResources`, the one place of a job's status that takes names and texts, from the
//! moment in which such a pod is seen to go:
//!
//! ```text
//!   completed-work: 0-2,5
//! ```
//!
//! What went while nobody looked is known by number: status counted more successes than there are.

use std::collections::BTreeMap;

use krafla_api::volcano::{Action, JobPhase, TaskSpec};

use super::Job;
use super::phase::{self, Next};
use super::pods::Observed;
use crate::Snapshot;
use crate::indexes::Indexes;
use crate::object::PodPhase;

const PREFIX: &str = "completed-";

/// Whether an entry of `status.controlledResources` is a record of completed indexes.
pub(super) fn is_record(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// The completed indexes of each task that has any.
#[derive(Debug, Default)]
pub(super) struct Completed<'a>(BTreeMap<&'a str, OfTask>);

#[derive(Debug, Default)]
struct OfTask {
    /// Those on record, and those of which we saw the pod go.
    known: Indexes,
    /// As many of the missing ones as must be done, lowest first.
    guessed: Indexes,
    /// How many of them have no pod that stays: a pod that is there is what it is.
    n_without_pod: i32,
}

/// Looks for completed indexes without a pod.
pub(super) fn observe<'a>(job: &Job<'a>, pods: &[Observed<'_>], snapshot: &Snapshot<'_>) -> Completed<'a> {
    let mut completed = Completed::default();
    // Nothing more is made for a job that has finished, and it has none before it began.
    if *job.phase() == JobPhase::Unset || job.phase().is_finished() {
        return completed;
    }
    let stay = phase::stay(job);
    let departed = snapshot.departed.iter().filter_map(|departed| Observed::new(&departed.object));
    let mut seen_to_go: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for pod in pods.iter().copied().filter(|pod| pod.is_deleting()).chain(departed) {
        let stands = pod.has_completed() && !pod.is_marked() && !pod.is_doomed(job, &stay);
        if let (true, Ok(index)) = (stands && job.wants(pod.task, pod.index), u32::try_from(pod.index)) {
            seen_to_go.entry(pod.task).or_default().push(index);
        }
    }
    for task in &job.spec.tasks {
        let recorded = job.status.controlled_resources.get(&format!("{PREFIX}{}", task.name));
        let replicas = u32::try_from(task.replicas).unwrap_or(0);
        let known = Indexes::parse(recorded.map_or("", String::as_str), replicas);
        let known = known.with(seen_to_go.remove(task.name.as_str()).unwrap_or_default());
        let n_recorded = if may_be_guessed(&stay, task) { n_counted(job, task) } else { 0 };
        if known.is_empty() && n_recorded == 0 {
            continue;
        }
        completed.0.insert(&task.name, of_task(task, known, n_recorded, pods));
    }
    if snapshot.is_first_look {
        for of_task in completed.0.values_mut() {
            of_task.known = of_task.known.joined(&std::mem::take(&mut of_task.guessed));
        }
    }
    completed
}

fn of_task(task: &TaskSpec, known: Indexes, n_recorded: i32, pods: &[Observed<'_>]) -> OfTask {
    let (mut there, mut staying) = (Vec::new(), Vec::new());
    let mut n_succeeded: i64 = 0;
    for pod in pods.iter().filter(|pod| pod.task == task.name) {
        n_succeeded += i64::from(pod.has_completed());
        if let Ok(index) = u32::try_from(pod.index) {
            there.push(index);
            if !pod.is_deleting() {
                staying.push(index);
            }
        }
    }
    let [there, staying] = [there, staying].map(|indexes| Indexes::default().with(indexes));
    let n_accounted = n_succeeded + known.len() - known.n_in(&there);
    let n_guessed = u32::try_from(i64::from(n_recorded) - n_accounted).unwrap_or(0);
    let guessed = there.joined(&known).lowest_missing(n_guessed, u32::try_from(task.replicas).unwrap_or(0));
    let n_without_pod = known.len() - known.n_in(&staying) + guessed.len();
    OfTask { known, guessed, n_without_pod: i32::try_from(n_without_pod).unwrap_or(i32::MAX) }
}

/// How many successes of a task status counted.
fn n_counted(job: &Job<'_>, task: &TaskSpec) -> i32 {
    let counted = job.status.task_status_count.get(&task.name);
    counted.and_then(|counted| counted.phase.get(PodPhase::Succeeded.as_str())).copied().unwrap_or(0)
}

/// Whether what status counted as succeeded and is not there was removed by others: where we remove such pods ourselves, the
/// number says nothing.
fn may_be_guessed(stay: &Next, task: &TaskSpec) -> bool {
    match stay.phase {
        JobPhase::Pending | JobPhase::Running | JobPhase::Aborting | JobPhase::Aborted => true,
        // Of single pods, those that succeeded are taken off the count when their restart begins.
        JobPhase::Restarting if stay.is_resumed() || stay.reason == Action::RestartPod.as_str() => true,
        JobPhase::Restarting => !stay.targets.is_empty() && !stay.targets.names(&task.name),
        _ => false,
    }
}

impl Completed<'_> {
    /// The indexes of a task that are done.
    pub(super) fn of(&self, task: &str) -> Indexes {
        self.0.get(task).map(|of_task| of_task.known.joined(&of_task.guessed)).unwrap_or_default()
    }

    /// How many indexes of a task are done without a pod that stays.
    pub(super) fn n_without_pod(&self, task: &str) -> i32 {
        self.0.get(task).map_or(0, |of_task| of_task.n_without_pod)
    }

    /// How many there are of each task.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&str, i32)> {
        self.0.iter().map(|(task, of_task)| (*task, of_task.n_without_pod))
    }

    /// As `status.controlledResources` says it: without what the job is about to start anew.
    pub(super) fn record(&self, job: &Job<'_>, next: &Next) -> BTreeMap<String, String> {
        let is_restart = next.phase == JobPhase::Restarting && *next != phase::stay(job);
        let is_whole = is_restart && next.version > job.status.version && !next.is_resumed();
        let mut record = BTreeMap::new();
        for (name, OfTask { known, .. }) in self.0.iter().filter(|_| !is_whole) {
            let mut known = known.clone();
            if is_restart && next.targets.tasks.contains(*name) {
                continue;
            }
            let partitions = next.targets.partitions.iter().filter(|(task, _)| is_restart && task == name);
            for (_, partition) in partitions {
                if let Some((first, last)) = job.task(name).and_then(|task| bounds(task, partition)) {
                    known = known.without(first, last);
                }
            }
            if !known.is_empty() {
                record.insert(format!("{PREFIX}{name}"), known.to_string());
            }
        }
        record
    }
}

/// The first and the last index of a partition.
fn bounds(task: &TaskSpec, partition: &str) -> Option<(u32, u32)> {
    let size = u32::try_from(task.partition_policy.as_ref()?.partition_size).ok()?;
    let first = partition.parse::<u32>().ok()?.checked_mul(size)?;
    Some((first, first.checked_add(size)?.checked_sub(1)?))
}
