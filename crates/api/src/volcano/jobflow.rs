//! A JobFlow: jobs that wait for each other, each made from a JobTemplate.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_zero;
use super::job::{JobPhase, JobSpec, TaskState};
use crate::duration::GoDuration;
use crate::meta::{ObjectMeta, null_as_default};
use crate::schema;
use crate::time::Time;
use crate::words::words;

/// A job to be made by flows. It does nothing by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobTemplate {
    #[allow(missing_docs)]
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// What the job is.
    pub spec: JobSpec,
    /// What was made of it.
    pub status: JobTemplateStatus,
}

/// What was made of a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobTemplateStatus {
    /// The jobs that were made of it.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub job_depends_on_list: Vec<String>,
}

/// Jobs that wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobFlow {
    #[allow(missing_docs)]
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// Which jobs, and which waits for which.
    pub spec: JobFlowSpec,
    /// How they are doing.
    pub status: JobFlowStatus,
}

/// Which jobs, and which waits for which.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobFlowSpec {
    /// One job each.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub flows: Vec<Flow>,
    /// Whether the jobs stay (`retain`) or go (`delete`) once all have completed.
    #[serde(skip_serializing_if = "JobRetainPolicy::is_unset")]
    pub job_retain_policy: JobRetainPolicy,
}

/// One job of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Flow {
    /// The JobTemplate to make it from.
    #[schemars(length(min = 1), extend("x-required" = true))]
    pub name: String,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<FlowDependsOn>,
    /// What to change in the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<FlowPatch>,
}

/// What a job of a flow waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FlowDependsOn {
    /// Other jobs of the flow, which must complete first.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub targets: Vec<String>,
    /// Signs by which those jobs count as ready before they complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
}

/// What to change in a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FlowPatch {
    /// The fields to replace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_spec: Option<JobSpec>,
}

/// Signs by which a job counts as ready.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Probe {
    /// Tasks that answer HTTP requests.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub http_get_list: Vec<HttpGet>,
    /// Tasks that accept connections.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub tcp_socket_list: Vec<TcpSocket>,
    /// Tasks whose pods are in a phase.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub task_status_list: Vec<TaskStatus>,
}

/// A task that answers HTTP requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpGet {
    /// The task.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub task_name: String,
    /// The path to ask for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The port to ask at.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 65535))]
    pub port: i32,
    /// A header to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_header: Option<HttpHeader>,
}

/// A header of an HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HttpHeader {
    /// Its name.
    #[schemars(extend("x-required" = true))]
    pub name: String,
    /// Its value.
    #[schemars(extend("x-required" = true))]
    pub value: String,
}

/// A task that accepts connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpSocket {
    /// The task.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub task_name: String,
    /// The port to connect to.
    #[schemars(range(min = 0, max = 65535), extend("x-required" = true))]
    pub port: i32,
}

/// A task whose pods are in a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskStatus {
    /// The task.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub task_name: String,
    /// The phase.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub phase: String,
}

/// How the jobs of a flow are doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobFlowStatus {
    /// Jobs that wait.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub pending_jobs: Vec<String>,
    /// Jobs that run.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub running_jobs: Vec<String>,
    /// Jobs that failed.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub failed_jobs: Vec<String>,
    /// Jobs that completed.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub completed_jobs: Vec<String>,
    /// Jobs that were terminated.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub terminated_jobs: Vec<String>,
    /// Jobs in any other phase. The spelling is the API's.
    #[serde(rename = "unKnowJobs")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub unknown_jobs: Vec<String>,
    /// Every job that was ever seen.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub job_status_list: Vec<FlowJobStatus>,
    /// More on each job, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub conditions: BTreeMap<String, FlowCondition>,
    /// The flow's phase.
    #[serde(deserialize_with = "null_as_default")]
    pub state: JobFlowState,
}

/// How one job of a flow is doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FlowJobStatus {
    /// The job's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its phase.
    #[serde(skip_serializing_if = "JobPhase::is_unset")]
    #[schemars(with = "String")]
    pub state: JobPhase,
    /// When it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timestamp: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_timestamp: Option<Time>,
    /// How often it restarted.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub restart_count: i32,
    /// The phases that it went through.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub running_histories: Vec<JobRunningHistory>,
}

/// A phase that a job went through.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JobRunningHistory {
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timestamp: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_timestamp: Option<Time>,
    /// The phase.
    #[serde(skip_serializing_if = "JobPhase::is_unset")]
    #[schemars(with = "String")]
    pub state: JobPhase,
}

/// More on one job of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FlowCondition {
    /// Its phase.
    #[serde(skip_serializing_if = "JobPhase::is_unset")]
    #[schemars(with = "String")]
    pub phase: JobPhase,
    /// When it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_time: Option<Time>,
    /// How long it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_duration: Option<GoDuration>,
    /// Its pods by phase, for each task.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub task_status_count: BTreeMap<String, TaskState>,
}

/// The phase of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobFlowState {
    /// The phase.
    #[serde(skip_serializing_if = "JobFlowPhase::is_unset")]
    pub phase: JobFlowPhase,
}

words! {
    /// The phase of a flow.
    JobFlowPhase {
        /// All its jobs completed.
        Succeed = "Succeed",
        /// It is going away.
        Terminating = "Terminating",
        /// One of its jobs failed or was terminated.
        Failed = "Failed",
        /// Some of its jobs run or wait for others.
        Running = "Running",
        /// None of its jobs runs yet.
        Pending = "Pending",
    }
}

words! {
    /// What becomes of the jobs of a flow once all have completed.
    JobRetainPolicy {
        Retain = "retain",
        Delete = "delete",
    }
}
