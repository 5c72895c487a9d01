//! Pods.

use krafla_admission::{names, pod};
use krafla_api::{Quantity, Time};
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::workload::{default_host_ports, default_pod_spec, default_requests, drop_unserved_of_pods};
use super::{Rules, default_to};

/// Pods.
pub struct Pod;

impl Rules for Pod {
    fn default(&self, object: &mut Value) {
        let spec = object::part(object, "spec");
        default_pod_spec(spec);
        default_requests(spec);
        default_host_ports(spec);
        agree_on_addresses(object);
        drop_old_annotations(object);
        pod::default_pod_level(object.get_mut("spec").unwrap_or(&mut Value::Null));
        let spec = object::part(object, "spec");
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
        object::copy_meta(object, old, &["ownerReferences"]);
        keep_unsaid(object, old);
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::found(pod::validate_new(object))
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::found(pod::validate_update(object, old))
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        let faults = names::dns_label(object::name(object));
        let of_name = (!faults.is_empty()).then(|| {
            let faults = faults.join(" ");
            format!(
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label \
                 is recommended: [{faults}]"
            )
        });
        of_name.into_iter().chain(pod::warnings(object, "")).collect()
    }

    fn keep_but_part(&self, object: &mut Value, old: &Value, subresource: &str) {
        match subresource {
            "ephemeralcontainers" => {
                let wanted = object.pointer("/spec/ephemeralContainers").cloned();
                super::keep_all_but(object, old, &["metadata"]);
                super::keep_metadata(object, old);
                let spec = object::part(object, "spec");
                match wanted {
                    Some(containers) => spec.insert("ephemeralContainers".into(), containers),
                    None => spec.remove("ephemeralContainers"),
                };
            }
            _ => {
                pod::keep_but_resources(object, old);
                super::keep_all_but(object, old, &["metadata", "spec"]);
                super::keep_metadata(object, old);
            }
        }
    }

    fn validate_part(&self, object: &Value, old: &Value, subresource: &str) -> Vec<FieldError> {
        field::found(match subresource {
            "ephemeralcontainers" => pod::validate_ephemeral(object, old),
            _ => {
                let class = object::text_at(old, "status.qosClass");
                let old_class = if class.is_empty() { qos_class(old) } else { class.as_str() };
                pod::validate_resize(object, old, [qos_class(object), old_class])
            }
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

/// What a status leaves out stays: the class of the pod, and the generations that conditions are about.
fn keep_unsaid(object: &mut Value, old: &Value) {
    let Some(old) = old.get("status") else { return };
    let status = object::part(object, "status");
    let is_unsaid =
        |value: Option<&Value>| value.is_none_or(|value| *value == "" || *value == 0 || value.is_null());
    for field in ["qosClass", "observedGeneration"] {
        if let Some(kept) = old.get(field).filter(|_| is_unsaid(status.get(field))) {
            status.insert(field.into(), kept.clone());
        }
    }
    let mut known: Vec<&Value> =
        old.get("conditions").and_then(Value::as_array).into_iter().flatten().collect();
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        // Conditions of the same type are told apart by their order.
        let Some(at) = known.iter().position(|known| known.get("type") == condition.get("type")) else {
            continue;
        };
        let generation = known.remove(at).get("observedGeneration").cloned();
        if let Some(generation) = generation.filter(|_| is_unsaid(condition.get("observedGeneration"))) {
            condition.insert("observedGeneration".into(), generation);
        }
    }
}

/// The one address and the list of addresses say the same. Where they differ, the one counts: old nodes know no other.
fn agree_on_addresses(pod: &mut Value) {
    let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) else { return };
    let one = status.get("podIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let first = status.get("podIPs").and_then(|list| list.pointer("/0/ip")).and_then(Value::as_str);
    match (one.as_str(), first.map(str::to_owned)) {
        ("", Some(first)) => status.insert("podIP".into(), first.into()),
        (one, first) if !one.is_empty() && first.as_deref() != Some(one) => {
            status.insert("podIPs".into(), json!([{"ip": one}]))
        }
        _ => None,
    };
}

/// Annotations by which pods had init containers before there was a field for them.
fn drop_old_annotations(pod: &mut Value) {
    let Some(annotations) = pod.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    for stage in ["alpha", "beta"] {
        for what in ["init-containers", "init-container-statuses"] {
            annotations.remove(&format!("pod.{stage}.kubernetes.io/{what}"));
        }
    }
    if annotations.is_empty() {
        object::metadata(pod).remove("annotations");
    }
}

/// The class by which a node treats a pod when memory runs short: by what of cpu and memory is requested and limited, for
/// the pod as a whole or else for its containers.
fn qos_class(pod: &Value) -> &'static str {
    let whole = object::at(pod, "/spec/resources");
    let lists = ["/spec/containers", "/spec/initContainers"];
    let containers = lists.iter().filter_map(|list| object::at(pod, list).as_array()).flatten();
    let holders: Vec<&Value> = if whole.is_object() {
        vec![whole]
    } else {
        containers.map(|container| object::at(container, "/resources")).collect()
    };
    let (mut totals, mut all_limited) = ([[Quantity::default(); 2]; 2], true);
    for holder in holders {
        for (total, resource) in totals.iter_mut().zip(["cpu", "memory"]) {
            let amounts = ["requests", "limits"].map(|list| positive(holder, list, resource));
            for (total, amount) in total.iter_mut().zip(amounts) {
                *total += amount.unwrap_or_default();
            }
            let [_, limit] = amounts;
            // A pod that as a whole has no limits at all is not looked at for them.
            let is_looked_at = !whole.is_object() || !object::at(whole, "/limits").is_null();
            all_limited &= limit.is_some() || !is_looked_at;
        }
    }
    let zero = Quantity::default();
    if totals.iter().flatten().all(|total| *total == zero) {
        "BestEffort"
    } else if all_limited && totals.iter().all(|[request, limit]| request == limit) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// An amount of a resource, if there is any.
fn positive(resources: &Value, list: &str, resource: &str) -> Option<Quantity> {
    let amount = Quantity::deserialize(resources.get(list)?.get(resource)?).ok()?;
    (amount > Quantity::default()).then_some(amount)
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
