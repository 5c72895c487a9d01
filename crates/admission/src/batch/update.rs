//! What of a Job can be changed once it exists.

use serde_json::Value;

use crate::json::At;
use crate::look::findings_of_change;
use crate::pod::keep::{restore, restore_node_affinity};
use crate::{Finding, Verdict};

use super::{job, validate_spec, validate_whole};

const IMMUTABLE: &str = "field is immutable";

/// Says everything that is wrong with a changed Job, apart from its metadata.
pub fn validate_job_update(job: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(job, old, validate_change)
}

fn validate_change(job: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let (spec, old_spec) = (job.get("spec"), old.get("spec"));
    validate_whole(job, Some(old), verdict);
    // Upstream checks the spec once as that of an object, and once as that of an update: each finding comes twice.
    validate_spec(&spec, verdict);
    job::validate_size(&spec, Some(&old_spec), verdict);
    validate_completions(&spec, &old_spec, verdict);
    stays_as(&spec, &old_spec, ("selector", "*meta.v1.LabelSelector"), verdict);
    validate_template(&spec, old, verdict);
    stays(&spec, &old_spec, "completionMode", verdict);
    stays_as(&spec, &old_spec, ("podFailurePolicy", "*batch.PodFailurePolicy"), verdict);
    for field in ["backoffLimitPerIndex", "managedBy"] {
        stays(&spec, &old_spec, field, verdict);
    }
    stays_as(&spec, &old_spec, ("successPolicy", "*batch.SuccessPolicy"), verdict);
}

fn stays(new: &At<'_>, old: &At<'_>, field: &str, verdict: &mut Verdict) {
    let (new, old) = (new.get(field), old.get(field));
    if new.value() != old.value() {
        verdict.invalid(new.path(), new.value(), IMMUTABLE);
    }
}

/// As [`stays`], for a field whose value messages quote in the form of an internal type.
fn stays_as(new: &At<'_>, old: &At<'_>, (field, type_name): (&str, &str), verdict: &mut Verdict) {
    let (new, old) = (new.get(field), old.get(field));
    if new.value() != old.value() {
        verdict.invalid_object(new.path(), type_name, new.value(), IMMUTABLE);
    }
}

/// Completions stay, unless they are indexes and as many as run at once: then the Job can grow and shrink.
fn validate_completions(spec: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    if !job::is_indexed(spec) {
        return stays(spec, old, "completions", verdict);
    }
    let (new, old) = (spec.get("completions"), old.get("completions"));
    if new.value() == old.value() || !new.is_set() {
        return;
    }
    let parallelism = spec.get("parallelism");
    if new.value() != parallelism.value() {
        let rule = format!("can only be modified in tandem with {}", parallelism.path());
        verdict.invalid(new.path(), new.value(), rule);
    }
}

/// The template stays, but for where pods may run and what they ask for while the Job is suspended and nothing of it
/// runs.
fn validate_template(spec: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let (new, old_template) = (spec.get("template"), old.get("spec").get("template"));
    if !is_idle(old) {
        return stays_as(spec, &old.get("spec"), ("template", "core.PodTemplateSpec"), verdict);
    }
    let (pod, old_pod) = (new.get("spec"), old_template.get("spec"));
    if without_changeable(pod.value(), old_pod.value()) != *old_pod.value() {
        verdict.invalid_object(pod.path(), "core.PodSpec", pod.value(), IMMUTABLE);
    }
}

/// Whether the Job is suspended, and its controller has seen it or not begun with it.
fn is_idle(job: &At<'_>) -> bool {
    let status = job.get("status");
    let is_reported = status
        .items("conditions")
        .iter()
        .any(|condition| condition.str("type") == "Suspended" && condition.str("status") == "True");
    job.get("spec").get("suspend").is_true()
        && status.get("active").int().unwrap_or(0) == 0
        && (is_reported || !status.get("startTime").is_set())
}

/// The new pod spec with everything that may change as it was.
fn without_changeable(new: &Value, old: &Value) -> Value {
    let mut spec = new.clone();
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        restore(&mut spec, old, field);
    }
    restore_node_affinity(&mut spec, old);
    for list in ["containers", "initContainers"] {
        let olds = old.get(list).and_then(Value::as_array).into_iter().flatten();
        let news = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (new, old) in news.zip(olds).filter(|(new, old)| new.get("name") == old.get("name")) {
            restore(new, old, "resources");
        }
    }
    spec
}
