//! OpenAPI version 2, one document for everything: what clients ask for that are older than version 3, and what kubectl asks
//! about kinds that version 3 does not show.
//!
//! It is made from the documents of version 3. What version 2 cannot say is left out, by the same rules as a kube-apiserver's,
//! so that kubectl's own reader takes it.

use serde_json::{Map, Value, json};

use super::{Served, document as document_v3};

const UNKNOWN_FIELDS: &str = "x-kubernetes-preserve-unknown-fields";

/// The document of all that is served.
pub fn document(served: &[Served<'_>]) -> Value {
    let mut whole = document_v3(served);
    let take = |value: &mut Value, pointer: &str| value.pointer_mut(pointer).map(Value::take);
    let schemas = take(&mut whole, "/components/schemas").unwrap_or_default();
    let paths = take(&mut whole, "/paths").unwrap_or_default();
    let version = take(&mut whole, "/info/version").unwrap_or_default();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": each(paths, path_item),
        "definitions": each(schemas, definition),
    })
}

fn each(value: Value, convert: fn(Value) -> Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (name, convert(value))).collect())
        }
        other => other,
    }
}

/// The definition of a type. Of a custom kind that keeps unknown fields, version 2 lists no fields at all: clients would take the
/// list for complete.
fn definition(of: Value) -> Value {
    let kinds = "x-kubernetes-group-version-kind";
    match of.get(kinds) {
        Some(kinds_of) if of.get(UNKNOWN_FIELDS) == Some(&Value::Bool(true)) => {
            json!({"type": "object", kinds: kinds_of})
        }
        _ => schema(of),
    }
}

/// A schema as version 2 says it.
fn schema(of: Value) -> Value {
    let Value::Object(mut fields) = of else { return of };
    // Of several types it is a text that all values can be written as.
    if fields.remove("oneOf").is_some() {
        fields.insert("type".to_owned(), "string".into());
    }
    let wrapped = fields.remove("allOf").and_then(|parts| parts.get(0)?.get("$ref").cloned());
    for unsupported in ["anyOf", "not"] {
        fields.remove(unsupported);
    }
    if let Some(reference) = wrapped {
        fields.remove("default");
        fields.insert("$ref".to_owned(), reference);
    }
    if let Some(Value::String(reference)) = fields.get_mut("$ref") {
        *reference = reference.replace("#/components/schemas/", "#/definitions/");
    }
    let is_nullable = fields.remove("nullable") == Some(Value::Bool(true));
    let keeps_unknown = fields.get(UNKNOWN_FIELDS) == Some(&Value::Bool(true));
    if is_nullable || keeps_unknown {
        fields.remove("items");
        fields.remove("properties");
    }
    let is_array_of_anything = fields.get("type") == Some(&json!("array")) && !fields.contains_key("items");
    let is_any_object = fields.get("type") == Some(&json!("object")) && keeps_unknown;
    if is_nullable || is_array_of_anything || is_any_object {
        fields.remove("type");
    }
    drop_nullable_from_required(&mut fields);
    for (name, convert) in [("properties", each_schema as fn(Value) -> Value), ("items", schema)] {
        if let Some(inner) = fields.remove(name) {
            fields.insert(name.to_owned(), convert(inner));
        }
    }
    if let Some(inner @ Value::Object(_)) = fields.remove("additionalProperties") {
        fields.insert("additionalProperties".to_owned(), schema(inner));
    }
    Value::Object(fields)
}

fn each_schema(properties: Value) -> Value {
    each(properties, schema)
}

/// What may be null need not be there for those who do not know null.
fn drop_nullable_from_required(fields: &mut Map<String, Value>) {
    let is_nullable = |name: &str| {
        let property = fields.get("properties").and_then(|properties| properties.get(name));
        property.and_then(|property| property.get("nullable")) == Some(&Value::Bool(true))
    };
    let Some(required) = fields.get("required").and_then(Value::as_array) else { return };
    let kept: Vec<Value> =
        required.iter().filter(|name| !name.as_str().is_some_and(is_nullable)).cloned().collect();
    if kept.is_empty() {
        fields.remove("required");
    } else {
        fields.insert("required".to_owned(), kept.into());
    }
}

fn path_item(item: Value) -> Value {
    let Value::Object(fields) = item else { return item };
    let convert = |(name, value): (String, Value)| {
        let value = match value {
            Value::Array(parameters) => parameters.into_iter().map(parameter).collect(),
            operation => self::operation(operation),
        };
        (name, value)
    };
    Value::Object(fields.into_iter().map(convert).collect())
}

