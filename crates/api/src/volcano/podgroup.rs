//! A PodGroup: pods that the scheduler places together or not at all.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DNS_SUBDOMAIN, ResourceList, is_zero};
use crate::meta::{LabelSelector, ObjectMeta, null_as_default};
use crate::schema;
use crate::time::Time;
use crate::words::words;

/// Pods that are placed together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PodGroup {
    #[allow(missing_docs)]
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// What the gang needs.
    pub spec: PodGroupSpec,
    /// What the scheduler says of it.
    pub status: PodGroupStatus,
}

/// What a gang needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodGroupSpec {
    /// How many pods must be placed at once.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub min_member: i32,
    /// How many pods of each task must be placed at once.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub min_task_member: BTreeMap<String, i32>,
    /// The queue whose resources the gang uses.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253), regex(pattern = DNS_SUBDOMAIN), extend("x-default" = "default"))]
    pub queue: String,
    /// The priority class of the gang.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub priority_class_name: String,
    /// What must be free in the queue before pods are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_resources: Option<ResourceList>,
    /// How close in the network the pods must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_topology: Option<NetworkTopologySpec>,
    /// How the gang is divided into smaller gangs.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub sub_group_policy: Vec<SubGroupPolicy>,
}

/// How close in the network pods must be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkTopologySpec {
    /// Whether it is a must (`hard`) or a wish (`soft`).
    #[serde(skip_serializing_if = "NetworkTopologyMode::is_unset")]
    #[schemars(extend("x-default" = "hard"))]
    pub mode: NetworkTopologyMode,
    /// The highest tier whose bounds the pods may not cross, by number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub highest_tier_allowed: Option<i64>,
    /// The same, by name. Only one of the two may be given.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub highest_tier_name: String,
}

/// How pods of a gang form smaller gangs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SubGroupPolicy {
    /// The policy's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub name: String,
    /// How close in the network the pods of one sub-group must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_topology: Option<NetworkTopologySpec>,
    /// How many pods form one sub-group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("x-default" = 1))]
    pub sub_group_size: Option<i32>,
    /// How many sub-groups must be placed at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("x-default" = 0))]
    pub min_sub_groups: Option<i32>,
    /// Which pods of the gang this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// Pods with equal values of these labels form one sub-group.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_label_keys: Vec<String>,
}

/// What the scheduler says of a gang.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodGroupStatus {
    /// The phase.
    #[serde(skip_serializing_if = "PodGroupPhase::is_unset")]
    pub phase: PodGroupPhase,
    /// What the scheduler found, by type.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub conditions: Vec<PodGroupCondition>,
    /// How many pods run.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub running: i32,
    /// How many pods succeeded.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub succeeded: i32,
    /// How many pods failed.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub failed: i32,
}

/// What the scheduler found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodGroupCondition {
    /// `Unschedulable` or `Scheduled`.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The scheduler's round that found it.
    #[serde(rename = "transitionID", skip_serializing_if = "String::is_empty")]
    pub transition_id: String,
    /// When it last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

words! {
    /// The phase of a gang.
    PodGroupPhase {
        /// Waits for room in its queue.
        Pending = "Pending",
        /// Placed.
        Running = "Running",
        /// Part of it runs and the rest cannot be placed.
        Unknown = "Unknown",
        /// Its queue has room: pods may be made.
        Inqueue = "Inqueue",
        /// All its pods ended.
        Completed = "Completed",
    }
}

words! {
    /// Whether closeness is a must or a wish.
    NetworkTopologyMode {
        Hard = "hard",
        Soft = "soft",
    }
}
