//! OpenAPI v3 documents, one per group and version: what `kubectl explain` prints and `kubectl apply` asks before it
//! patches.
//!
//! ```text
//!   /openapi/v3                   an index of documents, each with a hash that changes when the document does
//!   /openapi/v3/apis/batch/v1     paths: what can be done with which kind; components: the schemas of the types
//! ```
//!
//! Schemas follow the rules of Kubernetes' own generator, without its descriptions. Kinds of CRDs bring their schemas.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use super::table::{Field, META_V1, Shape, Type, TypeId, TypeRef, builtin};

/// A served kind, as the documents show it.
#[derive(Clone, Debug)]
pub struct Served<'a> {
    /// Group, version and kind.
    pub gvk: [&'a str; 3],
    /// The name in URLs.
    pub plural: &'a str,
    /// Whether objects live in namespaces.
    pub is_namespaced: bool,
    /// What can be done with it.
    pub verbs: &'a [&'a str],
    /// What else can be asked of one of its objects.
    pub subresources: Vec<Subresource<'a>>,
    /// The schema that the CRD gives it; none for built-in kinds.
    pub custom_schema: Option<&'a Value>,
}

/// Something below an object's path.
#[derive(Clone, Debug)]
pub struct Subresource<'a> {
    /// The last part of the path.
    pub name: &'a str,
    /// Group, version and kind of its body.
    pub gvk: [&'a str; 3],
    /// What can be done with it.
    pub verbs: &'a [&'a str],
}

