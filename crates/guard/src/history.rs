//! The properties over the store's history: one recorder is shown every stored change, in order, and says what broke.

mod cronjob;
mod job;

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::volcano::{JobPhase, PodGroupPhase};
use krafla_api::{Key, Kind, Uid, labels};
use krafla_cluster::Step;
use krafla_plan::object::{PodPhase, VcJob};
use krafla_plan::{Object, controlling_keys};

use crate::{Property, Violation};

/// What has been seen of the history so far.
#[derive(Clone, Debug, Default)]
pub struct History {
    jobs: BTreeMap<Uid, Job>,
    /// Live pods (neither finished nor going) by the job that owns them and the place they stand for.
    live: BTreeMap<(Uid, Place), Uid>,
    pods: BTreeMap<Uid, Pod>,
    /// The places of each job of which a pod ended well before anybody asked it to go.
    done: BTreeMap<Uid, BTreeSet<Place>>,
    /// The last pod of each name and job, and how it was removed if a controller did it.
    last_of_name: BTreeMap<(Uid, Key), LastPod>,
    /// Who controls each object that is there, by UID.
    controllers: BTreeMap<Uid, Option<Uid>>,
    batch: job::Jobs,
    runs: cronjob::Runs,
}

#[derive(Clone, Debug)]
struct LastPod {
    uid: Uid,
    /// Whether it had failed by itself when a controller deleted it; nothing, if none did.
    own_deletion: Option<HadFailed>,
}

type HadFailed = bool;

