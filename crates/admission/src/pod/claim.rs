//! Claims of storage that a pod makes for itself.

use krafla_api::Quantity;
use serde_json::Value;

use crate::json::At;
use crate::look::findings;
use crate::{Finding, Verdict, names};

use super::check;

/// A volume whose claim lives and dies with the pod.
pub(super) fn ephemeral(source: &At<'_>, verdict: &mut Verdict) {
    let template = source.get("volumeClaimTemplate");
    if !template.is_set() {
        verdict.required(template.path(), "");
        return;
    }
    let metadata = template.get("metadata");
    check::annotations(&metadata.get("annotations"), verdict);
    check::labels(&metadata.get("labels"), verdict);
    for name in metadata.fields().into_iter().flat_map(|fields| fields.keys()) {
        let field = metadata.get(name);
        if !["annotations", "labels"].contains(&name.as_str()) && !field.is_empty() {
            verdict.forbidden(field.path(), "cannot be set");
        }
    }
    validate_spec(&template.get("spec"), verdict);
}

/// Says everything that is wrong with a claim that stands by itself.
pub fn validate_claim(claim: &Value) -> Vec<Finding> {
    findings(claim, |claim, verdict| validate_spec(&claim.get("spec"), verdict))
}

/// Checks the spec of a claim, wherever it stands.
pub(crate) fn validate_spec(spec: &At<'_>, verdict: &mut Verdict) {
    validate_access_modes(&spec.get("accessModes"), verdict);
    check::label_selector(&spec.get("selector"), verdict);
    let resources = spec.get("resources");
    let storage = resources.get("requests").get("storage");
    let path = resources.path().key("storage");
    match storage.quantity() {
        None => verdict.required(&path, ""),
        Some(amount) if amount <= Quantity::ZERO => {
            verdict.invalid(&path, amount.to_string(), "must be greater than zero");
        }
        Some(_) => {}
    }
    for class in ["storageClassName", "volumeAttributesClassName"] {
        check::name(&spec.get(class), names::dns_subdomain, verdict);
    }
    check::word(&spec.get("volumeMode"), &["Block", "Filesystem"], verdict);
    for source in ["dataSource", "dataSourceRef"].map(|name| spec.get(name)) {
        if source.is_set() {
            validate_data_source(&source, verdict);
        }
    }
}

fn validate_access_modes(modes: &At<'_>, verdict: &mut Verdict) {
    const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    let given: Vec<&str> = modes.list().iter().map(|mode| mode.text()).collect();
    if given.is_empty() {
        verdict.required(modes.path(), "at least 1 access mode is required");
    }
    for mode in given.iter().filter(|mode| !MODES.contains(*mode)) {
        verdict.unsupported(modes.path(), mode, &MODES);
    }
    let is_single = |mode: &&&str| **mode == "ReadWriteOncePod";
    let is_other = |mode: &&&str| MODES.contains(*mode) && **mode != "ReadWriteOncePod";
    if given.iter().any(|mode| is_single(&mode)) && given.iter().any(|mode| is_other(&mode)) {
        verdict.forbidden(modes.path(), "may not use ReadWriteOncePod with other access modes");
    }
}

fn validate_data_source(source: &At<'_>, verdict: &mut Verdict) {
    check::texts(source, &["name", "kind"], verdict);
    let (group, kind) = (source.get("apiGroup"), source.str("kind"));
    if group.text().is_empty() && kind != "PersistentVolumeClaim" {
        let rule = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        verdict.invalid(source.path(), kind, rule);
    }
    check::name(&group, names::dns_subdomain, verdict);
    check::name(&source.get("namespace"), names::dns_label, verdict);
}
