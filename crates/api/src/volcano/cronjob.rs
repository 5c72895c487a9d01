//! A CronJob: jobs made at set times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job::JobSpec;
use crate::meta::{ObjectMeta, null_as_default};
use crate::schema;
use crate::time::Time;
use crate::words::words;

/// Jobs made at set times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CronJob {
    #[allow(missing_docs)]
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// When to make which job.
    pub spec: CronJobSpec,
    /// What was made.
    pub status: CronJobStatus,
}

/// When to make which job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobSpec {
    /// When, in cron's notation.
    #[schemars(extend("x-required" = true))]
    pub schedule: String,
    /// The time zone of the schedule, by its IANA name; without it, the controller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How late a job may still be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,
    /// What to do when the job before is still there.
    #[serde(skip_serializing_if = "ConcurrencyPolicy::is_unset")]
    #[schemars(extend("x-default" = "Allow"))]
    pub concurrency_policy: ConcurrencyPolicy,
    /// Whether to make no jobs for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = false))]
    pub suspend: Option<bool>,
    /// The job to make.
    #[schemars(extend("x-required" = true))]
    pub job_template: CronJobTemplate,
    /// How many completed jobs to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("x-default" = 3))]
    pub successful_jobs_history_limit: Option<i32>,
    /// How many failed jobs to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("x-default" = 1))]
    pub failed_jobs_history_limit: Option<i32>,
}

/// The job that a CronJob makes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CronJobTemplate {
    /// Labels and annotations of the job.
    #[serde(deserialize_with = "null_as_default")]
    #[schemars(schema_with = "schema::embedded_metadata")]
    pub metadata: ObjectMeta,
    /// What the job is.
    pub spec: JobSpec,
}

/// What a CronJob made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobStatus {
    /// The jobs that are not finished.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub active: Vec<ObjectReference>,
    /// When a job was last due and made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// When a job last completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,
}

/// Kubernetes' reference to any object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ObjectReference {
    /// Its API group and version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Its kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its identity.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Its version when it was referred to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// The part of it that is meant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_path: String,
}

words! {
    /// What to do when the job before is still there.
    ConcurrencyPolicy {
        /// Make the next beside it.
        Allow = "Allow",
        /// Leave the next out.
        Forbid = "Forbid",
        /// Remove it and make the next.
        Replace = "Replace",
    }
}