#[derive(Clone, Debug, Default)]
struct Job {
    phase: JobPhase,
    version: i32,
    retry_count: i32,
    /// Why the job is in its phase, in the words of its status.
    message: String,
    /// How many of its pods are going, in the words of its status.
    terminating: i32,
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
    key: Key,
    place: Place,
    has_failed: bool,
    version: i32,
    is_going: bool,
    is_live: bool,
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
        matches!(kind, Kind::VcJob | Kind::Pod | Kind::PodGroup | Kind::Job | Kind::CronJob)
    }

    /// Shows the next revision and returns what it breaks.
    pub fn see(&mut self, change: Change, object: &Object) -> Vec<Violation> {
        if change == Change::Removed {
            self.controllers.remove(&object.meta.uid);
        } else {
            let controller = object.meta.controller_uid().cloned();
            self.controllers.insert(object.meta.uid.clone(), controller);
        }
        match object.kind {
            Kind::VcJob => self.see_job(change, object),
            Kind::Pod if job::is_of_a_job(object) => named(object, self.batch.see_pod(change, object)),
            Kind::Job => {
                let mut broken = self.batch.see_job(change, object);
                broken.extend(self.runs.see_job(change, object));
                named(object, broken)
            }
            Kind::CronJob => {
                self.runs.see_cron_job(change, object);
                Vec::new()
            }
            Kind::Pod => {
                self.batch.let_go(&object.meta.uid);
                let is_of_a_vcjob = !controlling_keys(Kind::VcJob, object).is_empty();
                if is_of_a_vcjob { self.see_pod(change, object) } else { Vec::new() }
            }
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
            self.done.remove(&object.meta.uid);
            return Vec::new();
        }
        let n_done = self.done.get(&object.meta.uid).map_or(0, BTreeSet::len);
        let before = self.jobs.entry(object.meta.uid.clone()).or_default();
        let after = before.followed_by(job);
        let broken = [
            terminal_is_final(before, &after),
            budget_is_kept(before, &after),
            restart_is_charged(before, &after),
            only_what_is_done_has_succeeded(job, n_done),
        ];
        let charged = is_charge(before, &after).then(|| after.message.clone());
        *before = after;
        let blamed = charged.and_then(|cause| self.own_deletion_is_no_eviction(object, &cause));
        named(object, broken.into_iter().chain([blamed]))
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
        let annotation = |key: &str| object.meta.annotations.get(key).unwrap_or_default();
        let place = Place {
            task: annotation(labels::TASK_SPEC).to_owned(),
            index: annotation(labels::TASK_INDEX).parse().unwrap_or(-1),
        };
        let version = annotation(labels::JOB_VERSION).parse().unwrap_or(0);
        let is_gone = change == Change::Removed;
        let is_going = is_gone || object.meta.is_deleting();
        let is_live = !is_going && !pod.status.phase.is_finished();
        if !is_going && pod.status.phase == PodPhase::Succeeded {
            self.done.entry(owner.clone()).or_default().insert(place.clone());
        }

        let is_new = change == Change::Created;
        let broken = [
            self.one_live_pod_per_place(owner, &place, &object.meta.uid, is_live),
            self.jobs.get(owner).filter(|_| is_new).and_then(pod_comes_in_order),
        ];
        if is_gone {
            self.pods.remove(&object.meta.uid);
        } else {
            let (job, key) = (owner.clone(), object.meta.key.clone());
            let has_failed = pod.status.phase == PodPhase::Failed;
            let known = Pod { job, key, place, has_failed, version, is_going, is_live };
            self.pods.insert(object.meta.uid.clone(), known);
        }
        if is_new {
            let last = LastPod { uid: object.meta.uid.clone(), own_deletion: None };
            self.last_of_name.insert((owner.clone(), object.meta.key.clone()), last);
        }
        named(object, broken)
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

    /// P4: a job is not stopped or restarted because of the going of a pod that a controller has itself removed, nor because
    /// of a failure that came only after that.
    fn own_deletion_is_no_eviction(&self, job: &Object, cause: &str) -> Broken {
        let (name, is_evicted) = blamed_pod(cause)?;
        let key = Key::new(&job.meta.key.namespace, name);
        let last = self.last_of_name.get(&(job.meta.uid.clone(), key))?;
        let had_failed = last.own_deletion?;
        let is_own = is_evicted || !had_failed;
        is_own.then(|| (Property::P4, format!("{cause}, but it was deleted by a controller")))
    }

    /// A controller is about to write for a root that owns what it makes: P6, it touches that root and what the root controls,
    /// by UID, and makes only what the root will control. What a plan saw may be older than what is stored: this is
    /// about what is stored.
    pub fn see_own_write(&self, root: &Uid, step: &Step) -> Option<Violation> {
        let is_own = match step {
            Step::Create { object, .. } | Step::CreateGenerated { object, .. } => {
                crate::is_controlled_by(object, root)
            }
            Step::Patch { uid, .. } | Step::Delete { uid, .. } | Step::Bind { uid, .. } => {
                uid == root || self.controllers.get(uid).is_none_or(|owner| owner.as_ref() == Some(root))
            }
        };
        (!is_own).then(|| Violation::new(Property::P6, format!("{step}: not owned by {root}")))
    }

    /// A controller of jobs is about to delete a pod. From then on its going is no eviction (P4).
    pub fn remember_own_deletion(&mut self, pod: &Uid) {
        let Some(known) = self.pods.get(pod) else { return };
        let last = self.last_of_name.get_mut(&(known.job.clone(), known.key.clone()));
        if let Some(last) = last.filter(|last| last.uid == *pod) {
            last.own_deletion.get_or_insert(known.has_failed);
        }
    }

    /// A controller is about to delete a pod: P3, a restart is charged before its first kill, and P5, whoever stops or restarts
    /// a job counts the pods that go.
    pub fn see_own_deletion(&self, pod: &Uid) -> Option<Violation> {
        let pod = self.pods.get(pod)?;
        let job = self.jobs.get(&pod.job)?;
        let (property, message) = kill_is_charged(pod, job).or_else(|| kill_is_counted(pod, job))?;
        Some(Violation::new(property, message))
    }
}

/// P3: killing a pod of the present version while the job runs would be a restart that nobody paid for.
fn kill_is_charged(pod: &Pod, job: &Job) -> Broken {
    let is_running = matches!(job.phase, JobPhase::Pending | JobPhase::Running);
    let is_surplus =
        job.replicas_min.get(&pod.place.task).is_none_or(|replicas| pod.place.index >= *replicas);
    let is_free = is_running && pod.version >= job.version && !pod.is_going && !is_surplus;
    is_free.then(|| {
        (Property::P3, format!("the pod of {} would be killed without a charged restart", pod.place))
    })
}

