//! The schemas of the types, by the rules of Kubernetes' own generator.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value, json};

use super::descriptions;
use super::{Served, component_name, gvk_value, meta_reference, reference};
use crate::decode::schema_type;
use crate::object;
use crate::table::{Field, META_V1, Shape, Type, TypeId, TypeRef, builtin};

/// The schemas of a document: the served kinds and all that they refer to.
#[derive(Default)]
pub(super) struct Components {
    schemas: BTreeMap<String, Value>,
    /// The groups and versions that the document's kinds have, for the types that belong to all of them.
    group_versions: BTreeSet<(String, String)>,
    pending: VecDeque<TypeId>,
    seen: BTreeSet<String>,
}

impl Components {
    pub(super) fn add_kind(&mut self, kind: &Served<'_>) {
        let [group, version, name] = kind.gvk;
        self.group_versions.insert((group.to_owned(), version.to_owned()));
        for shared in ["ObjectMeta", "ListMeta", "DeleteOptions", "Status"] {
            self.require(builtin().type_named(&format!("{META_V1}.{shared}")));
        }
        self.schemas.insert(format!("{META_V1}.Patch"), json!({"type": "object"}));
        match kind.custom_schema {
            Some(schema) => self.add_custom(kind, schema),
            None => {
                self.require(builtin().kind(group, version, name));
                self.require(builtin().kind(group, version, &format!("{name}List")));
            }
        }
        for below in &kind.subresources {
            let [group, version, name] = below.gvk;
            self.require(builtin().kind(group, version, name).filter(|_| below.gvk != kind.gvk));
        }
    }

    /// The schema of a CRD's kind: as the CRD gives it, with the fields that every object has.
    fn add_custom(&mut self, kind: &Served<'_>, schema: &Value) {
        let [group, version, name] = kind.gvk;
        let component = component_name(kind);
        let mut object = schema.clone();
        add_embedded_fields(&mut object);
        let mut object = object.as_object().cloned().unwrap_or_default();
        add_object_fields(&mut object);
        object.insert("x-kubernetes-group-version-kind".to_owned(), json!([gvk_value(kind.gvk)]));
        let list_kind = format!("{name}List");
        let list = json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string", "description": descriptions::API_VERSION},
                "kind": {"type": "string", "description": descriptions::KIND},
                "metadata": {"allOf": [meta_reference("ListMeta")], "description": descriptions::METADATA},
                "items": {"type": "array", "items": reference(&component)},
            },
            "x-kubernetes-group-version-kind": [gvk_value([group, version, &list_kind])],
        });
        self.schemas.insert(format!("{component}List"), list);
        self.schemas.insert(component, Value::Object(object));
    }

    fn require(&mut self, found: Option<TypeId>) {
        if let Some(id) = found
            && self.seen.insert(id.openapi_name())
        {
            self.pending.push_back(id);
        }
    }

    pub(super) fn finish(mut self) -> Map<String, Value> {
        while let Some(id) = self.pending.pop_front() {
            let schema = self.structure(id.get());
            self.schemas.insert(id.openapi_name(), schema);
        }
        self.schemas.into_iter().collect()
    }

    fn structure(&mut self, of: &Type) -> Value {
        let mut properties = Map::new();
        let is_metadata = of.package.openapi == META_V1 && of.name == "ObjectMeta";
        for field in &of.fields {
            let description = is_metadata.then(|| descriptions::of_metadata(field.name)).flatten();
            properties.insert(field.name.to_owned(), self.field(field, description));
        }
        let required: Vec<&str> =
            of.fields.iter().filter(|field| !field.is_optional).map(|field| field.name).collect();
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
        if of.is_kind {
            schema.insert("x-kubernetes-group-version-kind".to_owned(), self.kinds_of(of));
        }
        Value::Object(schema)
    }

    /// The group, version and kind of a type; types of every group have one for each of the document's.
    fn kinds_of(&self, of: &Type) -> Value {
        match of.package.group {
            Some(group) => json!([gvk_value([group, of.package.version(), of.name])]),
            None => {
                let all = self.group_versions.iter();
                all.map(|(group, version)| gvk_value([group, version, of.name])).collect()
            }
        }
    }

    fn field(&mut self, field: &Field, description: Option<&str>) -> Value {
        let mut extras = Map::new();
        let mut say = |key: &str, value: Value| {
            extras.insert(key.to_owned(), value);
        };
        if let Some(description) = description {
            say("description", description.into());
        }
        if let Some(list_type) = field.list_type {
            say("x-kubernetes-list-type", list_type.as_str().into());
        }
        if !field.list_keys.is_empty() {
            say("x-kubernetes-list-map-keys", json!(field.list_keys));
        }
        if let Some(key) = field.merge_key {
            say("x-kubernetes-patch-merge-key", key.into());
        }
        match (field.patch_merge, field.patch_retain_keys) {
            (true, true) => say("x-kubernetes-patch-strategy", "merge,retainKeys".into()),
            (true, false) => say("x-kubernetes-patch-strategy", "merge".into()),
            (false, true) => say("x-kubernetes-patch-strategy", "retainKeys".into()),
            (false, false) => {}
        }
        if field.is_granular {
            say("x-kubernetes-map-type", "granular".into());
        }
        if field.is_atomic {
            say("x-kubernetes-map-type", "atomic".into());
        }
        let declared = field.default.and_then(|text| serde_json::from_str(text).ok());
        if let Some(default) = declared.or_else(|| default_of(&field.value, field.omit_empty)) {
            say("default", default);
        }
        self.value(&field.value, extras)
    }

    /// A use of a type. A reference stands alone; with anything beside it, it must be wrapped.
    fn value(&mut self, of: &TypeRef, mut extras: Map<String, Value>) -> Value {
        let component = match &of.shape {
            Shape::Struct(id) => {
                self.require(Some(*id));
                Some(id.openapi_name())
            }
            shape => special_component(shape).map(|(name, schema)| {
                self.schemas.entry(name.to_owned()).or_insert(schema);
                if let Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrStrings = shape {
                    self.require(schema_type());
                }
                name.to_owned()
            }),
        };
        if let Some(name) = component {
            if extras.is_empty() {
                return reference(&name);
            }
            extras.insert("allOf".to_owned(), json!([reference(&name)]));
            return Value::Object(extras);
        }
        if let Some(named) = of.named().filter(|named| !named.enum_values.is_empty()) {
            extras.insert("enum".to_owned(), json!(named.enum_values));
        }
        let mut element = |of: &TypeRef| {
            let default = default_of(of, false).map(|default| ("default".to_owned(), default));
            self.value(of, default.into_iter().collect())
        };
        let (kind, format) = match &of.shape {
            Shape::List(item) => {
                extras.insert("items".to_owned(), element(item));
                ("array", "")
            }
            Shape::Map(value) => {
                extras.insert("additionalProperties".to_owned(), element(value));
                ("object", "")
            }
            Shape::Bool => ("boolean", ""),
            Shape::Int32 => ("integer", "int32"),
            Shape::Int64 => ("integer", "int64"),
            Shape::Float64 => ("number", "double"),
            Shape::Bytes => ("string", "byte"),
            Shape::Any => ("object", ""),
            _ => ("string", ""),
        };
        extras.insert("type".to_owned(), kind.into());
        if !format.is_empty() {
            extras.insert("format".to_owned(), format.into());
        }
        Value::Object(extras)
    }
}

