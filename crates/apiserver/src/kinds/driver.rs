//! Classes and drivers of storage, classes of runtimes, and revisions of sets.

use krafla_admission::builtin::driver;
use krafla_api::Time;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::Value;

use super::{Rules, keep_all_but, keep_metadata};

/// Classes of storage.
pub struct StorageClass;

impl Rules for StorageClass {
    fn default(&self, class: &mut Value) {
        driver::default_storage_class(class);
    }

    fn validate(&self, class: &Value) -> Vec<FieldError> {
        field::found(driver::validate_storage_class(class))
    }

    fn validate_update(&self, class: &Value, old: &Value) -> Vec<FieldError> {
        field::found(driver::validate_storage_class_update(class, old))
    }
}

/// Classes of what volumes are like beside their size.
pub struct VolumeAttributesClass;

impl Rules for VolumeAttributesClass {
    fn validate(&self, class: &Value) -> Vec<FieldError> {
        field::found(driver::validate_attributes_class(class))
    }

    fn validate_update(&self, class: &Value, old: &Value) -> Vec<FieldError> {
        field::found(driver::validate_attributes_class_update(class, old))
    }
}

/// Drivers of storage.
pub struct CsiDriver;

impl Rules for CsiDriver {
    fn default(&self, object: &mut Value) {
        driver::default_driver(object);
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::found(driver::validate_driver(object))
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::found(driver::validate_driver_update(object, old))
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        driver::warnings_of_driver(object)
    }

    /// Only those who change what is asked for hear of it again.
    fn warnings_of_change(&self, object: &Value, old: &Value) -> Vec<String> {
        let asked = |driver: &Value| driver.pointer("/spec/tokenRequests").cloned();
        if asked(object) == asked(old) { Vec::new() } else { driver::warnings_of_driver(object) }
    }
}

/// Drivers of a node's storage.
pub struct CsiNode;

impl Rules for CsiNode {
    fn validate(&self, node: &Value) -> Vec<FieldError> {
        field::found(driver::validate_node_drivers(node))
    }

    fn validate_update(&self, node: &Value, old: &Value) -> Vec<FieldError> {
        field::found(driver::validate_node_drivers_update(node, old))
    }
}

/// How much storage there is somewhere.
pub struct CsiStorageCapacity;

impl Rules for CsiStorageCapacity {
    fn validate(&self, capacity: &Value) -> Vec<FieldError> {
        field::found(driver::validate_capacity(capacity))
    }

    fn validate_update(&self, capacity: &Value, old: &Value) -> Vec<FieldError> {
        field::found(driver::validate_capacity_update(capacity, old))
    }
}

/// Volumes that are attached to nodes.
pub struct VolumeAttachment;

impl Rules for VolumeAttachment {
    fn on_create(&self, attachment: &mut Value, _now: Time) {
        object::set(attachment, "status", serde_json::json!({"attached": false}));
    }

    fn validate(&self, attachment: &Value) -> Vec<FieldError> {
        field::found(driver::validate_attachment(attachment))
    }

    fn validate_update(&self, attachment: &Value, old: &Value) -> Vec<FieldError> {
        field::found(driver::validate_attachment_update(attachment, old))
    }

    fn on_status_update(&self, attachment: &mut Value, old: &Value) {
        keep_all_but(attachment, old, &["metadata", "status"]);
        keep_metadata(attachment, old);
    }

    fn validate_status(&self, attachment: &Value, _old: &Value) -> Vec<FieldError> {
        field::found(driver::validate_attachment(attachment))
    }
}

/// Classes of runtimes.
pub struct RuntimeClass;

impl Rules for RuntimeClass {
    fn validate(&self, class: &Value) -> Vec<FieldError> {
        field::found(driver::validate_runtime_class(class))
    }

    fn validate_update(&self, class: &Value, old: &Value) -> Vec<FieldError> {
        field::found(driver::validate_runtime_class_update(class, old))
    }
}

/// Revisions of sets.
pub struct ControllerRevision;

impl Rules for ControllerRevision {
    fn validate(&self, revision: &Value) -> Vec<FieldError> {
        field::found(driver::validate_revision(revision))
    }

    fn validate_update(&self, revision: &Value, old: &Value) -> Vec<FieldError> {
        field::found(driver::validate_revision_update(revision, old))
    }
}
