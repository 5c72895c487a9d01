//! Tally of a Job's pods, counted from the existing pods and from the record of earlier ones in status.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::Uid;

use super::Job;
use super::failure_policy::Verdict;
use super::manage::Change;
use super::pods::{JobPod, State};
use crate::indexes::Indexes;

/// The numbers of one moment.
pub(super) struct Tally<'a> {
    pub(super) active: i64,
    pub(super) ready: i64,
    pub(super) terminating: i64,
    /// Pods that have succeeded, or indexes that have, counted or not.
    pub(super) succeeded: i64,
    /// Pods that have failed, counted or not.
    pub(super) failed: i64,
    pub(super) completed: Indexes,
    pub(super) failed_indexes: Indexes,
    /// Of each index that waits for another try the pod that failed last. It stays uncounted until its successor is there,
    /// because it knows how many failures there were.
    pub(super) retained: BTreeMap<u32, &'a JobPod<'a>>,
}

impl<'a> Tally<'a> {
    pub(super) fn of(job: &Job<'_>, pods: &'a [JobPod<'a>]) -> Tally<'a> {
        let uncounted = Uncounted::of(job);
        let count = |is_counted: &dyn Fn(&JobPod<'_>) -> bool| {
            i64::try_from(pods.iter().filter(|pod| is_counted(pod)).count()).unwrap_or(i64::MAX)
        };
        let (completed, failed_indexes) = indexes(job, pods, &uncounted);
        let succeeded = if job.is_indexed() {
            completed.len()
        } else {
            let new = count(&|pod| uncounted.is_new_success(pod));
            i64::from(job.status.succeeded) + new + uncounted.succeeded.len() as i64
        };
        let new_failures = count(&|pod| uncounted.is_new_failure(pod) && pod.verdict != Verdict::Ignore);
        let failed = i64::from(job.status.failed) + new_failures + uncounted.failed.len() as i64;
        let mut tally = Tally {
            active: count(&|pod| pod.is_active()),
            ready: count(&|pod| pod.is_ready()),
            terminating: count(&|pod| pod.state == State::Terminating),
            succeeded,
            failed,
            completed,
            failed_indexes,
            retained: BTreeMap::new(),
        };
        if job.spec.backoff_limit_per_index.is_some() {
            tally.retain_last_failures(pods);
        }
        tally
    }

    fn retain_last_failures(&mut self, pods: &'a [JobPod<'a>]) {
        let running: BTreeSet<u32> =
            pods.iter().filter(|pod| pod.is_active()).filter_map(|pod| pod.index).collect();
        for pod in pods.iter().filter(|pod| pod.is_tracked && pod.has_failed) {
            let Some(index) = pod.index else { continue };
            let is_settled = self.completed.contains(index) || self.failed_indexes.contains(index);
            if is_settled || running.contains(&index) {
                continue;
            }
            let weight = |pod: &JobPod<'_>| pod.failures_before().iter().map(|n| i64::from(*n)).sum::<i64>();
            let is_last = self
                .retained
                .get(&index)
                .is_none_or(|other| weight(pod) >= weight(other) && pod.ended_at() >= other.ended_at());
            if is_last {
                self.retained.insert(index, pod);
            }
        }
    }

    /// The numbers once a change is made. Of a large Job they are those that it is about to have: were each plan to say how many
    /// pods it makes, there would be as many status writes as plans. Pods that the server does not let come are not among
    /// them.
    pub(super) fn after(mut self, change: &Change<'_>, may_pods_come: bool) -> Tally<'a> {
        for pod in &change.delete {
            self.active -= 1;
            self.ready -= i64::from(pod.is_ready());
            // A pod without a node is gone at once.
            self.terminating += i64::from(!pod.pod.spec.node_name.is_empty());
        }
        if may_pods_come {
            self.active += (change.create.len() + change.n_later) as i64;
        }
        self
    }
}

/// The pods that are on record as ended and are in no counter yet.
pub(super) struct Uncounted<'a> {
    pub(super) succeeded: BTreeSet<&'a Uid>,
    pub(super) failed: BTreeSet<&'a Uid>,
}

impl<'a> Uncounted<'a> {
    pub(super) fn of(job: &Job<'a>) -> Uncounted<'a> {
        let listed = job.status.uncounted_terminated_pods.as_ref();
        Uncounted {
            succeeded: listed.into_iter().flat_map(|listed| &listed.succeeded).collect(),
            failed: listed.into_iter().flat_map(|listed| &listed.failed).collect(),
        }
    }

    /// Once on record as failed, a pod stays failed, whatever it says later.
    pub(super) fn is_listed(&self, pod: &JobPod<'_>) -> bool {
        self.succeeded.contains(&pod.meta().uid) || self.failed.contains(&pod.meta().uid)
    }

    pub(super) fn is_new_success(&self, pod: &JobPod<'_>) -> bool {
        pod.is_tracked && pod.counts && pod.state == State::Succeeded && !self.is_listed(pod)
    }

    pub(super) fn is_new_failure(&self, pod: &JobPod<'_>) -> bool {
        pod.is_tracked && pod.counts && pod.has_failed && !self.is_listed(pod)
    }
}

/// The indexes that have completed, and those that have failed for good.
fn indexes(job: &Job<'_>, pods: &[JobPod<'_>], uncounted: &Uncounted<'_>) -> (Indexes, Indexes) {
    let Some(completions) = job.completions().filter(|_| job.is_indexed()) else { return Default::default() };
    let (completed, failed) = job.recorded_indexes(completions);
    let new = pods.iter().filter(|pod| uncounted.is_new_success(pod));
    // An index that is on record as failed stays so: no server takes one that is both.
    let new = new.filter_map(|pod| pod.index).filter(|index| !failed.contains(*index));
    let completed = completed.with(new);
    let Some(limit) = job.spec.backoff_limit_per_index else { return (completed, Indexes::default()) };
    let new = pods.iter().filter(|pod| pod.is_tracked && pod.fails_its_index(limit));
    let new = new.filter_map(|pod| pod.index).filter(|index| !completed.contains(*index));
    let failed = failed.with(new);
    (completed, failed)
}
