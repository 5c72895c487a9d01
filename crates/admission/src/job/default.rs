//! What a job leaves out.

use krafla_api::volcano::{JobSpec, TaskSpec};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Settings;

/// How often a job or a task may try again unless it says so itself.
const MAX_RETRY: i32 = 3;

/// Completes a job as it stands in a request. Only what is missing is written: a field that this program does not know
/// stays, and quantities stay as their author wrote them.
pub fn default(job: &mut Value, settings: &Settings) {
    if job.is_null() {
        *job = Value::Object(Map::new());
    }
    let Some(job) = job.as_object_mut() else { return };
    let raw = job.entry("spec").or_insert(Value::Null);
    if raw.is_null() {
        *raw = Value::Object(Map::new());
    }
    // What cannot be read is refused a moment later, by the schema and by validation.
    let Ok(mut spec) = JobSpec::deserialize(&*raw) else { return };
    default_spec(&mut spec, settings.scheduler_name());
    write_back(&spec, raw);
}

/// Completes a job's spec, in memory. Controllers call it on what they read, so that a job that skipped admission means
/// the same as one that did not.
pub fn default_spec(spec: &mut JobSpec, scheduler_name: &str) {
    set_if_empty(&mut spec.queue, "default");
    set_if_empty(&mut spec.scheduler_name, scheduler_name);
    set_if_zero(&mut spec.max_retry, MAX_RETRY);
    for (index, task) in spec.tasks.iter_mut().enumerate() {
        default_task(task, index);
    }
    if spec.min_available == 0 {
        let minima = spec.tasks.iter().filter_map(|task| task.min_available);
        spec.min_available = minima.fold(0, i32::saturating_add);
    }
    default_plugins(spec);
}

fn default_task(task: &mut TaskSpec, index: usize) {
    if task.name.is_empty() {
        task.name = format!("default{index}");
    }
    // A pod in its host's network still finds the cluster's names.
    if let Some(pod) = task.template.get_mut("spec").and_then(Value::as_object_mut) {
        let is_unset = pod.get("dnsPolicy").and_then(Value::as_str).is_none_or(str::is_empty);
        if is_unset && pod.get("hostNetwork") == Some(&Value::Bool(true)) {
            pod.insert("dnsPolicy".to_owned(), "ClusterFirstWithHostNet".into());
        }
    }
    if task.min_available.is_none() {
        task.min_available = Some(match &task.partition_policy {
            Some(policy) if policy.min_partitions > 0 => {
                policy.min_partitions.saturating_mul(policy.partition_size)
            }
            _ => task.replicas,
        });
    }
    set_if_zero(&mut task.max_retry, MAX_RETRY);
}

/// Frameworks whose processes find each other by host name need svc; MPI reaches its workers by ssh as well.
fn default_plugins(spec: &mut JobSpec) {
    let uses = |spec: &JobSpec, names: &[&str]| names.iter().any(|name| spec.plugins.contains_key(*name));
    if uses(spec, &["tensorflow", "mpi", "pytorch", "ray"]) {
        spec.plugins.entry("svc".to_owned()).or_default();
    }
    if uses(spec, &["mpi"]) {
        spec.plugins.entry("ssh".to_owned()).or_default();
    }
}

fn set_if_empty(text: &mut String, default: &str) {
    if text.is_empty() {
        *text = default.to_owned();
    }
}

fn set_if_zero(number: &mut i32, default: i32) {
    if *number == 0 {
        *number = default;
    }
}

/// Writes the fields that `default_spec` may fill in, and no others.
fn write_back(spec: &JobSpec, raw: &mut Value) {
    let Some(raw) = raw.as_object_mut() else { return };
    set(raw, "queue", spec.queue.as_str());
    set(raw, "schedulerName", spec.scheduler_name.as_str());
    set(raw, "maxRetry", spec.max_retry);
    if spec.min_available != 0 {
        set(raw, "minAvailable", spec.min_available);
    }
    if let Some(Value::Object(plugins)) = raw.get_mut("plugins") {
        for name in spec.plugins.keys() {
            plugins.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        }
    }
    let tasks = raw.get_mut("tasks").and_then(Value::as_array_mut).into_iter().flatten();
    for (raw, task) in tasks.filter_map(Value::as_object_mut).zip(&spec.tasks) {
        set(raw, "name", task.name.as_str());
        set(raw, "maxRetry", task.max_retry);
        if let Some(min_available) = task.min_available {
            set(raw, "minAvailable", min_available);
        }
        if raw.get("template").is_some_and(|template| *template != task.template) {
            raw.insert("template".to_owned(), task.template.clone());
        }
    }
}

/// Sets a field unless it already has that value.
fn set(fields: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    let value = value.into();
    if fields.get(name) != Some(&value) {
        fields.insert(name.to_owned(), value);
    }
}
