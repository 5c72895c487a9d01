//! Flow schemas and priority levels.

use krafla_admission::builtin::flow;
use krafla_api::Time;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::Value;

use super::Rules;

/// Which requests belong to which priority level.
pub struct FlowSchema;

impl Rules for FlowSchema {
    fn default(&self, schema: &mut Value) {
        flow::default_schema(schema);
    }

    fn on_create(&self, schema: &mut Value, _now: Time) {
        object::remove(schema, "status");
    }

    fn validate(&self, schema: &Value) -> Vec<FieldError> {
        field::found(flow::validate_schema(schema))
    }

    fn validate_status(&self, schema: &Value, _old: &Value) -> Vec<FieldError> {
        field::found(flow::validate_status(schema))
    }
}

/// How many requests of a priority level may be worked on.
pub struct PriorityLevel;

impl Rules for PriorityLevel {
    fn default(&self, level: &mut Value) {
        flow::default_level(level);
    }

    fn on_create(&self, level: &mut Value, _now: Time) {
        object::remove(level, "status");
    }

    fn validate(&self, level: &Value) -> Vec<FieldError> {
        field::found(flow::validate_level(level))
    }

    fn validate_status(&self, level: &Value, _old: &Value) -> Vec<FieldError> {
        field::found(flow::validate_status(level))
    }
}
