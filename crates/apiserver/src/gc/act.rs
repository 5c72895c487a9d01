//! Doing what was judged.

use std::collections::BTreeSet;

use futures_util::{StreamExt, TryStreamExt};
use krafla_api::{OwnerReference, Uid};
use krafla_cluster::Propagation;
use serde_json::{Value, json};

use super::facts::Judged;
use super::graph::Item;
use super::judge::Verdict;
use super::{AT_ONCE, Collector, Deed, FOREGROUND, NOT_FOUND, ORPHAN};
use crate::ops::{DeleteOptions, Part, WriteOptions};
use crate::patch::Patch;
use crate::status::Status;

impl Collector {
    /// Does what was judged, unless the object has changed since.
    pub(super) async fn act(&self, item: &Item, judged: &Judged, verdict: &Verdict) -> Result<(), Status> {
        match verdict {
            Verdict::Keep => Ok(()),
            Verdict::Delete(propagation) => self.delete(item, judged, *propagation).await,
            Verdict::Disown(owners) => self.disown(item, judged, owners).await,
            Verdict::Unblock => {
                let unblocked = judged.meta.owner_references.iter().cloned();
                let unblocked =
                    unblocked.map(|owner| OwnerReference { block_owner_deletion: Some(false), ..owner });
                self.set_owners(item, judged, unblocked.collect()).await
            }
            Verdict::EndWaiting => self.remove_finalizer(item, judged, FOREGROUND).await,
            Verdict::OrphanDependents => {
                self.orphan_dependents(item).await?;
                self.remove_finalizer(item, judged, ORPHAN).await
            }
        }
    }

    async fn delete(&self, item: &Item, judged: &Judged, propagation: Propagation) -> Result<(), Status> {
        let table = self.api.registry().table();
        let Some(resource) = table.of_storage(&item.resource) else { return Ok(()) };
        let options = DeleteOptions {
            uid: Some(item.uid.to_string()),
            revision: Some(judged.entry.revision.to_string()),
            propagation: Some(propagation),
            ..DeleteOptions::default()
        };
        self.api.delete(resource, &item.key, &options).await.map(drop)
    }

    async fn orphan_dependents(&self, item: &Item) -> Result<(), Status> {
        let dependents = self.graph.dependents(&item.uid).cloned();
        let orphaned = futures_util::stream::iter(dependents).map(async |dependent| {
            let Some(judged) = self.facts(&dependent) else { return Ok(()) };
            match self.disown(&dependent, &judged, std::slice::from_ref(&item.uid)).await {
                Err(status) if status.code == NOT_FOUND => Ok(()),
                outcome => outcome,
            }
        });
        orphaned.buffered(AT_ONCE).try_collect::<()>().await
    }

    async fn disown(&self, item: &Item, judged: &Judged, owners: &[Uid]) -> Result<(), Status> {
        let owners: BTreeSet<&Uid> = owners.iter().collect();
        let kept = judged.meta.owner_references.iter().filter(|owner| !owners.contains(&owner.uid));
        self.set_owners(item, judged, kept.cloned().collect()).await
    }

    async fn set_owners(
        &self,
        item: &Item,
        judged: &Judged,
        owners: Vec<OwnerReference>,
    ) -> Result<(), Status> {
        self.patch(item, judged, json!({ "ownerReferences": owners })).await
    }

    async fn remove_finalizer(&self, item: &Item, judged: &Judged, name: &str) -> Result<(), Status> {
        let kept: Vec<&String> =
            judged.meta.finalizers.iter().filter(|finalizer| *finalizer != name).collect();
        self.patch(item, judged, json!({ "finalizers": kept })).await
    }

    async fn patch(&self, item: &Item, judged: &Judged, mut metadata: Value) -> Result<(), Status> {
        let table = self.api.registry().table();
        let Some(resource) = table.of_storage(&item.resource) else { return Ok(()) };
        krafla_schema::object::set(&mut metadata, "resourceVersion", judged.entry.revision.to_string());
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let options = WriteOptions { uid: Some(item.uid.clone()), ..WriteOptions::default() };
        self.api.patch(resource, &item.key, Part::Main, &patch, &options).await.map(drop)
    }
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.resource, self.key)
    }
}

impl std::fmt::Display for Deed {
    /// What was done, to what, and how that ended.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Deed { item, verdict, outcome } = self;
        match verdict {
            Verdict::Keep => write!(f, "keep {item}"),
            Verdict::Delete(Propagation::Background) => write!(f, "delete {item}"),
            Verdict::Delete(Propagation::Foreground) => write!(f, "delete {item} in the foreground"),
            Verdict::Delete(Propagation::Orphan) => write!(f, "delete {item}, orphaning its dependents"),
            Verdict::Disown(owners) => {
                let owners: Vec<&str> = owners.iter().map(|uid| &*uid.0).collect();
                write!(f, "disown {item} of {}", owners.join(", "))
            }
            Verdict::Unblock => write!(f, "unblock the owners of {item}"),
            Verdict::EndWaiting => write!(f, "let go of {item}: its dependents are gone"),
            Verdict::OrphanDependents => write!(f, "let go of {item}: its dependents are orphaned"),
        }?;
        match outcome {
            Ok(()) => Ok(()),
            Err(status) => write!(f, " -> {}: {}", status.code, status.message),
        }
    }
}
