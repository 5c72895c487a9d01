//! The job's pods: what is observed, what is wanted, and the difference.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::volcano::{Iteration, JobPhase, TaskSpec, TaskState};
use krafla_api::{Key, Kind, Time, labels};
use serde_json::{Map, Value, json};

use super::Job;
use super::phase::Next;
use super::podgroup::Group;
use crate::object::{Pod, PodPhase};
use crate::{Note, Object, Plan, Propagation, Severity, Snapshot, Step};

/// One plan creates at most this many pods; the next goes on. No job, however large, holds a worker for long.
const NEW_PODS_PER_PLAN_MAX: usize = 500;

/// All pods that the job owns, by UID.
pub(super) struct Pods<'a> {
    all: Vec<Observed<'a>>,
    version: i32,
    by_task: BTreeMap<&'a str, Counts>,
    total: Counts,
}

/// One pod of the job.
pub(super) struct Observed<'a> {
    object: &'a Object,
    pod: &'a Pod,
    pub(super) task: &'a str,
    index: i32,
    version: i32,
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
    fn add(&mut self, pod: &Observed<'_>) {
        let counter = match pod.pod.status.phase {
            _ if pod.object.meta.is_deleting() => &mut self.terminating,
            PodPhase::Pending => &mut self.pending,
            PodPhase::Running => &mut self.running,
            PodPhase::Succeeded => &mut self.succeeded,
            PodPhase::Failed => &mut self.failed,
            PodPhase::Unknown => &mut self.unknown,
        };
        *counter = counter.saturating_add(1);
    }
}

/// Looks at the pods that the job owns.
pub(super) fn observe<'a>(job: &Job<'_>, snapshot: &Snapshot<'a>) -> Pods<'a> {
    let all: Vec<Observed<'a>> =
        snapshot.children(Kind::Pod).filter_map(|object| Observed::new(object)).collect();
    let mut by_task: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut total = Counts::default();
    for pod in &all {
        total.add(pod);
        by_task.entry(pod.task).or_default().add(pod);
    }
    Pods { all, version: job.status.version, by_task, total }
}

impl<'a> Pods<'a> {
    /// All pods counted.
    pub(super) fn counts(&self) -> Counts {
        self.total
    }

    /// One task's pods counted; nothing if it has none that stay.
    pub(super) fn counts_of(&self, task: &str) -> Option<Counts> {
        self.by_task
            .get(task)
            .copied()
            .filter(|counts| Counts { terminating: 0, ..*counts } != Counts::default())
    }

    /// The pods that this version of the job runs and that nobody removes.
    pub(super) fn current(&self) -> impl Iterator<Item = &Observed<'a>> {
        self.all.iter().filter(|pod| pod.version >= self.version && !pod.object.meta.is_deleting())
    }

    /// How many pods of earlier versions are still there.
    pub(super) fn n_outdated(&self) -> i32 {
        self.all.iter().fold(0, |n: i32, pod| n.saturating_add((pod.version < self.version).into()))
    }

    /// Whether nothing runs, waits or ends any more. A pod whose node is lost does not hold up the end.
    pub(super) fn is_quiet(&self) -> bool {
        let Counts { pending, running, terminating, .. } = self.total;
        (pending, running, terminating) == (0, 0, 0)
    }

    /// `status.taskStatusCount`: per task, the pods that stay, by phase.
    pub(super) fn task_status_count(&self) -> BTreeMap<String, TaskState> {
        let per_task = self.by_task.keys().filter_map(|task| {
            let counts = self.counts_of(task)?;
            let phases = [
                (PodPhase::Pending, counts.pending),
                (PodPhase::Running, counts.running),
                (PodPhase::Succeeded, counts.succeeded),
                (PodPhase::Failed, counts.failed),
                (PodPhase::Unknown, counts.unknown),
            ];
            let phase = phases
                .into_iter()
                .filter(|(_, n)| *n > 0)
                .map(|(phase, n)| (phase.as_str().to_owned(), n))
                .collect();
            Some(((*task).to_owned(), TaskState { phase }))
        });
        per_task.collect()
    }
}

