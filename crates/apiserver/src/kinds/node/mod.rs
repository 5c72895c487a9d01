//! Nodes.

mod check;

use krafla_api::Time;
use krafla_schema::field::FieldError;
use krafla_schema::object;
use serde_json::{Value, json};

use super::{Rules, default_to};

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

    /// A new node takes no pods until its agent, or another controller, takes the taint away.
    fn on_create(&self, node: &mut Value, _now: Time) {
        object::part(node, "spec").remove("configSource");
        object::part(node, "status").remove("config");
        let taints = object::part(node, "spec").entry("taints").or_insert_with(|| json!([]));
        let Some(taints) = taints.as_array_mut() else { return };
        let is_it = |taint: &Value| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule";
        if !taints.iter().any(is_it) {
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
    }

    fn on_update(&self, node: &mut Value, _old: &Value) {
        object::part(node, "spec").remove("configSource");
    }

    fn on_status_update(&self, node: &mut Value, old: &Value) {
        super::keep_all_but(node, old, &["metadata", "status"]);
        object::part(node, "status").remove("config");
    }

    fn warnings(&self, node: &Value) -> Vec<String> {
        let has_id = node.pointer("/spec/externalID").is_some();
        let text = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
        has_id.then(|| text.to_owned()).into_iter().collect()
    }

    fn warnings_of_change(&self, node: &Value, _old: &Value) -> Vec<String> {
        self.warnings(node)
    }

    fn validate(&self, node: &Value) -> Vec<FieldError> {
        check::check(node)
    }

    fn validate_update(&self, node: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = check::check(node);
        errors.extend(check::check_change(node, old));
        errors
    }

    fn validate_status(&self, node: &Value, old: &Value) -> Vec<FieldError> {
        check::check_change(node, old)
    }

    fn selectable(&self, node: &Value, field: &str) -> String {
        match (field, object::text_at(node, field)) {
            ("spec.unschedulable", text) if text.is_empty() => "false".into(),
            (_, text) => text,
        }
    }
}

const NOT_READY: &str = "node.kubernetes.io/not-ready";