/// The index: the documents by path (`apis/batch/v1`) with their hashes.
pub fn index<'a>(documents: impl IntoIterator<Item = (&'a str, String)>) -> Value {
    let entry = |(path, hash): (&str, String)| {
        (path.to_owned(), json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")}))
    };
    json!({"paths": documents.into_iter().map(entry).collect::<Map<_, _>>()})
}

/// A hash of what the document is made from: it is known without making the document.
pub fn hash(served: &[Served<'_>]) -> String {
    let mut digest = String::new();
    for seed in 0..2_u8 {
        let mut hasher = DefaultHasher::new();
        (seed, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
        for kind in served {
            (kind.gvk, kind.plural, kind.is_namespaced, kind.verbs).hash(&mut hasher);
            for below in &kind.subresources {
                (below.name, below.gvk, below.verbs).hash(&mut hasher);
            }
            kind.custom_schema.map(Value::to_string).hash(&mut hasher);
        }
        digest.push_str(&format!("{:016X}", hasher.finish()));
    }
    digest
}

/// The path of a group and version's document: `api/v1`, `apis/batch/v1`.
pub fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The document of one group and version.
pub fn document(served: &[Served<'_>]) -> Value {
    let mut paths = Map::new();
    let mut components = Components::default();
    for kind in served {
        components.add_kind(kind);
        for (path, item) in paths_of(kind) {
            paths.insert(path, item);
        }
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths,
        "components": {"schemas": components.finish()},
    })
}

/// The name of a kind's schema: built-in kinds have their Go name, others the reversed group.
fn component_name(kind: &Served<'_>) -> String {
    let [group, version, name] = kind.gvk;
    if kind.custom_schema.is_some() {
        let reversed: Vec<&str> = group.split('.').rev().collect();
        return format!("{}.{version}.{name}", reversed.join("."));
    }
    builtin_name(kind.gvk)
}

fn builtin_name([group, version, kind]: [&str; 3]) -> String {
    let found = builtin().kind(group, version, kind);
    found.map_or_else(|| format!("{META_V1}.Status"), |found| found.openapi_name())
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn meta_reference(name: &str) -> Value {
    reference(&format!("{META_V1}.{name}"))
}

fn gvk_value([group, version, kind]: [&str; 3]) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

/// What can be asked at each of a kind's paths.
fn paths_of(kind: &Served<'_>) -> Vec<(String, Value)> {
    let [group, version, _] = kind.gvk;
    let root = format!("/{}", path_of(group, version));
    let collection = if kind.is_namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", kind.plural)
    } else {
        format!("{root}/{}", kind.plural)
    };
    let schema = component_name(kind);
    let list = reference(&format!("{schema}List"));
    let object = Operations {
        gvk: kind.gvk,
        verbs: kind.verbs,
        is_custom: kind.custom_schema.is_some(),
        body: reference(&schema),
        list,
    };
    let mut paths = Vec::new();
    if kind.is_namespaced {
        paths.push((format!("{root}/{}", kind.plural), object.at(&["list"], &[])));
    }
    let namespace: &[&str] = if kind.is_namespaced { &["namespace"] } else { &[] };
    paths.push((collection.clone(), object.at(&["list", "create", "deletecollection"], namespace)));
    let named: Vec<&str> = ["name"].iter().chain(namespace).copied().collect();
    paths.push((format!("{collection}/{{name}}"), object.at(&["get", "update", "patch", "delete"], &named)));
    for below in &kind.subresources {
        let is_own = below.gvk == kind.gvk;
        let body = if is_own { reference(&schema) } else { reference(&builtin_name(below.gvk)) };
        let operations =
            Operations { gvk: below.gvk, verbs: below.verbs, body, list: Value::Null, ..object.clone() };
        let item = operations.at(&["get", "create", "update", "patch", "delete"], &named);
        paths.push((format!("{collection}/{{name}}/{}", below.name), item));
    }
    paths.retain(|(_, item)| item.as_object().is_some_and(|item| item.len() > 1));
    paths
}

/// What can be done with one body.
#[derive(Clone)]
struct Operations<'a> {
    gvk: [&'a str; 3],
    verbs: &'a [&'a str],
    is_custom: bool,
    body: Value,
    list: Value,
}

impl Operations<'_> {
    /// A path's item: the operations among `verbs` that the kind has, and the parameters in the path.
    fn at(&self, verbs: &[&str], in_path: &[&str]) -> Value {
        let mut item = Map::new();
        for verb in verbs.iter().filter(|verb| self.verbs.contains(verb)) {
            let method = match *verb {
                "create" => "post",
                "update" => "put",
                "patch" => "patch",
                "delete" | "deletecollection" => "delete",
                _ => "get",
            };
            item.insert(method.to_owned(), self.operation(verb));
        }
        let mut parameters: Vec<Value> = in_path
            .iter()
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}}))
            .collect();
        parameters.push(query("pretty"));
        item.insert("parameters".to_owned(), Value::Array(parameters));
        Value::Object(item)
    }

    fn operation(&self, verb: &str) -> Value {
        let action = match verb {
            "create" => "post",
            "update" => "put",
            other => other,
        };
        let answer = match verb {
            "list" => self.list.clone(),
            "delete" | "deletecollection" => meta_reference("Status"),
            _ => self.body.clone(),
        };
        let mut operation = json!({
            "parameters": parameters_of(verb),
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk_value(self.gvk),
        });
        if let (Some(body), Value::Object(fields)) = (self.request_body(verb), &mut operation) {
            fields.insert("requestBody".to_owned(), body);
        }
        operation
    }

    fn request_body(&self, verb: &str) -> Option<Value> {
        let content = match verb {
            "create" | "update" => json!({"*/*": {"schema": self.body}}),
            "delete" | "deletecollection" => json!({"*/*": {"schema": meta_reference("DeleteOptions")}}),
            "patch" => {
                let patch = json!({"schema": meta_reference("Patch")});
                let mut types = vec![
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ];
                if !self.is_custom {
                    types.push("application/strategic-merge-patch+json");
                }
                types.into_iter().map(|media| (media.to_owned(), patch.clone())).collect::<Map<_, _>>().into()
            }
            _ => return None,
        };
        Some(json!({"required": verb != "delete" && verb != "deletecollection", "content": content}))
    }
}

