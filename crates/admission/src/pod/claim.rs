//! Claims of storage that a pod makes for itself.

use krafla_api::Quantity;
use serde_json::Value;

use crate::json::At;
use crate::look::{findings, findings_of_change};
use crate::{Finding, Path, Reason, Verdict, internal, names};

use super::check;
use super::keep::restore;

/// What can be changed, as kube-apiserver says it.
const CHANGEABLE: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
    bound claims";
/// Where the class of a claim stood before there was a field for it.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

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

/// Says everything that is wrong with a changed claim. It may be given its volume and its class once; when it is bound it
/// may ask for more, and for less as long as that is more than it has.
pub fn validate_claim_update(claim: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(claim, old, |claim, old, verdict| {
        let (new_spec, old_spec) = (claim.get("spec"), old.get("spec"));
        validate_spec(&new_spec, verdict);
        validate_class_annotation(claim, old, verdict);
        let (kept, was) = without_changeable(claim, old);
        if kept != was {
            let changes = internal::difference("core.PersistentVolumeClaimSpec", &was, &kept);
            let rule = format!("{CHANGEABLE}\n{changes}");
            verdict.forbidden(new_spec.path(), &rule);
        }
        validate_size(&new_spec, old, verdict);
        let (mode, old_mode) = (new_spec.get("volumeMode"), old_spec.get("volumeMode"));
        if mode.value() != old_mode.value() {
            verdict.invalid(&Path::new("volumeMode"), mode.value(), "field is immutable");
        }
        validate_attributes_class(&new_spec.get("volumeAttributesClassName"), old, verdict);
    })
}

/// Says everything that is wrong with a changed status of a claim.
pub fn validate_claim_status(claim: &Value) -> Vec<Finding> {
    findings(claim, |claim, verdict| {
        let status = claim.get("status");
        for (_, amount) in status.get("capacity").entries() {
            amount_not_negative(&amount, verdict);
        }
        let statuses = status.get("allocatedResourceStatuses");
        for (resource, state) in statuses.entries() {
            validate_resource(resource, statuses.path(), verdict);
            if !RESIZE_STATES.contains(&state.text()) {
                verdict.unsupported(statuses.path(), resource, &RESIZE_STATES);
            }
        }
        let allocated = status.get("allocatedResources");
        for (resource, amount) in allocated.entries() {
            let n_before = verdict.refusals.len();
            validate_resource(resource, allocated.path(), verdict);
            if verdict.refusals.len() == n_before {
                amount_not_negative(&amount, verdict);
            }
        }
    })
}

/// The new and the old spec with everything that may change taken to be equal.
fn without_changeable(claim: &At<'_>, old: &At<'_>) -> (Value, Value) {
    let (mut spec, mut was) = (claim.get("spec").value().clone(), old.get("spec").value().clone());
    if old.get("spec").get("volumeName").is_empty() {
        restore(&mut was, &spec, "volumeName");
    }
    let class = old.get("spec").get("storageClassName");
    let annotated = old.get("metadata").get("annotations").get(CLASS_ANNOTATION);
    let wanted = claim.get("spec").get("storageClassName");
    if !class.is_set() && wanted.is_set() && (!annotated.is_set() || annotated.text() == wanted.text()) {
        restore(&mut spec, &was, "storageClassName");
    }
    if claim.get("status").str("phase") == "Bound" {
        restore(&mut spec, &was, "volumeAttributesClassName");
        let size = was.pointer("/resources/requests/storage").cloned();
        if let (Some(requests), Some(size)) = (spec.pointer_mut("/resources/requests"), size) {
            requests["storage"] = size;
        }
    }
    (spec, was)
}

