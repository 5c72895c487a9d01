//! The properties over the store's history: one recorder is shown every stored change, in order, and says what broke.

use std::collections::BTreeMap;

use krafla_api::volcano::{JobPhase, PodGroupPhase};
use krafla_api::{Kind, Uid, labels};
use krafla_plan::Object;
use krafla_plan::object::VcJob;

use crate::{Property, Violation};

/// What has been seen of the history so far.
#[derive(Clone, Debug, Default)]
pub struct History {
    jobs: BTreeMap<Uid, Job>,
    /// Live pods (neither finished nor going) by the job that owns them and the place they stand for.
    live: BTreeMap<(Uid, Place), Uid>,
    pods: BTreeMap<Uid, Pod>,
}

#[derive(Clone, Debug, Default)]
struct Job {
    phase: JobPhase,
    version: i32,
    retry_count: i32,
    max_retry: i32,
    /// The fewest replicas that the job ever wanted of each task: a pod beyond them may have been found too many by
    /// somebody who does not yet know that the job has grown again.
    replicas_min: BTreeMap<String, i32>,
    /// Whether the job has a PodGroup that has left Pending.
    is_admitted: bool,
}

#[derive(Clone, Debug)]
struct Pod {
    job: Uid,
    place: Place,
    version: i32,
    is_going: bool,
}

