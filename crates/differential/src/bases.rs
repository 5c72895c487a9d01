//! The served kinds, and valid objects of each that the generator changes.

use std::sync::Arc;

use anyhow::{Context, Result};
use krafla_apiserver::registry::{Registry, Resource};
use serde_json::{Value, json};

const FILES: [&str; 3] = [
    include_str!("../bases/core.yaml"),
    include_str!("../bases/pods.yaml"),
    include_str!("../bases/cluster.yaml"),
];

/// Kinds whose stored objects change what happens to others: they are kept in a namespace of their own.
const INTERFERING: [&str; 2] = ["limitranges", "resourcequotas"];

/// A served kind with its valid objects.
pub(crate) struct Subject {
    pub(crate) resource: Arc<Resource>,
    /// Valid objects, each with other fields set.
    pub(crate) bases: Vec<Value>,
}

impl Subject {
    /// The name that reports use: `jobs.batch`, with the version where it is not `v1`.
    pub(crate) fn name(&self) -> String {
        let names = &self.resource.names;
        let version =
            if &*names.version == "v1" && &*names.group != "autoscaling" { "" } else { &names.version };
        [&*names.plural, version, &names.group]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(".")
    }

    /// The path of the collection. `{{ns}}` stands for the namespace.
    pub(crate) fn path(&self) -> String {
        let names = &self.resource.names;
        let root = if names.group.is_empty() {
            format!("/api/{}", names.version)
        } else {
            format!("/apis/{}/{}", names.group, names.version)
        };
        let interferes = INTERFERING.contains(&&*names.plural);
        match (self.resource.is_namespaced(), interferes) {
            (true, false) => format!("{root}/namespaces/{{{{ns}}}}/{}", names.plural),
            (true, true) => format!("{root}/namespaces/{{{{ns}}}}-b/{}", names.plural),
            (false, _) => format!("{root}/{}", names.plural),
        }
    }

    /// A valid object under a name by which it is stored. Definitions and drivers must keep the names that they have.
    pub(crate) fn stored(&self, variant: usize) -> Value {
        let mut object = self.bases.get(variant).cloned().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if name == "base" {
            object["metadata"]["name"] = json!(format!("stored-{variant}-{{{{u}}}}"));
        }
        object
    }

    /// The path of the stored object of a variant.
    pub(crate) fn stored_path(&self, variant: usize) -> String {
        let object = self.stored(variant);
        format!("{}/{}", self.path(), object["metadata"]["name"].as_str().unwrap_or_default())
    }
}

/// All kinds that there are valid objects of.
pub(crate) fn subjects() -> Result<Vec<Subject>> {
    let registry = Registry::builtin();
    let mut subjects: Vec<Subject> = Vec::new();
    for document in FILES.iter().flat_map(|file| file.split("\n---\n")) {
        let base: Value = serde_saphyr::from_str(document).with_context(|| format!("in\n{document}"))?;
        let text = |key: &str| base[key].as_str().unwrap_or_default().to_owned();
        let resource = registry.table().of_manifest(&text("apiVersion"), &text("kind")).cloned();
        let resource =
            resource.with_context(|| format!("{} {} is not served", text("apiVersion"), text("kind")))?;
        match subjects.iter_mut().find(|known| {
            known.resource.names.kind == resource.names.kind
                && known.resource.names.api_version() == resource.names.api_version()
        }) {
            Some(known) => known.bases.push(base),
            None => subjects.push(Subject { resource, bases: vec![base] }),
        }
    }
    Ok(subjects)
}
