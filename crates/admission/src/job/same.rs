//! Whether two specs mean the same, however they are written: `1000m` is `1`, and an empty list is none.

use krafla_api::Quantity;
use krafla_api::volcano::JobSpec;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Whether two job specs mean the same.
pub(super) fn is_same(a: &JobSpec, b: &JobSpec) -> bool {
    // The types have already evened out durations, numbers and nulls; raw JSON is left in templates and claims.
    match (serde_json::to_value(a), serde_json::to_value(b)) {
        (Ok(a), Ok(b)) => is_same_value("", &a, &b),
        _ => a == b,
    }
}

fn is_same_value(name: &str, a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => is_same_object(name, a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_value(name, a, b))
        }
        _ => a == b || (is_nothing(a) && is_nothing(b)) || (is_amount(name) && is_same_amount(a, b)),
    }
}

fn is_same_object(name: &str, a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    // The keys of a map of amounts are resources; their values are amounts.
    let is_same_field = |key: &String| {
        let field = if is_amount(name) { name } else { key };
        is_same_value(field, a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null))
    };
    a.keys().chain(b.keys()).all(is_same_field)
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_amount(name: &str) -> bool {
    ["requests", "limits", "overhead", "sizeLimit", "divisor"].contains(&name)
}

fn is_same_amount(a: &Value, b: &Value) -> bool {
    match (Quantity::deserialize(a), Quantity::deserialize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