/// A task and an index in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    task: String,
    index: i32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.task, self.index)
    }
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
    /// Whether objects of a kind say anything about the properties. The others need not be shown.
    pub fn reads(kind: Kind) -> bool {
        matches!(kind, Kind::VcJob | Kind::Pod | Kind::PodGroup)
    }

    /// Shows the next revision and returns what it breaks.
    pub fn see(&mut self, change: Change, object: &Object) -> Vec<Violation> {
        match object.kind {
            Kind::VcJob => self.see_job(change, object),
            Kind::Pod => self.see_pod(change, object),
            Kind::PodGroup => {
                self.see_podgroup(change, object);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn see_job(&mut self, change: Change, object: &Object) -> Vec<Violation> {
        let Some(job) = object.as_vcjob() else { return Vec::new() };
        if change == Change::Removed {
            self.jobs.remove(&object.meta.uid);
            return Vec::new();
        }
        let before = self.jobs.entry(object.meta.uid.clone()).or_default();
        let after = before.followed_by(job);
        let broken = [
            terminal_is_final(before, &after),
            budget_is_kept(before, &after),
            restart_is_charged(before, &after),
        ];
        *before = after;
        let name = &object.meta.key;
        let broken = broken.into_iter().flatten();
        broken.map(|(property, what)| Violation::new(property, format!("{name}: {what}"))).collect()
    }

    fn see_podgroup(&mut self, change: Change, group: &Object) {
        let Some(phase) = group.as_podgroup().map(|group| &group.status.phase) else { return };
        let job = group.meta.controller_uid().and_then(|owner| self.jobs.get_mut(owner));
        if let Some(job) = job {
            let is_pending = matches!(phase, PodGroupPhase::Unset | PodGroupPhase::Pending);
            job.is_admitted = change != Change::Removed && (job.is_admitted || !is_pending);
        }
    }

    fn see_pod(&mut self, change: Change, object: &Object) -> Vec<Violation> {
        let (Some(pod), Some(owner)) = (object.as_pod(), object.meta.controller_uid()) else {
            return Vec::new();
        };
        let annotation = |key: &str| object.meta.annotations.get(key).map_or("", String::as_str);
        let place = Place {
            task: annotation(labels::TASK_SPEC).to_owned(),
            index: annotation(labels::TASK_INDEX).parse().unwrap_or(-1),
        };
        let version = annotation(labels::JOB_VERSION).parse().unwrap_or(0);
        let is_gone = change == Change::Removed;
        let is_going = is_gone || object.meta.is_deleting();
        let is_live = !is_going && !pod.status.phase.is_finished();

        let is_new = change == Change::Created;
        let broken = [
            self.one_live_pod_per_place(owner, &place, &object.meta.uid, is_live),
            self.jobs.get(owner).filter(|_| is_new).and_then(pod_comes_in_order),
        ];
        if is_gone {
            self.pods.remove(&object.meta.uid);
        } else {
            let known = Pod { job: owner.clone(), place, version, is_going };
            self.pods.insert(object.meta.uid.clone(), known);
        }
        let name = &object.meta.key;
        let broken = broken.into_iter().flatten();
        broken.map(|(property, what)| Violation::new(property, format!("{name}: {what}"))).collect()
    }

    /// P1.
    fn one_live_pod_per_place(&mut self, job: &Uid, place: &Place, pod: &Uid, is_live: bool) -> Broken {
        let slot = (job.clone(), place.clone());
        if !is_live {
            if self.live.get(&slot) == Some(pod) {
                self.live.remove(&slot);
            }
            return None;
        }
        let other = self.live.insert(slot, pod.clone()).filter(|other| other != pod)?;
        Some((Property::P1, format!("live beside {other}, both for {place}")))
    }

    /// A controller is about to delete a pod: P3, a restart is charged before its first kill. Killing a pod of the
    /// present version while the job runs would be a restart that nobody paid for.
    pub fn see_own_deletion(&self, pod: &Uid) -> Option<Violation> {
        let pod = self.pods.get(pod)?;
        let job = self.jobs.get(&pod.job)?;
        let is_running = matches!(job.phase, JobPhase::Pending | JobPhase::Running);
        let is_surplus =
            job.replicas_min.get(&pod.place.task).is_none_or(|replicas| pod.place.index >= *replicas);
        let is_free = is_running && pod.version >= job.version && !pod.is_going && !is_surplus;
        is_free.then(|| {
            let message = format!("the pod of {} would be killed without a charged restart", pod.place);
            Violation::new(Property::P3, message)
        })
    }
}

/// A property that does not hold, and what was seen.
type Broken = Option<(Property, String)>;

impl Job {
    fn followed_by(&self, job: &VcJob) -> Job {
        let status = &job.status;
        let mut replicas_min = self.replicas_min.clone();
        for task in &job.spec.tasks {
            let fewest = replicas_min.entry(task.name.clone()).or_insert(task.replicas);
            *fewest = task.replicas.min(*fewest);
        }
        Job {
            phase: status.state.phase.clone(),
            version: status.version,
            retry_count: status.retry_count,
            max_retry: job.spec.max_retry,
            replicas_min,
            is_admitted: self.is_admitted,
        }
    }
}

/// P2.
fn terminal_is_final(before: &Job, after: &Job) -> Broken {
    let has_left = before.phase.is_finished() && before.phase != after.phase;
    has_left.then(|| (Property::P2, format!("phase left {} for {}", before.phase, after.phase)))
}

/// P3.
fn budget_is_kept(before: &Job, after: &Job) -> Broken {
    let is_kept = after.retry_count >= before.retry_count && after.retry_count <= after.max_retry.max(1);
    (!is_kept).then(|| {
        let (from, to, budget) = (before.retry_count, after.retry_count, after.max_retry);
        (Property::P3, format!("retryCount went from {from} to {to} with maxRetry {budget}"))
    })
}

/// P3. A suspended job that is resumed is no restart.
fn restart_is_charged(before: &Job, after: &Job) -> Broken {
    let was_running = matches!(before.phase, JobPhase::Unset | JobPhase::Pending | JobPhase::Running);
    let begins = was_running && after.phase == JobPhase::Restarting;
    let is_charged = after.retry_count == before.retry_count.saturating_add(1);
    (begins && !is_charged).then(|| (Property::P3, "a restart was not charged once".to_owned()))
}

/// P2 and P7.
fn pod_comes_in_order(job: &Job) -> Broken {
    match job.phase {
        JobPhase::Completed | JobPhase::Terminated | JobPhase::Failed => {
            Some((Property::P2, format!("created although the job is {}", job.phase)))
        }
        JobPhase::Pending | JobPhase::Running | JobPhase::Restarting if job.is_admitted => None,
        JobPhase::Pending | JobPhase::Running | JobPhase::Restarting => {
            Some((Property::P7, "created before its PodGroup left Pending".to_owned()))
        }
        JobPhase::Unset
        | JobPhase::Aborting
        | JobPhase::Aborted
        | JobPhase::Completing
        | JobPhase::Terminating
        | JobPhase::Other(_) => Some((Property::P7, format!("created while the job is {}", job.phase))),
    }
}
