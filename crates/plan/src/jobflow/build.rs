//! One job of a flow, from its template.

use krafla_api::{Kind, labels};
use serde_json::{Map, Value, json};

use super::{Flow, JobTemplate, View, patch};

/// The longest value that a label may have.
const LABEL_LENGTH_MAX: usize = 63;

/// The manifest of the job.
pub(super) fn job(flow: &View<'_>, step: &Flow, template: &JobTemplate) -> Value {
    let info = Kind::VcJob.info();
    let mut spec = Value::clone(&template.spec);
    patch::apply(&mut spec, &step.patch.job_spec);
    let made_by = [
        (labels::CREATED_BY_JOB_TEMPLATE, format!("{}.{}", flow.namespace(), step.name)),
        (labels::CREATED_BY_JOB_FLOW, flow.label()),
    ];
    let annotations: Map<String, Value> =
        made_by.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    // A name that is too long for a label still stands in the annotation; ownership goes by UID anyway.
    let fits = |value: &Value| value.as_str().is_some_and(|value| value.len() <= LABEL_LENGTH_MAX);
    let labels: Map<String, Value> = annotations
        .iter()
        .filter(|(_, value)| fits(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    json!({
        "apiVersion": info.api_version(),
        "kind": info.kind,
        "metadata": {
            "name": flow.job_name(&step.name),
            "namespace": flow.namespace(),
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [flow.meta.as_controller(Kind::JobFlow)],
        },
        "spec": spec,
    })
}
