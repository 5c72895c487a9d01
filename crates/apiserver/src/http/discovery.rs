//! Discovery: what is served, as clients ask for it before anything else.
//!
//! There are two forms. The old one has a document per group and version; the new one ("aggregated") says everything in
//! two answers, and `kubectl` prefers it.

use aws_lc_rs::digest;
use http::header::{ETAG, HeaderValue};
use krafla_schema::object::set;
use serde_json::{Value, json};

use super::body::{self, Reply};
use crate::registry::{Resource, Subresource, Table, Version};

/// The media type of the new form.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether a client wants the new form.
pub(super) fn is_aggregated(accept: Option<&str>) -> bool {
    let wishes = accept.unwrap_or_default().split(',');
    wishes.map(|wish| wish.replace(' ', "")).any(|wish| {
        let has = |part: &str| wish.split(';').any(|candidate| candidate == part);
        AGGREGATED.split(';').all(has)
    })
}

/// `/api` and `/apis` in the new form.
pub(super) fn groups_in_full(table: &Table, is_core: bool, others: Vec<Value>) -> Reply {
    let groups = table.groups().filter(|(name, _)| name.is_empty() == is_core);
    let mut items: Vec<Value> = groups.map(|(name, versions)| group_in_full(name, versions)).collect();
    items.extend(others);
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": items,
    });
    let list = list.to_string();
    let tag = digest::digest(&digest::SHA256, list.as_bytes());
    let tag: String = tag.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    let mut reply = body::full(200, AGGREGATED, list);
    // With it a client can ask whether anything has changed.
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        reply.headers_mut().insert(ETAG, tag);
    }
    reply
}

fn group_in_full(name: &str, versions: &[Version]) -> Value {
    let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
    let versions = versions.iter().map(|version| {
        let resources: Vec<Value> =
            version.resources.values().map(|resource| resource_in_full(resource)).collect();
        json!({"version": version.name.as_ref(), "freshness": "Current", "resources": resources})
    });
    json!({"metadata": metadata, "versions": versions.collect::<Vec<Value>>()})
}

fn resource_in_full(resource: &Resource) -> Value {
    let names = &resource.names;
    let mut shown = json!({
        "resource": names.plural.as_ref(),
        "responseKind": response_kind(resource, None),
        "scope": if resource.is_namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": names.singular.as_ref(),
        "verbs": resource.verbs,
    });
    add_names(&mut shown, resource);
    if !resource.subresources.is_empty() {
        let mut subresources: Vec<&Subresource> = resource.subresources.iter().collect();
        subresources.sort_by_key(|subresource| subresource.name);
        let subresources = subresources.into_iter().map(|subresource| {
            json!({
                "subresource": subresource.name,
                "responseKind": response_kind(resource, subresource.body),
                "verbs": subresource.verbs,
            })
        });
        set(&mut shown, "subresources", subresources.collect::<Vec<Value>>());
    }
    shown
}

/// What kind an answer has. Built-in kinds leave out the group and version in which they are listed anyway.
fn response_kind(resource: &Resource, body: Option<[&str; 3]>) -> Value {
    let names = &resource.names;
    let own = [names.group.as_ref(), names.version.as_ref(), names.kind.as_ref()];
    let [group, version, kind] = body.unwrap_or(own);
    if [group, version] == [own[0], own[1]] && !resource.is_custom {
        return json!({"group": "", "version": "", "kind": kind});
    }
    json!({"group": group, "version": version, "kind": kind})
}

fn add_names(shown: &mut Value, resource: &Resource) {
    let names = &resource.names;
    for (field, words) in [("shortNames", &names.short_names), ("categories", &names.categories)] {
        if !words.is_empty() {
            set(shown, field, words.iter().map(|word| Value::from(&**word)).collect::<Vec<Value>>());
        }
    }
}

/// `/api` in the old form.
pub(super) fn core_versions(table: &Table, address: &str) -> Value {
    let versions: Vec<&str> = table.versions("").iter().map(|version| &*version.name).collect();
    let addresses = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]);
    json!({"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": addresses})
}