/// The query parameters of a verb. `kubectl` looks for `fieldValidation` and `dryRun` before it sends them.
fn parameters_of(verb: &str) -> Vec<Value> {
    let names: &[&str] = match verb {
        "create" | "update" => &["dryRun", "fieldManager", "fieldValidation"],
        "patch" => &["dryRun", "fieldManager", "fieldValidation", "force"],
        "delete" => &["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"],
        "deletecollection" => &["dryRun", "fieldSelector", "labelSelector", "propagationPolicy"],
        "list" => &[
            "allowWatchBookmarks",
            "continue",
            "fieldSelector",
            "labelSelector",
            "limit",
            "resourceVersion",
            "resourceVersionMatch",
            "sendInitialEvents",
            "timeoutSeconds",
            "watch",
        ],
        _ => &[],
    };
    names.iter().map(|name| query(name)).collect()
}

/// One query parameter, with a word on what it does.
fn query(name: &str) -> Value {
    let (kind, description) = match name {
        "allowWatchBookmarks" => ("boolean", "Asks for bookmark events in a watch."),
        "continue" => ("string", "The token of the page to go on from."),
        "dryRun" => ("string", "\"All\" goes through every stage but storing."),
        "fieldManager" => ("string", "Who makes the change, for managedFields."),
        "fieldSelector" => ("string", "Only objects with these field values."),
        "fieldValidation" => ("string", "Unknown and duplicate fields: Ignore, Warn or Strict."),
        "force" => ("boolean", "An apply takes over fields that others own."),
        "gracePeriodSeconds" => ("integer", "How long the object has to end."),
        "labelSelector" => ("string", "Only objects with these labels."),
        "limit" => ("integer", "At most so many objects in one answer."),
        "orphanDependents" => ("boolean", "Deprecated in favour of propagationPolicy."),
        "pretty" => ("string", "\"true\" indents the answer."),
        "propagationPolicy" => ("string", "What becomes of dependents: Orphan, Background or Foreground."),
        "resourceVersion" => ("string", "How fresh the answer must be."),
        "resourceVersionMatch" => ("string", "How resourceVersion is meant: Exact or NotOlderThan."),
        "sendInitialEvents" => ("boolean", "Begins a watch with what is there already."),
        "timeoutSeconds" => ("integer", "How long a list or watch may take."),
        "watch" => ("boolean", "Follows changes instead of listing."),
        _ => ("string", ""),
    };
    json!({"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": true}})
}

/// The schemas of a document: the served kinds and all that they refer to.
#[derive(Default)]
struct Components {
    schemas: BTreeMap<String, Value>,
    /// The groups and versions that the document's kinds have, for the types that belong to all of them.
    group_versions: BTreeSet<(String, String)>,
    pending: VecDeque<TypeId>,
    seen: BTreeSet<String>,
}

impl Components {
    fn add_kind(&mut self, kind: &Served<'_>) {
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
        let text = json!({"type": "string"});
        let mut object = schema.as_object().cloned().unwrap_or_default();
        let properties = object.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            properties.insert("apiVersion".to_owned(), text.clone());
            properties.insert("kind".to_owned(), text.clone());
            let metadata = json!({"allOf": [meta_reference("ObjectMeta")], "default": {}});
            properties.insert("metadata".to_owned(), metadata);
        }
        object.insert("x-kubernetes-group-version-kind".to_owned(), json!([gvk_value(kind.gvk)]));
        let list_kind = format!("{name}List");
        let list = json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": text,
                "kind": text,
                "metadata": {"allOf": [meta_reference("ListMeta")], "default": {}},
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

    fn finish(mut self) -> Map<String, Value> {
        while let Some(id) = self.pending.pop_front() {
            let schema = self.structure(id.get());
            self.schemas.insert(id.openapi_name(), schema);
        }
        self.schemas.into_iter().collect()
    }

