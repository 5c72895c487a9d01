//! Reading and writing objects as JSON values, without ever failing: what is not there or not shaped as expected reads as
//! absent.

use krafla_api::Time;
use serde_json::{Map, Value};

/// A field of the metadata as text; empty if it is not there.
pub fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The name.
pub fn name(object: &Value) -> &str {
    meta(object, "name")
}

/// The namespace; empty for cluster-wide kinds.
pub fn namespace(object: &Value) -> &str {
    meta(object, "namespace")
}

/// The UID.
pub fn uid(object: &Value) -> &str {
    meta(object, "uid")
}

/// The finalizers that hold the object.
pub fn finalizers(object: &Value) -> Vec<&str> {
    strings(object.pointer("/metadata/finalizers"))
}

/// A list of strings.
pub fn strings(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether deletion has been asked for.
pub fn is_deleting(object: &Value) -> bool {
    !meta(object, "deletionTimestamp").is_empty()
}

/// What a pointer leads to; null if it leads nowhere. Its steps are names of fields, without anything to unescape, which
/// is what takes longest in following a JSON pointer.
pub fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    let mut steps = pointer.split('/').skip(1);
    steps.try_fold(object, |at, step| at.get(step)).unwrap_or(&Value::Null)
}

/// A time.
pub fn time_at(object: &Value, pointer: &str) -> Option<Time> {
    object.pointer(pointer)?.as_str()?.parse().ok().map(Time)
}

/// The field at a dotted path as text: `spec.nodeName`. What is not there is empty.
pub fn text_at(object: &Value, path: &str) -> String {
    let mut at = object;
    for step in path.split('.') {
        match at.get(step) {
            Some(next) => at = next,
            None => return String::new(),
        }
    }
    match at {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The fields of an object, which is made one if it is not.
pub fn fields(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("it was made an object above"),
    }
}

/// The fields of a part of an object; the part is made if it is missing.
pub fn part<'a>(object: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    fields(fields(object).entry(name).or_insert(Value::Null))
}

/// The metadata.
pub fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    part(object, "metadata")
}

/// Sets a field of an object.
pub fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    fields(object).insert(name.to_owned(), value.into());
}

/// Sets a field of the metadata.
pub fn set_meta(object: &mut Value, name: &str, value: impl Into<Value>) {
    metadata(object).insert(name.to_owned(), value.into());
}

/// Copies fields of the metadata from `from`, or removes them where it has none.
pub fn copy_meta(object: &mut Value, from: &Value, names: &[&str]) {
    let source = from.get("metadata");
    let target = metadata(object);
    for name in names {
        match source.and_then(|metadata| metadata.get(*name)) {
            Some(value) => target.insert((*name).to_owned(), value.clone()),
            None => target.remove(*name),
        };
    }
}

/// Takes a field away.
pub fn remove(object: &mut Value, name: &str) -> Option<Value> {
    object.as_object_mut()?.remove(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_there_reads_as_absent() {
        let odd = json!({"metadata": [], "spec": {"replicas": 3, "on": true, "none": null}});
        assert_eq!(name(&odd), "");
        assert_eq!(finalizers(&odd), Vec::<&str>::new());
        assert_eq!(text_at(&odd, "spec.replicas"), "3");
        assert_eq!(text_at(&odd, "spec.on"), "true");
        assert_eq!(text_at(&odd, "spec.none"), "");
        assert_eq!(text_at(&odd, "spec.a.b"), "");
    }

    #[test]
    fn a_part_is_made_when_it_is_missing() {
        let mut object = json!({"metadata": null});
        set_meta(&mut object, "name", "a");
        assert_eq!(object, json!({"metadata": {"name": "a"}}));
    }
}
