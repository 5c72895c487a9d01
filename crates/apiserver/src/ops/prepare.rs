//! What all writes share.

use krafla_api::Key;
use krafla_schema::object;
use serde_json::Value;

use super::Api;
use crate::kinds::namespace;
use crate::registry::{Generation, Resource};
use crate::status::{Qualified, Status};

impl Api {
    /// Objects say what they are, in the version in which they are stored if its fields are those of this one.
    pub(super) fn stamp_type(&self, resource: &Resource, object: &mut Value) {
        object::set(object, "apiVersion", resource.working_version());
        object::set(object, "kind", &*resource.stored_as.1);
    }

    /// Nothing new goes into a namespace that is not there, or is going away.
    pub(super) fn check_namespace_open(&self, resource: &Resource, object: &Value) -> Result<(), Status> {
        if !resource.is_namespaced() {
            return Ok(());
        }
        let namespace = object::namespace(object);
        let missing = || Status::not_found(&Qualified { group: "", what: "namespaces" }, namespace);
        let entry = self.store().get(&"namespaces".into(), &Key::new("", namespace)).ok_or_else(missing)?;
        if namespace::is_terminating(&entry.meta) {
            return Err(Status::namespace_terminating(
                &resource.qualified(),
                object::name(object),
                namespace,
            ));
        }
        Ok(())
    }

    /// Counts a change of anything but metadata and status.
    pub(super) fn count_generation(&self, resource: &Resource, object: &mut Value, old: &Value) {
        object::copy_meta(object, old, &["generation"]);
        // Without a status of its own, a custom kind's status is a field like any other.
        let counts_status = resource.is_custom && !resource.has_status();
        let counts = matches!(resource.generation, Generation::Counts | Generation::CountsChanges);
        // Proxies follow the labels of a slice as they follow its addresses.
        let counts_labels = resource.storage.as_str() == "endpointslices.discovery.k8s.io";
        let has_other_labels =
            counts_labels && object.pointer("/metadata/labels") != old.pointer("/metadata/labels");
        // Tools that roll back note in annotations what they did, so a Deployment counts these.
        let counts_annotations = resource.storage.as_str() == "deployments.apps";
        let has_other_annotations = counts_annotations
            && object.pointer("/metadata/annotations") != old.pointer("/metadata/annotations");
        if counts && (has_other_labels || has_other_annotations || !is_same_spec(object, old, counts_status))
        {
            bump_generation(object);
        }
    }
}

/// One generation more.
pub(super) fn bump_generation(object: &mut Value) {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    object::set_meta(object, "generation", generation.saturating_add(1));
}

fn is_same_spec(object: &Value, old: &Value, counts_status: bool) -> bool {
    let (Some(new), Some(old)) = (object.as_object(), old.as_object()) else { return true };
    let counts = |name: &&String| match name.as_str() {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => counts_status,
        _ => true,
    };
    let mut names = new.keys().filter(counts).chain(old.keys().filter(counts));
    names.all(|name| new.get(name) == old.get(name))
}
