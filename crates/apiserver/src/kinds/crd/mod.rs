//! CustomResourceDefinitions as objects. What they define is read in [`crate::registry::custom`].

mod definition;
mod names;
mod rules;
mod schema;
#[cfg(test)]
mod tests;

use krafla_api::Time;
use krafla_schema::field::FieldError;
use krafla_schema::object;
use serde_json::{Value, json};

use super::{Rules, default_to, keep_all_but, keep_metadata};

pub use names::{has_its_names, settle as settle_names};

/// What holds a deleted definition until its objects are gone.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// CustomResourceDefinitions.
pub struct CustomResourceDefinition;

impl Rules for CustomResourceDefinition {
    fn default(&self, definition: &mut Value) {
        let spec = object::part(definition, "spec");
        default_to(spec, "conversion", json!({"strategy": "None"}));
        let service =
            spec.get_mut("conversion").and_then(|it| it.pointer_mut("/webhook/clientConfig/service"));
        if let Some(Value::Object(service)) = service {
            default_to(service, "port", 443);
        }
        let names = object::fields(spec.entry("names").or_insert_with(|| json!({})));
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        names.retain(|_, name| *name != "");
        if !kind.is_empty() {
            default_to(names, "singular", kind.to_lowercase());
            default_to(names, "listKind", format!("{kind}List"));
        }
    }

    /// Which names it gets depends on the other definitions, and is settled when it is stored.
    fn on_create(&self, definition: &mut Value, _now: Time) {
        let stored: Vec<&str> = definition::storage_versions(definition).take(1).collect();
        let status = json!({
            "acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": stored,
        });
        object::set(definition, "status", status);
    }

    /// What was stored in a version stays readable, so a new storage version joins the list.
    fn on_update(&self, definition: &mut Value, _old: &Value) {
        let new: Vec<Value> = definition::storage_versions(definition).map(Value::from).collect();
        let stored = object::part(definition, "status").entry("storedVersions").or_insert_with(|| json!([]));
        if let Value::Array(stored) = stored {
            stored.extend(new.into_iter().filter(|version| !stored.contains(version)).collect::<Vec<_>>());
        }
    }

    fn on_status_update(&self, definition: &mut Value, old: &Value) {
        keep_all_but(definition, old, &["metadata", "status"]);
        keep_metadata(definition, old);
    }

    fn validate(&self, definition: &Value) -> Vec<FieldError> {
        definition::check(definition)
    }

    fn validate_update(&self, definition: &Value, old: &Value) -> Vec<FieldError> {
        definition::check_update(definition, old)
    }

    fn warnings(&self, definition: &Value) -> Vec<String> {
        self.warnings_of_change(definition, &Value::Null)
    }

    fn warnings_of_change(&self, definition: &Value, old: &Value) -> Vec<String> {
        let known = unknown_formats(old);
        let mut new = unknown_formats(definition);
        new.retain(|format| !known.contains(format));
        let mut warnings: Vec<String> = Vec::new();
        for warning in new.iter().map(|format| format!("unrecognized format {format:?}")) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        warnings
    }
}

/// The formats in all schemas of a definition that say nothing to Kubernetes.
fn unknown_formats(definition: &Value) -> Vec<&str> {
    let versions = object::at(definition, "/spec/versions").as_array().into_iter().flatten();
    let schemas = versions.filter_map(|version| object::at(version, "/schema/openAPIV3Schema").as_object());
    schemas.flat_map(schema::unknown_formats).collect()
}

/// Says that the objects of a definition that is to go are being deleted.
pub fn mark_purged(definition: &mut Value, now: Time) {
    let message = "CustomResource deletion is in progress";
    names::set_condition(definition, ["Terminating", "True", "InstanceDeletionInProgress", message], now);
}

/// Marks a definition whose deletion was asked for: it stays until its objects are gone.
pub fn mark_deleted(definition: &mut Value, now: Time) {
    let mut finalizers: Vec<String> = object::finalizers(definition).into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|name| name == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    object::set_meta(definition, "finalizers", finalizers);
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    names::set_condition(definition, ["Terminating", "True", "InstanceDeletionPending", message], now);
}
