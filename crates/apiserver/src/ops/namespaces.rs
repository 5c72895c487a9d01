//! Emptying namespaces that are going away.

use std::collections::BTreeSet;

use futures_util::future::select_all;
use krafla_api::Key;
use serde_json::json;

use super::ownership::Ownership;
use super::{Api, DeleteOptions, Part, WriteOptions};
use crate::object;
use crate::status::Status;
use crate::store::ResourceId;

const NAMESPACES: &str = "namespaces";

impl Api {
    /// Empties namespaces for as long as it is polled, whenever something happens that lets it go on: a namespace is
    /// deleted, or something that was left in one goes.
    pub async fn run_namespaces(self) {
        loop {
            let since = self.store().revision();
            let left = self.empty_namespaces().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "a namespace could not be emptied; the next change is a reason to try again");
                BTreeSet::new()
            });
            self.changed_after(since, left.into_iter().chain([NAMESPACES.into()]).collect()).await;
        }
    }

    /// Waits until something happens to one of these resources.
    pub(super) async fn changed_after(&self, revision: u64, resources: BTreeSet<ResourceId>) {
        let watchers = resources.into_iter().map(|resource| self.store().watch(&resource, revision));
        let changes = watchers.map(|watcher| {
            Box::pin(async move {
                // A forgotten history is a reason to look again as well.
                if let Ok(mut watcher) = watcher {
                    let _ = watcher.next().await;
                }
            })
        });
        select_all(changes).await;
    }

    /// Deletes what is in namespaces that are going away, and lets go of those that are empty. Returns the resources of
    /// which something is left.
    pub async fn empty_namespaces(&self) -> Result<BTreeSet<ResourceId>, Status> {
        let mut left = BTreeSet::new();
        for entry in self.store().snapshot(&NAMESPACES.into()).entries.values() {
            if entry.meta.is_deleting {
                left.extend(self.empty_namespace(&entry.key.name).await?);
            }
        }
        Ok(left)
    }

    async fn empty_namespace(&self, namespace: &str) -> Result<BTreeSet<ResourceId>, Status> {
        let mut left = BTreeSet::new();
        for resource in self.registry().table().resources().filter(|resource| resource.is_namespaced()) {
            for entry in self.store().snapshot(&resource.storage).range(Some(namespace), None) {
                if entry.meta.is_deleting {
                    continue;
                }
                match self.delete(resource, &entry.key, &DeleteOptions::default()).await {
                    Err(status) if status.code != 404 => return Err(status),
                    _ => {}
                }
            }
            if self.store().snapshot(&resource.storage).range(Some(namespace), None).next().is_some() {
                left.insert(resource.storage.clone());
            }
        }
        if left.is_empty() {
            self.let_go(namespace).await?;
        }
        Ok(left)
    }

    /// Takes the finalizer away that keeps a namespace while it has content.
    async fn let_go(&self, namespace: &str) -> Result<(), Status> {
        let Some(namespaces) = self.registry().find("", "v1", NAMESPACES) else { return Ok(()) };
        let (key, options) = (Key::new("", namespace), WriteOptions::default());
        let (part, managers) = (Part::Finalize, Ownership::Kept);
        let without_ours = self.change(&namespaces, &key, part, managers, &options, |old| {
            let mut new = old.clone();
            let mut finalizers = object::strings(old.pointer("/spec/finalizers"));
            finalizers.retain(|name| *name != "kubernetes");
            object::part(&mut new, "spec").insert("finalizers".into(), json!(finalizers));
            Ok(new)
        });
        match without_ours.await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }
}