/// Adds the fields that every object has to the schema of an object.
fn add_object_fields(object: &mut Map<String, Value>) {
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(properties) = properties else { return };
    let texts = [("apiVersion", descriptions::API_VERSION), ("kind", descriptions::KIND)];
    for (name, description) in texts {
        properties.insert(name.to_owned(), json!({"type": "string", "description": description}));
    }
    let metadata = json!({"allOf": [meta_reference("ObjectMeta")], "description": descriptions::METADATA});
    properties.insert("metadata".to_owned(), metadata);
}

/// Adds the fields that every object has wherever a CRD's schema says that there is a whole object inside.
fn add_embedded_fields(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    for inner in ["items", "additionalProperties"] {
        fields.get_mut(inner).into_iter().for_each(add_embedded_fields);
    }
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(|properties| properties.values_mut()).for_each(add_embedded_fields);
    if fields.get("x-kubernetes-embedded-resource") != Some(&Value::Bool(true)) {
        return;
    }
    add_object_fields(fields);
    let mut required = object::strings(fields.get("required"));
    required.extend(["apiVersion", "kind"]);
    required.sort_unstable();
    required.dedup();
    let required = json!(required);
    fields.insert("required".to_owned(), required);
}

/// The default that follows from Go's zero values: what is never null has one.
fn default_of(of: &TypeRef, omit_empty: bool) -> Option<Value> {
    match &of.shape {
        _ if of.is_pointer => None,
        Shape::Struct(_) => Some(json!({})),
        Shape::String if !omit_empty => Some("".into()),
        Shape::Bool if !omit_empty => Some(false.into()),
        Shape::Int32 | Shape::Int64 | Shape::Float64 if !omit_empty => Some(0.into()),
        _ => None,
    }
}

/// The types with a form of their own have schemas that the table does not hold.
fn special_component(shape: &Shape) -> Option<(&'static str, Value)> {
    Some(match shape {
        Shape::Time => {
            ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", json!({"type": "string", "format": "date-time"}))
        }
        Shape::MicroTime => (
            "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
            json!({"type": "string", "format": "date-time"}),
        ),
        Shape::Duration => ("io.k8s.apimachinery.pkg.apis.meta.v1.Duration", json!({"type": "string"})),
        Shape::FieldsV1 => ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", json!({"type": "object"})),
        Shape::Quantity => (
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        ),
        Shape::IntOrString => (
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            json!({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"}),
        ),
        Shape::RawExtension => ("io.k8s.apimachinery.pkg.runtime.RawExtension", json!({"type": "object"})),
        Shape::Json => ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", json!({})),
        Shape::SchemaOrArray => {
            ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray", json!({}))
        }
        Shape::SchemaOrBool => {
            ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool", json!({}))
        }
        Shape::SchemaOrStrings => (
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
            json!({}),
        ),
        _ => return None,
    })
}