/// A parameter in the path or the query: its type stands beside its name.
fn parameter(of: Value) -> Value {
    let Value::Object(mut fields) = of else { return of };
    if let Some(Value::Object(schema)) = fields.remove("schema") {
        fields.extend(schema);
    }
    Value::Object(fields)
}

fn operation(of: Value) -> Value {
    let Value::Object(mut fields) = of else { return of };
    let parameters = fields.remove("parameters").and_then(|list| match list {
        Value::Array(list) => Some(list),
        _ => None,
    });
    let mut parameters: Vec<Value> = parameters.unwrap_or_default().into_iter().map(parameter).collect();
    let mut consumes = vec![json!("*/*")];
    if let Some(body) = fields.remove("requestBody") {
        let content = body.get("content").and_then(Value::as_object);
        let media = content.into_iter().flatten();
        consumes = media.clone().map(|(name, _)| name.as_str().into()).collect();
        let of = media.clone().next().and_then(|(_, of)| of.get("schema").cloned()).unwrap_or_default();
        let mut parameter = json!({"name": "body", "in": "body", "schema": schema(of)});
        if body.get("required") == Some(&Value::Bool(true)) {
            crate::object::set(&mut parameter, "required", true);
        }
        parameters.insert(0, parameter);
    }
    if let Some(responses) = fields.remove("responses") {
        fields.insert("responses".to_owned(), each(responses, response));
    }
    fields.insert("consumes".to_owned(), consumes.into());
    fields.insert("produces".to_owned(), json!(["application/json", "application/yaml"]));
    fields.insert("schemes".to_owned(), json!(["https"]));
    fields.insert("parameters".to_owned(), parameters.into());
    Value::Object(fields)
}

fn response(of: Value) -> Value {
    let description = of.get("description").cloned().unwrap_or_else(|| "".into());
    match of.pointer("/content/application~1json/schema") {
        Some(shown) => json!({"description": description, "schema": schema(shown.clone())}),
        None => json!({"description": description}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_version_2_cannot_say_is_left_out() {
        let cases = [
            (json!({"$ref": "#/components/schemas/a"}), json!({"$ref": "#/definitions/a"})),
            (
                json!({"allOf": [{"$ref": "#/components/schemas/a"}], "default": {}, "x-kubernetes-map-type": "atomic"}),
                json!({"$ref": "#/definitions/a", "x-kubernetes-map-type": "atomic"}),
            ),
            (
                json!({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}),
                json!({"type": "string", "format": "int-or-string"}),
            ),
            (json!({"type": "object", "nullable": true, "properties": {"a": {}}}), json!({})),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
                json!({"x-kubernetes-preserve-unknown-fields": true}),
            ),
            (json!({"type": "array"}), json!({})),
            (
                json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string", "nullable": true}, "b": {"type": "string"}}}),
                json!({"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}}),
            ),
            // Fields may be called like keywords.
            (
                json!({"type": "object", "properties": {"nullable": {"type": "boolean"}, "items": {"type": "array", "items": {"$ref": "#/components/schemas/a"}}}}),
                json!({"type": "object", "properties": {"nullable": {"type": "boolean"}, "items": {"type": "array", "items": {"$ref": "#/definitions/a"}}}}),
            ),
        ];
        for (of, expected) in cases {
            assert_eq!(schema(of.clone()), expected, "{of}");
        }
    }

    #[test]
    fn a_kind_that_keeps_unknown_fields_lists_none() {
        let kinds = json!([{"group": "a.example", "version": "v1", "kind": "A"}]);
        let of = json!({
            "type": "object", "properties": {"spec": {"type": "object"}}, "description": "An A.",
            UNKNOWN_FIELDS: true, "x-kubernetes-group-version-kind": kinds,
        });
        let expected = json!({"type": "object", "x-kubernetes-group-version-kind": kinds});
        assert_eq!(definition(of), expected);
    }

    #[test]
    fn an_operation_has_its_body_among_its_parameters() {
        let verbs: &[&str] = &["create", "patch", "get", "list"];
        let kind = Served {
            gvk: ["batch", "v1", "Job"],
            plural: "jobs",
            is_namespaced: true,
            verbs,
            subresources: Vec::new(),
            custom_schema: None,
        };
        let document = document(&[kind]);
        let patch = &document["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["patch"];
        assert_eq!(
            patch["parameters"][0]["schema"]["$ref"],
            "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Patch"
        );
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Job");
        let names: Vec<_> =
            patch["parameters"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"fieldValidation"), "{names:?}");
        assert!(!document.to_string().contains("#/components/"));
    }
}
