//! Jobs and CronJobs of batch/v1.

use krafla_api::Time;
use krafla_plan::Propagation;
use serde_json::{Map, Value, json};

use super::workload::default_template;
use super::{Rules, default_to};
use crate::object;

/// Jobs.
pub struct Job;

impl Rules for Job {
    fn default(&self, job: &mut Value) {
        default_job_spec(object::part(job, "spec"));
        let spec = object::part(job, "spec");
        default_to(spec, "manualSelector", false);
    }

    fn on_create(&self, job: &mut Value, _now: Time) {
        object::remove(job, "status");
        if job.pointer("/spec/manualSelector") != Some(&Value::Bool(true)) {
            select_own_pods(job);
        }
    }

    /// For the sake of clients from before there was a choice, a Job's pods stay when the Job goes.
    fn default_propagation(&self) -> Option<Propagation> {
        Some(Propagation::Orphan)
    }

    fn selectable(&self, job: &Value, field: &str) -> String {
        match field {
            "status.successful" => job.pointer("/status/succeeded").map_or("0".into(), Value::to_string),
            _ => object::text_at(job, field),
        }
    }
}

/// CronJobs.
pub struct CronJob;

impl Rules for CronJob {
    fn default(&self, cron: &mut Value) {
        let spec = object::part(cron, "spec");
        default_to(spec, "concurrencyPolicy", "Allow");
        default_to(spec, "suspend", false);
        default_to(spec, "successfulJobsHistoryLimit", 3);
        default_to(spec, "failedJobsHistoryLimit", 1);
        let template = object::fields(spec.entry("jobTemplate").or_insert(Value::Null));
        let job = object::fields(template.entry("spec").or_insert(Value::Null));
        default_template(object::fields(job.entry("template").or_insert(Value::Null)));
    }

    fn on_create(&self, cron: &mut Value, _now: Time) {
        object::remove(cron, "status");
    }
}

fn default_job_spec(spec: &mut Map<String, Value>) {
    let is_set = |name: &str| spec.get(name).is_some_and(|value| !value.is_null());
    let (has_per_index, has_failure_policy) = (is_set("backoffLimitPerIndex"), is_set("podFailurePolicy"));
    if !is_set("completions") && !is_set("parallelism") {
        spec.insert("completions".into(), 1.into());
    }
    default_to(spec, "parallelism", 1);
    default_to(spec, "backoffLimit", if has_per_index { i32::MAX } else { 6 });
    default_to(spec, "completionMode", "NonIndexed");
    default_to(spec, "suspend", false);
    default_to(
        spec,
        "podReplacementPolicy",
        if has_failure_policy { "Failed" } else { "TerminatingOrFailed" },
    );
    for rule in spec.get_mut("podFailurePolicy").and_then(|policy| policy.get_mut("rules")).into_iter() {
        default_failure_rules(rule);
    }
    default_template(object::fields(spec.entry("template").or_insert(Value::Null)));
}

fn default_failure_rules(rules: &mut Value) {
    for rule in rules.as_array_mut().into_iter().flatten() {
        for pattern in rule.get_mut("onPodConditions").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(pattern) = pattern.as_object_mut() {
                default_to(pattern, "status", "True");
            }
        }
    }
}

/// A Job knows its pods by its own UID, so that no namesake's pods count.
fn select_own_pods(job: &mut Value) {
    let (uid, name) = (object::uid(job).to_owned(), object::name(job).to_owned());
    let labels = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    let template = object::fields(object::part(job, "spec").entry("template").or_insert(Value::Null));
    let metadata = object::fields(template.entry("metadata").or_insert(Value::Null));
    let of_pods = object::fields(metadata.entry("labels").or_insert(Value::Null));
    for (label, value) in labels {
        of_pods.insert(label.to_owned(), value.as_str().into());
    }
    let of_pods = Value::Object(of_pods.clone());
    let own = object::metadata(job);
    if own.get("labels").and_then(Value::as_object).is_none_or(Map::is_empty) {
        own.insert("labels".into(), of_pods);
    }
    let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    object::part(job, "spec").insert("selector".into(), selector);
}
