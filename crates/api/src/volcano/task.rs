//! A task: one group of equal pods within a job, and the policies of both.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::podgroup::NetworkTopologySpec;
use super::{DNS_LABEL, is_zero};
use crate::duration::GoDuration;
use crate::meta::null_as_default;
use crate::schema;
use crate::words::words;

/// A group of equal pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskSpec {
    /// The task's name; part of its pods' names.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63), regex(pattern = DNS_LABEL))]
    pub name: String,
    /// How many pods.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub replicas: i32,
    /// How many of them must be able to run for the job to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_available: Option<i32>,
    /// The pod to make copies of.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "schema::pod_template")]
    pub template: Value,
    /// What to do when something happens to a pod of this task.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub policies: Vec<LifecyclePolicy>,
    /// How the pods must sit on a node's NUMA cells.
    #[serde(skip_serializing_if = "TopologyPolicy::is_unset")]
    pub topology_policy: TopologyPolicy,
    /// How often containers may restart in place before the task counts as failed.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub max_retry: i32,
    /// The tasks that must be ready first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<DependsOn>,
    /// How the pods are divided into partitions that restart as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_policy: Option<PartitionPolicySpec>,
}

/// The tasks that must be ready first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DependsOn {
    /// Their names.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub name: Vec<String>,
    /// Whether `any` or `all` of them must be ready; all, unless it says any.
    #[serde(skip_serializing_if = "Iteration::is_unset")]
    #[schemars(with = "String")]
    pub iteration: Iteration,
}

/// How the pods of a task are divided into partitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PartitionPolicySpec {
    /// How many partitions.
    #[schemars(range(min = 1), extend("x-required" = true))]
    pub total_partitions: i32,
    /// How many pods in each.
    #[schemars(range(min = 1), extend("x-required" = true))]
    pub partition_size: i32,
    /// How many partitions must be able to run for the job to run.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0), extend("x-default" = 0))]
    pub min_partitions: i32,
    /// How close in the network the pods of one partition must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_topology: Option<NetworkTopologySpec>,
}

impl PartitionPolicySpec {
    /// The partition that a pod of this index belongs to.
    pub fn partition_of(&self, index: i32) -> i32 {
        index.checked_div(self.partition_size).unwrap_or(0)
    }
}

/// What to do when something happens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LifecyclePolicy {
    /// What to do.
    #[serde(skip_serializing_if = "Action::is_unset")]
    #[schemars(with = "String")]
    pub action: Action,
    /// What happens.
    #[serde(skip_serializing_if = "Event::is_unset")]
    pub event: Event,
    /// Any of these happens.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub events: Vec<Event>,
    /// A container ends with this code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long it must have been so before anything is done; without it, nothing waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
}

impl LifecyclePolicy {
    /// Everything that this policy acts upon: `events`, then `event`.
    pub fn all_events(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().chain(Some(&self.event)).filter(|event| !event.is_unset())
    }
}

words! {
    /// What can be done to a job or a queue.
    Action {
        AbortJob = "AbortJob",
        RestartJob = "RestartJob",
        RestartTask = "RestartTask",
        RestartPod = "RestartPod",
        RestartPartition = "RestartPartition",
        TerminateJob = "TerminateJob",
        CompleteJob = "CompleteJob",
        ResumeJob = "ResumeJob",
        SyncJob = "SyncJob",
        EnqueueJob = "EnqueueJob",
        SyncQueue = "SyncQueue",
        OpenQueue = "OpenQueue",
        CloseQueue = "CloseQueue",
    }
}

words! {
    /// What can happen to a job.
    Event {
        Any = "*",
        PodPending = "PodPending",
        PodRunning = "PodRunning",
        PodFailed = "PodFailed",
        PodEvicted = "PodEvicted",
        /// The gang lost members and cannot be whole again.
        JobUnknown = "Unknown",
        TaskCompleted = "TaskCompleted",
        OutOfSync = "OutOfSync",
        CommandIssued = "CommandIssued",
        JobUpdated = "JobUpdated",
        TaskFailed = "TaskFailed",
    }
}

words! {
    /// How a task waits for several others.
    Iteration {
        Any = "any",
        All = "all",
    }
}

words! {
    /// How pods must sit on a node's NUMA cells.
    TopologyPolicy {
        None = "none",
        BestEffort = "best-effort",
        Restricted = "restricted",
        SingleNumaNode = "single-numa-node",
    }
}
