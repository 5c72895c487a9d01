//! Pods.

use krafla_admission::pod;
use krafla_api::Time;
use serde_json::{Map, Value, json};

use super::workload::{default_host_ports, default_pod_spec, default_requests, drop_unserved_of_pods};
use super::{Rules, default_to};
use crate::field::{self, FieldError};
use crate::object;

/// Pods.
pub struct Pod;

impl Rules for Pod {
    fn default(&self, object: &mut Value) {
        let spec = object::part(object, "spec");
        default_pod_spec(spec);
        default_requests(spec);
        default_host_ports(spec);
        default_to(spec, "enableServiceLinks", true);
        // A negative period reads as the shortest that still lets the node end the pod in order.
        if let Some(grace) = spec.get_mut("terminationGracePeriodSeconds")
            && grace.as_i64().is_some_and(|seconds| seconds < 0)
        {
            *grace = 1.into();
        }
    }

    fn on_create(&self, object: &mut Value, now: Time) {
        let mut status = json!({"phase": "Pending", "qosClass": qos_class(object)});
        let is_gated =
            object::at(object, "/spec/schedulingGates").as_array().is_some_and(|gates| !gates.is_empty());
        if is_gated {
            let condition = json!({
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": null,
                "lastTransitionTime": now,
            });
            object::set(&mut status, "conditions", vec![condition]);
        }
        object::set(object, "status", status);
        drop_unserved_of_pods(object.get_mut("spec"));
        add_default_tolerations(object::part(object, "spec"));
        merge_label_keys(object);
    }

    /// Whoever writes the manifest again that made the pod leaves out what the server added to it.
    fn on_update(&self, object: &mut Value, old: &Value) {
        drop_unserved_of_pods(object.get_mut("spec"));
        let spec = object::part(object, "spec");
        for field in ["priority", "preemptionPolicy"] {
            let kept = old.get("spec").and_then(|spec| spec.get(field));
            if let (None, Some(kept)) = (spec.get(field), kept) {
                spec.insert(field.into(), kept.clone());
            }
        }
        add_default_tolerations(spec);
    }

    fn on_status_update(&self, object: &mut Value, old: &Value) {
        super::keep_all_but(object, old, &["metadata", "status"]);
        // Kubernetes 1.36 does not serve it unless it is told to.
        object::part(object, "status").remove("nodeAllocatableResourceClaimStatuses");
        // How a pod's needs are met is decided when it is created.
        if let Some(class) = old.pointer("/status/qosClass").cloned() {
            object::part(object, "status").insert("qosClass".into(), class);
        }
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::found(pod::validate_new(object))
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::found(pod::validate_update(object, old))
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pod::warnings(object, "")
    }

    fn keep_but_part(&self, object: &mut Value, old: &Value, subresource: &str) {
        match subresource {
            "ephemeralcontainers" => {
                let wanted = object.pointer("/spec/ephemeralContainers").cloned();
                super::keep_all_but(object, old, &["metadata"]);
                let spec = object::part(object, "spec");
                match wanted {
                    Some(containers) => spec.insert("ephemeralContainers".into(), containers),
                    None => spec.remove("ephemeralContainers"),
                };
            }
            _ => {
                pod::keep_but_resources(object, old);
                super::keep_all_but(object, old, &["metadata", "spec"]);
            }
        }
    }

    fn validate_part(&self, object: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
        field::found(match subresource {
            "ephemeralcontainers" => pod::validate_ephemeral(object, old),
            _ => pod::validate_resize(object, old, [qos_class(object), qos_class(old)]),
        })
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::found(pod::validate_status(object, old))
    }

    /// Without a node, or with nothing left to run, there is nobody to wait for.
    fn grace_seconds(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        let is_bound = !object::text_at(object, "spec.nodeName").is_empty();
        let is_finished = matches!(&*object::text_at(object, "status.phase"), "Succeeded" | "Failed");
        if !is_bound || is_finished {
            return Some(0);
        }
        let wanted = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
        // A negative period reads as the shortest that still lets the node end the pod in order.
        let seconds = asked.or(wanted).unwrap_or(30);
        Some(if seconds < 0 { 1 } else { seconds })
    }

    fn selectable(&self, object: &Value, field: &str) -> String {
        match (field, object::text_at(object, field)) {
            ("spec.hostNetwork", text) if text.is_empty() => "false".into(),
            // Upstream knows the field and never fills it in.
            ("status.podIPs", _) => String::new(),
            (_, text) => text,
        }
    }
}

/// A pod may stay five minutes on a node that is not ready or out of reach, unless it says otherwise.
fn add_default_tolerations(spec: &mut Map<String, Value>) {
    let Value::Array(tolerations) = spec.entry("tolerations").or_insert_with(|| json!([])) else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |toleration: &Value| {
            let text = |name: &str| toleration.get(name).and_then(Value::as_str).unwrap_or_default();
            (text("key") == key || text("key").is_empty()) && matches!(text("effect"), "NoExecute" | "")
        };
        if !tolerations.iter().any(covers) {
            let toleration =
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
            tolerations.push(toleration);
        }
    }
}

