//! What is special about single kinds: one file each, everything else is the same for all.
//!
//! ```text
//!   create:  default -> on_create -> validate
//!   update:  default -> on_update -> validate_update
//!   status:  default -> on_status_update -> validate_update
//! ```

pub mod account;
pub mod admission_policy;
pub mod aggregation;
pub mod autoscaler;
pub mod certificate;
pub mod config;
pub mod crd;
pub mod custom;
pub mod device;
pub mod driver;
pub mod event;
pub mod flow;
pub mod job;
pub mod lease;
pub mod limits;
pub mod namespace;
pub mod network;
pub mod node;
pub mod pod;
pub mod policy;
pub mod priority;
pub mod rbac;
pub mod service;
pub mod volume;
pub mod webhook;
pub mod workload;

use krafla_api::Time;
use krafla_cluster::Propagation;
use krafla_schema::field::FieldError;
use krafla_schema::object;
use serde_json::{Map, Value};

/// What is special about a kind.
pub trait Rules: Send + Sync {
    /// Fills in what a client may leave out.
    fn default(&self, _object: &mut Value) {}

    /// Whether an object without labels gets those of its pods, and also those that its pods get later.
    fn has_labels_of_its_pods(&self) -> bool {
        false
    }

    /// Sets what only the server may say about a new object, such as its status.
    fn on_create(&self, _object: &mut Value, _now: Time) {}

    /// Takes back what this request may not change. Metadata and, where there is a status subresource, status have
    /// been taken back already.
    fn on_update(&self, _object: &mut Value, _old: &Value) {}

    /// As [`Rules::on_update`], for a write to the status subresource; by default only status and metadata change.
    fn on_status_update(&self, object: &mut Value, old: &Value) {
        keep_all_but(object, old, &["metadata", "status"]);
    }

    /// Sets the times in a changed status that only the server may say.
    fn stamp_status(&self, _object: &mut Value, _old: &Value, _now: Time) {}

    /// What is wrong with a new object.
    fn validate(&self, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What the author of a new object should know, though it is allowed.
    fn warnings(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }

    /// What the author of a changed object should know, though it is allowed.
    fn warnings_of_change(&self, _object: &Value, _old: &Value) -> Vec<String> {
        Vec::new()
    }

    /// What is wrong with a changed object.
    fn validate_update(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        self.validate(object)
    }

    /// What is wrong with a changed status.
    fn validate_status(&self, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Takes back everything that a write through one of the kind's own subresources may not change.
    fn keep_but_part(&self, object: &mut Value, old: &Value, _subresource: &str) {
        keep_all_but(object, old, &[]);
    }

    /// What is wrong with an object that was changed through one of the kind's own subresources.
    fn validate_part(&self, object: &Value, old: &Value, _subresource: &str) -> Vec<FieldError> {
        self.validate_update(object, old)
    }

    /// How long a deleted object may stay to end its work, or `None` if it goes at once. `asked` is what the client
    /// wants.
    fn grace_seconds(&self, _object: &Value, _asked: Option<i64>) -> Option<i64> {
        None
    }

    /// What becomes of dependents when nobody says.
    fn default_propagation(&self) -> Option<Propagation> {
        None
    }

    /// The value of a selectable field.
    fn selectable(&self, object: &Value, field: &str) -> String {
        object::text_at(object, field)
    }
}

/// A kind with nothing special about it.
pub struct Plain;

impl Rules for Plain {}

/// Makes all fields but `changeable` what they were.
pub fn keep_all_but(object: &mut Value, old: &Value, changeable: &[&str]) {
    let (Some(new), Some(old)) = (object.as_object_mut(), old.as_object()) else { return };
    let is_kept = |name: &String| !changeable.contains(&name.as_str());
    // Most of it has not changed, and to see that takes less than to copy it.
    new.retain(|name, value| !is_kept(name) || old.get(name) == Some(value));
    for (name, value) in old.iter().filter(|(name, _)| is_kept(name)) {
        if !new.contains_key(name) {
            new.insert(name.clone(), value.clone());
        }
    }
}

/// Takes back what a write of a status may not change of the metadata, where the kind is strict about it.
pub fn keep_metadata(object: &mut Value, old: &Value) {
    object::copy_meta(object, old, &["annotations", "finalizers", "labels", "ownerReferences"]);
}

/// Sets a field of an object unless it is there.
pub(crate) fn default_to(fields: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    match fields.get_mut(name) {
        Some(slot @ Value::Null) => *slot = value.into(),
        Some(_) => {}
        None => {
            fields.insert(name.to_owned(), value.into());
        }
    }
}
