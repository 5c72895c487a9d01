//! What is said about a namespace while it is being emptied.

use std::collections::BTreeMap;

use krafla_api::Time;
use krafla_schema::object;
use serde_json::{Value, json};

use crate::registry::Resource;

/// What a namespace still holds.
#[derive(Default)]
pub(super) struct Remaining {
    /// How many objects, by resource as messages name it: `configmaps.`, `jobs.batch`.
    objects: BTreeMap<String, usize>,
    /// How many objects each finalizer holds.
    finalizers: BTreeMap<String, usize>,
}

impl Remaining {
    /// Counts an object that is still there.
    pub(super) fn count(&mut self, resource: &Resource, finalizers: &[&str]) {
        let name = format!("{}.{}", resource.names.plural, resource.names.group);
        *self.objects.entry(name).or_default() += 1;
        for finalizer in finalizers {
            *self.finalizers.entry((*finalizer).to_owned()).or_default() += 1;
        }
    }

    /// Says in the status of a namespace what keeps it.
    pub(super) fn report(&self, namespace: &mut Value, now: Time) {
        let mut conditions = vec![
            all_is_well(
                "NamespaceDeletionDiscoveryFailure",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            all_is_well(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            all_is_well(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            self.content(),
            self.holders(),
        ];
        let before = namespace.pointer("/status/conditions").and_then(Value::as_array).cloned();
        for condition in &mut conditions {
            let same = before
                .iter()
                .flatten()
                .find(|old| old["type"] == condition["type"] && old["status"] == condition["status"]);
            let since = same.map_or_else(|| json!(now), |old| old["lastTransitionTime"].clone());
            object::set(condition, "lastTransitionTime", since);
        }
        object::part(namespace, "status").insert("conditions".into(), conditions.into());
    }

    fn content(&self) -> Value {
        const CONDITION: &str = "NamespaceContentRemaining";
        if self.objects.is_empty() {
            return all_is_well(CONDITION, "ContentRemoved", "All content successfully removed");
        }
        let list = self.objects.iter().map(|(name, count)| format!("{name} has {count} resource instances"));
        let message = format!("Some resources are remaining: {}", joined(list));
        condition(CONDITION, "True", "SomeResourcesRemain", &message)
    }

    fn holders(&self) -> Value {
        const CONDITION: &str = "NamespaceFinalizersRemaining";
        if self.finalizers.is_empty() {
            let message = "All content-preserving finalizers finished";
            return all_is_well(CONDITION, "ContentHasNoFinalizers", message);
        }
        let list =
            self.finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances"));
        let message = format!("Some content in the namespace has finalizers remaining: {}", joined(list));
        condition(CONDITION, "True", "SomeFinalizersRemain", &message)
    }
}

fn joined(list: impl Iterator<Item = String>) -> String {
    list.collect::<Vec<_>>().join(", ")
}

fn all_is_well(condition_type: &str, reason: &str, message: &str) -> Value {
    condition(condition_type, "False", reason, message)
}

fn condition(condition_type: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": condition_type, "status": status, "reason": reason, "message": message})
}
