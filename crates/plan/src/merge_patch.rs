//! The JSON merge patch that leads from one value to another (RFC 7386).

use serde_json::{Map, Value};

/// The patch that turns `before` into `after`; nothing if they are equal. Only what differs is in it.
pub(crate) fn difference(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let mut patch = Map::new();
    for (name, value) in new {
        match old.get(name) {
            Some(old_value) => {
                if let Some(change) = difference(old_value, value) {
                    patch.insert(name.clone(), change);
                }
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_gone_is_removed_by_name() {
        let (before, after) = (json!({ "a": { "x": 1, "y": 2 } }), json!({ "a": { "y": 2 } }));
        assert_eq!(difference(&before, &after), Some(json!({ "a": { "x": null } })));
        assert_eq!(difference(&after, &after), None);
    }
}
