//! A CustomResourceDefinition, read as rows of the registry.

use std::sync::Arc;

use krafla_api::Scope;
use krafla_schema::names::NameRule;
use krafla_schema::object;
use serde_json::Value;

use super::scale::Scale;
use super::versions::Versions;
use super::{CustomSchema, Generation, Names, Registry, Resource, Subresource};
use crate::kinds::custom::Custom;
use crate::store::ResourceId;
use crate::table::Columns;

/// The order in which kube-apiserver lists them for custom resources.
const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const READ_WRITE: &[&str] = &["get", "patch", "update"];

/// Serves what a definition defines, or what is left of it; nothing if its names belong to another one.
pub fn serve(registry: &Registry, definition: &Value) {
    if !crate::kinds::crd::has_its_names(definition) {
        return withdraw(registry, definition);
    }
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    registry.replace(group, plural, resources(definition).into_iter().map(Arc::new).collect());
}

/// Serves nothing any more of what a definition defined.
pub fn withdraw(registry: &Registry, definition: &Value) {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    registry.replace(text("/spec/group"), text("/spec/names/plural"), Vec::new());
}

/// The version in which objects are stored, whether it is served or not. Objects of other versions stay as they are, so
/// that the objects of a definition can be deleted without its conversion webhook.
pub fn storage_resource(definition: &Value) -> Option<Resource> {
    let stored = storage_version(definition)?;
    Some(resource(definition, stored, &Arc::new(Versions::unconverted(definition))))
}

/// One row for each version that a definition serves.
pub fn resources(definition: &Value) -> Vec<Resource> {
    let shared = Arc::new(Versions::parse(definition));
    let served = versions(definition).iter().filter(|version| version["served"] == true);
    served.map(|version| resource(definition, version, &shared)).collect()
}

pub(super) fn storage_version(definition: &Value) -> Option<&Value> {
    versions(definition).iter().find(|version| version["storage"] == true)
}

pub(super) fn versions(definition: &Value) -> &[Value] {
    definition.pointer("/spec/versions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn resource(definition: &Value, version: &Value, versions: &Arc<Versions>) -> Resource {
    let names = names(definition, version);
    let document = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default();
    let compiled = versions.schema(&names.api_version());
    let is_namespaced = definition.pointer("/spec/scope").is_some_and(|scope| scope == "Namespaced");
    let columns =
        version.get("additionalPrinterColumns").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    Resource {
        scope: if is_namespaced { Scope::Namespaced } else { Scope::Cluster },
        storage: ResourceId::from(format!("{}.{}", names.plural, names.group).as_str()),
        stored_as: (versions.stored().into(), names.kind.clone()),
        verbs: VERBS,
        subresources: subresources(version),
        name_rule: NameRule::DnsSubdomain,
        generation: Generation::Counts,
        unconditional_update: false,
        create_on_update: false,
        returns_deleted: false,
        selectable: selectable(version),
        columns: Columns::of_crd(columns),
        rules: Arc::new(Custom::new(version, compiled.clone())),
        schema: None,
        is_custom: true,
        scale: Scale::of_version(version),
        conversion: None,
        deprecation: deprecation(&names, version),
        custom: Some(CustomSchema { document, compiled, versions: versions.clone() }),
        names,
    }
}

/// The fields by which objects of a version can be selected.
pub(super) fn selectable(version: &Value) -> Vec<String> {
    let fields = version.get("selectableFields").and_then(Value::as_array).into_iter().flatten();
    let paths = fields.filter_map(|field| field["jsonPath"].as_str());
    paths.map(|path| path.trim_start_matches('.').to_owned()).collect()
}

fn deprecation(names: &Names, version: &Value) -> Option<String> {
    let standard = || format!("{} {} is deprecated", names.api_version(), names.kind);
    let own = || version["deprecationWarning"].as_str().map(str::to_owned);
    (version["deprecated"] == true).then(|| own().unwrap_or_else(standard))
}

pub(super) fn names(definition: &Value, version: &Value) -> Names {
    let names = definition.pointer("/spec/names").unwrap_or(&Value::Null);
    let text = |field: &str| names[field].as_str().unwrap_or_default();
    let texts = |field: &str| object::strings(names.get(field)).into_iter().map(Arc::from).collect();
    Names {
        group: object::text_at(definition, "spec.group").into(),
        version: version["name"].as_str().unwrap_or_default().into(),
        kind: text("kind").into(),
        list_kind: text("listKind").into(),
        plural: text("plural").into(),
        // A definition that no server has seen yet may leave it out.
        singular: Some(text("singular"))
            .filter(|name| !name.is_empty())
            .map_or_else(|| text("kind").to_lowercase().into(), Arc::from),
        short_names: texts("shortNames"),
        categories: texts("categories"),
    }
}

fn subresources(version: &Value) -> Vec<Subresource> {
    let asked = version.get("subresources");
    let has = |name: &str| asked.and_then(|asked| asked.get(name)).is_some_and(Value::is_object);
    let mut subresources = Vec::new();
    if has("status") {
        subresources.push(Subresource { name: "status", body: None, verbs: READ_WRITE });
    }
    if has("scale") {
        let body = Some(["autoscaling", "v1", "Scale"]);
        subresources.push(Subresource { name: "scale", body, verbs: READ_WRITE });
    }
    subresources
}
