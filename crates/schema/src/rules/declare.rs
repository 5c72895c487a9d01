//! The types of a schema's values, as expressions see them, and how large values can be.
//!
//! A value that no limit bounds is as large as a request may be. The figures are those of kube-apiserver, because they decide
//! which definitions it refuses as too costly.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_cel::{FieldType, ListType, MapType, ObjectType, Order, Size, Type};
use serde_json::Value;

use crate::object;

/// The largest request that kube-apiserver reads.
const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;

/// The type of the values of a schema. `is_object` says that they are whole objects, which have metadata. Of what a schema says
/// nothing about, expressions can say nothing either.
pub(super) fn declared(schema: &Value, name: &str, is_object: bool) -> Option<Type> {
    let flag = |word: &str| schema.get(word) == Some(&Value::Bool(true));
    if flag("x-kubernetes-int-or-string") {
        return Some(Type::Dyn);
    }
    Some(match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
        "boolean" => Type::Bool,
        "integer" => Type::Int,
        "number" => Type::Double,
        "string" => text_type(schema),
        "array" => list_type(schema, name)?,
        "object" => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => map_type(schema, values, name)?,
            _ => object_type(schema, name, is_object || flag("x-kubernetes-embedded-resource")),
        },
        _ => return None,
    })
}

fn text_type(schema: &Value) -> Type {
    match schema.get("format").and_then(Value::as_str).unwrap_or_default() {
        "date" | "date-time" => return Type::Timestamp,
        "duration" => return Type::Duration,
        "byte" => return Type::Bytes(text_size(schema)),
        _ => {}
    }
    Type::String(text_size(schema))
}

fn text_size(schema: &Value) -> Size {
    let longest = object::strings(schema.get("enum")).into_iter().map(str::len).max();
    if let Some(longest) = longest {
        return Size(u64::try_from(longest).unwrap_or(u64::MAX));
    }
    match schema.get("maxLength").and_then(Value::as_u64) {
        // Lengths are in characters, and a character has up to four bytes.
        Some(characters) => Size(characters.saturating_mul(4)),
        None => Size(REQUEST_BYTES_MAX - 2),
    }
}

fn list_type(schema: &Value, name: &str) -> Option<Type> {
    let items = schema.get("items")?;
    let order = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => Order::Set,
        Some("map") => {
            let keys = object::strings(schema.get("x-kubernetes-list-map-keys"));
            Order::Keyed(keys.into_iter().map(property_name).collect())
        }
        _ => Order::Sequence,
    };
    let of = declared(items, &format!("{name}.@idx"), false)?;
    let size = limit(schema, "maxItems").unwrap_or_else(|| fitting(least_bytes(items) + 1));
    Some(Type::List(Arc::new(ListType { of, size: Size(size), order })))
}

fn map_type(schema: &Value, values: &Value, name: &str) -> Option<Type> {
    let value = declared(values, &format!("{name}.@elem"), false)?;
    // Besides its value an entry has a key of at least one character, quotes, a colon and a comma.
    let size = limit(schema, "maxProperties").unwrap_or_else(|| fitting(least_bytes(values) + 6));
    let key = Type::String(Size(REQUEST_BYTES_MAX - 2));
    Some(Type::Map(Arc::new(MapType { key, value, size: Size(size) })))
}

fn object_type(schema: &Value, name: &str, is_object: bool) -> Type {
    let mut fields = BTreeMap::new();
    for (json_name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let expected = property_name(json_name);
        if let Some(of) = declared(property, &format!("{name}.{expected}"), false) {
            fields.insert(expected, FieldType { json_name: json_name.clone(), of });
        }
    }
    if is_object {
        let text = |json_name: &str| {
            let of = Type::String(Size(REQUEST_BYTES_MAX - 2));
            (json_name.to_owned(), FieldType { json_name: json_name.to_owned(), of })
        };
        let metadata = ObjectType {
            name: format!("{name}.metadata"),
            fields: BTreeMap::from([text("name"), text("generateName")]),
        };
        let of = Type::Object(Arc::new(metadata));
        fields.extend([text("apiVersion"), text("kind")]);
        fields.insert("metadata".to_owned(), FieldType { json_name: "metadata".to_owned(), of });
    }
    Type::Object(Arc::new(ObjectType { name: name.to_owned(), fields }))
}

/// A field's name in expressions: names may have letters, digits and underscores, everything else is spelt out.
fn property_name(name: &str) -> String {
    // A field that is called like a word of the language is called by it only between underscores.
    if krafla_cel::is_reserved(name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

fn limit(schema: &Value, word: &str) -> Option<u64> {
    schema.get(word).and_then(Value::as_u64)
}

/// How many things of so many bytes fit into a request.
fn fitting(bytes: u64) -> u64 {
    (REQUEST_BYTES_MAX - 2) / bytes.max(1)
}

/// How often a value of this schema can come at most in one object, if nothing else bounds it.
pub fn cardinality_max(schema: &Value) -> u64 {
    REQUEST_BYTES_MAX / (least_bytes(schema) + 1)
}

/// The shortest JSON of a value.
fn least_bytes(schema: &Value) -> u64 {
    match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
        "boolean" => 4,
        "string" => match schema.get("format").and_then(Value::as_str).unwrap_or_default() {
            "date" => 12,
            "date-time" => 22,
            "duration" => 3,
            _ => 2,
        },
        "array" => 2,
        "object" => {
            let required = object::strings(schema.get("required")).into_iter();
            let properties = schema.get("properties");
            let field_bytes = |name: &str| {
                let property = properties.and_then(|properties| properties.get(name))?;
                let has_default = property.get("default").is_some();
                // The name has quotes, a colon, and a comma or a bracket.
                (!has_default).then(|| least_bytes(property) + u64::try_from(name.len()).unwrap_or(0) + 4)
            };
            required.filter_map(field_bytes).sum::<u64>() + 2
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nothing_bounds_is_bounded_by_the_request() {
        let size = |schema: Value| match declared(&schema, "self", false) {
            Some(Type::String(size)) => size.0,
            Some(Type::List(list)) => list.size.0,
            Some(Type::Map(map)) => map.size.0,
            other => panic!("{other:?}"),
        };
        assert_eq!(size(json!({"type": "string"})), 3_145_726);
        assert_eq!(size(json!({"type": "string", "maxLength": 5})), 20);
        assert_eq!(size(json!({"type": "string", "enum": ["a", "long"]})), 4);
        assert_eq!(size(json!({"type": "array", "items": {"type": "string"}})), 1_048_575);
        assert_eq!(size(json!({"type": "array", "maxItems": 3, "items": {"type": "string"}})), 3);
        assert_eq!(size(json!({"type": "object", "additionalProperties": {"type": "boolean"}})), 314_572);
    }

    #[test]
    fn names_that_the_language_does_not_allow_are_spelt_out() {
        let spelt = ["a", "a-b", "a.b/c", "a__b", "namespace"].map(property_name);
        assert_eq!(spelt, ["a", "a__dash__b", "a__dot__b__slash__c", "a__underscores__b", "__namespace__"]);
    }

    #[test]
    fn only_the_names_of_an_objects_metadata_can_be_seen() {
        let Some(Type::Object(of)) = declared(&json!({"type": "object"}), "self", true) else { panic!() };
        let Type::Object(metadata) = &of.fields["metadata"].of else { panic!() };
        assert_eq!(metadata.fields.keys().collect::<Vec<_>>(), ["generateName", "name"]);
    }
}
