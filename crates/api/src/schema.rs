//! Parts of the CRDs' schemas that no type of this crate describes: Kubernetes' own types, in short.
//!
//! Where the whole schema of a built-in type belongs, there is a [`BUILT_IN`] mark with the type's name. Whoever has a
//! table of the built-in types ([`crate::crd::crds_with`]) puts the whole schema there; without one, the short form
//! stands and lets everything through.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// Marks a place for the schema of a built-in type. It never leaves this crate.
const BUILT_IN: &str = "x-built-in";

/// Marks a default of the API on a field: `#[schemars(extend("x-default" = 3))]`. It becomes `default` in the CRD.
const DEFAULT: &str = "x-default";

/// Marks a field that must be given; serde reads every field as optional, for objects that skipped all checks.
const REQUIRED: &str = "x-required";

/// Metadata is the server's own; a CRD says only that it is there.
pub(crate) fn metadata(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// The metadata that a template may carry.
pub(crate) fn embedded_metadata(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "annotations": { "type": "object", "additionalProperties": { "type": "string" } },
            "finalizers": { "type": "array", "items": { "type": "string" } },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            "name": { "type": "string" },
            "namespace": { "type": "string" },
        },
    })
}

/// The containers of a pod template. A port's protocol is filled in: with its number it is what tells ports apart.
fn containers() -> Value {
    let ports = json!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["containerPort"],
            "properties": {
                "containerPort": { "type": "integer", "format": "int32" },
                "protocol": { "type": "string", DEFAULT: "TCP" },
            },
            "x-kubernetes-preserve-unknown-fields": true,
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
    });
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": { "name": { "type": "string" }, "ports": ports },
            "x-kubernetes-preserve-unknown-fields": true,
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    })
}

/// A pod template.
pub(crate) fn pod_template(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "metadata": embedded_metadata(generator),
            "spec": {
                "type": "object",
                "required": ["containers"],
                "properties": { "containers": containers(), "initContainers": containers() },
                "x-kubernetes-preserve-unknown-fields": true,
                BUILT_IN: "io.k8s.api.core.v1.PodSpec",
            },
        },
    })
}

/// The spec of a volume claim.
pub(crate) fn volume_claim(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        BUILT_IN: "io.k8s.api.core.v1.PersistentVolumeClaimSpec",
    })
}

/// The object that a Command is about.
pub(crate) fn owner_reference(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "required": ["apiVersion", "kind", "name", "uid"],
        "properties": {
            "apiVersion": { "type": "string" },
            "blockOwnerDeletion": { "type": "boolean" },
            "controller": { "type": "boolean" },
            "kind": { "type": "string" },
            "name": { "type": "string" },
            "uid": { "type": "string" },
        },
        "x-kubernetes-map-type": "atomic",
    })
}

/// Which pods a policy is about.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "matchExpressions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "type": "string" },
                        "operator": { "type": "string" },
                        "values": {
                            "type": "array",
                            "items": { "type": "string" },
                            "x-kubernetes-list-type": "atomic",
                        },
                    },
                },
                "x-kubernetes-list-type": "atomic",
            },
            "matchLabels": { "type": "object", "additionalProperties": { "type": "string" } },
        },
        "x-kubernetes-map-type": "atomic",
    })
}

/// Kubernetes' conditions (metav1.Condition), in a list without keys.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": { "type": "string", "format": "date-time" },
                "message": { "type": "string", "maxLength": 32768 },
                "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "type": { "type": "string", "maxLength": 316, "pattern": CONDITION_TYPE },
            },
        },
    })
}

/// The same with at most one condition of each type.
pub(crate) fn conditions_by_type(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = conditions(generator);
    schema.insert("x-kubernetes-list-type".to_owned(), json!("map"));
    schema.insert("x-kubernetes-list-map-keys".to_owned(), json!(["type"]));
    schema
}

const CONDITION_TYPE: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

/// Makes a generated schema structural, as Kubernetes wants it: one type each, nothing nullable.
///
/// `built_in` gives the schema of a built-in type by its name.
pub(crate) fn make_structural(schema: &mut Value, built_in: &dyn Fn(&str) -> Option<Value>) {
    let Value::Object(fields) = schema else { return };
    // What serde fills in for an absent field is this program's matter; a default of the API is marked as such.
    fields.remove("default");
    if let Some(value) = fields.remove(DEFAULT) {
        fields.insert("default".to_owned(), value);
    }
    unwrap_optional(fields);
    replace_built_in(fields, built_in);
    collect_required(fields);
    for (keyword, value) in fields {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(|schema| make_structural(schema, built_in));
            }
            ("items" | "additionalProperties", schema) => make_structural(schema, built_in),
            _ => {}
        }
    }
}

/// An optional field is one that may be absent; `null` is not a value of its own.
fn unwrap_optional(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|name| name != "null");
        if let Some(only) = types.pop() {
            fields.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = fields.get_mut("anyOf") else { return };
    let n_choices = choices.len();
    choices.retain(|choice| choice.get("type") != Some(&"null".into()));
    if choices.len() == n_choices || choices.len() > 1 {
        return;
    }
    let only = choices.pop();
    fields.remove("anyOf");
    if let Some(Value::Object(only)) = only {
        for (keyword, value) in only {
            fields.entry(keyword).or_insert(value);
        }
    }
}

/// Lists the fields that are marked as required.
fn collect_required(fields: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = fields.get_mut("properties") else { return };
    let is_marked =
        |schema: &mut Value| schema.as_object_mut().and_then(|fields| fields.remove(REQUIRED)).is_some();
    let marked: Vec<Value> = properties
        .iter_mut()
        .filter_map(|(name, schema)| is_marked(schema).then(|| name.as_str().into()))
        .collect();
    if !marked.is_empty() {
        fields.insert("required".to_owned(), marked.into());
    }
}

fn replace_built_in(fields: &mut Map<String, Value>, built_in: &dyn Fn(&str) -> Option<Value>) {
    let Some(Value::String(name)) = fields.remove(BUILT_IN) else { return };
    if let Some(Value::Object(whole)) = built_in(&name) {
        let description = fields.remove("description");
        *fields = whole;
        fields.extend(description.map(|text| ("description".to_owned(), text)));
    }
}
