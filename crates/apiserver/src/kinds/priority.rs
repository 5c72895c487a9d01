//! Priority classes.

use serde_json::Value;

use super::{Rules, default_to};
use crate::field::FieldError;
use crate::object;

/// Priority classes.
pub struct PriorityClass;

impl Rules for PriorityClass {
    fn default(&self, class: &mut Value) {
        let fields = object::fields(class);
        default_to(fields, "preemptionPolicy", "PreemptLowerPriority");
        default_to(fields, "value", 0);
    }

    fn validate_update(&self, class: &Value, old: &Value) -> Vec<FieldError> {
        let changed =
            ["value", "preemptionPolicy"].into_iter().filter(|field| class.get(field) != old.get(field));
        changed.map(|field| FieldError::forbidden(field, "may not be changed in an update.")).collect()
    }
}