impl<'a> Observed<'a> {
    fn new(object: &'a Object) -> Option<Observed<'a>> {
        let pod = object.as_pod()?;
        let annotation = |key: &str| object.meta.annotations.get(key).map_or("", String::as_str);
        Some(Observed {
            object,
            pod,
            task: annotation(labels::TASK_SPEC),
            index: annotation(labels::TASK_INDEX).parse().unwrap_or(-1),
            version: annotation(labels::JOB_VERSION).parse().unwrap_or(0),
        })
    }

    pub(super) fn has_failed(&self) -> bool {
        self.pod.status.phase == PodPhase::Failed
    }

    fn is_finished(&self) -> bool {
        self.pod.status.phase.is_finished()
    }

    /// Succeeded, or running with every container ready: what a dependent task waits for.
    fn is_ready(&self) -> bool {
        match self.pod.status.phase {
            PodPhase::Succeeded => true,
            PodPhase::Running => self.pod.status.container_statuses.iter().all(|status| status.ready),
            PodPhase::Pending | PodPhase::Failed | PodPhase::Unknown => false,
        }
    }

    /// The codes other than 0 with which its containers ended.
    pub(super) fn exit_codes(&self) -> impl Iterator<Item = i32> {
        let ended =
            self.pod.status.container_statuses.iter().filter_map(|status| status.state.terminated.as_ref());
        ended.map(|terminated| terminated.exit_code).filter(|code| *code != 0)
    }

    /// When the last of its containers ended; `now` if nobody wrote it down.
    pub(super) fn failed_at(&self, now: Time) -> Time {
        let ended =
            self.pod.status.container_statuses.iter().filter_map(|status| status.state.terminated.as_ref());
        ended.filter_map(|terminated| terminated.finished_at).max().unwrap_or(now)
    }

    fn delete(&self) -> Step {
        Step::Delete {
            kind: Kind::Pod,
            key: self.object.meta.key.clone(),
            uid: self.object.meta.uid.clone(),
            propagation: Propagation::Background,
            grace_seconds: None,
        }
    }
}

/// Creates the pods that are missing and removes those that are too many or of an earlier try.
pub(super) fn grow(
    job: &Job<'_>,
    next: &Next,
    pods: &Pods<'_>,
    group: &Group<'_>,
    snapshot: &Snapshot<'_>,
    plan: &mut Plan,
) {
    for pod in &pods.all {
        let task = job.spec.tasks.iter().find(|task| task.name == pod.task);
        let is_surplus = task.is_some_and(|task| pod.index >= task.replicas);
        if !pod.object.meta.is_deleting() && (is_surplus || pod.version < next.version) {
            plan.steps.push(pod.delete());
        }
    }
    if !group.is_admitted() {
        return;
    }
    let existing: BTreeSet<(&str, i32)> = pods.all.iter().map(|pod| (pod.task, pod.index)).collect();
    let mut n_new = 0;
    for (position, task) in job.spec.tasks.iter().enumerate() {
        if !dependencies_hold(job, task, pods) {
            continue;
        }
        let missing = (0..task.replicas).filter(|index| !existing.contains(&(task.name.as_str(), *index)));
        for index in missing {
            if n_new == NEW_PODS_PER_PLAN_MAX {
                return;
            }
            let name = format!("{}-{}-{index}", job.name(), task.name);
            if snapshot.objects.get(Kind::Pod, &Key::new(job.namespace(), &name)).is_some() {
                plan.notes.push(Note {
                    severity: Severity::Warning,
                    reason: "PodNameTaken",
                    message: format!(
                        "pod {name} exists and does not belong to this job; delete it to let the job go on"
                    ),
                });
                continue;
            }
            let first_of_task = job.spec.tasks.iter().position(|other| other.name == task.name);
            if first_of_task == Some(position) {
                n_new += 1;
                plan.steps
                    .push(Step::Create { kind: Kind::Pod, object: build(job, next, task, index, &name) });
            }
        }
    }
}

/// Removes every pod that is not to stay. Finished pods stay as a record, except that a restart clears them away; the last
/// try's stay also then, so that somebody can look why it failed.
pub(super) fn kill(job: &Job<'_>, next: &Next, pods: &Pods<'_>, plan: &mut Plan) {
    let is_last_try = next.retry_count >= job.spec.max_retry;
    let keeps_finished = next.phase != JobPhase::Restarting || is_last_try;
    for pod in &pods.all {
        let stays = keeps_finished && pod.is_finished();
        if !stays && !pod.object.meta.is_deleting() {
            plan.steps.push(pod.delete());
        }
    }
}

/// Volcano: a task waits until the tasks it depends on have their minimum of ready pods; one of them is enough if it says
/// `any`. A dependency without a minimum is not waited for.
fn dependencies_hold(job: &Job<'_>, task: &TaskSpec, pods: &Pods<'_>) -> bool {
    let Some(depends_on) = &task.depends_on else { return true };
    let is_met = |name: &String| {
        let Some(dependency) = job.spec.tasks.iter().find(|task| task.name == *name) else { return false };
        let n_ready = pods.current().filter(|pod| pod.task == name && pod.is_ready()).count();
        dependency.min_available.is_none_or(|minimum| n_ready >= usize::try_from(minimum).unwrap_or(0))
    };
    let any_is_enough = depends_on.iteration == Iteration::Any && depends_on.name.len() > 1;
    if any_is_enough { depends_on.name.iter().any(is_met) } else { depends_on.name.iter().all(is_met) }
}

/// The manifest of one pod. The template passes through as it is: a field that this program does not know survives.
fn build(job: &Job<'_>, next: &Next, task: &TaskSpec, index: i32, name: &str) -> Value {
    let template = &task.template;
    let mut spec = template.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    fill(&mut spec, "schedulerName", &job.spec.scheduler_name);
    fill(&mut spec, "priorityClassName", &job.spec.priority_class_name);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": job.namespace(),
            "labels": labels_of(job, task, index, template),
            "annotations": annotations_of(job, next, task, index, template),
            "ownerReferences": [job.owner_reference()],
        },
        "spec": spec,
    })
}

