//! What is looked at of PodGroups, pods and Events.

use krafla_api::{Key, Kind};
use serde::Deserialize;

use crate::progress::JobKey;

/// What is looked at of a PodGroup, a pod or an Event. It is little, because every change of every pod comes by here.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Seen {
    pub(super) metadata: Metadata,
    pub(super) spec: Spec,
    pub(super) status: Status,
    pub(super) involved_object: Owner,
    #[serde(rename = "type")]
    pub(super) event_type: String,
    pub(super) reason: String,
    pub(super) message: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) owner_references: Vec<Owner>,
}

impl Seen {
    /// Who made it. What others made than jobs is nothing to a run.
    pub(super) fn owner(&self) -> Option<JobKey> {
        let owner = self.metadata.owner_references.first()?;
        let kind = Kind::of_manifest(&owner.api_version, &owner.kind)?;
        Some((kind, Key::new(&self.metadata.namespace, &owner.name)))
    }

    pub(super) fn key(&self) -> Key {
        Key::new(&self.metadata.namespace, &self.metadata.name)
    }
}

/// Whom a pod belongs to, or an Event is about.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Owner {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
}

/// Who finds a place for a pod, where it runs, and when its containers are started again.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) scheduler_name: String,
    pub(super) node_name: String,
    pub(super) restart_policy: String,
    pub(super) active_deadline_seconds: Option<i64>,
    pub(super) init_containers: Vec<InitContainer>,
}

impl Spec {
    /// What holds for a container: a sidecar says it itself.
    pub(super) fn restart_policy(&self, container: &str) -> &str {
        let mut init = self.init_containers.iter();
        let own = init.find(|it| it.name == container).and_then(|it| it.restart_policy.as_deref());
        own.unwrap_or(&self.restart_policy)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct InitContainer {
    pub(super) name: String,
    pub(super) restart_policy: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) phase: String,
    /// When its node took it on.
    pub(super) start_time: Option<String>,
    pub(super) conditions: Vec<Condition>,
    pub(super) init_container_statuses: Vec<ContainerStatus>,
    pub(super) container_statuses: Vec<ContainerStatus>,
}

impl Status {
    /// The last condition of a type that has this status.
    pub(super) fn condition(&self, condition_type: &str, status: &str) -> Option<&Condition> {
        self.conditions.iter().rfind(|it| it.condition_type == condition_type && it.status == status)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) condition_type: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) last_transition_time: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerStatus {
    pub(super) name: String,
    pub(super) state: ContainerState,
    pub(super) last_state: ContainerState,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ContainerState {
    pub(super) waiting: Option<Waiting>,
    pub(super) terminated: Option<Terminated>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Waiting {
    pub(super) reason: String,
    pub(super) message: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Terminated {
    pub(super) exit_code: i32,
    pub(super) reason: String,
    pub(super) message: String,
}
