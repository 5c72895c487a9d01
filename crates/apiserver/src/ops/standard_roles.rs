//! The roles that every cluster has, and roles that are made of others.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use krafla_admission::rbac::bootstrap::{Reconciled, Standard, reconcile, standard};
use krafla_admission::rbac::{GROUP, aggregation};
use krafla_api::Key;
use krafla_schema::object;
use serde_json::{Value, json};

use super::{Api, DeleteOptions, Part, WriteOptions};
use crate::patch::Patch;
use crate::registry::Resource;
use crate::selector::LabelSelector;
use crate::status::Status;

/// Who writes the rules of aggregated roles, as `managedFields` shows it.
const AGGREGATOR: &str = "clusterrole-aggregation-controller";

impl Api {
    /// Makes the standard roles and bindings, and gives those that are there what they lack. What an administrator has
    /// added stays.
    pub async fn bootstrap_roles(&self) -> Result<(), Status> {
        // None of them needs another, so they wait for the disk together.
        try_join_all(standard().into_iter().map(|standard| self.ensure_standard(standard))).await?;
        self.aggregate_roles().await
    }

    async fn ensure_standard(&self, Standard { resource, object }: Standard) -> Result<(), Status> {
        let Some(resource) = self.registry().find(GROUP, "v1", resource) else { return Ok(()) };
        let key = Key::new(object::namespace(&object), object::name(&object));
        let options = WriteOptions::default();
        let Some(entry) = self.store().get(&resource.storage, &key) else {
            return self.create(&resource, &key.namespace, object, &options).await.map(drop);
        };
        let stored: Value = super::parse(&entry)?;
        match reconcile(&stored, &object) {
            Reconciled::Kept => Ok(()),
            Reconciled::Updated(object) => {
                self.update(&resource, &key, Part::Main, object, &options).await.map(drop)
            }
            Reconciled::Replaced(object) => {
                self.delete(&resource, &key, &DeleteOptions::default()).await?;
                self.create(&resource, &key.namespace, object, &options).await.map(drop)
            }
        }
    }

    /// Keeps the rules of aggregated roles, for as long as it is polled.
    pub async fn run_role_aggregation(self) {
        loop {
            let since = self.store().revision();
            if let Err(error) = self.aggregate_roles().await {
                tracing::warn!(%error, "a role could not be aggregated; the next change is a reason to try again");
            }
            let watched = [format!("clusterroles.{GROUP}").as_str().into()];
            self.changed_after(since, BTreeSet::from(watched), |_| true).await;
        }
    }

    /// Writes the rules of all aggregated roles that differ from those of the roles that they are made of. One may be made
    /// of another, so it goes on for as long as there is something to write, but not for ever: roles can be made of each
    /// other.
    async fn aggregate_roles(&self) -> Result<(), Status> {
        const ROUNDS_MAX: usize = 4;
        let Some(resource) = self.registry().find(GROUP, "v1", "clusterroles") else { return Ok(()) };
        for _ in 0..ROUNDS_MAX {
            if !self.aggregate_once(&resource).await? {
                break;
            }
        }
        Ok(())
    }

    async fn aggregate_once(&self, resource: &Resource) -> Result<bool, Status> {
        let entries = self.store().snapshot(&resource.storage).entries;
        let roles: Vec<Value> = entries.values().filter_map(|entry| super::parse(entry).ok()).collect();
        let mut is_changed = false;
        for role in roles.iter().filter(|role| aggregation::is_aggregated(role)) {
            let matches = |selector: &Value, other: &Value| {
                let other = entries.get(&Key::new("", object::name(other)));
                other.is_some_and(|other| LabelSelector::from_json(selector).matches(&other.meta.labels))
            };
            let rules = aggregation::rules(role, roles.iter(), matches);
            if object::at(role, "/rules").as_array().map_or(&[][..], Vec::as_slice) == rules {
                continue;
            }
            let options = WriteOptions { manager: Some(AGGREGATOR.to_owned()), ..WriteOptions::default() };
            let patch = Patch::Merge(json!({"rules": rules}));
            let key = Key::new("", object::name(role));
            match self.patch(resource, &key, Part::Main, &patch, &options).await {
                Err(status) if status.reason == "NotFound" => {}
                outcome => {
                    outcome?;
                    is_changed = true;
                }
            }
        }
        Ok(is_changed)
    }
}
