//! Kinds that a CustomResourceDefinition defines.

use krafla_api::Time;
use serde_json::Value;

use super::{Rules, keep_all_but};
use crate::object;

/// One version of a custom kind.
pub struct Custom {
    has_status: bool,
}

impl Custom {
    /// The rules that a version of a definition states.
    pub fn of(version: &Value) -> Custom {
        Custom { has_status: version.pointer("/subresources/status").is_some_and(Value::is_object) }
    }
}

impl Rules for Custom {
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
}
