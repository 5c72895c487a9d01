//! The properties over the store's history: one recorder is shown every stored change, in order, and says what broke.

use std::collections::BTreeMap;

use krafla_api::volcano::JobPhase;
use krafla_api::{Kind, Uid, labels};
use krafla_plan::Object;

use crate::{Property, Violation};

/// What has been seen of the history so far.
#[derive(Clone, Debug, Default)]
pub struct History {
    jobs: BTreeMap<Uid, Job>,
    /// Live pods (neither finished nor going) by the job that owns them and the index they stand for.
    live: BTreeMap<(Uid, String), Uid>,
    pods: BTreeMap<Uid, Pod>,
}

#[derive(Clone, Debug, Default)]
struct Job {
    phase: JobPhase,
    version: i32,
    retry_count: i32,
    max_retry: i32,
}

#[derive(Clone, Debug)]
struct Pod {
    job: Uid,
    index: String,
    version: i32,
    is_going: bool,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was stored for the first time.
    Created,
    /// It changed.
    Updated,
    /// It was removed.
    Removed,
}

impl History {
    /// Shows the next revision and returns what it breaks.
    pub fn see(&mut self, change: Change, object: &Object) -> Vec<Violation> {
        match object.kind {
            Kind::VcJob => self.see_job(change, object),
            Kind::Pod => self.see_pod(change, object),
            _ => Vec::new(),
        }
    }

    fn see_job(&mut self, change: Change, object: &Object) -> Vec<Violation> {
        let mut violations = Vec::new();
        let Some(job) = object.as_vcjob() else { return violations };
        let (name, status) = (&object.meta.key, &job.status);
        if change == Change::Removed {
            self.jobs.remove(&object.meta.uid);
            return violations;
        }
        let before = self.jobs.entry(object.meta.uid.clone()).or_default();
        let after = Job {
            phase: status.state.phase.clone(),
            version: status.version,
            retry_count: status.retry_count,
            max_retry: job.spec.max_retry,
        };
        if before.phase.is_finished() && before.phase != after.phase {
            let message = format!("{name}: phase left {} for {}", before.phase, after.phase);
            violations.push(Violation::new(Property::P2, message));
        }
        if after.retry_count < before.retry_count || after.retry_count > after.max_retry.max(1) {
            let message = format!(
                "{name}: retryCount went from {} to {} with maxRetry {}",
                before.retry_count, after.retry_count, after.max_retry
            );
            violations.push(Violation::new(Property::P3, message));
        }
        if after.phase == JobPhase::Restarting
            && before.phase != JobPhase::Restarting
            && after.retry_count != before.retry_count.saturating_add(1)
        {
            violations.push(Violation::new(Property::P3, format!("{name}: a restart was not charged once")));
        }
        *before = after;
        violations
    }

    fn see_pod(&mut self, change: Change, object: &Object) -> Vec<Violation> {
        let mut violations = Vec::new();
        let (Some(pod), Some(owner)) = (object.as_pod(), object.meta.controller_uid()) else {
            return violations;
        };
        let annotation = |key: &str| object.meta.annotations.get(key).cloned().unwrap_or_default();
        let index = format!("{}-{}", annotation(labels::TASK_SPEC), annotation(labels::TASK_INDEX));
        let version = annotation(labels::JOB_VERSION).parse().unwrap_or(0);
        let slot = (owner.clone(), index.clone());
        let is_gone = change == Change::Removed;
        let is_going = is_gone || object.meta.is_deleting();
        let is_live = !is_going && !pod.status.phase.is_finished();

        if is_live {
            let other = self.live.insert(slot, object.meta.uid.clone());
            if other.is_some_and(|other| other != object.meta.uid) {
                let message = format!("{}: two live pods for index {index}", object.meta.key);
                violations.push(Violation::new(Property::P1, message));
            }
        } else if self.live.get(&slot) == Some(&object.meta.uid) {
            self.live.remove(&slot);
        }

        let job = self.jobs.get(owner);
        if change == Change::Created
            && let Some(job) = job
            && job.phase.is_finished()
        {
            let message = format!("{}: created although the job is {}", object.meta.key, job.phase);
            violations.push(Violation::new(Property::P2, message));
        }
        if is_gone {
            self.pods.remove(&object.meta.uid);
        } else {
            let known = Pod { job: owner.clone(), index, version, is_going };
            self.pods.insert(object.meta.uid.clone(), known);
        }
        violations
    }

    /// A controller is about to delete a pod: P3, a restart is charged before its first kill. Killing a pod of the
    /// present version while the job runs would be a restart that nobody paid for.
    pub fn see_own_deletion(&self, pod: &Uid, is_surplus: bool) -> Option<Violation> {
        let pod = self.pods.get(pod)?;
        let job = self.jobs.get(&pod.job)?;
        let is_running = matches!(job.phase, JobPhase::Pending | JobPhase::Running);
        let is_free = is_running && pod.version >= job.version && !pod.is_going && !is_surplus;
        is_free.then(|| {
            Violation::new(
                Property::P3,
                format!("pod of index {} killed without a charged restart", pod.index),
            )
        })
    }
}
