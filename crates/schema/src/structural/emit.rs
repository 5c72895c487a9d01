//! The schema of a built-in type as a CRD would write it: pod templates inside Volcano's jobs.
//!
//! It says what controller-gen says of the same Go types, without descriptions: no references, no enumerations (a newer
//! Kubernetes may know more values), quantities and ports as numbers or texts, and of embedded metadata the five fields
//! that templates use.

use serde_json::{Map, Value, json};

use crate::table::{Field, META_V1, Shape, Type, TypeRef, builtin};

/// What a quantity looks like.
const QUANTITY: &str = concat!(
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))",
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
);
/// The metadata that a template may carry.
const TEMPLATE_METADATA: [&str; 5] = ["annotations", "finalizers", "labels", "name", "namespace"];
/// No type of pods nests deeper; the one that refers to itself, the schema of CRDs, is cut off here.
const DEPTH_MAX: usize = 40;

/// The schema of the type of this OpenAPI name, such as `io.k8s.api.core.v1.PodTemplateSpec`.
pub fn of_type_named(name: &str) -> Option<Value> {
    builtin().type_named(name).map(|id| structure(id.get(), 0))
}

fn structure(of: &Type, depth: usize) -> Value {
    if depth > DEPTH_MAX {
        return json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    let is_metadata = of.package.openapi == META_V1 && of.name == "ObjectMeta";
    let is_shown = |field: &&Field| !is_metadata || TEMPLATE_METADATA.contains(&field.name);
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in of.fields.iter().filter(is_shown) {
        properties.insert(field.name.to_owned(), property(field, depth));
        if !field.is_optional {
            required.push(field.name);
        }
    }
    let mut schema = Map::from_iter([("type".to_owned(), "object".into())]);
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    if of.is_atomic {
        schema.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
    }
    Value::Object(schema)
}

fn property(field: &Field, depth: usize) -> Value {
    let mut schema = value(&field.value, depth);
    if let Value::Object(schema) = &mut schema {
        if let Some(list_type) = field.list_type {
            schema.insert("x-kubernetes-list-type".to_owned(), list_type.as_str().into());
        }
        if !field.list_keys.is_empty() {
            schema.insert("x-kubernetes-list-map-keys".to_owned(), json!(field.list_keys));
        }
        if field.is_atomic {
            schema.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
        }
        if let Some(default) = field.default.and_then(|text| serde_json::from_str(text).ok()) {
            schema.insert("default".to_owned(), default);
        }
    }
    schema
}

fn value(of: &TypeRef, depth: usize) -> Value {
    let number_or_text = || json!([{"type": "integer"}, {"type": "string"}]);
    match &of.shape {
        Shape::String | Shape::Duration => json!({"type": "string"}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Int32 => json!({"type": "integer", "format": "int32"}),
        Shape::Int64 => json!({"type": "integer", "format": "int64"}),
        Shape::Float64 => json!({"type": "number"}),
        Shape::Bytes => json!({"type": "string", "format": "byte"}),
        Shape::Time | Shape::MicroTime => json!({"type": "string", "format": "date-time"}),
        Shape::Quantity => {
            json!({"anyOf": number_or_text(), "pattern": QUANTITY, "x-kubernetes-int-or-string": true})
        }
        Shape::IntOrString => json!({"anyOf": number_or_text(), "x-kubernetes-int-or-string": true}),
        Shape::FieldsV1 | Shape::RawExtension => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
        Shape::Any | Shape::Json | Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings => {
            json!({"x-kubernetes-preserve-unknown-fields": true})
        }
        Shape::Struct(id) => structure(id.get(), depth + 1),
        Shape::List(element) => json!({"type": "array", "items": value(element, depth + 1)}),
        Shape::Map(element) => json!({"type": "object", "additionalProperties": value(element, depth + 1)}),
    }
}
