//! JobFlows and JobTemplates as they are observed.
//!
//! A template's spec, and what a flow changes in it, stay raw JSON: a field newer than this program reaches the job.

use std::sync::Arc;

use krafla_api::meta::null_as_default;
use krafla_api::volcano::{FlowDependsOn, JobFlowStatus, JobRetainPolicy, JobTemplateStatus};
use serde::Deserialize;
use serde_json::Value;

/// A JobFlow.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct JobFlow {
    /// Which jobs, and which waits for which.
    #[serde(deserialize_with = "null_as_default")]
    pub spec: Spec,
    /// What was last written down.
    #[serde(deserialize_with = "null_as_default")]
    pub status: JobFlowStatus,
}

/// Which jobs, and which waits for which.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// One job each.
    #[serde(deserialize_with = "null_as_default")]
    pub flows: Vec<Flow>,
    /// What becomes of the jobs once all have completed.
    pub job_retain_policy: JobRetainPolicy,
}

/// One job of a flow.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Flow {
    /// The JobTemplate that it is made from.
    pub name: String,
    /// What it waits for.
    pub depends_on: Option<FlowDependsOn>,
    /// What to change in the template.
    #[serde(deserialize_with = "null_as_default")]
    pub patch: Patch,
}

/// What to change in a template.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Patch {
    /// A part of a job's spec.
    pub job_spec: Value,
}

impl Flow {
    /// The names of the flows that it waits for.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.depends_on.iter().flat_map(|depends_on| &depends_on.targets).map(String::as_str)
    }
}

/// A JobTemplate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct JobTemplate {
    /// A job's spec.
    pub spec: Arc<Value>,
    /// What was last written down.
    #[serde(deserialize_with = "null_as_default")]
    pub status: JobTemplateStatus,
}