/// P5: a job that is stopped or restarted shows that pods are going, however fast they are gone.
fn kill_is_counted(pod: &Pod, job: &Job) -> Broken {
    let is_killing = matches!(
        job.phase,
        JobPhase::Restarting | JobPhase::Aborting | JobPhase::Completing | JobPhase::Terminating
    );
    let is_hidden = is_killing && pod.is_live && job.terminating == 0;
    is_hidden.then(|| {
        (Property::P5, format!("the pod of {} would be killed and not counted as terminating", pod.place))
    })
}

/// A property that does not hold, and what was seen.
type Broken = Option<(Property, String)>;

/// What a revision of an object breaks, said of that object.
fn named(object: &Object, broken: impl IntoIterator<Item = Broken>) -> Vec<Violation> {
    let (name, broken) = (&object.meta.key, broken.into_iter().flatten());
    broken.map(|(property, what)| Violation::new(property, format!("{name}: {what}"))).collect()
}

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
            message: status.state.message.clone(),
            terminating: status.terminating,
            max_retry: job.spec.max_retry,
            replicas_min,
            is_admitted: self.is_admitted,
        }
    }
}

/// Whether something was begun that ends the present try of the job or of a part of it.
fn is_charge(before: &Job, after: &Job) -> bool {
    after.version > before.version || after.retry_count > before.retry_count
}