/// `/apis` in the old form.
pub(super) fn groups(table: &Table, others: Vec<Value>) -> Value {
    let groups = table.groups().filter(|(name, _)| !name.is_empty());
    let mut groups: Vec<Value> = groups.map(|(name, versions)| group(name, versions)).collect();
    groups.extend(others);
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`; `None` if there is no such group.
pub(super) fn one_group(table: &Table, name: &str) -> Option<Value> {
    let versions = table.versions(name);
    if versions.is_empty() || name.is_empty() {
        return None;
    }
    let mut shown = group(name, versions);
    set(&mut shown, "kind", "APIGroup");
    set(&mut shown, "apiVersion", "v1");
    Some(shown)
}

/// `/apis/GROUP` of a group that is listed in the old form.
pub(super) fn named(groups: &[Value], name: &str) -> Option<Value> {
    let mut shown = groups.iter().find(|group| group["name"] == name)?.clone();
    set(&mut shown, "kind", "APIGroup");
    set(&mut shown, "apiVersion", "v1");
    Some(shown)
}

fn group(name: &str, versions: &[Version]) -> Value {
    let shown = |version: &Version| json!({"groupVersion": format!("{name}/{}", version.name), "version": version.name.as_ref()});
    let preferred = versions.first().map(shown).unwrap_or_default();
    let versions: Vec<Value> = versions.iter().map(shown).collect();
    json!({"name": name, "versions": versions, "preferredVersion": preferred})
}

/// `/api/v1` or `/apis/GROUP/VERSION`; `None` if there is no such version.
pub(super) fn resources(table: &Table, group: &str, version: &str) -> Option<Value> {
    let found = table.versions(group).iter().find(|candidate| *candidate.name == *version)?;
    let mut resources = Vec::new();
    for resource in found.resources.values() {
        resources.push(one_resource(resource));
        let mut below: Vec<&Subresource> = resource.subresources.iter().collect();
        // What is built in is listed by name; a definition's order is fixed.
        if !resource.is_custom {
            below.sort_by(|a, b| a.name.cmp(b.name));
        }
        resources.extend(below.into_iter().map(|subresource| one_subresource(resource, subresource)));
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
    // The core group's document is older than the habit of saying its version.
    if !group.is_empty() {
        set(&mut list, "apiVersion", "v1");
    }
    Some(list)
}

fn one_resource(resource: &Resource) -> Value {
    let names = &resource.names;
    let mut shown = json!({
        "name": names.plural.as_ref(), "singularName": names.singular.as_ref(),
        "namespaced": resource.is_namespaced(), "kind": names.kind.as_ref(), "verbs": resource.verbs,
    });
    add_names(&mut shown, resource);
    if resource.is_kept() {
        set(&mut shown, "storageVersionHash", storage_hash(resource));
    }
    shown
}

fn one_subresource(resource: &Resource, subresource: &Subresource) -> Value {
    let names = &resource.names;
    let mut shown = json!({
        "name": format!("{}/{}", names.plural, subresource.name), "singularName": "",
        "namespaced": resource.is_namespaced(), "kind": names.kind.as_ref(), "verbs": subresource.verbs,
    });
    if let Some([group, version, kind]) = subresource.body {
        set(&mut shown, "kind", kind);
        if *group != *names.group {
            set(&mut shown, "group", group);
            set(&mut shown, "version", version);
        }
    }
    shown
}

/// Tells in which version objects are stored: the beginning of a digest of its name.
fn storage_hash(resource: &Resource) -> String {
    use base64::Engine;
    let (api_version, kind) = &resource.stored_as;
    // The core group has an empty name.
    let slash = if api_version.contains('/') { "" } else { "/" };
    let digest = digest::digest(&digest::SHA256, format!("{slash}{api_version}/{kind}").as_bytes());
    let beginning: Vec<u8> = digest.as_ref().iter().copied().take(8).collect();
    base64::engine::general_purpose::STANDARD.encode(beginning)
}

#[cfg(test)]
mod tests {
    use crate::registry::Registry;

    #[test]
    fn the_hash_of_a_storage_version_is_kubernetes_own() {
        let registry = Registry::builtin();
        let hash = |group: &str, version: &str, plural: &str| {
            super::storage_hash(&registry.find(group, version, plural).unwrap())
        };
        assert_eq!(hash("", "v1", "pods"), "xPOwRZ+Yhw8=");
        assert_eq!(hash("batch", "v1", "jobs"), "mudhfqk/qZY=");
    }
}
