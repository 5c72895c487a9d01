//! The rules of metadata, which are the same for all kinds.

use std::collections::{BTreeSet, HashSet};

use krafla_schema::field::FieldError;
use krafla_schema::names::{self, NameRule};
use krafla_schema::object;
use serde_json::{Map, Value};

use super::Part;
use crate::registry::Resource;

/// What all annotations of an object may take together.
pub(super) const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// One look at the metadata of a changed object. Upstream looks at it as a whole and as a change for all kinds alike, and
/// then again for most kinds. It lists a finding each time, and clients may count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// At what the object has become.
    Whole,
    /// At what has changed.
    Change,
}

/// How upstream looks at the metadata of a kind, beyond what it does for all kinds alike.
struct Looks {
    /// When an object changes.
    at_changes: &'static [Look],
    /// Whether a finalizer must say whose it is.
    need_owners_of_finalizers: bool,
}

impl Looks {
    fn of(resource: &Resource) -> Looks {
        use Look::{Change, Whole};
        let (group, kind) = (&*resource.names.group, &*resource.names.kind);
        let at_changes: &[Look] = match (group, kind) {
            ("policy", "PodDisruptionBudget") | ("", "Event") => &[],
            ("admissionregistration.k8s.io", _)
            | ("discovery.k8s.io", "EndpointSlice")
            | ("storage.k8s.io", "CSINode" | "VolumeAttachment")
            | ("", "LimitRange") => &[Whole],
            ("", "PersistentVolume") => &[Whole, Whole],
            ("rbac.authorization.k8s.io", _)
            | ("storage.k8s.io", "CSIStorageCapacity" | "StorageClass")
            | ("", "Namespace" | "Node")
            | ("batch", "Job")
            | ("node.k8s.io", _) => &[Whole, Change],
            (
                "",
                "ConfigMap" | "Endpoints" | "PersistentVolumeClaim" | "Pod" | "Secret" | "ServiceAccount",
            )
            | ("apps", "ControllerRevision")
            | ("networking.k8s.io", "Ingress" | "IngressClass") => &[Change, Whole],
            _ => &[Change],
        };
        let need_owners_of_finalizers = !resource.is_custom
            && !matches!(
                (group, kind),
                ("admissionregistration.k8s.io" | "apiextensions.k8s.io" | "node.k8s.io" | "policy", _)
                    | ("coordination.k8s.io", "Lease")
                    | ("", "Event")
            );
        Looks { at_changes, need_owners_of_finalizers }
    }
}

/// Leaves out what is empty, as a Go program would in printing it.
pub(super) fn tidy(object: &mut Value) {
    let metadata = object::metadata(object);
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    });
    if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
        drop_repeated_owners(owners);
    }
}

/// Says who manages the fields, if anybody does.
pub(super) fn set_managers(object: &mut Value, managers: Vec<Value>) {
    if managers.is_empty() {
        object::metadata(object).remove("managedFields");
    } else {
        object::set_meta(object, "managedFields", managers);
    }
}

fn drop_repeated_owners(owners: &mut Vec<Value>) {
    if owners.len() < 2 {
        return;
    }
    let mut seen = HashSet::with_capacity(owners.len());
    owners.retain(|owner| seen.insert(owner.clone()));
}

/// What is wrong with the metadata of a new object.
pub(super) fn check_new(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = object::name(object);
    // These two kinds look at the name alone, whatever it was made from.
    if !matches!(resource.storage.as_str(), "replicationcontrollers" | "deviceclasses.resource.k8s.io") {
        errors.extend(check_prefix(resource.name_rule, object));
    }
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        let wrong = resource.name_rule.check(name).into_iter();
        errors.extend(wrong.map(|what| FieldError::invalid("metadata.name", name, what)));
    }
    errors.extend(check_generation(object));
    errors.extend(check_common(object));
    errors.extend(check_finalizers(object));
    if Looks::of(resource).need_owners_of_finalizers {
        errors.extend(check_owners_of_finalizers(object));
    }
    errors
}