fn fill(spec: &mut Map<String, Value>, field: &str, value: &str) {
    let is_unset = spec.get(field).and_then(Value::as_str).unwrap_or_default().is_empty();
    if is_unset && !value.is_empty() {
        spec.insert(field.to_owned(), value.into());
    }
}

fn labels_of(job: &Job<'_>, task: &TaskSpec, index: i32, template: &Value) -> BTreeMap<String, String> {
    let mut all = text_map(template.pointer("/metadata/labels"));
    let mut set = |key: &str, value: String| all.insert(key.to_owned(), value);
    set(labels::TASK_INDEX, index.to_string());
    set(labels::JOB_NAME, job.name().to_owned());
    set(labels::TASK_SPEC, task.name.clone());
    set(labels::JOB_NAMESPACE, job.namespace().to_owned());
    set(labels::QUEUE_NAME, job.spec.queue.clone());
    if let Some(partitions) = &task.partition_policy {
        set(labels::PARTITION_ID, index.checked_div(partitions.partition_size).unwrap_or(0).to_string());
    }
    for key in [labels::PREEMPTABLE, labels::COOLDOWN_TIME] {
        if let Some(value) = job.meta.labels.get(key) {
            set(key, value.clone());
        }
    }
    all
}

fn annotations_of(
    job: &Job<'_>,
    next: &Next,
    task: &TaskSpec,
    index: i32,
    template: &Value,
) -> BTreeMap<String, String> {
    let mut all = text_map(template.pointer("/metadata/annotations"));
    let mut set = |key: &str, value: String| all.insert(key.to_owned(), value);
    set(labels::TASK_INDEX, index.to_string());
    set(labels::TASK_SPEC, task.name.clone());
    set(labels::GROUP_NAME, job.podgroup_name());
    set(labels::JOB_NAME, job.name().to_owned());
    set(labels::QUEUE_NAME, job.spec.queue.clone());
    set(labels::JOB_VERSION, next.version.to_string());
    set(labels::TEMPLATE_UID, format!("{}-{}", job.name(), task.name));
    set(labels::JOB_RETRY_COUNT, next.retry_count.to_string());
    if !task.topology_policy.is_unset() {
        set(labels::NUMA_TOPOLOGY_POLICY, task.topology_policy.to_string());
    }
    let of_job = |key: &str| job.meta.annotations.get(key).cloned();
    for key in [labels::PREEMPTABLE, labels::COOLDOWN_TIME, labels::REVOCABLE_ZONE] {
        if let Some(value) = of_job(key) {
            set(key, value);
        }
    }
    if let Some(value) = of_job(labels::JDB_MIN_AVAILABLE) {
        set(labels::JDB_MIN_AVAILABLE, value);
    } else if let Some(value) = of_job(labels::JDB_MAX_UNAVAILABLE) {
        set(labels::JDB_MAX_UNAVAILABLE, value);
    }
    all
}

fn text_map(value: Option<&Value>) -> BTreeMap<String, String> {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
