//! Kubernetes' own Job and CronJob (batch/v1), narrowed to what their controllers read and write.
//!
//! A Job's pod template and a CronJob's job template pass through as raw JSON: a field newer than this program survives.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::{LabelSelector, Uid, null_as_default};
use crate::time::Time;

/// Finalizer of a Job's pods: it goes once the pod has been counted.
pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Label of a pod: the name of its Job.
pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// Pod label and annotation: the index of a pod of an Indexed Job.
pub const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Pod annotation: how often pods of this index had failed before.
pub const INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
/// Pod annotation: how many failures of this index were not counted.
pub const INDEX_IGNORED_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// Environment variable: the index of a pod of an Indexed Job.
pub const COMPLETION_INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// Job annotation: the time for which a CronJob made it.
pub const CRONJOB_SCHEDULED_TIMESTAMP: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// What a Job should do.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct JobSpec {
    pub parallelism: Option<i32>,
    pub completions: Option<i32>,
    pub active_deadline_seconds: Option<i64>,
    pub selector: Option<LabelSelector>,
    pub template: Arc<Value>,
    pub backoff_limit: Option<i32>,
    pub ttl_seconds_after_finished: Option<i32>,
    pub completion_mode: Option<String>,
    pub suspend: Option<bool>,
    pub pod_failure_policy: Option<PodFailurePolicy>,
    pub backoff_limit_per_index: Option<i32>,
    pub max_failed_indexes: Option<i32>,
    pub pod_replacement_policy: Option<String>,
    pub managed_by: Option<String>,
    pub success_policy: Option<SuccessPolicy>,
}

/// What follows from the failure of a pod: the first rule that fits.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodFailurePolicy {
    /// The rules, in order.
    #[serde(deserialize_with = "null_as_default")]
    pub rules: Vec<PodFailureRule>,
}

/// One rule about failed pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct PodFailureRule {
    pub action: String,
    pub on_exit_codes: Option<OnExitCodes>,
    #[serde(deserialize_with = "null_as_default")]
    pub on_pod_conditions: Vec<OnPodCondition>,
}

/// A demand on the exit codes of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct OnExitCodes {
    pub container_name: Option<String>,
    pub operator: String,
    #[serde(deserialize_with = "null_as_default")]
    pub values: Vec<i32>,
}

/// A demand on the conditions of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct OnPodCondition {
    #[serde(rename = "type")]
    pub condition_type: String,
    pub status: String,
}

/// When an Indexed Job has succeeded although not all of its indexes have: the first rule that fits.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SuccessPolicy {
    /// The rules, in order.
    #[serde(deserialize_with = "null_as_default")]
    pub rules: Vec<SuccessRule>,
}

/// One rule about succeeded indexes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct SuccessRule {
    pub succeeded_indexes: Option<String>,
    pub succeeded_count: Option<i32>,
}

/// What a Job has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct JobStatus {
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub conditions: Vec<JobCondition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    #[serde(skip_serializing_if = "is_zero")]
    pub active: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub succeeded: i32,
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub completed_indexes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_indexes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncounted_terminated_pods: Option<UncountedTerminatedPods>,
}

/// Pods that have ended and are in no counter yet. A pod is listed here before its finalizer goes, and counted after: so
/// it is counted once, whoever dies in between.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct UncountedTerminatedPods {
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub succeeded: Vec<Uid>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub failed: Vec<Uid>,
}

/// One thing that holds of a Job, or does not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct JobCondition {
    #[serde(rename = "type")]
    pub condition_type: String,
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl JobStatus {
    /// A condition that holds.
    pub fn condition(&self, condition_type: &str) -> Option<&JobCondition> {
        let mut conditions = self.conditions.iter();
        conditions.find(|condition| condition.condition_type == condition_type && condition.status == "True")
    }

    /// The condition that says how the Job ended: `Complete` or `Failed`.
    pub fn finished(&self) -> Option<&JobCondition> {
        let ends = ["Complete", "Failed"];
        let mut conditions = self.conditions.iter();
        conditions
            .find(|condition| ends.contains(&condition.condition_type.as_str()) && condition.status == "True")
    }
}

/// When a CronJob makes which Job.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct CronJobSpec {
    pub schedule: String,
    pub time_zone: Option<String>,
    pub starting_deadline_seconds: Option<i64>,
    pub concurrency_policy: String,
    pub suspend: Option<bool>,
    pub job_template: JobTemplate,
    pub successful_jobs_history_limit: Option<i32>,
    pub failed_jobs_history_limit: Option<i32>,
}

/// The Job that a CronJob makes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct JobTemplate {
    /// Its labels and annotations.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: TemplateMeta,
    /// Its spec.
    pub spec: Arc<Value>,
}

/// The metadata that a template gives to what is made from it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct TemplateMeta {
    #[serde(deserialize_with = "null_as_default")]
    pub labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_as_default")]
    pub annotations: BTreeMap<String, String>,
}

/// What a CronJob has made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct CronJobStatus {
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub active: Vec<JobReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,
}

/// A Job that a CronJob has made and that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct JobReference {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "Uid::is_empty")]
    pub uid: Uid,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}
