//! Protobuf answers: the reverse of [`super::protobuf`]. Typed Go clients ask for them first.
//!
//! What stands in the JSON of an object is written, also if it is empty: readers tell a pointer to nothing from a pointer
//! to an empty value by that.

use std::collections::BTreeMap;

use krafla_api::GoDuration;
use serde_json::{Map, Value};

use super::decode::schema_type;
use super::protobuf::MAGIC;
use super::scalar;
use super::table::{Field, META_V1, Shape, Type, TypeId, TypeRef, builtin};
use super::wire::Message;

/// An object of a built-in type, without envelope.
pub fn encode(object: &Value, of: TypeId) -> Message {
    let empty = Map::new();
    write_struct(object.as_object().unwrap_or(&empty), of.get())
}

/// A type that belongs to every group, such as `Status`.
pub fn of_meta(name: &str) -> Option<TypeId> {
    builtin().type_named(&format!("{META_V1}.{name}"))
}

/// A message in its envelope, which says what it is.
pub fn seal(api_version: &str, kind: &str, message: &Message) -> Vec<u8> {
    let mut type_meta = Message::default();
    type_meta.text(1, api_version);
    type_meta.text(2, kind);
    let mut unknown = Message::default();
    unknown.message(1, &type_meta);
    unknown.message(2, message);
    unknown.text(3, "");
    unknown.text(4, "");
    [MAGIC, &unknown.into_bytes()].concat()
}

/// An object in its envelope, by what it says it is; none if that is not a built-in kind.
pub fn sealed(object: &Value) -> Option<Vec<u8>> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let of = builtin().kind(group, version, kind).or_else(|| of_meta(kind))?;
    Some(seal(api_version, kind, &encode(object, of)))
}

/// One event of a watch, with its length before it. The object is in its envelope.
pub fn frame(event_type: &str, object: &[u8]) -> Vec<u8> {
    let mut raw = Message::default();
    raw.bytes(1, object);
    let mut event = Message::default();
    event.text(1, event_type);
    event.message(2, &raw);
    let event = event.into_bytes();
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], &event].concat()
}

/// The fields of a struct, and the messages of the structs that JSON inlines.
fn write_struct(object: &Map<String, Value>, of: &Type) -> Message {
    let mut message = Message::default();
    let mut inlined: BTreeMap<&[u32], Message> = BTreeMap::new();
    for field in &of.fields {
        let Some(value) = object.get(field.name) else { continue };
        match field.numbers.as_slice() {
            [] => {}
            [number] => write_field(&mut message, *number, field, value),
            [path @ .., number] => {
                write_field(inlined.entry(path).or_default(), *number, field, value);
            }
        }
    }
    // The deepest first, so that each is complete when it is put into the one around it.
    while let Some((path, inner)) = inlined.pop_last() {
        match path {
            [] => {}
            [number] => message.message(*number, &inner),
            [outer @ .., number] => inlined.entry(outer).or_default().message(*number, &inner),
        }
    }
    message
}

fn write_field(message: &mut Message, number: u32, field: &Field, value: &Value) {
    let is_wrapped = field.value.named().is_some_and(|named| named.is_wrapped);
    match (&field.value.shape, value) {
        (_, Value::Null) => {}
        (Shape::List(element), Value::Array(items)) if !is_wrapped => {
            for item in items {
                write_value(message, number, element, item);
            }
        }
        (Shape::Map(of), Value::Object(entries)) => {
            for (key, value) in entries {
                let mut entry = Message::default();
                entry.text(1, key);
                write_value(&mut entry, 2, of, value);
                message.message(number, &entry);
            }
        }
        _ => write_value(message, number, &field.value, value),
    }
}

fn write_value(message: &mut Message, number: u32, of: &TypeRef, value: &Value) {
    match (&of.shape, value) {
        (Shape::Bool, Value::Bool(flag)) => message.number(number, i64::from(*flag)),
        (Shape::Int32 | Shape::Int64, Value::Number(digits)) => {
            message.number(number, digits.as_i64().unwrap_or_default());
        }
        (Shape::Float64, Value::Number(digits)) => {
            message.double(number, digits.as_f64().unwrap_or_default());
        }
        (Shape::Bytes, Value::String(text)) => {
            message.bytes(number, &scalar::decode_base64(text).unwrap_or_default());
        }
        (Shape::Struct(id), Value::Object(object)) => {
            message.message(number, &write_struct(object, id.get()))
        }
        (Shape::List(element), Value::Array(items)) => {
            let mut inner = Message::default();
            for item in items {
                write_value(&mut inner, 1, element, item);
            }
            message.message(number, &inner);
        }
        (Shape::Map(element), Value::Object(entries)) => {
            let mut inner = Message::default();
            for (key, value) in entries {
                let mut entry = Message::default();
                entry.text(1, key);
                write_value(&mut entry, 2, element, value);
                inner.message(1, &entry);
            }
            message.message(number, &inner);
        }
        (shape, value) => {
            if let Some(special) = special(shape, value) {
                message.message(number, &special);
            } else if let Value::String(text) = value {
                message.text(number, text);
            }
        }
    }
}

