//! Emptying namespaces that are going away.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::select_all;
use krafla_api::Key;
use krafla_schema::object;
use serde_json::json;

use super::namespace_report::Remaining;
use super::ownership::Ownership;
use super::{Api, DeleteOptions, Part, WriteOptions};
use crate::registry::Resource;
use crate::status::Status;
use crate::store::ResourceId;

const NAMESPACES: &str = "namespaces";

impl Api {
    /// Empties namespaces for as long as it is polled, whenever something happens that lets it go on: a namespace is
    /// deleted, or something that was left in one goes.
    pub async fn run_namespaces(self) {
        loop {
            let since = self.store().revision();
            let mut left = self.empty_namespaces().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "a namespace could not be emptied; the next change is a reason to try again");
                BTreeSet::new()
            });
            left.insert(NAMESPACES.into());
            self.changed_after(since, left, |key| self.concerns_going_namespace(key)).await;
        }
    }

    /// Waits until something happens to one of these resources that is a reason to look again.
    pub(crate) async fn changed_after(
        &self,
        revision: u64,
        resources: BTreeSet<ResourceId>,
        is_reason: impl Fn(&Key) -> bool,
    ) {
        let watchers = resources.into_iter().map(|resource| self.store().watch(&resource, revision));
        let changes = watchers.map(|watcher| {
            Box::pin(async {
                let Ok(mut watcher) = watcher else { return };
                // A forgotten history is a reason to look again as well.
                while watcher.next().await.is_ok_and(|event| !is_reason(&event.entry.key)) {}
            })
        });
        select_all(changes).await;
    }

    /// Whether a change to this object can let a namespace go: to the namespace itself, or to something in one that is
    /// going away.
    fn concerns_going_namespace(&self, key: &Key) -> bool {
        let namespace = || self.store().get(&NAMESPACES.into(), &Key::new("", &key.namespace));
        key.namespace.is_empty() || namespace().is_none_or(|namespace| namespace.meta.is_deleting)
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
        let mut remaining = Remaining::default();
        let mut left = BTreeSet::new();
        let table = self.registry().table();
        // Versions of one resource share their objects.
        let mut seen = BTreeSet::new();
        let is_first = |resource: &&Arc<Resource>| seen.insert(resource.storage.clone());
        let namespaced = table.resources().filter(|resource| resource.is_namespaced()).filter(is_first);
        // Pods go first: until they have ended they need what is mounted into them.
        let (pods, others) = namespaced.partition::<Vec<_>, _>(|resource| is_pods(resource));
        for resource in pods {
            if self.delete_all_of(resource, namespace, &mut Remaining::default()).await? {
                left.insert(resource.storage.clone());
            }
        }
        if left.is_empty() {
            for resource in others {
                if self.delete_all_of(resource, namespace, &mut remaining).await? {
                    left.insert(resource.storage.clone());
                }
            }
        }
        if left.is_empty() {
            self.let_go(namespace).await?;
        } else {
            self.report_remaining(namespace, &remaining).await?;
        }
        Ok(left)
    }

    /// Deletes the objects of one resource in a namespace, counts those that stay for now, and returns whether any do.
    async fn delete_all_of(
        &self,
        resource: &Resource,
        namespace: &str,
        remaining: &mut Remaining,
    ) -> Result<bool, Status> {
        for entry in self.store().snapshot(&resource.storage).range(Some(namespace), None) {
            if entry.meta.is_deleting {
                continue;
            }
            match self.delete(resource, &entry.key, &DeleteOptions::default()).await {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
        let mut is_any_left = false;
        for entry in self.store().snapshot(&resource.storage).range(Some(namespace), None) {
            is_any_left = true;
            remaining.count(resource, &object::finalizers(&super::parse(entry).unwrap_or_default()));
        }
        Ok(is_any_left)
    }

    /// Tells who waits for a namespace to go what keeps it.
    async fn report_remaining(&self, namespace: &str, remaining: &Remaining) -> Result<(), Status> {
        let Some(namespaces) = self.registry().find("", "v1", NAMESPACES) else { return Ok(()) };
        let (key, options) = (Key::new("", namespace), WriteOptions::default());
        let now = self.env().now();
        let reported = self.change(&namespaces, &key, Part::Status, Ownership::Kept, &options, |old| {
            let mut new = old.clone();
            remaining.report(&mut new, now);
            Ok(new)
        });
        match reported.await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
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

fn is_pods(resource: &Resource) -> bool {
    resource.storage.as_str() == "pods"
}
