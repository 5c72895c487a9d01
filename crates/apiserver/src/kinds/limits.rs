//! Limit ranges and quotas.

use krafla_admission::builtin::{limits, quota};
use krafla_api::Time;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::{Map, Value, json};

use super::Rules;

/// Limit ranges.
pub struct LimitRange;

impl Rules for LimitRange {
    /// A container that says nothing gets the most it may have, and asks for as much.
    fn default(&self, range: &mut Value) {
        let limits = object::part(range, "spec").get_mut("limits").and_then(Value::as_array_mut);
        for limit in limits.into_iter().flatten().filter_map(Value::as_object_mut) {
            if limit.get("type").is_some_and(|kind| kind == "Container") {
                fill(limit, "default", "max");
                fill(limit, "defaultRequest", "default");
                fill(limit, "defaultRequest", "min");
            }
        }
    }

    fn validate(&self, range: &Value) -> Vec<FieldError> {
        field::found(limits::validate(range))
    }
}

/// Quotas. Only the server says how much of them is used.
pub struct ResourceQuota;

impl Rules for ResourceQuota {
    fn on_create(&self, quota: &mut Value, _now: Time) {
        object::remove(quota, "status");
    }

    fn validate(&self, quota: &Value) -> Vec<FieldError> {
        field::found(quota::validate(quota))
    }

    fn validate_status(&self, quota: &Value, _old: &Value) -> Vec<FieldError> {
        field::found(quota::validate_status(quota))
    }

    fn validate_update(&self, quota: &Value, old: &Value) -> Vec<FieldError> {
        field::found(quota::validate_update(quota, old))
    }
}

/// Takes over into one list of amounts what only another one has.
fn fill(limit: &mut Map<String, Value>, into: &str, from: &str) {
    let Some(amounts) = limit.get(from).and_then(Value::as_object).cloned() else { return };
    let Value::Object(target) = limit.entry(into).or_insert_with(|| json!({})) else { return };
    for (resource, amount) in amounts {
        target.entry(resource).or_insert(amount);
    }
}
