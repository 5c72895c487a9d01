//! Pod Security Standards: what the labels of namespaces ask of pods and of templates of pods.

use std::collections::{BTreeMap, BTreeSet};

use krafla_admission::pod_security::{self, Level, Policy as Standards, Rules};
use krafla_api::Key;
use krafla_schema::field::FieldError;
use krafla_schema::object;
use serde_json::Value;

use super::{Operation, Policy, Request};
use crate::status::Status;

/// How many pods of a namespace are looked at when its rules become stricter.
const PODS_MAX: usize = 3000;

/// The rule.
pub(super) struct PodSecurity;

impl Policy for PodSecurity {
    fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Status> {
        let names = &request.resource.names;
        if request.operation == Operation::Delete {
            return Ok(());
        }
        match (&*names.group, &*names.plural, request.subresource) {
            ("", "namespaces", "") => validate_namespace(request, object),
            ("", "pods", "" | "ephemeralcontainers" | "resize") => validate_pod(request, object),
            (group, plural, "") => {
                if let Some(pod) = pod_security::pod_of(group, plural, object) {
                    let standards = standards_of(request, object::namespace(object));
                    warn(request, standards.warn, pod);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// What a namespace asks of its pods.
fn standards_of(request: &Request<'_>, namespace: &str) -> Standards {
    match request.api.store().get(&"namespaces".into(), &Key::new("", namespace)) {
        Some(entry) => Standards::from_labels(|key| entry.meta.labels.get(key)).0,
        None => Standards::default(),
    }
}

fn validate_pod(request: &Request<'_>, pod: &Value) -> Result<(), Status> {
    let standards = standards_of(request, object::namespace(pod));
    if standards.is_privileged() || request.old.is_some_and(|old| !has_other_images(pod, old)) {
        return Ok(());
    }
    let broken = pod_security::violations(standards.enforce, pod);
    if broken.is_empty() {
        warn(request, standards.warn, pod);
        return Ok(());
    }
    let why = format!("violates PodSecurity \"{}\": {}", standards.enforce, pod_security::details(&broken));
    Err(Status::forbidden(&request.resource.qualified(), object::name(pod), &why))
}

fn warn(request: &Request<'_>, rules: Rules, pod: &Value) {
    let broken = pod_security::violations(rules, pod);
    if !broken.is_empty() {
        let details = pod_security::details(&broken);
        request.warnings.extend([format!("would violate PodSecurity \"{rules}\": {details}")]);
    }
}

/// Whether a changed pod runs something else than before: containers, or images of containers.
fn has_other_images(pod: &Value, old: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<(String, String)> {
        let containers = object::at(pod, list).as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        containers.map(|container| (text(&container["name"]), text(&container["image"]))).collect()
    };
    ["/spec/containers", "/spec/initContainers", "/spec/ephemeralContainers"]
        .iter()
        .any(|list| images(pod, list) != images(old, list))
}

fn validate_namespace(request: &Request<'_>, namespace: &Value) -> Result<(), Status> {
    let read = |namespace: &Value| {
        let labels = object::at(namespace, "/metadata/labels");
        let (standards, bad) = Standards::from_labels(|key| labels.get(key).and_then(Value::as_str));
        let bad: Vec<FieldError> = bad
            .into_iter()
            .map(|label| {
                FieldError::invalid(format!("metadata.labels[{}]", label.key), label.value, label.why)
            })
            .collect();
        (standards, bad)
    };
    let (standards, bad) = read(namespace);
    let (before, bad_before) = request.old.map(read).unwrap_or_default();
    if !bad.is_empty() && bad != bad_before {
        return Err(Status::invalid(&request.resource.qualified_kind(), object::name(namespace), &bad));
    }
    let (new, old) = (standards.enforce, before.enforce);
    let is_relaxed = new.version == old.version && new.level <= old.level;
    if request.old.is_some() && new != old && new.level != Level::Privileged && !is_relaxed {
        request.warnings.extend(warnings_about_pods(request, object::name(namespace), new));
    }
    Ok(())
}

/// Which pods of a namespace break new rules. They go on all the same.
fn warnings_about_pods(request: &Request<'_>, namespace: &str, rules: Rules) -> Vec<String> {
    let snapshot = request.api.store().snapshot(&"pods".into());
    let pods: Vec<Value> = snapshot
        .range(Some(namespace), None)
        .filter_map(|entry| serde_json::from_slice(&entry.bytes).ok())
        .collect();
    // Pods of one controller are alike: one of each comes first.
    let mut controllers = BTreeSet::new();
    let (first, others): (Vec<&Value>, Vec<&Value>) = pods.iter().partition(|pod| {
        let owners = object::at(pod, "/metadata/ownerReferences").as_array();
        let owner = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
        owner.is_none_or(|owner| controllers.insert(owner["uid"].as_str().unwrap_or_default()))
    });
    let mut broken: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in first.into_iter().chain(others).take(PODS_MAX) {
        let violations = pod_security::violations(rules, pod);
        if !violations.is_empty() {
            broken.entry(pod_security::reasons(&violations)).or_default().push(object::name(pod));
        }
    }
    let mut warnings = Vec::new();
    if pods.len() > PODS_MAX {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {PODS_MAX} of {} existing pods",
            pods.len()
        ));
    }
    if !broken.is_empty() {
        warnings.push(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{rules}\""
        ));
    }
    let mut by_pod: Vec<String> = broken
        .into_iter()
        .map(|(reasons, pods)| {
            let first = pods.iter().min().copied().unwrap_or_default();
            let others = match pods.len() {
                1 => String::new(),
                2 => " (and 1 other pod)".to_owned(),
                many => format!(" (and {} other pods)", many - 1),
            };
            format!("{first}{others}: {reasons}")
        })
        .collect();
    by_pod.sort();
    warnings.extend(by_pod);
    warnings
}
