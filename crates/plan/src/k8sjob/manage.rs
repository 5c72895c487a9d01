//! Which pods a Job creates and which it removes, as long as its end is not decided.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::Time;

use super::Job;
use super::backoff;
use super::pods::{JobPod, State};
use super::rank;
use super::tally::Tally;

/// How many pods one plan touches at most, so that no Job holds up the others for long; of a large Job, half of them. Every
/// plan reads all pods: were each to touch the same few, the cost of a Job would grow with the square of its pods.
pub(super) fn n_at_once(pods: &[JobPod<'_>]) -> usize {
    const PODS_MAX: usize = 500;
    PODS_MAX.max(pods.len() / 2)
}

/// What is done about a Job's pods.
#[derive(Default)]
pub(super) struct Change<'a> {
    /// Active pods that go. They are not counted.
    pub(super) delete: Vec<&'a JobPod<'a>>,
    /// Pods that come: the index of each, where there are indexes.
    pub(super) create: Vec<Option<u32>>,
    /// How many more come with the next plans.
    pub(super) n_later: usize,
    /// When more can be done.
    pub(super) wake_at: Option<Time>,
}

impl<'a> Change<'a> {
    /// All that runs goes.
    pub(super) fn stop(pods: &'a [JobPod<'a>]) -> Change<'a> {
        Change { delete: pods.iter().filter(|pod| pod.is_active()).collect(), ..Change::default() }
    }
}

/// What should be done. Pods are removed or created, never both: what is removed may make room for other indexes.
pub(super) fn change<'a>(job: &Job<'_>, pods: &'a [JobPod<'a>], tally: &Tally<'a>) -> Change<'a> {
    if job.is_suspended() {
        return Change::stop(pods);
    }
    let wanted = match job.completions() {
        // The first success ends a queue of work: what runs may end by itself.
        None if tally.succeeded > 0 => tally.active,
        None => job.parallelism(),
        Some(completions) => (i64::from(completions) - tally.succeeded).clamp(0, job.parallelism()),
    };
    let mut delete = surplus(job, pods, usize::try_from(tally.active - wanted).unwrap_or(0));
    if !delete.is_empty() {
        delete.truncate(n_at_once(pods));
        return Change { delete, ..Change::default() };
    }
    let awaited = if job.replaces_only_failed() { tally.terminating } else { 0 };
    let n_missing = usize::try_from(wanted - tally.active - awaited).unwrap_or(0);
    let n_now = n_missing.min(n_at_once(pods));
    if n_now == 0 {
        return Change::default();
    }
    if job.spec.backoff_limit_per_index.is_some() && job.is_indexed() {
        return create_when_due(job, free_indexes(job, pods, tally, n_missing), n_now, tally);
    }
    match backoff::ready_at(pods.iter()).filter(|at| *at > job.now) {
        Some(at) => Change { wake_at: Some(at), ..Change::default() },
        None => {
            let indexes = || free_indexes(job, pods, tally, n_now).into_iter().map(Some).collect();
            let create = if job.is_indexed() { indexes() } else { vec![None; n_now] };
            Change { create, n_later: n_missing - n_now, ..Change::default() }
        }
    }
}

/// Active pods that are too many: those whose index is none or taken, and the `excess` that are missed least.
fn surplus<'a>(job: &Job<'_>, pods: &'a [JobPod<'a>], excess: usize) -> Vec<&'a JobPod<'a>> {
    if excess == 0 && !(job.is_indexed() && has_misplaced(pods)) {
        return Vec::new();
    }
    let mut ranked: Vec<&JobPod<'_>> = pods.iter().filter(|pod| pod.is_active()).collect();
    ranked.sort_by(|one, other| rank::compare(one, other));
    if !job.is_indexed() {
        ranked.truncate(excess);
        return ranked;
    }
    // The last in the ranking is kept.
    let kept: BTreeMap<u32, &krafla_api::Uid> =
        ranked.iter().filter_map(|pod| Some((pod.index?, &pod.meta().uid))).collect();
    let is_kept =
        |pod: &JobPod<'_>| pod.index.is_some_and(|index| kept.get(&index) == Some(&&pod.meta().uid));
    let (rest, mut surplus): (Vec<_>, Vec<_>) = ranked.into_iter().partition(|pod| is_kept(pod));
    let more = excess.saturating_sub(surplus.len());
    surplus.extend(rest.into_iter().take(more));
    surplus
}

/// Whether an active pod has no index, or one that another has too.
fn has_misplaced(pods: &[JobPod<'_>]) -> bool {
    let mut taken = BTreeSet::new();
    pods.iter().filter(|pod| pod.is_active()).any(|pod| pod.index.is_none_or(|index| !taken.insert(index)))
}

/// The lowest indexes for which a pod is needed.
fn free_indexes(job: &Job<'_>, pods: &[JobPod<'_>], tally: &Tally<'_>, n: usize) -> Vec<u32> {
    let takes =
        |pod: &JobPod<'_>| pod.is_active() || (job.replaces_only_failed() && pod.state == State::Terminating);
    let taken: BTreeSet<u32> = pods.iter().filter(|pod| takes(pod)).filter_map(|pod| pod.index).collect();
    let is_free = |index: &u32| {
        !taken.contains(index) && !tally.completed.contains(*index) && !tally.failed_indexes.contains(*index)
    };
    (0..job.completions().unwrap_or(0)).filter(is_free).take(n).collect()
}

/// Each index waits for itself. One that waits is not replaced by a higher one.
fn create_when_due<'a>(job: &Job<'_>, indexes: Vec<u32>, n_now: usize, tally: &Tally<'_>) -> Change<'a> {
    let due_at = |index: &u32| {
        let failed = tally.retained.get(index)?;
        let n_failures = failed.failures_before().iter().map(|n| u32::try_from(*n).unwrap_or(0)).sum::<u32>();
        Some(failed.ended_at().after(backoff::delay(n_failures.saturating_add(1))))
    };
    let is_due = |index: &u32| due_at(index).is_none_or(|at| at <= job.now);
    let (due, waiting): (Vec<u32>, Vec<u32>) = indexes.into_iter().partition(is_due);
    let wake_at = waiting.iter().filter_map(due_at).min();
    let n_later = due.len().saturating_sub(n_now);
    Change { create: due.into_iter().take(n_now).map(Some).collect(), n_later, wake_at, ..Change::default() }
}