/// The class that an annotation names stays, unless the field takes its place.
fn validate_class_annotation(claim: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let [new, was] = [claim, old].map(|claim| claim.get("metadata").get("annotations").get(CLASS_ANNOTATION));
    let (wanted, class) =
        (claim.get("spec").get("storageClassName"), old.get("spec").get("storageClassName"));
    let is_moved = was.is_set()
        && !class.is_set()
        && wanted.is_set()
        && wanted.text() == was.text()
        && (!new.is_set() || new.text() == was.text());
    if !is_moved && new.text() != was.text() {
        let path = Path::new("metadata").field("annotations").key(CLASS_ANNOTATION);
        verdict.invalid(&path, new.text(), "field is immutable");
    }
}

fn validate_size(spec: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let has = old.get("status").get("capacity").get("storage").quantity().unwrap_or_default();
    let [size, was] = [spec, &old.get("spec")].map(storage_request);
    let new = size.quantity().unwrap_or_default();
    if new < was.quantity().unwrap_or_default() && new <= has {
        verdict.forbidden(size.path(), "field can not be less than status.capacity");
    }
}

fn storage_request<'a>(spec: &At<'a>) -> At<'a> {
    spec.get("resources").get("requests").get("storage")
}

/// A class of attributes that is in force can be changed and not be taken away.
fn validate_attributes_class(class: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let was = old.get("spec").get("volumeAttributesClassName");
    let in_force = old.get("status").get("currentVolumeAttributesClassName");
    if class.value() == was.value() || !in_force.is_set() {
        return;
    }
    let to = match class.value() {
        Value::Null => "nil",
        Value::String(text) if text.is_empty() => "empty string",
        _ => return,
    };
    let rule = format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
    verdict.forbidden(class.path(), &rule);
}

fn amount_not_negative(amount: &At<'_>, verdict: &mut Verdict) {
    if let Some(quantity) = amount.quantity().filter(|quantity| quantity.is_negative()) {
        verdict.invalid(amount.path(), quantity.to_string(), "must be greater than or equal to 0");
    }
}

/// What a claim can be given more of: storage, or what a domain of its own names.
fn validate_resource(name: &str, path: &Path, verdict: &mut Verdict) {
    let wrong = names::qualified_name(name);
    let is_native =
        !name.contains('/') || name.split('/').next().is_some_and(|part| part.contains("kubernetes.io"));
    if wrong.is_empty() && is_native && name != "storage" {
        verdict.unsupported(path, name, &["storage"]);
    }
    verdict.invalid_each(path, name, wrong);
}

/// Checks the spec of a claim, wherever it stands.
pub(crate) fn validate_spec(spec: &At<'_>, verdict: &mut Verdict) {
    if spec.get("accessModes").is_empty() {
        verdict.required(spec.get("accessModes").path(), "at least 1 access mode is required");
    }
    check::label_selector(&spec.get("selector"), verdict);
    validate_access_modes(&spec.get("accessModes"), verdict);
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
    check::name(&spec.get("storageClassName"), names::dns_subdomain, verdict);
    check::word(&spec.get("volumeMode"), &["Block", "Filesystem"], verdict);
    for source in ["dataSource", "dataSourceRef"].map(|name| spec.get(name)) {
        if source.is_set() {
            validate_data_source(&source, verdict);
        }
    }
    validate_one_source(spec, verdict);
    check::name(&spec.get("volumeAttributesClassName"), names::dns_subdomain, verdict);
}

/// The older field and the newer one name the same source.
fn validate_one_source(spec: &At<'_>, verdict: &mut Verdict) {
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    if !source.is_set() || !reference.is_set() {
        return;
    }
    let is_same = ["apiGroup", "kind", "name"]
        .iter()
        .all(|field| source.get(field).value() == reference.get(field).value());
    let rule = if !reference.str("namespace").is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if !is_same {
        "must match dataSourceRef"
    } else {
        return;
    };
    // Upstream quotes the place of the field, which has no text of its own there.
    verdict.refuse(spec.path(), Reason::Invalid, format!("Invalid value: {{}}: {rule}"));
}

/// What claims and volumes are mounted as.
pub(crate) fn validate_access_modes(modes: &At<'_>, verdict: &mut Verdict) {
    const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    let given: Vec<&str> = modes.list().iter().map(|mode| mode.text()).collect();
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
