//! Kinds that a CustomResourceDefinition defines.

use std::sync::Arc;

use krafla_api::Time;
use serde_json::Value;

use super::{Rules, keep_all_but};
use crate::field::FieldError;
use crate::object;
use crate::schema::structural::Structural;

/// One version of a custom kind.
pub struct Custom {
    has_status: bool,
    schema: Arc<Structural>,
}

impl Custom {
    /// The rules that a version of a definition states.
    pub fn new(version: &Value, schema: Arc<Structural>) -> Custom {
        Custom { has_status: version.pointer("/subresources/status").is_some_and(Value::is_object), schema }
    }
}

impl Rules for Custom {
    fn default(&self, object: &mut Value) {
        self.schema.fill_defaults(object);
    }

    /// With a status subresource, a new object has no status yet.
    fn on_create(&self, object: &mut Value, _now: Time) {
        if self.has_status {
            object::remove(object, "status");
        }
    }

    /// Only status changes: unlike built-in kinds, not even labels may come along.
    fn on_status_update(&self, object: &mut Value, old: &Value) {
        keep_all_but(object, old, &["status"]);
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        self.schema.validate(object, "")
    }

    fn validate_status(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        self.schema.validate(object, "")
    }
}
