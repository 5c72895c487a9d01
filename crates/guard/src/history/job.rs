//! The properties of Kubernetes' Jobs over the store's history.
//!
//! ```text
//!   pod ends -> on record in the Job's status -> finalizer gone -> off the record and in the counter
//! ```
//!
//! Each arrow is seen as a revision of its own, so that a count that is made twice, or before its time, shows.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::batch::{COMPLETION_INDEX, JOB_TRACKING, JobStatus};
use krafla_api::{Kind, Uid};
use krafla_plan::object::PodPhase;
use krafla_plan::{Object, object};

use super::{Broken, Change};
use crate::Property;

/// What has been seen of Jobs and their pods.
#[derive(Clone, Debug, Default)]
pub(super) struct Jobs {
    jobs: BTreeMap<Uid, Job>,
    pods: BTreeMap<Uid, Pod>,
}

#[derive(Clone, Debug, Default)]
struct Job {
    status: JobStatus,
    is_indexed: bool,
    has_failure_policy: bool,
    is_going: bool,
    /// Whether somebody wants it suspended and it has said that it is.
    is_suspended: bool,
    /// The fewest indexes that the Job ever had: what lies beyond was not its own to somebody who still acts on that.
    completions_min: i32,
    /// The most pods that the Job was ever allowed to run at once: somebody may still act on what it said before.
    parallelism_max: i32,
    /// Pods that were on record and no longer are: each is in a counter.
    counted: BTreeSet<Uid>,
}

#[derive(Clone, Debug)]
struct Pod {
    job: Uid,
    index: Option<String>,
    is_tracked: bool,
    is_active: bool,
}

impl Jobs {
    /// The next revision of a Job, and what it breaks.
    pub(super) fn see_job(&mut self, change: Change, object: &Object) -> Vec<Broken> {
        let Some(job) = object.as_job() else { return Vec::new() };
        if change == Change::Removed {
            self.jobs.remove(&object.meta.uid);
            return Vec::new();
        }
        let n_active = self.active(&object.meta.uid).count();
        let before = self.jobs.entry(object.meta.uid.clone()).or_insert_with(Job::unseen);
        let after = before.followed_by(job, object.meta.is_deleting());
        let broken = vec![
            decided_is_final(&before.status, &after.status),
            decided_before_its_end(&after.status),
            ends_without_active_pods(&before.status, &after.status, n_active),
            counters_follow_the_record(before, &after),
            counted_once(&after),
        ];
        *before = after;
        broken
    }

    /// A pod that no Job controls any more takes no place.
    pub(super) fn let_go(&mut self, pod: &Uid) {
        self.pods.remove(pod);
    }

    /// The next revision of a pod that a Job controls, and what it breaks.
    pub(super) fn see_pod(&mut self, change: Change, object: &Object) -> Vec<Broken> {
        let (Some(pod), Some(owner)) = (object.as_pod(), object.meta.controller_uid()) else {
            return Vec::new();
        };
        let is_active = change != Change::Removed
            && !object.meta.is_deleting()
            && matches!(pod.status.phase, PodPhase::Pending | PodPhase::Running | PodPhase::Unknown);
        let seen = Pod {
            job: owner.clone(),
            index: object.meta.annotations.get(COMPLETION_INDEX).map(str::to_owned),
            is_tracked: object.meta.finalizers.iter().any(|name| name == JOB_TRACKING),
            is_active,
        };
        let mut broken = Vec::new();
        if let Some(job) = self.jobs.get(owner) {
            if change == Change::Created {
                broken.push(pod_comes_in_time(job));
                broken.push(self.pod_has_a_place(job, &seen));
            }
            let was_tracked = self.pods.get(&object.meta.uid).is_some_and(|before| before.is_tracked);
            if was_tracked && !seen.is_tracked {
                broken.push(counted_before_let_go(job, &object.meta.uid, &seen, pod.status.phase));
            }
        }
        if change == Change::Removed {
            self.pods.remove(&object.meta.uid);
        } else {
            self.pods.insert(object.meta.uid.clone(), seen);
        }
        broken
    }

    /// The pods of a Job that have neither ended nor begun to go.
    fn active<'a>(&'a self, job: &'a Uid) -> impl Iterator<Item = &'a Pod> + Clone {
        self.pods.values().filter(move |pod| pod.is_active && pod.job == *job)
    }