/// The small messages that types with a form of their own are.
fn special(shape: &Shape, value: &Value) -> Option<Message> {
    let mut message = Message::default();
    match (shape, value) {
        (Shape::Time | Shape::MicroTime, Value::String(text)) => {
            let time: jiff::Timestamp = text.parse().ok()?;
            message.number(1, time.as_second());
            message.number(2, i64::from(time.subsec_nanosecond()));
        }
        (Shape::Time | Shape::MicroTime, _) => {}
        (Shape::Duration, Value::String(text)) => {
            message.number(1, text.parse::<GoDuration>().ok()?.as_nanos());
        }
        (Shape::Quantity, Value::String(text)) => message.text(1, text),
        (Shape::Quantity, Value::Number(digits)) => message.text(1, &digits.to_string()),
        (Shape::IntOrString, Value::String(text)) => {
            message.number(1, 1);
            message.number(2, 0);
            message.text(3, text);
        }
        (Shape::IntOrString, Value::Number(digits)) => {
            message.number(1, 0);
            message.number(2, digits.as_i64().unwrap_or_default());
            message.text(3, "");
        }
        (Shape::RawExtension | Shape::FieldsV1 | Shape::Json, value) => message.text(1, &value.to_string()),
        (Shape::SchemaOrBool, Value::Bool(allows)) => message.number(1, i64::from(*allows)),
        (Shape::SchemaOrBool, value) => {
            message.number(1, 1);
            write_value(&mut message, 2, &TypeRef::of(schema_type()?), value);
        }
        (Shape::SchemaOrArray, Value::Array(items)) => {
            for item in items {
                write_value(&mut message, 2, &TypeRef::of(schema_type()?), item);
            }
        }
        (Shape::SchemaOrStrings, Value::Array(items)) => {
            items.iter().filter_map(Value::as_str).for_each(|text| message.text(2, text));
        }
        (Shape::SchemaOrArray | Shape::SchemaOrStrings, value) => {
            write_value(&mut message, 1, &TypeRef::of(schema_type()?), value);
        }
        _ => return None,
    }
    Some(message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{decode, golden, json::Node, protobuf};
    use super::*;

    /// Every recorded object of a built-in kind comes back as it went.
    #[test]
    fn what_is_written_is_read_back() {
        let files = [
            "01-crud.json",
            "02-pods.json",
            "03-jobs.json",
            "06-patch.json",
            "07-apply.json",
            "08-crds.json",
            "09-gc.json",
            "14-admission.json",
            "15-protobuf.json",
        ];
        let mut n_compared = 0;
        for file in files {
            for case in golden::cases(file) {
                for step in golden::steps(&case) {
                    let body = step["expect"]["body"].to_string().replace("<time>", "2027-01-15T08:00:00Z");
                    let body = body.replace("<microtime>", "2027-01-15T08:00:00.000001Z");
                    let body: &Value = &serde_json::from_str(&body).unwrap();
                    let text = |name: &str| body[name].as_str().unwrap_or_default();
                    let (group, version) =
                        text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
                    let Some(of) = builtin().kind(group, version, text("kind")) else { continue };
                    // Tables have no form in protobuf.
                    if text("kind") == "Table" {
                        continue;
                    }
                    // What the recorder left out of an answer is not of its type any more.
                    let Ok(read) = decode::decode(&Node::from(body), of) else { continue };
                    let mut expected = read.object;
                    for field in ["apiVersion", "kind"] {
                        expected.as_object_mut().unwrap().remove(field);
                    }
                    let bytes = encode(&expected, of).into_bytes();
                    let back = protobuf::decode(&bytes, of).unwrap();
                    assert_eq!(back, expected, "{} {}", case["id"], text("kind"));
                    n_compared += 1;
                }
            }
        }
        assert!(n_compared > 500, "{n_compared} compared");
    }

    #[test]
    fn an_envelope_says_what_is_in_it() {
        let of = builtin().kind("", "v1", "ConfigMap").unwrap();
        let sealed = seal("v1", "ConfigMap", &encode(&json!({"data": {"k": "v"}}), of));
        let opened = protobuf::open(&sealed).unwrap();
        assert_eq!((opened.api_version.as_str(), opened.kind.as_str()), ("v1", "ConfigMap"));
        assert_eq!(protobuf::decode(opened.message, of).unwrap(), json!({"data": {"k": "v"}}));
        let framed = frame("ADDED", &sealed);
        assert_eq!(
            framed.len(),
            usize::try_from(u32::from_be_bytes(framed[..4].try_into().unwrap())).unwrap() + 4
        );
    }
}
