//! Priority classes.

use krafla_admission::builtin::driver;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::Value;

use super::{Rules, default_to};

/// Priority classes.
pub struct PriorityClass;

impl Rules for PriorityClass {
    fn default(&self, class: &mut Value) {
        let fields = object::fields(class);
        default_to(fields, "preemptionPolicy", "PreemptLowerPriority");
        default_to(fields, "value", 0);
    }

    fn validate(&self, class: &Value) -> Vec<FieldError> {
        field::found(driver::validate_priority_class(class))
    }

    fn validate_update(&self, class: &Value, old: &Value) -> Vec<FieldError> {
        field::found(driver::validate_priority_class_update(class, old))
    }
}