    fn structure(&mut self, of: &Type) -> Value {
        let mut properties = Map::new();
        for field in &of.fields {
            properties.insert(field.name.to_owned(), self.field(field));
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

    fn field(&mut self, field: &Field) -> Value {
        let mut extras = Map::new();
        let mut say = |key: &str, value: Value| {
            extras.insert(key.to_owned(), value);
        };
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
                    self.require(super::decode::schema_type());
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

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;

    const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

    fn served<'a>(gvk: [&'a str; 3], plural: &'a str) -> Served<'a> {
        let status = Subresource { name: "status", gvk, verbs: &["get", "patch", "update"] };
        Served {
            gvk,
            plural,
            is_namespaced: true,
            verbs: ALL,
            subresources: vec![status],
            custom_schema: None,
        }
    }

    /// Resolves a recorded view: a pointer, perhaps with `#keys` at its end. Descriptions are not ours to repeat.
    fn view(document: &Value, pointer: &str) -> Value {
        let (pointer, wants_keys) = match pointer.strip_suffix("#keys") {
            Some(pointer) => (pointer, true),
            None => (pointer, false),
        };
        let mut found = document.pointer(pointer).cloned().unwrap_or_default();
        if wants_keys {
            let mut keys: Vec<_> = found.as_object().unwrap().keys().cloned().collect();
            // The recorder hides managedFields everywhere.
            keys.retain(|key| key != "managedFields");
            return json!(keys);
        }
        without_descriptions(&mut found);
        found
    }

    fn without_descriptions(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("description");
                fields.values_mut().for_each(without_descriptions);
            }
            Value::Array(items) => items.iter_mut().for_each(without_descriptions),
            _ => {}
        }
    }

    fn check(id: &str, document: &Value) {
        let step = &golden::steps_of(&golden::cases("10-discovery.json"), id)[0];
        for pointer in step["view"].as_array().unwrap() {
            let pointer = pointer.as_str().unwrap();
            let mut expected = step["expect"]["body"][pointer].clone();
            without_descriptions(&mut expected);
            assert_eq!(view(document, pointer), expected, "{pointer}");
        }
    }

    #[test]
    fn the_documents_are_as_recorded() {
        check("discovery/openapi-batch", &document(&[served(["batch", "v1", "Job"], "jobs")]));
        let core = [served(["", "v1", "Pod"], "pods"), served(["", "v1", "ConfigMap"], "configmaps")];
        check("discovery/openapi-core", &document(&core));
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let kinds: Vec<_> = builtin().types().filter(|id| id.is_kind && id.package.group.is_some()).collect();
        let served: Vec<_> = kinds
            .iter()
            .map(|id| served([id.package.group.unwrap(), id.package.version(), id.name], "things"))
            .collect();
        let document = document(&served);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let text = document.to_string();
        for part in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            // Not every kind has a list; the list of one that has none is never asked for.
            assert!(schemas.contains_key(name) || name.ends_with("List"), "{name}");
        }
    }

    #[test]
    fn a_custom_kind_brings_its_schema() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
        let mut kind = served(["batch.volcano.sh", "v1alpha1", "Job"], "jobs");
        kind.custom_schema = Some(&schema);
        let document = document(&[kind.clone()]);
        let component = &document["components"]["schemas"]["sh.volcano.batch.v1alpha1.Job"];
        assert_eq!(component["x-kubernetes-group-version-kind"][0]["kind"], "Job");
        assert_eq!(component["properties"]["spec"], json!({"type": "object"}));
        let path = "/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs/{name}";
        let media = document["paths"][path]["patch"]["requestBody"]["content"].as_object().unwrap();
        assert!(!media.contains_key("application/strategic-merge-patch+json"));
        let before = hash(std::slice::from_ref(&kind));
        kind.custom_schema = None;
        assert_ne!(before, hash(&[kind]));
    }
}
