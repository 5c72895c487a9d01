//! CustomResourceDefinitions as objects. What they define is read in [`crate::registry::custom`].

mod definition;
mod schema;
#[cfg(test)]
mod tests;

use krafla_api::Time;
use serde_json::{Value, json};

use super::{Rules, default_to};
use crate::field::FieldError;
use crate::object;

/// CustomResourceDefinitions.
pub struct CustomResourceDefinition;

impl Rules for CustomResourceDefinition {
    fn default(&self, definition: &mut Value) {
        let spec = object::part(definition, "spec");
        default_to(spec, "conversion", json!({"strategy": "None"}));
        let names = object::fields(spec.entry("names").or_insert_with(|| json!({})));
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        names.retain(|_, name| *name != "");
        if !kind.is_empty() {
            default_to(names, "singular", kind.to_lowercase());
            default_to(names, "listKind", format!("{kind}List"));
        }
    }

    /// Names are accepted and the kind is served as soon as the definition is stored: there is nobody to ask.
    fn on_create(&self, definition: &mut Value, now: Time) {
        let names = definition.pointer("/spec/names").cloned().unwrap_or_default();
        let condition = |name: &str, reason: &str, message: &str| json!({"type": name, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now});
        let stored: Vec<&str> = definition::storage_versions(definition).take(1).collect();
        let stored = json!(stored);
        object::set(
            definition,
            "status",
            json!({
                "acceptedNames": names,
                "conditions": [
                    condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                    condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
                ],
                "storedVersions": stored,
            }),
        );
    }

    /// What was stored in a version stays readable, so a new storage version joins the list.
    fn on_update(&self, definition: &mut Value, _old: &Value) {
        let new: Vec<Value> = definition::storage_versions(definition).map(Value::from).collect();
        let stored = object::part(definition, "status").entry("storedVersions").or_insert_with(|| json!([]));
        if let Value::Array(stored) = stored {
            stored.extend(new.into_iter().filter(|version| !stored.contains(version)).collect::<Vec<_>>());
        }
    }

    fn validate(&self, definition: &Value) -> Vec<FieldError> {
        definition::check(definition)
    }

    fn validate_update(&self, definition: &Value, old: &Value) -> Vec<FieldError> {
        definition::check_update(definition, old)
    }
}
