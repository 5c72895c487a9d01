//! A Volcano Job: tasks that start together or not at all.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::podgroup::NetworkTopologySpec;
use super::task::{LifecyclePolicy, TaskSpec};
use super::{DNS_SUBDOMAIN, is_zero};
use crate::duration::GoDuration;
use crate::meta::{ObjectMeta, null_as_default, null_values_as_default};
use crate::schema;
use crate::time::Time;
use crate::words::words;

/// A batch job: tasks that start together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Job {
    #[allow(missing_docs)]
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// What the user wants.
    pub spec: JobSpec,
    /// What the controller last wrote down.
    pub status: JobStatus,
}

/// What the user wants of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    /// The scheduler that is to place the pods.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub scheduler_name: String,
    /// How many pods must be able to run for the job to run.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub min_available: i32,
    /// Volumes that every pod of the job mounts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub volumes: Vec<VolumeSpec>,
    /// The groups of equal pods.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    #[schemars(length(min = 1))]
    pub tasks: Vec<TaskSpec>,
    /// What to do when something happens to any pod of the job. A policy of the pod's task goes first.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub policies: Vec<LifecyclePolicy>,
    /// Plugins by name, each with its arguments.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_values_as_default")]
    pub plugins: BTreeMap<String, Vec<String>>,
    /// How long the user expects the job to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_estimate: Option<GoDuration>,
    /// The queue whose resources the job uses.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253), regex(pattern = DNS_SUBDOMAIN), extend("x-default" = "default"))]
    pub queue: String,
    /// How often the job may restart before it fails.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0), extend("x-default" = 3))]
    pub max_retry: i32,
    /// How long the job is kept once it has finished; without it, for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// The priority class of the gang, and of pods that name none.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub priority_class_name: String,
    /// How many pods must succeed for the job to complete; without it, the rules of each task decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_success: Option<i32>,
    /// How close in the network the pods must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_topology: Option<NetworkTopologySpec>,
}

/// A volume that every pod of the job mounts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSpec {
    /// Where containers see it; no colon.
    #[schemars(length(min = 1), regex(pattern = "^[^:]+$"), extend("x-required" = true))]
    pub mount_path: String,
    /// The claim to use, or the name of the claim to create.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub volume_claim_name: String,
    /// The claim to create.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::volume_claim")]
    pub volume_claim: Option<Value>,
    /// What else it says: the list is written back with the names of claims, and a field newer than this program survives.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

/// What the controller last wrote down about a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    /// The phase and since when.
    #[serde(deserialize_with = "null_as_default")]
    pub state: JobState,
    /// `spec.minAvailable` as it was last worked with.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub min_available: i32,
    /// Pods by phase, for each task.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub task_status_count: BTreeMap<String, TaskState>,
    /// How many pods wait.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub pending: i32,
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
    /// How many pods are going away.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub terminating: i32,
    /// How many pods are in no known phase.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub unknown: i32,
    /// Increased by every full restart; pods of an older version no longer count.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub version: i32,
    /// How often the job restarted.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub retry_count: i32,
    /// How long the job ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_duration: Option<GoDuration>,
    /// What plugins and volumes have been set up.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub controlled_resources: BTreeMap<String, String>,
    /// The phases that the job went through, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub conditions: Vec<JobCondition>,
}

/// A job's phase and since when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobState {
    /// The phase.
    #[serde(skip_serializing_if = "JobPhase::is_unset")]
    pub phase: JobPhase,
    /// Why, in one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When the phase last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// How many pods of a task are in each phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TaskState {
    /// Pods by phase.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub phase: BTreeMap<String, i32>,
}

/// A phase that the job was in, and since when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobCondition {
    /// The phase.
    #[schemars(with = "String", extend("x-required" = true))]
    pub status: JobPhase,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

words! {
    /// The phase of a job. `Unset` acts as `Pending`.
    JobPhase {
        /// Waits for resources.
        Pending = "Pending",
        /// Suspension was asked for; pods are going away.
        Aborting = "Aborting",
        /// Suspended; it can be resumed.
        Aborted = "Aborted",
        /// At least `minAvailable` pods run.
        Running = "Running",
        /// Pods are going away before the next try.
        Restarting = "Restarting",
        /// Completion was asked for; pods are going away.
        Completing = "Completing",
        /// Finished well.
        Completed = "Completed",
        /// Termination was asked for; pods are going away.
        Terminating = "Terminating",
        /// Stopped for good.
        Terminated = "Terminated",
        /// Out of retries, or too few pods succeeded.
        Failed = "Failed",
    }
}

impl JobPhase {
    /// Whether nothing will ever run again. An aborted job is not finished: it can be resumed.
    pub fn is_finished(&self) -> bool {
        matches!(self, JobPhase::Completed | JobPhase::Terminated | JobPhase::Failed)
    }
}
