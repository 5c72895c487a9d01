//! Jobs and CronJobs of batch/v1.

use krafla_admission::{Finding, batch, pod};
use krafla_api::Time;
use krafla_cluster::Propagation;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::{Map, Value};

use super::workload::{default_template, drop_unserved_of_pods};
use super::{Rules, default_to};
use crate::env;

/// Jobs.
pub struct Job;

impl Rules for Job {
    fn default(&self, job: &mut Value) {
        let spec = object::part(job, "spec");
        default_job_spec(spec);
        default_to(spec, "manualSelector", false);
        default_labels(job);
    }

    fn has_labels_of_its_pods(&self) -> bool {
        true
    }

    fn on_create(&self, job: &mut Value, _now: Time) {
        object::remove(job, "status");
        drop_unserved_of_pods(job.pointer_mut("/spec/template/spec"));
        if job.pointer("/spec/manualSelector") != Some(&Value::Bool(true)) {
            select_own_pods(job);
        }
    }

    fn on_update(&self, job: &mut Value, _old: &Value) {
        drop_unserved_of_pods(job.pointer_mut("/spec/template/spec"));
    }

    fn validate(&self, job: &Value) -> Vec<FieldError> {
        field::found(batch::validate_job(job))
    }

    fn validate_update(&self, job: &Value, old: &Value) -> Vec<FieldError> {
        field::found(batch::validate_job_update(job, old))
    }

    fn validate_status(&self, job: &Value, old: &Value) -> Vec<FieldError> {
        field::found(batch::validate_job_status(job, old))
    }

    fn warnings(&self, job: &Value) -> Vec<String> {
        warnings(batch::warnings_of_job(job), job, "spec.template")
    }

    fn warnings_of_change(&self, job: &Value, old: &Value) -> Vec<String> {
        warnings_of_new_spec(self, job, old)
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
        default_failure_policy(job);
        default_template(object::fields(job.entry("template").or_insert(Value::Null)));
    }

    fn on_create(&self, cron: &mut Value, _now: Time) {
        object::remove(cron, "status");
        drop_unserved_of_pods(cron.pointer_mut("/spec/jobTemplate/spec/template/spec"));
    }

    fn on_update(&self, cron: &mut Value, _old: &Value) {
        drop_unserved_of_pods(cron.pointer_mut("/spec/jobTemplate/spec/template/spec"));
    }

    fn validate(&self, cron: &Value) -> Vec<FieldError> {
        field::found(batch::validate_cron_job(cron, &env::knows_time_zone))
    }

    fn validate_update(&self, cron: &Value, old: &Value) -> Vec<FieldError> {
        field::found(batch::validate_cron_job_update(cron, old, &env::knows_time_zone))
    }

    fn warnings(&self, cron: &Value) -> Vec<String> {
        warnings(batch::warnings_of_cron_job(cron), cron, "spec.jobTemplate.spec.template")
    }

    fn warnings_of_change(&self, cron: &Value, old: &Value) -> Vec<String> {
        let mut warnings = warnings_of_new_spec(self, cron, old);
        // A stored schedule may keep its zone. Upstream's path to it is wrong by one step.
        if object::text_at(cron, "spec.schedule").contains("TZ") {
            warnings.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                    .to_owned(),
            );
        }
        warnings
    }
}

/// What was found in an object, and what is to be said of the template of its pods.
fn warnings(found: Vec<Finding>, object: &Value, template: &str) -> Vec<String> {
    let found = field::found(found).into_iter();
    let found = found.map(|warning| format!("{}: {}", warning.field, warning.detail));
    let pods = object.pointer(&format!("/{}", template.replace('.', "/"))).unwrap_or(&Value::Null);
    found.chain(pod::warnings(pods, template)).collect()
}

/// What is to be said of a changed spec. A name stays as it is, and so does what can be said about it.
fn warnings_of_new_spec(rules: &dyn Rules, object: &Value, old: &Value) -> Vec<String> {
    let generation = |object: &Value| object.pointer("/metadata/generation").cloned();
    let mut warnings =
        if generation(object) == generation(old) { Vec::new() } else { rules.warnings(object) };
    warnings.retain(|warning| warning.starts_with("spec"));
    warnings
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
    default_failure_policy(spec);
    default_template(object::fields(spec.entry("template").or_insert(Value::Null)));
}

/// A Job without labels has those of its pods.
fn default_labels(job: &mut Value) {
    let of_pods = job.pointer("/spec/template/metadata/labels").filter(|labels| !is_empty(labels)).cloned();
    let own = object::metadata(job);
    if let (Some(of_pods), true) = (of_pods, own.get("labels").is_none_or(is_empty)) {
        own.insert("labels".into(), of_pods);
    }
}

fn is_empty(map: &Value) -> bool {
    map.as_object().is_none_or(Map::is_empty)
}

/// A condition that a rule names without a status is meant to hold.
fn default_failure_policy(job_spec: &mut Map<String, Value>) {
    let policy = job_spec.get_mut("podFailurePolicy");
    let Some(rules) = policy.and_then(|policy| policy.get_mut("rules")) else { return };
    // An empty list does not outlast upstream's storage.
    if rules.as_array().is_some_and(Vec::is_empty) {
        *rules = Value::Null;
    }
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
        // What the user says instead is kept, for validation to refuse.
        default_to(of_pods, label, value.as_str());
    }
    let selector = object::fields(object::part(job, "spec").entry("selector").or_insert(Value::Null));
    let selected = object::fields(selector.entry("matchLabels").or_insert(Value::Null));
    default_to(selected, "batch.kubernetes.io/controller-uid", uid);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stored_schedule_that_names_its_zone_is_warned_of_at_every_change() {
        let cron = |schedule: &str| json!({"metadata": {"generation": 1}, "spec": {"schedule": schedule}});
        let warned = |schedule: &str| CronJob.warnings_of_change(&cron(schedule), &cron(schedule));
        assert_eq!(warned("@daily"), Vec::<String>::new());
        let expected = "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                        https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
        assert_eq!(warned("TZ=UTC 0 0 * * *"), [expected]);
    }
}
