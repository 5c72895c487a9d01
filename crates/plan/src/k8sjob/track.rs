//! Counting each pod that has ended exactly once.
//!
//! ```text
//!   ended ──> on record in status ──> finalizer gone ──> in the counter
//!             (uncountedTerminatedPods,                  (off the record)
//!              or its index in completedIndexes)
//! ```
//!
//! Whoever dies between two of these steps, the next to look knows from what is stored which were made.

use std::collections::BTreeSet;
use std::time::Duration;

use krafla_api::batch::{JobStatus, UncountedTerminatedPods};
use krafla_api::{Time, Uid};

use super::Job;
use super::failure_policy::{self, Verdict};
use super::manage::n_at_once;
use super::outcome::Outcome;
use super::pods::{Ended, JobPod, State};
use super::tally::{Tally, Uncounted};

/// How many pods may be on record at once: a status of 400 kB is less than a third of what a store takes. Each record is two
/// writes and reads all pods: were it one of a few hundred, the cost of a Job would grow with the square of its pods.
const UNCOUNTED_MAX: usize = 10_000;
/// How long the end of a pod waits for others, so that they go on record together: a second, and longer with many pods, which
/// end over a longer time.
const GATHERING: Duration = Duration::from_secs(1);
const GATHERING_PER_POD: Duration = Duration::from_millis(1);
const GATHERING_MAX: Duration = Duration::from_secs(10);

/// What counting comes to.
pub(super) struct Account<'a> {
    /// Pods whose finalizer goes.
    pub(super) untracked: Vec<&'a JobPod<'a>>,
    /// When the pods that ended just now are due.
    pub(super) wake_at: Option<Time>,
}

/// Brings the counters and the record in `status` up to date.
pub(super) fn account<'a>(
    job: &Job<'_>,
    pods: &'a [JobPod<'a>],
    tally: &Tally<'_>,
    outcome: Option<&Outcome>,
    status: &mut JobStatus,
) -> Account<'a> {
    let mut record = count_untracked(pods, status);
    let uncounted = Uncounted::of(job);
    let is_urgent = outcome.is_some() || job.meta.is_deleting();
    let may_go = |pod: &JobPod<'_>| {
        let is_retained = || {
            pod.index
                .and_then(|index| tally.retained.get(&index))
                .is_some_and(|kept| kept.meta().uid == pod.meta().uid)
        };
        pod.is_tracked && (is_urgent || pod.state == State::Succeeded || (pod.has_failed && !is_retained()))
    };
    let leaving: Vec<&JobPod<'_>> = pods.iter().filter(|pod| may_go(pod)).collect();
    let is_new = |pod: &JobPod<'_>| uncounted.is_new_success(pod) || uncounted.is_new_failure(pod);
    let wake_at = if is_urgent {
        None
    } else {
        gathering_until(job, pods.len(), leaving.iter().filter(|pod| is_new(pod)))
    };
    let mut untracked = Vec::new();
    for pod in leaving.into_iter().filter(|pod| wake_at.is_none() || !is_new(pod)) {
        let n_on_record = record.succeeded.len() + record.failed.len();
        if n_on_record >= UNCOUNTED_MAX || untracked.len() >= n_at_once(pods).max(UNCOUNTED_MAX) {
            break;
        }
        untracked.push(pod);
        put_on_record(job, pod, outcome, &uncounted, &mut record);
    }
    if let Some(completions) = job.completions().filter(|_| job.is_indexed()) {
        let recorded = job.recorded_indexes(completions);
        let is_counted = wake_at.is_none();
        let completed = if is_counted { &tally.completed } else { &recorded.0 };
        let failed = if is_counted { &tally.failed_indexes } else { &recorded.1 };
        status.completed_indexes = completed.to_string();
        status.succeeded = super::narrow(completed.len());
        status.failed_indexes = job.spec.backoff_limit_per_index.map(|_| failed.to_string());
    }
    status.uncounted_terminated_pods = Some(record);
    Account { untracked, wake_at }
}

/// Counts the pods that are on record and whose finalizer is gone, and takes them off the record.
fn count_untracked(pods: &[JobPod<'_>], status: &mut JobStatus) -> UncountedTerminatedPods {
    let tracked: BTreeSet<&Uid> =
        pods.iter().filter(|pod| pod.is_tracked).map(|pod| &pod.meta().uid).collect();
    let mut record = status.uncounted_terminated_pods.take().unwrap_or_default();
    let count = |list: &mut Vec<Uid>, counter: &mut i32| {
        let before = list.len();
        list.retain(|uid| tracked.contains(uid));
        let n_counted = i32::try_from(before - list.len()).unwrap_or(i32::MAX);
        *counter = counter.saturating_add(n_counted);
    };
    count(&mut record.succeeded, &mut status.succeeded);
    count(&mut record.failed, &mut status.failed);
    record
}

/// Until when the pods that have just ended wait for others. A clock that is ahead of ours makes nobody wait.
fn gathering_until<'a, 'b: 'a>(
    job: &Job<'_>,
    n_pods: usize,
    ended: impl Iterator<Item = &'a &'b JobPod<'b>>,
) -> Option<Time> {
    let first_at = ended.map(|pod| pod.ended_at()).min()?;
    let for_all = GATHERING_PER_POD.saturating_mul(u32::try_from(n_pods).unwrap_or(u32::MAX));
    let due_at = first_at.after(GATHERING.saturating_add(for_all).min(GATHERING_MAX));
    (first_at <= job.now && job.now < due_at).then_some(due_at)
}

fn put_on_record(
    job: &Job<'_>,
    pod: &JobPod<'_>,
    outcome: Option<&Outcome>,
    uncounted: &Uncounted<'_>,
    record: &mut UncountedTerminatedPods,
) {
    let uid = &pod.meta().uid;
    if !pod.counts || uncounted.succeeded.contains(uid) || uncounted.failed.contains(uid) {
        return;
    }
    // With the Job fail all of its pods that have not succeeded, and the policy is asked about those too.
    let policy = job.spec.pod_failure_policy.as_ref();
    let verdict = || failure_policy::judge(policy, &Ended { meta: pod.meta(), pod: pod.pod });
    let fails_with_job = outcome.is_some_and(|outcome| !outcome.is_success);
    if pod.state == State::Succeeded {
        if !job.is_indexed() {
            record.succeeded.push(uid.clone());
        }
    } else if (pod.has_failed || fails_with_job) && verdict() != Verdict::Ignore {
        record.failed.push(uid.clone());
    }
}
