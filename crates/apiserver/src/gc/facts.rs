//! How an object, its owners and its dependents are now.

use std::sync::Arc;

use krafla_api::meta::null_as_default;
use krafla_api::{Key, OwnerReference};
use krafla_cluster::Propagation;
use serde::Deserialize;

use super::graph::Item;
use super::judge::{Deletion, Dependents, Facts, Owner};
use super::{Collector, FOREGROUND, ORPHAN};
use crate::store::{Entry, OwnerMark};

/// An object as it was judged.
pub(super) struct Judged {
    pub(super) entry: Arc<Entry>,
    pub(super) meta: OwnMeta,
    pub(super) facts: Facts,
}

/// The metadata that the collector reads and writes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct OwnMeta {
    #[serde(deserialize_with = "null_as_default")]
    pub(super) owner_references: Vec<OwnerReference>,
    #[serde(deserialize_with = "null_as_default")]
    pub(super) finalizers: Vec<String>,
}

impl OwnMeta {
    /// What cannot be read has neither owners nor finalizers: it is left alone.
    fn of(entry: &Entry) -> OwnMeta {
        #[derive(Default, Deserialize)]
        struct Object {
            metadata: OwnMeta,
        }
        serde_json::from_slice::<Object>(&entry.bytes).unwrap_or_default().metadata
    }

    fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }
}

impl Collector {
    /// All that counts for what is to become of an object; nothing if it is gone, or nothing can be due.
    pub(super) fn facts(&self, item: &Item) -> Option<Judged> {
        let entry = self.entry(item)?;
        let is_for_us =
            if entry.meta.is_deleting { entry.meta.has_finalizers } else { !entry.meta.owners.is_empty() };
        if !is_for_us {
            return None;
        }
        let meta = OwnMeta::of(&entry);
        let owner =
            |reference: &OwnerReference| (reference.uid.clone(), self.owner(&entry.key.namespace, reference));
        let deletion = deletion(&entry, &meta);
        let facts = Facts {
            deletion,
            propagation: propagation(&meta),
            owners: meta.owner_references.iter().map(owner).collect(),
            blocks_owners: entry.meta.owners.iter().any(|owner| owner.blocks_deletion),
            dependents: self.dependents_of(item, deletion),
        };
        Some(Judged { entry, meta, facts })
    }

    /// The object, unless it is gone or another one has its name.
    pub(super) fn entry(&self, item: &Item) -> Option<Arc<Entry>> {
        self.api.store().get(&item.resource, &item.key).filter(|entry| entry.uid == item.uid)
    }

    /// How the owner is that a reference in a namespace names.
    fn owner(&self, namespace: &str, reference: &OwnerReference) -> Owner {
        let table = self.api.registry().table();
        let Some(resource) = table.of_manifest(&reference.api_version, &reference.kind) else {
            return Owner::Unknowable;
        };
        if resource.is_namespaced() && namespace.is_empty() {
            return Owner::Unknowable;
        }
        let namespace = if resource.is_namespaced() { namespace } else { "" };
        let owner = self.api.store().get(&resource.storage, &Key::new(namespace, &reference.name));
        match owner.filter(|owner| owner.uid == reference.uid) {
            None => Owner::Gone,
            Some(owner) if waits_for_dependents(&owner) => Owner::WaitsForDependents,
            Some(_) => Owner::Present,
        }
    }

    /// What counts of the dependents, which can be many: it is found out only as far as the deletion makes it count.
    fn dependents_of(&self, item: &Item, deletion: Deletion) -> Dependents {
        let mut dependents =
            self.graph.dependents(&item.uid).filter_map(|dependent| self.entry(dependent)).peekable();
        let blocks = |owner: &OwnerMark| owner.uid == item.uid && owner.blocks_deletion;
        match deletion {
            Deletion::Asked | Deletion::Orphan => Dependents::default(),
            Deletion::Foreground => Dependents {
                block: dependents.any(|dependent| dependent.meta.owners.iter().any(blocks)),
                ..Dependents::default()
            },
            Deletion::NotAsked => Dependents {
                are_there: dependents.peek().is_some(),
                wait: dependents.any(|dependent| waits_for_dependents(&dependent)),
                ..Dependents::default()
            },
        }
    }
}

fn waits_for_dependents(entry: &Entry) -> bool {
    entry.meta.is_deleting && entry.meta.has_finalizers && OwnMeta::of(entry).has_finalizer(FOREGROUND)
}

fn deletion(entry: &Entry, meta: &OwnMeta) -> Deletion {
    match propagation(meta) {
        _ if !entry.meta.is_deleting => Deletion::NotAsked,
        Propagation::Background => Deletion::Asked,
        Propagation::Foreground => Deletion::Foreground,
        Propagation::Orphan => Deletion::Orphan,
    }
}

fn propagation(meta: &OwnMeta) -> Propagation {
    if meta.has_finalizer(ORPHAN) {
        Propagation::Orphan
    } else if meta.has_finalizer(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    }
}