fn check_generation(object: &Value) -> Option<FieldError> {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64)?;
    let is_negative = generation < 0;
    is_negative
        .then(|| FieldError::invalid("metadata.generation", generation, "must be greater than or equal to 0"))
}

/// Keeps what only the server writes. A client that changes the identity of an object, or marks it deleted, is told; the
/// rest is put back in silence, as upstream does.
pub(super) fn keep_servers_own(new: &mut Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["uid", "deletionTimestamp"] {
        let wanted = object::meta(new, field);
        if !wanted.is_empty() && wanted != object::meta(old, field) {
            errors.push(FieldError::invalid(format!("metadata.{field}"), wanted, "field is immutable"));
        }
    }
    let grace = "/metadata/deletionGracePeriodSeconds";
    if let Some(wanted) =
        new.pointer(grace).filter(|wanted| !wanted.is_null() && old.pointer(grace) != Some(wanted))
    {
        let field = "metadata.deletionGracePeriodSeconds";
        errors.push(FieldError::invalid(field, wanted.clone(), "field is immutable"));
    }
    let kept = [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "name",
        "namespace",
        "selfLink",
        "uid",
    ];
    object::copy_meta(new, old, &kept);
    errors
}

/// What is wrong with the metadata of a changed object. `immutable` are the findings of `keep_servers_own`.
pub(super) fn check_update(
    resource: &Resource,
    part: Part,
    (object, old): (&Value, &Value),
    immutable: &[FieldError],
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if resource.is_custom {
        errors.extend_from_slice(immutable);
        errors.extend(check_common(object));
        errors.extend(check_finalizers(object));
        errors.extend(check_finalizers_of_deleted(object, old));
        return errors;
    }
    let looks = Looks::of(resource);
    let own = if part == Part::Status { &[Look::Change] } else { looks.at_changes };
    let general = [Look::Whole, Look::Change];
    for (at, look) in general.iter().chain(own).enumerate() {
        let is_own = at >= general.len();
        match look {
            Look::Whole => {
                let rule = if is_own { resource.name_rule } else { NameRule::PathSegment };
                errors.extend(check_prefix(rule, object));
                errors.extend(check_common(object));
                errors.extend(check_finalizers(object));
            }
            Look::Change => {
                errors.extend(check_finalizers_of_deleted(object, old));
                errors.extend_from_slice(immutable);
                errors.extend(check_common(object));
            }
        }
        if is_own && looks.need_owners_of_finalizers {
            errors.extend(check_owners_of_finalizers(object));
        }
    }
    errors
}

fn check_prefix(rule: NameRule, object: &Value) -> Vec<FieldError> {
    let prefix = object::meta(object, "generateName");
    let wrong = if prefix.is_empty() { Vec::new() } else { rule.check_prefix(prefix) };
    wrong.into_iter().map(|what| FieldError::invalid("metadata.generateName", prefix, what)).collect()
}

/// Labels, annotations and owners.
fn check_common(object: &Value) -> Vec<FieldError> {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    for (key, value) in entries(metadata, "labels") {
        let wrong = names::qualified_name(key).into_iter();
        errors.extend(wrong.map(|what| FieldError::invalid("metadata.labels", key.as_str(), what)));
        let value = value.as_str().unwrap_or_default();
        let wrong = names::label_value(value).into_iter();
        errors.extend(wrong.map(|what| FieldError::invalid("metadata.labels", value, what)));
    }
    errors.extend(check_annotations(metadata));
    errors.extend(check_owners(metadata));
    errors
}

fn check_annotations(metadata: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, _) in entries(metadata, "annotations") {
        // Annotations, unlike labels, may be written in capitals.
        let wrong = names::qualified_name(&key.to_lowercase()).into_iter();
        errors.extend(wrong.map(|what| FieldError::invalid("metadata.annotations", key.as_str(), what)));
    }
    if annotations_bytes(entries(metadata, "annotations")) > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATIONS_BYTES_MAX));
    }
    errors
}

/// How much room annotations take, names and values.
pub(super) fn annotations_bytes<'a>(annotations: impl IntoIterator<Item = (&'a String, &'a Value)>) -> usize {
    annotations.into_iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}

