//! Bringing the job's pods from what is observed to what is wanted.

use std::collections::{BTreeMap, BTreeSet};

use krafla_admission::names;
use krafla_api::volcano::TaskSpec;
use krafla_api::{Key, Kind, labels};
use krafla_cluster::Step;
use serde_json::{Map, Value, json};

use super::phase::Next;
use super::podgroup::Group;
use super::pods::Pods;
use super::policy::Vacancies;
use super::volumes::Claim;
use super::{Job, dependency};
use crate::plugin::Plugins;
use crate::{Note, Plan, Snapshot};

/// One plan creates at most this many pods; the next goes on. No job, however large, holds a worker for long.
const NEW_PODS_PER_PLAN_MAX: usize = 500;

/// Removes the pods that are not to stay. Each is marked first: from then on everybody knows that its going is no eviction.
pub(super) fn kill(job: &Job<'_>, next: &Next, pods: &Pods<'_>, plan: &mut Plan) {
    let doomed = || pods.doomed(job, next);
    plan.steps.extend(doomed().filter(|pod| !pod.is_marked()).map(|pod| Step::Patch {
        kind: Kind::Pod,
        key: pod.object().meta.key.clone(),
        uid: pod.uid().clone(),
        revision: None,
        of_status: false,
        patch: json!({ "metadata": { "annotations": { labels::OUT_OF_SYNC: "true" } } }),
    }));
    plan.steps.extend(doomed().map(|pod| pod.object().deletion()));
}

/// What every new pod is made of, besides its task's template.
pub(super) struct Parts<'a> {
    pub(super) next: &'a Next,
    pub(super) claims: &'a [Claim],
    pub(super) plugins: &'a Plugins<'a>,
    /// The places of evicted pods that a policy gives time to be filled.
    pub(super) vacant: &'a Vacancies,
}

/// Creates the pods that are missing, as soon as the PodGroup is admitted and their tasks' dependencies are met.
pub(super) fn create(
    job: &Job<'_>,
    parts: &Parts<'_>,
    pods: &Pods<'_>,
    group: &Group<'_>,
    snapshot: &Snapshot<'_>,
    plan: &mut Plan,
) {
    if !group.is_admitted() {
        return;
    }
    let mut existing: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for pod in pods.all() {
        existing.entry(pod.task).or_default().extend(u32::try_from(pod.index));
    }
    let mut planned: BTreeSet<(&str, u32)> = BTreeSet::new();
    let mut room = NEW_PODS_PER_PLAN_MAX;
    for task in &job.spec.tasks {
        if !dependency::is_met(job, task, pods) {
            continue;
        }
        // Not collected: a task may ask for two thousand million pods, and as many may be done.
        let done = pods.completed().of(&task.name);
        let there = done.with(existing.get(task.name.as_str()).into_iter().flatten().copied());
        let missing = there.lowest_missing(u32::MAX, u32::try_from(task.replicas).unwrap_or(0));
        for index in missing.iter() {
            if room == 0 {
                return;
            }
            let name = format!("{}-{}-{index}", job.name(), task.name);
            if snapshot.objects.get(Kind::Pod, &Key::new(job.namespace(), &name)).is_some() {
                plan.notes.push(name_taken(&name));
                continue;
            }
            // Two tasks of one name, which admission refuses, are one.
            if !planned.insert((&task.name, index)) {
                continue;
            }
            room -= 1;
            let object = build(job, parts, task, index.cast_signed(), &name);
            plan.steps.push(Step::Create { kind: Kind::Pod, object });
        }
    }
}

fn name_taken(name: &str) -> Note {
    let message =
        format!("pod {name} exists and does not belong to this job; delete it to let the job go on");
    Note::warning("PodNameTaken", message)
}

/// The manifest of one pod. The template passes through as it is: a field that this program does not know survives.
fn build(job: &Job<'_>, parts: &Parts<'_>, task: &TaskSpec, index: i32, name: &str) -> Value {
    let template = &task.template;
    let mut spec = template.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    fill(&mut spec, "schedulerName", &job.spec.scheduler_name);
    fill(&mut spec, "priorityClassName", &job.spec.priority_class_name);
    super::volumes::mount(&mut spec, parts.claims);
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": job.namespace(),
            "labels": labels_of(job, task, index),
            "annotations": annotations_of(job, parts, task, index),
            "ownerReferences": [job.owner_reference()],
        },
        "spec": spec,
    });
    parts.plugins.decorate(task, index, &mut pod);
    pod
}

fn fill(spec: &mut Map<String, Value>, field: &str, value: &str) {
    let is_unset = spec.get(field).and_then(Value::as_str).unwrap_or_default().is_empty();
    if is_unset && !value.is_empty() {
        spec.insert(field.to_owned(), value.into());
    }
}

fn labels_of(job: &Job<'_>, task: &TaskSpec, index: i32) -> BTreeMap<String, String> {
    let mut all = text_map(task.template.pointer("/metadata/labels"));
    let mut set = |key: &str, value: String| all.insert(key.to_owned(), value);
    set(labels::TASK_INDEX, index.to_string());
    set(labels::JOB_NAME, job.name().to_owned());
    set(labels::TASK_SPEC, task.name.clone());
    set(labels::JOB_NAMESPACE, job.namespace().to_owned());
    // A queue may have a longer name than a label takes; the annotation has it in any case.
    if names::label_value(&job.spec.queue).is_empty() {
        set(labels::QUEUE_NAME, job.spec.queue.clone());
    }
    if let Some(partitions) = &task.partition_policy {
        set(labels::PARTITION_ID, partitions.partition_of(index).to_string());
    }
    if job.is_forwarded {
        set(labels::JOB_FORWARDING, "true".to_owned());
    }
    for key in [labels::PREEMPTABLE, labels::COOLDOWN_TIME] {
        if let Some(value) = job.meta.labels.get(key) {
            set(key, value.to_owned());
        }
    }
    all
}

fn annotations_of(job: &Job<'_>, parts: &Parts<'_>, task: &TaskSpec, index: i32) -> BTreeMap<String, String> {
    let mut all = text_map(task.template.pointer("/metadata/annotations"));
    let mut set = |key: &str, value: String| all.insert(key.to_owned(), value);
    set(labels::TASK_INDEX, index.to_string());
    set(labels::TASK_SPEC, task.name.clone());
    set(labels::GROUP_NAME, job.podgroup_name());
    set(labels::JOB_NAME, job.name().to_owned());
    set(labels::QUEUE_NAME, job.spec.queue.clone());
    set(labels::JOB_VERSION, parts.next.version.to_string());
    set(labels::TEMPLATE_UID, format!("{}-{}", job.name(), task.name));
    set(labels::JOB_RETRY_COUNT, parts.next.retry_count.to_string());
    if let Some(evicted_at) = parts.vacant.get(&(task.name.clone(), index)) {
        set(labels::EVICTED_AT, evicted_at.to_micro_string());
    }
    if !task.topology_policy.is_unset() {
        set(labels::NUMA_TOPOLOGY_POLICY, task.topology_policy.to_string());
    }
    if job.is_forwarded {
        set(labels::JOB_FORWARDING, "true".to_owned());
    }
    let of_job = |key: &str| job.meta.annotations.get(key).map(str::to_owned);
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