    /// P1.
    fn pod_has_a_place(&self, job: &Job, new: &Pod) -> Broken {
        let active = self.active(&new.job);
        let n_active = i32::try_from(active.clone().count()).unwrap_or(i32::MAX);
        if job.is_indexed && active.clone().any(|pod| pod.index == new.index) {
            let index = new.index.as_deref().unwrap_or("no index");
            return Some((Property::P1, format!("created beside an active pod of {index}")));
        }
        (n_active >= job.parallelism_max).then(|| {
            let allowed = job.parallelism_max;
            (
                Property::P1,
                format!("created beside {n_active} active pods, of {allowed} that may run at once"),
            )
        })
    }
}

impl Job {
    fn unseen() -> Job {
        Job { completions_min: i32::MAX, ..Job::default() }
    }

    fn followed_by(&self, job: &object::Job, is_going: bool) -> Job {
        let mut counted = self.counted.clone();
        let [succeeded, failed] = record(&job.status);
        let gone = record(&self.status).into_iter().flatten();
        counted.extend(gone.filter(|uid| !succeeded.contains(uid) && !failed.contains(uid)).cloned());
        Job {
            status: job.status.clone(),
            is_indexed: job.spec.completion_mode.as_deref() == Some("Indexed"),
            has_failure_policy: job.spec.pod_failure_policy.is_some(),
            is_going,
            is_suspended: job.spec.suspend == Some(true) && job.status.condition("Suspended").is_some(),
            completions_min: job.spec.completions.unwrap_or(0).min(self.completions_min),
            parallelism_max: job.spec.parallelism.unwrap_or(1).max(self.parallelism_max),
            counted,
        }
    }
}

/// The pods that are on record as succeeded, and as failed.
fn record(status: &JobStatus) -> [&[Uid]; 2] {
    let listed = status.uncounted_terminated_pods.as_ref();
    listed.map_or([&[], &[]], |listed| [&listed.succeeded, &listed.failed])
}

/// P2. Only a suspension ends again.
fn decided_is_final(before: &JobStatus, after: &JobStatus) -> Broken {
    let decisions = ["FailureTarget", "SuccessCriteriaMet", "Failed", "Complete"];
    let lost = decisions
        .into_iter()
        .find(|name| before.condition(name) != after.condition(name) && before.condition(name).is_some())?;
    Some((Property::P2, format!("the condition {lost} has changed after it was set")))
}

/// P2: that a Job has ended is not the first that is heard of how it ends.
fn decided_before_its_end(status: &JobStatus) -> Broken {
    let end = status.finished()?;
    let decision = if end.condition_type == "Failed" { "FailureTarget" } else { "SuccessCriteriaMet" };
    let is_decided = status.condition(decision).is_some();
    (!is_decided).then(|| (Property::P2, format!("{} without {decision}", end.condition_type)))
}

/// P12: nobody looks after the pods of a Job that has ended.
fn ends_without_active_pods(before: &JobStatus, after: &JobStatus, n_active: usize) -> Broken {
    let ends = before.finished().is_none() && after.finished().is_some();
    (ends && n_active > 0).then(|| (Property::P12, format!("ended beside {n_active} active pods")))
}

/// P5: a counter grows by the pods that leave the record, and by no others. Indexes are their own record.
fn counters_follow_the_record(before: &Job, after: &Job) -> Broken {
    let counters = [
        ("succeeded", before.status.succeeded, after.status.succeeded),
        ("failed", before.status.failed, after.status.failed),
    ];
    let records = record(&before.status).into_iter().zip(record(&after.status));
    for ((counter, from, to), (old, new)) in counters.into_iter().zip(records) {
        if counter == "succeeded" && after.is_indexed {
            continue;
        }
        let n_left = i32::try_from(old.iter().filter(|uid| !new.contains(uid)).count()).unwrap_or(i32::MAX);
        if to != from.saturating_add(n_left) {
            let message = format!("{counter} went from {from} to {to} when {n_left} pods left the record");
            return Some((Property::P5, message));
        }
    }
    None
}

/// P5.
fn counted_once(job: &Job) -> Broken {
    let again = record(&job.status).into_iter().flatten().find(|uid| job.counted.contains(uid))?;
    Some((Property::P5, format!("pod {again} is on record again after it was counted")))
}