fn check_owners(metadata: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for owner in owners(metadata) {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let version = text("apiVersion");
        if version.is_empty() || version.matches('/').count() > 1 || version.ends_with('/') {
            let field = "metadata.ownerReferences.apiVersion";
            errors.push(FieldError::invalid(field, version, "version must not be empty"));
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                let path = format!("metadata.ownerReferences.{field}");
                errors.push(FieldError::invalid(path, "", "must not be empty"));
            }
        }
        // Events are not kept long enough to own anything.
        if text("kind") == "Event" && version == "v1" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid_as_shown("metadata.ownerReferences", shown_owner(owner), why));
        }
    }
    let name_of = |owner: &Value| {
        format!(
            "{}/{}",
            owner["kind"].as_str().unwrap_or_default(),
            owner["name"].as_str().unwrap_or_default()
        )
    };
    let controllers: Vec<String> =
        owners(metadata).iter().filter(|owner| owner["controller"] == true).map(name_of).collect();
    if let [first, second, ..] = controllers.as_slice() {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        let shown: Vec<String> = owners(metadata).iter().map(shown_owner).collect();
        let shown = format!("[{}]", shown.join(","));
        errors.push(FieldError::invalid_as_shown("metadata.ownerReferences", shown, why));
    }
    errors
}

fn owners(metadata: &Value) -> &[Value] {
    metadata["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

/// An owner as messages quote it: with its fields in upstream's order.
fn shown_owner(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let fields = fields.iter().filter_map(|name| Some((name, owner.get(*name)?)));
    let fields: Vec<String> = fields.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// What the author of an object's metadata should know, though it is allowed.
pub(crate) fn warnings(object: &Value) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let owners = object.get("metadata").map_or(&[][..], owners);
    let uids = owners.iter().filter_map(|owner| owner["uid"].as_str());
    let repeated: BTreeSet<&str> = uids.filter(|uid| !seen.insert(*uid)).collect();
    if repeated.is_empty() {
        return Vec::new();
    }
    let uids = repeated.into_iter().collect::<Vec<_>>().join(", ");
    vec![format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
         reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
    )]
}

fn check_finalizers(object: &Value) -> Vec<FieldError> {
    let finalizers = object::strings(object.pointer("/metadata/finalizers")).into_iter();
    let wrong = |finalizer| names::qualified_name(finalizer).into_iter().map(move |what| (finalizer, what));
    let wrong = finalizers.flat_map(wrong);
    let mut errors: Vec<FieldError> =
        wrong.map(|(finalizer, what)| FieldError::invalid("metadata.finalizers", finalizer, what)).collect();
    let finalizers = object::strings(object.pointer("/metadata/finalizers"));
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", finalizers, why));
    }
    errors
}

/// A finalizer says whose it is, unless it is one of Kubernetes' own.
fn check_owners_of_finalizers(object: &Value) -> Vec<FieldError> {
    const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    let finalizers = object::strings(object.pointer("/metadata/finalizers")).into_iter().enumerate();
    let nobodys = finalizers.filter(|(_, name)| !name.contains('/') && !STANDARD.contains(name));
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    nobodys.map(|(at, name)| FieldError::invalid(format!("metadata.finalizers[{at}]"), name, why)).collect()
}

/// Who deletes an object must be able to rely on what holds it.
fn check_finalizers_of_deleted(object: &Value, old: &Value) -> Vec<FieldError> {
    if !object::is_deleting(old) {
        return Vec::new();
    }
    let before = object::finalizers(old);
    let added: Vec<String> = object::finalizers(object)
        .iter()
        .filter(|name| !before.contains(name))
        .map(|name| format!("{name:?}"))
        .collect();
    if added.is_empty() {
        return Vec::new();
    }
    let why = "no new finalizers can be added if the object is being deleted, found new finalizers";
    vec![FieldError::forbidden("metadata.finalizers", format!("{why} []string{{{}}}", added.join(", ")))]
}

fn entries<'a>(metadata: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    metadata.get(field).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}
