//! Volcano CronJobs as they are observed. The job's spec stays raw JSON: a field newer than this program reaches the job.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_api::meta::null_as_default;
use krafla_api::volcano::{ConcurrencyPolicy, CronJobStatus};
use serde::Deserialize;
use serde_json::Value;

/// A Volcano CronJob.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VcCronJob {
    /// What the user wants.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: Spec,
    /// What was last written down.
    #[serde(deserialize_with = "null_as_default")]
    pub status: CronJobStatus,
}

/// What the user wants of a CronJob.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// When.
    pub schedule: String,
    /// On whose clocks.
    pub time_zone: Option<String>,
    /// How late a job may start.
    pub starting_deadline_seconds: Option<i64>,
    /// Whether jobs may run beside each other.
    pub concurrency_policy: ConcurrencyPolicy,
    /// Whether no job is made for now.
    pub suspend: Option<bool>,
    /// The job.
    #[serde(deserialize_with = "null_as_default")]
    pub job_template: Template,
    /// How many completed jobs are kept.
    pub successful_jobs_history_limit: Option<i32>,
    /// How many failed jobs are kept.
    pub failed_jobs_history_limit: Option<i32>,
}

/// The job that a CronJob makes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Template {
    /// What of its metadata reaches the job.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: TemplateMeta,
    /// Its spec.
    pub spec: Arc<Value>,
}

/// What of a template's metadata reaches the job.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TemplateMeta {
    /// Labels.
    #[serde(deserialize_with = "null_as_default")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(deserialize_with = "null_as_default")]
    pub annotations: BTreeMap<String, String>,
}