/// The pod that a job's message blames, and whether for having been evicted: `pod a-work-1 was evicted`, or, after the parts that are restarted and a colon,
/// `pod a-work-1 failed with exit code 3`.
fn blamed_pod(cause: &str) -> Option<(&str, bool)> {
    let from_pod = cause.split(": ").find_map(|part| part.strip_prefix("pod "))?;
    let (name, fate) = from_pod.split_once(' ')?;
    match fate {
        "was evicted" => Some((name, true)),
        _ if fate.starts_with("failed") => Some((name, false)),
        _ => None,
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

/// P5: a pod that ended well only because it was asked to go has not succeeded.
fn only_what_is_done_has_succeeded(job: &VcJob, n_done: usize) -> Broken {
    let n_counted = usize::try_from(job.status.succeeded).unwrap_or(0);
    (n_counted > n_done).then(|| {
        (
            Property::P5,
            format!("{n_counted} pods are counted as succeeded, and {n_done} ended well by themselves"),
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A history in which a job of one task with two replicas runs, its PodGroup admitted.
    fn running() -> History {
        let mut history = History::default();
        assert_eq!(see(&mut history, Change::Created, &job("Pending", 0, 0)), Vec::<String>::new());
        assert_eq!(see(&mut history, Change::Created, &group("Inqueue")), Vec::<String>::new());
        assert_eq!(see(&mut history, Change::Updated, &job("Running", 0, 0)), Vec::<String>::new());
        history
    }

    fn see(history: &mut History, change: Change, (kind, json): &(Kind, Value)) -> Vec<String> {
        let object = Object::decode(*kind, json.to_string().as_bytes());
        history.see(change, &object).iter().map(ToString::to_string).collect()
    }

    fn job(phase: &str, version: i32, retry_count: i32) -> (Kind, Value) {
        job_of(2, phase, version, retry_count)
    }

    fn job_of(replicas: i32, phase: &str, version: i32, retry_count: i32) -> (Kind, Value) {
        let spec = json!({ "maxRetry": 3, "tasks": [{ "name": "work", "replicas": replicas }] });
        let status = json!({ "state": { "phase": phase }, "version": version, "retryCount": retry_count });
        let metadata = json!({ "namespace": "n", "name": "a", "uid": "job" });
        (Kind::VcJob, json!({ "metadata": metadata, "spec": spec, "status": status }))
    }

    fn group(phase: &str) -> (Kind, Value) {
        let metadata =
            json!({ "namespace": "n", "name": "a-job", "uid": "group", "ownerReferences": owners() });
        (Kind::PodGroup, json!({ "metadata": metadata, "status": { "phase": phase } }))
    }

    fn pod(uid: &str, index: i32, phase: &str) -> (Kind, Value) {
        let annotations = json!({
            labels::TASK_SPEC: "work", labels::TASK_INDEX: index.to_string(), labels::JOB_VERSION: "0",
        });
        let metadata = json!({
            "namespace": "n", "name": format!("a-work-{index}"), "uid": uid, "ownerReferences": owners(),
            "annotations": annotations,
        });
        (Kind::Pod, json!({ "metadata": metadata, "status": { "phase": phase } }))
    }

    fn owners() -> Value {
        json!([{ "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a", "uid": "job", "controller": true }])
    }

    #[test]
    fn p1_two_live_pods_for_one_index() {
        let mut history = running();
        assert_eq!(see(&mut history, Change::Created, &pod("one", 0, "Running")), Vec::<String>::new());
        let broken = see(&mut history, Change::Created, &pod("two", 0, "Pending"));
        assert_eq!(broken, ["P1: n/a-work-0: live beside one, both for work-0"]);
    }

    #[test]
    fn p1_a_successor_may_come_once_the_pod_has_ended() {
        let mut history = running();
        for (change, pod) in [
            (Change::Created, pod("one", 0, "Running")),
            (Change::Updated, pod("one", 0, "Failed")),
            (Change::Created, pod("two", 0, "Pending")),
        ] {
            assert_eq!(see(&mut history, change, &pod), Vec::<String>::new());
        }
    }

    #[test]
    fn p2_a_finished_job_stays_so_and_gets_no_pod() {
        let mut history = running();
        see(&mut history, Change::Updated, &job("Completed", 0, 0));
        let broken = see(&mut history, Change::Created, &pod("late", 0, "Pending"));
        assert_eq!(broken, ["P2: n/a-work-0: created although the job is Completed"]);
        let broken = see(&mut history, Change::Updated, &job("Running", 0, 0));
        assert_eq!(broken, ["P2: n/a: phase left Completed for Running"]);
    }

    #[test]
    fn p3_the_budget_is_neither_exceeded_nor_given_back() {
        let mut history = running();
        let broken = see(&mut history, Change::Updated, &job("Restarting", 1, 4));
        assert_eq!(
            broken,
            [
                "P3: n/a: retryCount went from 0 to 4 with maxRetry 3",
                "P3: n/a: a restart was not charged once"
            ]
        );
        let broken = see(&mut history, Change::Updated, &job("Restarting", 1, 2));
        assert_eq!(broken, ["P3: n/a: retryCount went from 4 to 2 with maxRetry 3"]);
    }

    #[test]
    fn p3_and_p5_a_kill_is_charged_and_counted_before_it() {
        let mut history = running();
        see(&mut history, Change::Created, &pod("one", 0, "Running"));
        let kill =
            |history: &History| history.see_own_deletion(&"one".into()).map(|broken| broken.to_string());
        let broken = "P3: the pod of work-0 would be killed without a charged restart";
        assert_eq!(kill(&history).as_deref(), Some(broken));
        let (kind, mut restarting) = job("Restarting", 1, 1);
        see(&mut history, Change::Updated, &(kind, restarting.clone()));
        let broken = "P5: the pod of work-0 would be killed and not counted as terminating";
        assert_eq!(kill(&history).as_deref(), Some(broken));
        restarting["status"]["terminating"] = json!(1);
        see(&mut history, Change::Updated, &(kind, restarting));
        assert_eq!(kill(&history), None);
    }

    #[test]
    fn p3_a_pod_that_was_once_too_many_may_go_for_free() {
        let mut history = running();
        see(&mut history, Change::Created, &pod("two", 1, "Running"));
        see(&mut history, Change::Updated, &job_of(1, "Running", 0, 0));
        see(&mut history, Change::Updated, &job_of(2, "Running", 0, 0));
        assert_eq!(history.see_own_deletion(&"two".into()), None);
    }

    #[test]
    fn p4_a_pod_that_a_controller_deleted_was_not_evicted() {
        let blamed = |cause: &str| {
            let (kind, mut job) = job("Aborting", 1, 0);
            job["status"]["state"]["message"] = cause.into();
            (kind, job)
        };
        let mut history = running();
        see(&mut history, Change::Created, &pod("one", 0, "Running"));
        see(&mut history, Change::Created, &pod("two", 1, "Failed"));
        for uid in ["one", "two"] {
            history.remember_own_deletion(&uid.into());
        }
        let stopped = see(&mut history.clone(), Change::Updated, &blamed("pod a-work-0 was evicted"));
        assert_eq!(stopped, ["P4: n/a: pod a-work-0 was evicted, but it was deleted by a controller"]);
        let restarted = blamed("task work: pod a-work-0 failed with exit code 143");
        assert_eq!(see(&mut history.clone(), Change::Updated, &restarted).len(), 1);
        // This one had failed before it was deleted.
        let failed = see(&mut history.clone(), Change::Updated, &blamed("pod a-work-1 failed"));
        assert_eq!(failed, Vec::<String>::new());
        // A successor of the same name is another pod.
        see(&mut history, Change::Removed, &pod("one", 0, "Running"));
        see(&mut history, Change::Created, &pod("three", 0, "Running"));
        let evicted = see(&mut history, Change::Updated, &blamed("pod a-work-0 was evicted"));
        assert_eq!(evicted, Vec::<String>::new());
    }

    #[test]
    fn p5_a_pod_that_ends_well_because_it_is_asked_to_go_has_not_succeeded() {
        let succeeded = |n: i32| {
            let (kind, mut job) = job("Running", 0, 0);
            job["status"]["succeeded"] = n.into();
            (kind, job)
        };
        let going = |uid: &str, index: i32, phase: &str| {
            let (kind, mut pod) = pod(uid, index, phase);
            pod["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z".into();
            (kind, pod)
        };
        let mut history = running();
        see(&mut history, Change::Created, &pod("one", 0, "Running"));
        see(&mut history, Change::Created, &pod("two", 1, "Running"));
        see(&mut history, Change::Updated, &going("one", 0, "Running"));
        see(&mut history, Change::Updated, &going("one", 0, "Succeeded"));
        see(&mut history, Change::Removed, &going("one", 0, "Succeeded"));
        let broken = see(&mut history.clone(), Change::Updated, &succeeded(1));
        assert_eq!(broken, ["P5: n/a: 1 pods are counted as succeeded, and 0 ended well by themselves"]);
        // This one had ended when somebody removed it.
        see(&mut history, Change::Updated, &pod("two", 1, "Succeeded"));
        see(&mut history, Change::Updated, &going("two", 1, "Succeeded"));
        assert_eq!(see(&mut history, Change::Updated, &succeeded(1)), Vec::<String>::new());
        assert_eq!(see(&mut history, Change::Updated, &succeeded(2)).len(), 1);
    }

    #[test]
    fn p6_a_job_touches_what_it_controls_and_nobody_else_does() {
        let mut history = running();
        see(&mut history, Change::Created, &pod("one", 0, "Running"));
        let written = |root: &str, uid: &str| {
            let step = Step::Delete {
                kind: Kind::Pod,
                key: Key::new("n", "a-work-0"),
                uid: uid.into(),
                revision: None,
                propagation: krafla_cluster::Propagation::Background,
                grace_seconds: None,
            };
            history.see_own_write(&root.into(), &step).map(|broken| broken.to_string())
        };
        assert_eq!(written("job", "one"), None);
        let broken = "P6: delete pod a-work-0: not owned by predecessor";
        assert_eq!(written("predecessor", "one").as_deref(), Some(broken));
        assert_eq!(written("predecessor", "gone"), None, "the server refuses that");
        let (_, pod) = pod("new", 1, "Pending");
        let create = Step::Create { kind: Kind::Pod, object: pod };
        assert_eq!(history.see_own_write(&"job".into(), &create), None);
        assert!(history.see_own_write(&"predecessor".into(), &create).is_some());
    }

    #[test]
    fn p7_no_pod_before_the_podgroup_is_admitted_or_while_the_job_stops() {
        let mut history = History::default();
        see(&mut history, Change::Created, &job("Pending", 0, 0));
        see(&mut history, Change::Created, &group("Pending"));
        let broken = see(&mut history, Change::Created, &pod("early", 0, "Pending"));
        assert_eq!(broken, ["P7: n/a-work-0: created before its PodGroup left Pending"]);
        see(&mut history, Change::Updated, &group("Inqueue"));
        see(&mut history, Change::Updated, &job("Aborting", 1, 0));
        let broken = see(&mut history, Change::Created, &pod("late", 1, "Pending"));
        assert_eq!(broken, ["P7: n/a-work-1: created while the job is Aborting"]);
    }
}
