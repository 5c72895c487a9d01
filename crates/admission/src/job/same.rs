//! Whether two specs mean the same, however they are written: `1000m` is `1`, and an empty list is none.

use krafla_api::Quantity;
use krafla_api::volcano::JobSpec;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Whether two job specs mean the same.
pub(super) fn is_same(a: &JobSpec, b: &JobSpec) -> bool {
    // The types have already evened out durations, numbers and nulls; templates and claims are raw JSON.
    typed(a) == typed(b) && raw(a).zip(raw(b)).all(|(a, b)| is_same_value("", a, b))
}

/// The spec without its raw JSON.
fn typed(spec: &JobSpec) -> JobSpec {
    let mut typed = spec.clone();
    typed.tasks.iter_mut().for_each(|task| task.template = Value::Null);
    typed
        .volumes
        .iter_mut()
        .for_each(|volume| volume.volume_claim = volume.volume_claim.take().map(|_| Value::Null));
    typed
}

/// The raw JSON of a spec.
fn raw(spec: &JobSpec) -> impl Iterator<Item = &Value> {
    let templates = spec.tasks.iter().map(|task| &task.template);
    templates.chain(spec.volumes.iter().filter_map(|volume| volume.volume_claim.as_ref()))
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
    // In a map, an entry with an empty value is there; among fields, it is not.
    let is_map = is_amount(name) || MAPS.contains(&name);
    if is_map && !a.keys().eq(b.keys()) {
        return false;
    }
    let is_same_field = |key: &String| {
        let field = if is_map { name } else { key };
        is_same_value(field, a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null))
    };
    a.keys().chain(b.keys()).all(is_same_field)
}

/// Fields that hold a map with keys of the author's choice.
const MAPS: [&str; 6] =
    ["labels", "annotations", "nodeSelector", "matchLabels", "options", "volumeAttributes"];

/// Go writes fields that hold nothing as it likes: not at all, null, or empty.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_means_something_else_is_a_change() {
        let rows = [
            (json!({}), json!(null), true),
            (json!({ "metadata": { "creationTimestamp": null, "labels": {} } }), json!({}), true),
            (json!({ "env": [{ "name": "A", "value": "" }] }), json!({ "env": [{ "name": "A" }] }), true),
            (
                json!({ "resources": { "limits": { "cpu": "1" } } }),
                json!({ "resources": { "limits": { "cpu": 1 } } }),
                true,
            ),
            (
                json!({ "env": [{ "name": "A", "value": "1" }] }),
                json!({ "env": [{ "name": "A", "value": "1000m" }] }),
                false,
            ),
            (json!({ "labels": { "a": "" } }), json!({ "labels": {} }), false),
            (json!({ "hostNetwork": false }), json!({ "hostNetwork": true }), false),
            (json!({ "args": ["a", "b"] }), json!({ "args": ["b", "a"] }), false),
        ];
        for (a, b, expected) in rows {
            assert_eq!(is_same_value("", &a, &b), expected, "{a} {b}");
            assert_eq!(is_same_value("", &b, &a), expected, "{b} {a}");
        }
    }
}
