//! CustomResourceDefinitions as objects. What they define is read in [`crate::registry::custom`].

use krafla_api::Time;
use serde_json::{Value, json};

use super::{Rules, default_to};
use crate::object;

/// CustomResourceDefinitions.
pub struct CustomResourceDefinition;

impl Rules for CustomResourceDefinition {
    fn default(&self, definition: &mut Value) {
        let spec = object::part(definition, "spec");
        default_to(spec, "conversion", json!({"strategy": "None"}));
        let names = object::fields(spec.entry("names").or_insert_with(|| json!({})));
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            default_to(names, "singular", kind.to_lowercase());
            default_to(names, "listKind", format!("{kind}List"));
        }
    }

    /// Names are accepted and the kind is served as soon as the definition is stored: there is nobody to ask.
    fn on_create(&self, definition: &mut Value, now: Time) {
        let names = definition.pointer("/spec/names").cloned().unwrap_or_default();
        let condition = |name: &str, reason: &str, message: &str| json!({"type": name, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now});
        let stored = stored_version(definition);
        object::set(
            definition,
            "status",
            json!({
                "acceptedNames": names,
                "conditions": [
                    condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                    condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
                ],
                "storedVersions": [stored],
            }),
        );
    }
}

fn stored_version(definition: &Value) -> String {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let stored = versions.clone().find(|version| version["storage"] == true).or(versions.clone().next());
    stored.and_then(|version| version["name"].as_str()).unwrap_or_default().to_owned()
}
