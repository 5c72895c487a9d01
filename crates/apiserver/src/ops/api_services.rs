//! Keeps an APIService for each group and version that this server answers for itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::select;
use krafla_api::Key;
use krafla_schema::object;
use serde_json::{Value, json};

use super::{Api, DeleteOptions, WriteOptions};
use crate::registry::Table;
use crate::status::Status;

pub(crate) const GROUP: &str = "apiregistration.k8s.io";
pub(crate) const SERVICES: &str = "apiservices";
/// Says that the server keeps the object: at its start, or for as long as a definition asks for it.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
const ON_START: &str = "onstart";
const ALWAYS: &str = "true";
/// The order of groups that definitions make.
const CUSTOM_PRIORITY: (i64, i64) = (1_000, 100);
const RETRY: Duration = Duration::from_secs(1);

impl Api {
    /// Keeps the APIServices for as long as it is polled.
    pub async fn run_api_services(self) {
        loop {
            let since = self.store().revision();
            let mut served = self.registry().changes();
            match self.keep_api_services().await {
                Ok(()) => {
                    let own = format!("{SERVICES}.{GROUP}");
                    let own = BTreeSet::from([own.as_str().into()]);
                    let stored = self.changed_after(since, own, |_| true);
                    select(Box::pin(stored), Box::pin(served.changed())).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "APIServices cannot be written; retrying");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Creates what is missing and removes what no definition asks for any more.
    pub async fn keep_api_services(&self) -> Result<(), Status> {
        let Some(resource) = self.registry().find(GROUP, "v1", SERVICES) else { return Ok(()) };
        let desired = desired(&self.registry().table());
        let snapshot = self.store().snapshot(&resource.storage);
        for (name, service) in &desired {
            if snapshot.entries.contains_key(&Key::new("", name)) {
                continue;
            }
            match self.create(&resource, "", service.clone(), &WriteOptions::default()).await {
                Err(status) if &*status.reason != "AlreadyExists" => return Err(status),
                _ => {}
            }
        }
        for entry in snapshot.entries.values() {
            let is_managed = entry.meta.labels.get(MANAGED) == Some(ALWAYS);
            if is_managed && !desired.contains_key(&*entry.key.name) {
                match self.delete(&resource, &entry.key, &DeleteOptions::default()).await {
                    Err(status) if status.code != 404 => return Err(status),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// The APIServices of everything that is served here, by name.
fn desired(table: &Table) -> BTreeMap<String, Value> {
    let mut desired = BTreeMap::new();
    for (group, versions) in table.groups().filter(|(group, _)| *group != GROUP) {
        for version in versions {
            let is_custom = version.resources.values().all(|resource| resource.is_custom);
            let (group_priority, version_priority) =
                if is_custom { CUSTOM_PRIORITY } else { priorities(group, &version.name) };
            let name = format!("{}.{group}", version.name);
            let mut spec = json!({
                "version": &*version.name,
                "groupPriorityMinimum": group_priority, "versionPriority": version_priority,
            });
            if !group.is_empty() {
                object::set(&mut spec, "group", group);
            }
            let labels = json!({MANAGED: if is_custom { ALWAYS } else { ON_START }});
            desired.insert(name.clone(), json!({"metadata": {"name": name, "labels": labels}, "spec": spec}));
        }
    }
    desired
}

/// The order of a built-in group among the others, and of one of its versions.
fn priorities(group: &str, version: &str) -> (i64, i64) {
    let of_group = match group {
        "" => 18_000,
        "apps" => 17_800,
        "events.k8s.io" => 17_750,
        "authentication.k8s.io" => 17_700,
        "authorization.k8s.io" => 17_600,
        "autoscaling" => 17_500,
        "batch" => 17_400,
        "certificates.k8s.io" => 17_300,
        "networking.k8s.io" => 17_200,
        "policy" => 17_100,
        "rbac.authorization.k8s.io" => 17_000,
        "storage.k8s.io" => 16_800,
        "admissionregistration.k8s.io" | "apiextensions.k8s.io" => 16_700,
        "scheduling.k8s.io" => 16_600,
        "coordination.k8s.io" => 16_500,
        "node.k8s.io" => 16_300,
        "discovery.k8s.io" | "resource.k8s.io" => 16_200,
        "flowcontrol.apiserver.k8s.io" => 16_100,
        _ => CUSTOM_PRIORITY.0,
    };
    let of_version = match (group, version) {
        ("", _) => 1,
        ("autoscaling", "v2") => 30,
        ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", _) => 21,
        _ => 15,
    };
    (of_group, of_version)
}