/// The class by which a node treats a pod when memory runs short: by what of cpu and memory is requested and limited.
fn qos_class(pod: &Value) -> &'static str {
    let lists = ["/spec/containers", "/spec/initContainers"];
    let containers = lists.iter().filter_map(|list| object::at(pod, list).as_array()).flatten();
    let (mut any, mut all_limited) = (false, true);
    for container in containers {
        let resources = container.get("resources");
        for resource in ["cpu", "memory"] {
            let amount = |of: &str| resources?.get(of)?.get(resource).filter(|amount| !is_zero(amount));
            let (request, limit) = (amount("requests"), amount("limits"));
            any |= request.is_some() || limit.is_some();
            all_limited &= limit.is_some() && request == limit;
        }
    }
    match (any, all_limited) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn is_zero(quantity: &Value) -> bool {
    quantity.as_str().map_or(quantity.as_f64() == Some(0.0), |text| text == "0")
}

/// Affinity terms may name labels whose values they take from the pod itself. From its creation on these stand in the
/// selectors, where schedulers look for them.
fn merge_label_keys(pod: &mut Value) {
    let labels = object::at(pod, "/metadata/labels").clone();
    let spread = pod.pointer_mut("/spec/topologySpreadConstraints").and_then(Value::as_array_mut);
    spread.into_iter().flatten().for_each(|constraint| merge_into_selector(constraint, &labels));
    for side in ["/spec/affinity/podAffinity", "/spec/affinity/podAntiAffinity"] {
        let Some(side) = pod.pointer_mut(side).and_then(Value::as_object_mut) else { continue };
        for (list, terms) in side.iter_mut() {
            let path = if list.starts_with("preferred") { "/podAffinityTerm" } else { "" };
            let terms = terms.as_array_mut().into_iter().flatten();
            terms
                .filter_map(|term| term.pointer_mut(path))
                .for_each(|term| merge_into_selector(term, &labels));
        }
    }
}

fn merge_into_selector(term: &mut Value, labels: &Value) {
    let mut expressions = Vec::new();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term.get(keys).and_then(Value::as_array).into_iter().flatten() {
            if let Some(value) = key.as_str().and_then(|key| labels.get(key)) {
                expressions.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    let selector = term.get_mut("labelSelector").and_then(Value::as_object_mut);
    if let Some(selector) = selector.filter(|_| !expressions.is_empty()) {
        let before = selector.entry("matchExpressions").or_insert_with(|| json!([]));
        if let Some(before) = before.as_array_mut() {
            before.extend(expressions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(node: &str, phase: &str) -> Value {
        json!({"spec": {"nodeName": node, "terminationGracePeriodSeconds": 20}, "status": {"phase": phase}})
    }

    #[test]
    fn only_a_bound_and_unfinished_pod_gets_time_to_end() {
        assert_eq!(Pod.grace_seconds(&pod("", "Pending"), None), Some(0));
        assert_eq!(Pod.grace_seconds(&pod("n", "Succeeded"), Some(9)), Some(0));
        assert_eq!(Pod.grace_seconds(&pod("n", "Running"), None), Some(20));
        assert_eq!(Pod.grace_seconds(&pod("n", "Running"), Some(5)), Some(5));
        assert_eq!(Pod.grace_seconds(&pod("n", "Running"), Some(-1)), Some(1));
    }

    #[test]
    fn the_qos_class_follows_cpu_and_memory() {
        let class =
            |resources: Value| qos_class(&json!({"spec": {"containers": [{"resources": resources}]}}));
        assert_eq!(class(json!({})), "BestEffort");
        assert_eq!(class(json!({"requests": {"example.com/gpu": "1"}})), "BestEffort");
        assert_eq!(class(json!({"requests": {"cpu": "1"}})), "Burstable");
        let both = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(class(json!({"requests": both, "limits": both})), "Guaranteed");
    }

    #[test]
    fn labels_that_affinity_terms_take_from_the_pod_stand_in_their_selectors() {
        let term = json!({
            "labelSelector": {"matchLabels": {"app": "a"}},
            "matchLabelKeys": ["version", "missing"],
            "mismatchLabelKeys": ["tenant"],
        });
        let affinity = json!({
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]},
        });
        let mut pod = json!({
            "metadata": {"labels": {"app": "a", "version": "2", "tenant": "t"}},
            "spec": {"containers": [], "affinity": affinity},
        });
        merge_label_keys(&mut pod);
        let expressions = json!([
            {"key": "version", "operator": "In", "values": ["2"]},
            {"key": "tenant", "operator": "NotIn", "values": ["t"]},
        ]);
        for place in [
            "podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0",
            "podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm",
        ] {
            let path = format!("/spec/affinity/{place}/labelSelector");
            let selector = json!({"matchLabels": {"app": "a"}, "matchExpressions": expressions});
            assert_eq!(pod.pointer(&path), Some(&selector), "{place}");
        }
    }
}