/// P2 and P7.
fn pod_comes_in_time(job: &Job) -> Broken {
    if let Some(end) = job.status.finished() {
        return Some((Property::P2, format!("created although the Job is {}", end.condition_type)));
    }
    if job.is_suspended {
        return Some((Property::P7, "created although the Job is suspended".to_owned()));
    }
    let decisions = ["FailureTarget", "SuccessCriteriaMet"];
    let decided = decisions.into_iter().find(|name| job.status.condition(name).is_some())?;
    Some((Property::P7, format!("created although the Job has {decided}")))
}

/// P5: what has ended is on record before its finalizer goes, unless nobody counts any more. A completed index is its own
/// record, and a rule may say that a failure does not count.
fn counted_before_let_go(job: &Job, uid: &Uid, pod: &Pod, phase: PodPhase) -> Broken {
    let is_over = job.is_going || job.status.finished().is_some();
    let index = pod.index.as_deref().and_then(|index| index.parse().ok());
    let is_own_index = index.is_some_and(|index: i32| index < job.completions_min);
    let counts = match phase {
        PodPhase::Succeeded => !job.is_indexed || is_own_index,
        PodPhase::Failed => !job.has_failure_policy && (!job.is_indexed || is_own_index),
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => false,
    };
    let is_listed = record(&job.status).into_iter().flatten().any(|listed| listed == uid);
    let is_completed =
        job.is_indexed && index.is_some_and(|index| lists(&job.status.completed_indexes, index));
    (counts && !is_over && !is_listed && !is_completed)
        .then(|| (Property::P5, "let go before it was on record".to_owned()))
}

/// Whether an index is in a list such as `0,2-4`.
fn lists(indexes: &str, index: i32) -> bool {
    indexes.split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        matches!((first.parse(), last.parse()), (Ok(first), Ok(last)) if (first..=last).contains(&index))
    })
}

