//! Nodes.

mod check;

use krafla_api::Time;
use serde_json::{Value, json};

use super::{Rules, default_to};
use crate::field::FieldError;
use crate::object;

/// Nodes.
pub struct Node;

impl Rules for Node {
    fn default(&self, node: &mut Value) {
        let status = object::part(node, "status");
        if let Some(capacity) = status.get("capacity").cloned() {
            default_to(status, "allocatable", capacity);
        }
        // The old field for one network and the new one for several say the same.
        let spec = object::part(node, "spec");
        if let Some(network) = spec.get("podCIDR").filter(|network| !network.is_null()).cloned() {
            let networks = spec.entry("podCIDRs").or_insert_with(|| json!([]));
            if networks.get(0) != Some(&network) {
                *networks = json!([network]);
            }
        }
    }

    /// A new node takes no pods until it reports ready.
    fn on_create(&self, node: &mut Value, _now: Time) {
        let is_ready =
            node.pointer("/status/conditions").and_then(Value::as_array).is_some_and(|conditions| {
                conditions
                    .iter()
                    .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
            });
        let taints = object::part(node, "spec").entry("taints").or_insert_with(|| json!([]));
        let Some(taints) = taints.as_array_mut() else { return };
        if !is_ready && !taints.iter().any(|taint| taint["key"] == NOT_READY) {
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
        if taints.is_empty() {
            object::part(node, "spec").remove("taints");
        }
    }

    fn validate(&self, node: &Value) -> Vec<FieldError> {
        check::check(node)
    }

    fn validate_update(&self, node: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = check::check(node);
        errors.extend(check::check_kept(node, old));
        errors
    }

    fn selectable(&self, node: &Value, field: &str) -> String {
        match (field, object::text_at(node, field)) {
            ("spec.unschedulable", text) if text.is_empty() => "false".into(),
            (_, text) => text,
        }
    }
}

const NOT_READY: &str = "node.kubernetes.io/not-ready";
