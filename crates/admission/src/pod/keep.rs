//! Putting back what an update may change, so that what is left can be compared.

use serde_json::Value;

/// Puts a field back to what it was, or was not.
pub(crate) fn restore(new: &mut Value, old: &Value, field: &str) {
    let Some(fields) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

/// Only the part about nodes may change; an affinity that has nothing else may come and go as a whole.
pub(crate) fn restore_node_affinity(spec: &mut Value, old: &Value) {
    let has_more = |affinity: &Value| {
        affinity.as_object().is_some_and(|fields| fields.keys().any(|name| name != "nodeAffinity"))
    };
    let old_affinity = old.get("affinity").unwrap_or(&Value::Null);
    match spec.get_mut("affinity") {
        Some(affinity) if has_more(affinity) => restore(affinity, old_affinity, "nodeAffinity"),
        _ if !has_more(old_affinity) => restore(spec, old, "affinity"),
        _ => {}
    }
}
