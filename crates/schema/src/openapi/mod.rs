//! OpenAPI v3 documents, one per group and version: what `kubectl explain` prints and `kubectl apply` asks before it
//! patches.
//!
//! ```text
//!   /openapi/v3                   an index of documents, each with a hash that changes when the document does
//!   /openapi/v3/apis/batch/v1     paths: what can be done with which kind; components: the schemas of the types
//! ```
//!
//! Schemas follow the rules of Kubernetes' own generator, without its descriptions. Kinds of CRDs bring their schemas.

mod components;
mod descriptions;
pub mod gnostic;
mod paths;
pub mod v2;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::table::{META_V1, builtin};
use components::Components;

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
        for (path, item) in paths::of(kind) {
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

/// The documents that were asked for, as they are sent. Most servers never make most of them.
#[derive(Default)]
pub struct Documents {
    /// By path, with the hash of what each was made from.
    made: Mutex<HashMap<String, (String, Bytes)>>,
}

impl Documents {
    /// The document at `path`, made anew only if what it shows has changed.
    pub fn get(&self, path: &str, served: &[Served<'_>]) -> Bytes {
        let hash = hash(served);
        let mut made = self.made.lock();
        if let Some((of, document)) = made.get(path)
            && *of == hash
        {
            return document.clone();
        }
        let document = Bytes::from(document(served).to_string());
        made.insert(path.to_owned(), (hash, document.clone()));
        document
    }

    /// Forgets the documents of groups and versions that are no longer served.
    pub fn retain(&self, is_served: impl Fn(&str) -> bool) {
        self.made.lock().retain(|path, _| is_served(path));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

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
        let document = document(&[kind]);
        let component = &document["components"]["schemas"]["sh.volcano.batch.v1alpha1.Job"];
        assert_eq!(component["x-kubernetes-group-version-kind"][0]["kind"], "Job");
        assert_eq!(component["properties"]["spec"], json!({"type": "object"}));
        let path = "/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs/{name}";
        let media = document["paths"][path]["patch"]["requestBody"]["content"].as_object().unwrap();
        assert!(!media.contains_key("application/strategic-merge-patch+json"));
    }

    #[test]
    fn a_document_is_made_once_until_what_it_shows_changes() {
        let documents = Documents::default();
        let kind = served(["batch", "v1", "Job"], "jobs");
        let get = |kinds: &[Served<'_>]| documents.get("apis/batch/v1", kinds);
        let first = get(std::slice::from_ref(&kind));
        assert_eq!(get(std::slice::from_ref(&kind)).as_ptr(), first.as_ptr());
        let more = [kind, served(["batch", "v1", "CronJob"], "cronjobs")];
        assert!(get(&more).len() > first.len());
    }
}
