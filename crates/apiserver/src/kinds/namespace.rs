//! Namespaces.

use krafla_api::Time;
use krafla_schema::field::FieldError;
use krafla_schema::object;
use serde_json::{Value, json};

use super::Rules;
use crate::store::EntryMeta;

/// The namespaces that cannot be deleted.
pub const PROTECTED: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Namespaces.
pub struct Namespace;

impl Rules for Namespace {
    /// Every namespace carries its name as a label, so that policies can select it.
    fn default(&self, namespace: &mut Value) {
        let name = object::name(namespace).to_owned();
        if !name.is_empty() {
            let labels = object::metadata(namespace).entry("labels").or_insert_with(|| json!({}));
            object::fields(labels).insert("kubernetes.io/metadata.name".into(), name.into());
        }
    }

    fn on_create(&self, namespace: &mut Value, _now: Time) {
        // The finalizer is what keeps a deleted namespace until its content is gone.
        let mut finalizers = object::strings(namespace.pointer("/spec/finalizers"));
        if !finalizers.contains(&"kubernetes") {
            finalizers.push("kubernetes");
        }
        let finalizers = json!(finalizers);
        object::part(namespace, "spec").insert("finalizers".into(), finalizers);
        object::set(namespace, "status", json!({"phase": "Active"}));
    }

    /// Finalizers go through the subresource `finalize` only.
    fn on_update(&self, namespace: &mut Value, old: &Value) {
        super::keep_all_but(namespace, old, &["metadata"]);
    }

    fn validate_status(&self, namespace: &Value, _old: &Value) -> Vec<FieldError> {
        let (phase, why) = if object::is_deleting(namespace) {
            ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
        } else {
            ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
        };
        match object::text_at(namespace, "status.phase") {
            said if said == phase => Vec::new(),
            said => vec![FieldError::invalid("status.Phase", said, why)],
        }
    }

    fn validate_part(&self, namespace: &Value, _old: &Value, _subresource: &str) -> Vec<FieldError> {
        let finalizers = object::strings(namespace.pointer("/spec/finalizers")).into_iter().enumerate();
        let of_nobody = finalizers.filter(|(_, name)| !name.contains('/') && *name != "kubernetes");
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        of_nobody.map(|(at, name)| FieldError::invalid(format!("spec.finalizers[{at}]"), name, why)).collect()
    }
}

/// Whether the namespace is going away. Everything that is created asks, so it is read without parsing the namespace.
pub fn is_terminating(namespace: &EntryMeta) -> bool {
    namespace.is_deleting || namespace.fields.get("status.phase") == Some("Terminating")
}