/// Whether a pod is a Job's.
pub(super) fn is_of_a_job(pod: &Object) -> bool {
    !krafla_plan::controlling_keys(Kind::Job, pod).is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::History;
    use super::*;

    fn see(history: &mut History, change: Change, (kind, json): &(Kind, Value)) -> Vec<String> {
        let object = Object::decode(*kind, json.to_string().as_bytes());
        history.see(change, &object).iter().map(ToString::to_string).collect()
    }

    fn job(mode: &str, status: Value) -> (Kind, Value) {
        let metadata = json!({ "namespace": "n", "name": "a", "uid": "job" });
        let spec = json!({ "parallelism": 2, "completions": 3, "completionMode": mode });
        (Kind::Job, json!({ "metadata": metadata, "spec": spec, "status": status }))
    }

    fn suspended(mode: &str) -> (Kind, Value) {
        let conditions = json!([{ "type": "Suspended", "status": "True" }]);
        let (kind, mut job) = job(mode, json!({ "conditions": conditions }));
        job["spec"]["suspend"] = true.into();
        (kind, job)
    }

    fn pod(uid: &str, index: i32, phase: &str, finalizers: &[&str]) -> (Kind, Value) {
        let owners = json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "job", "controller": true }]);
        let metadata = json!({
            "namespace": "n", "name": uid, "uid": uid, "ownerReferences": owners, "finalizers": finalizers,
            "annotations": { COMPLETION_INDEX: index.to_string() },
        });
        (Kind::Pod, json!({ "metadata": metadata, "status": { "phase": phase } }))
    }

    /// A Job that has begun, with one pod.
    fn begun(mode: &str) -> History {
        let mut history = History::default();
        for object in [job(mode, json!({})), pod("one", 0, "Running", &[JOB_TRACKING])] {
            assert_eq!(see(&mut history, Change::Created, &object), Vec::<String>::new());
        }
        history
    }

    #[test]
    fn p1_an_index_has_one_active_pod() {
        let broken = see(&mut begun("Indexed"), Change::Created, &pod("two", 0, "Pending", &[]));
        assert_eq!(broken, ["P1: n/two: created beside an active pod of 0"]);
        let broken = see(&mut begun("Indexed"), Change::Created, &pod("two", 1, "Pending", &[]));
        assert_eq!(broken, Vec::<String>::new());
    }

    #[test]
    fn p1_no_more_pods_run_than_may_run_at_once() {
        let mut history = begun("NonIndexed");
        assert_eq!(see(&mut history, Change::Created, &pod("two", 0, "Pending", &[])), Vec::<String>::new());
        let broken = see(&mut history, Change::Created, &pod("three", 0, "Pending", &[]));
        assert_eq!(broken, ["P1: n/three: created beside 2 active pods, of 2 that may run at once"]);
    }

    #[test]
    fn p1_a_pod_that_was_let_go_has_a_successor() {
        let mut history = begun("Indexed");
        let (kind, mut free) = pod("one", 0, "Running", &[]);
        free["metadata"]["ownerReferences"] = json!([]);
        assert_eq!(see(&mut history, Change::Updated, &(kind, free)), Vec::<String>::new());
        let broken = see(&mut history, Change::Created, &pod("two", 0, "Pending", &[]));
        assert_eq!(broken, Vec::<String>::new());
    }

    #[test]
    fn p2_what_is_decided_stays_decided_and_no_pod_comes_after_it() {
        let mut history = begun("NonIndexed");
        let decided = json!({ "conditions": [{ "type": "FailureTarget", "status": "True" }] });
        assert_eq!(see(&mut history, Change::Updated, &job("NonIndexed", decided)), Vec::<String>::new());
        let broken = see(&mut history, Change::Created, &pod("late", 0, "Pending", &[]));
        assert_eq!(broken, ["P7: n/late: created although the Job has FailureTarget"]);
        let broken = see(&mut history, Change::Updated, &job("NonIndexed", json!({})));
        assert_eq!(broken, ["P2: n/a: the condition FailureTarget has changed after it was set"]);
    }

    #[test]
    fn p5_a_pod_is_on_record_before_it_is_let_go() {
        let mut history = begun("NonIndexed");
        see(&mut history, Change::Updated, &pod("one", 0, "Failed", &[JOB_TRACKING]));
        let broken = see(&mut history, Change::Updated, &pod("one", 0, "Failed", &[]));
        assert_eq!(broken, ["P5: n/one: let go before it was on record"]);
    }

    #[test]
    fn p5_a_counter_grows_by_what_leaves_the_record() {
        let mut history = begun("NonIndexed");
        let on_record = json!({ "uncountedTerminatedPods": { "failed": ["one"] } });
        assert_eq!(
            see(&mut history, Change::Updated, &job("NonIndexed", on_record.clone())),
            Vec::<String>::new()
        );
        let broken = see(&mut history.clone(), Change::Updated, &job("NonIndexed", json!({})));
        assert_eq!(broken, ["P5: n/a: failed went from 0 to 0 when 1 pods left the record"]);
        let counted = json!({ "failed": 1, "uncountedTerminatedPods": {} });
        assert_eq!(see(&mut history, Change::Updated, &job("NonIndexed", counted)), Vec::<String>::new());
        let again = json!({ "failed": 1, "uncountedTerminatedPods": { "failed": ["one"] } });
        let broken = see(&mut history, Change::Updated, &job("NonIndexed", again));
        assert_eq!(broken, ["P5: n/a: pod one is on record again after it was counted"]);
    }

    #[test]
    fn p2_how_a_job_ends_is_decided_before_it_ends_and_p12_its_pods_have_gone_by_then() {
        let mut history = begun("NonIndexed");
        let ended = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
        let broken = see(&mut history, Change::Updated, &job("NonIndexed", ended));
        let expected =
            ["P2: n/a: Complete without SuccessCriteriaMet", "P12: n/a: ended beside 1 active pods"];
        assert_eq!(broken, expected);
    }

    #[test]
    fn p5_a_completed_index_is_on_record_before_its_pod_is_let_go() {
        let ended = |history: &mut History, finalizers: &[&str]| {
            see(history, Change::Updated, &pod("one", 0, "Succeeded", finalizers))
        };
        let mut history = begun("Indexed");
        ended(&mut history, &[JOB_TRACKING]);
        assert_eq!(ended(&mut history.clone(), &[]), ["P5: n/one: let go before it was on record"]);
        let completed = json!({ "succeeded": 2, "completedIndexes": "0-1" });
        see(&mut history, Change::Updated, &job("Indexed", completed));
        assert_eq!(ended(&mut history, &[]), Vec::<String>::new());
    }

    #[test]
    fn p7_a_job_that_has_said_that_it_is_suspended_gets_no_pod() {
        let mut history = begun("NonIndexed");
        see(&mut history, Change::Updated, &suspended("NonIndexed"));
        let broken = see(&mut history, Change::Created, &pod("two", 1, "Pending", &[]));
        assert_eq!(broken, ["P7: n/two: created although the Job is suspended"]);
    }
}
