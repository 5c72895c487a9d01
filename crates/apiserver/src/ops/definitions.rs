//! What it means that kinds themselves are objects: a definition gets its names, is served, and goes with its objects.
//!
//! ```text
//!   create, update ──> settle_definition: are its names free? ──> stored ──> registry: its kind is served
//!   delete ──> marked, held by a finalizer ──> its objects are deleted ──> the last one lets it go
//! ```

use krafla_api::Key;
use krafla_schema::object;
use serde_json::Value;

use super::ownership::Ownership;
use super::{Api, DeleteOptions, ListOptions, Part, WriteOptions, parse};
use crate::kinds::crd;
use crate::registry::{Resource, custom};
use crate::status::Status;

pub(super) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

impl Api {
    /// The definition that is about to be stored, if it is one: its kinds are served once it is.
    pub(super) fn definition_of(&self, resource: &Resource, object: &Value) -> Option<Value> {
        (resource.storage.as_str() == DEFINITIONS).then(|| object.clone())
    }

    /// Says in a definition which of its names it gets.
    pub(super) fn settle_definition(&self, resource: &Resource, object: &mut Value) -> Result<(), Status> {
        if resource.storage.as_str() != DEFINITIONS {
            return Ok(());
        }
        let others = self.definitions_of_group(object);
        crd::settle_names(object, &others, self.env().now());
        Ok(())
    }

    /// The other definitions of a definition's group.
    fn definitions_of_group(&self, definition: &Value) -> Vec<Value> {
        let group = object::at(definition, "/spec/group");
        let suffix = format!(".{}", group.as_str().unwrap_or_default());
        let stored = self.store().snapshot(&DEFINITIONS.into());
        let others = stored.entries.values().filter(|entry| {
            entry.key.name.ends_with(&suffix) && *entry.key.name != *object::name(definition)
        });
        // A stored definition that cannot be read must not block all others.
        let mut others: Vec<Value> = others.filter_map(|entry| parse(entry).ok()).collect();
        others.retain(|other| object::at(other, "/spec/group") == group);
        others
    }

    /// Nothing new is made of a kind that is going away.
    pub(super) fn check_definition_open(&self, resource: &Resource, object: &Value) -> Result<(), Status> {
        if !resource.is_custom || !self.is_definition_going(resource) {
            return Ok(());
        }
        let why = "create not allowed while custom resource definition is terminating";
        Err(Status::forbidden(&resource.qualified(), object::name(object), why))
    }

    fn is_definition_going(&self, resource: &Resource) -> bool {
        let definition = self.store().get(&DEFINITIONS.into(), &Key::new("", resource.storage.as_str()));
        definition.is_some_and(|entry| entry.meta.is_deleting)
    }

    /// Deletes the objects of a definition that is to go, and lets it go if none of them is held.
    async fn purge(&self, definition: &Value) -> Result<(), Status> {
        let Some(resource) = custom::storage_resource(definition) else { return Ok(()) };
        self.tell_of_purge(definition).await?;
        Box::pin(self.delete_collection(&resource, &ListOptions::default(), &DeleteOptions::default()))
            .await?;
        self.release_definition(&resource).await
    }

    /// Says in a definition that its objects are being deleted.
    async fn tell_of_purge(&self, definition: &Value) -> Result<(), Status> {
        let Some(definitions) =
            self.registry().find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        else {
            return Ok(());
        };
        let told = |old: &Value| {
            let mut new = old.clone();
            crd::mark_purged(&mut new, self.env().now());
            Ok(new)
        };
        let key = Key::new("", object::name(definition));
        let options = WriteOptions::default();
        let change = self.change(&definitions, &key, Part::Status, Ownership::Kept, &options, told);
        match Box::pin(change).await {
            // Somebody else has let it go.
            Err(status) if status.code == 404 => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// As [`Api::purge`]. What fails is tried again at the next start, and when an object of the kind is deleted.
    pub(crate) async fn purge_or_report(&self, definition: &Value) {
        if let Err(status) = self.purge(definition).await {
            tracing::warn!(%status, definition = object::name(definition), "objects of a deleted definition are left");
        }
    }

    /// Lets the definition of a custom kind go if that was asked for and no object of the kind is left.
    pub(super) async fn release_definition(&self, resource: &Resource) -> Result<(), Status> {
        if !self.is_definition_going(resource) || !self.store().snapshot(&resource.storage).entries.is_empty()
        {
            return Ok(());
        }
        let Some(definitions) =
            self.registry().find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        else {
            return Ok(());
        };
        let released = |old: &Value| {
            let mut new = old.clone();
            let left = object::finalizers(old).into_iter().filter(|name| *name != crd::CLEANUP);
            object::set_meta(&mut new, "finalizers", left.collect::<Vec<_>>());
            Ok(new)
        };
        let key = Key::new("", resource.storage.as_str());
        let options = WriteOptions::default();
        let change = self.change(&definitions, &key, Part::Main, Ownership::Kept, &options, released);
        match Box::pin(change).await {
            // Somebody else has let it go.
            Err(status) if status.code == 404 => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// Goes on with deletions of definitions that a stop has interrupted.
    pub(crate) async fn purge_deleted_definitions(&self) {
        let stored = self.store().snapshot(&DEFINITIONS.into()).entries;
        for entry in stored.values().filter(|entry| entry.meta.is_deleting) {
            if let Ok(definition) = parse(entry) {
                self.purge_or_report(&definition).await;
            }
        }
    }

    /// As [`Api::release_definition`], where the write that led here has succeeded and cannot fail any more.
    pub(super) async fn release_or_report(&self, resource: &Resource) {
        if let Err(status) = self.release_definition(resource).await {
            tracing::warn!(%status, definition = resource.storage.as_str(), "a definition was not let go");
        }
    }

    /// Serves what a stored definition defines.
    pub(super) fn serve_definition(&self, definition: &Value) {
        custom::serve(self.registry(), definition);
    }

    /// Serves nothing any more of what a definition defined. Who waited for its names gets them.
    pub(super) async fn withdraw_definition(&self, definition: &Value) {
        custom::withdraw(self.registry(), definition);
        let Some(definitions) =
            self.registry().find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        else {
            return;
        };
        for waiting in self.definitions_of_group(definition) {
            if !crd::has_its_names(&waiting) {
                let key = Key::new("", object::name(&waiting));
                let options = WriteOptions::default();
                let same = |old: &Value| Ok(old.clone());
                let settled = self.change(&definitions, &key, Part::Main, Ownership::Kept, &options, same);
                if let Err(status) = Box::pin(settled).await {
                    tracing::warn!(definition = %key, %status, "names that became free were not given");
                }
            }
        }
    }
}
