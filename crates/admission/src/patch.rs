//! The difference between two JSON values as a JSON patch (RFC 6902), as small as it can be.

use serde_json::{Map, Value, json};

/// The operations that turn `before` into `after`. Lists of unequal length are replaced as a whole.
pub fn diff(before: &Value, after: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    diff_at("", before, after, &mut operations);
    operations
}

fn diff_at(pointer: &str, before: &Value, after: &Value, operations: &mut Vec<Value>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(before), Value::Object(after)) => diff_fields(pointer, before, after, operations),
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                diff_at(&format!("{pointer}/{index}"), before, after, operations);
            }
        }
        _ => operations.push(json!({ "op": "replace", "path": pointer, "value": after })),
    }
}

fn diff_fields(
    pointer: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    operations: &mut Vec<Value>,
) {
    let child = |name: &str| format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        operations.push(json!({ "op": "remove", "path": child(name) }));
    }
    for (name, value) in after {
        match before.get(name) {
            Some(old) => diff_at(&child(name), old, value, operations),
            None => operations.push(json!({ "op": "add", "path": child(name), "value": value })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_names_only_what_changed() {
        let before = json!({ "a": 1, "gone": 2, "x/y": { "b": [1, 2] }, "list": [1] });
        let after = json!({ "a": 1, "x/y": { "b": [1, 3] }, "list": [1, 2], "new": {} });
        let expected = json!([
            { "op": "remove", "path": "/gone" },
            { "op": "replace", "path": "/list", "value": [1, 2] },
            { "op": "add", "path": "/new", "value": {} },
            { "op": "replace", "path": "/x~1y/b/1", "value": 3 },
        ]);
        assert_eq!(Value::from(diff(&before, &after)), expected);
        assert!(diff(&after, &after).is_empty());
    }
}
