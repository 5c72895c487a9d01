//! Server-side apply: a client says which fields it wants how, and the server remembers that it does.

use krafla_api::Key;
use krafla_schema::apply::{KUBECTL, LAST_APPLIED, Refused};
use krafla_schema::object;
use serde_json::Value;

use super::create::settle_namespace;
use super::meta::{ANNOTATIONS_BYTES_MAX, annotations_bytes};
use super::ownership::Ownership;
use super::update::check_name;
use super::{Answer, Api, FieldValidation, Part, Strictness, WriteOptions};
use crate::codec;
use crate::registry::Resource;
use crate::status::Status;

/// What a manager wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The fields, in an object that has no others.
    pub object: Value,
    /// Whether fields are taken from other managers.
    pub is_forced: bool,
}

impl Api {
    /// Makes the fields of an object what a manager wants, and takes away those that it wanted before and no longer does.
    pub async fn apply(
        &self,
        resource: &Resource,
        key: &Key,
        part: Part,
        applied: &Applied,
        options: &WriteOptions,
    ) -> Result<Answer, Status> {
        check_applied(resource, &applied.object)?;
        let merge = |live: Option<&Value>| self.merge_applied(resource, key, part, live, applied, options);
        loop {
            let is_missing = self.store().newest(&resource.storage, key).entry.is_none();
            let written = if is_missing && part == Part::Main {
                self.authorize_creation(resource, key, options)?;
                let new = new_from(resource, key, merge(None)?)?;
                self.create_named(resource, new, Ownership::Settled, options).await
            } else {
                let merge = |live: &Value| merge(Some(live));
                self.change(resource, key, part, Ownership::Settled, options, merge).await
            };
            match written {
                // Somebody else created or deleted it in between.
                Err(status) if is_missing && status.reason == "AlreadyExists" => {}
                Err(status) if !is_missing && status.code == 404 && part == Part::Main => {}
                outcome => return outcome,
            }
        }
    }

    fn merge_applied(
        &self,
        resource: &Resource,
        key: &Key,
        part: Part,
        live: Option<&Value>,
        applied: &Applied,
        options: &WriteOptions,
    ) -> Result<Value, Status> {
        let merges = resource.merges().ok_or_else(Status::unsupported_patch_type)?;
        let Applied { object, is_forced } = applied;
        let merged = self.with_writer(resource, part, options, |writer| {
            merges.apply(live, object, writer, *is_forced).map_err(|why| refusal(resource, object, why))
        })?;
        check_repeated(options)?;
        // Values that read themselves are read on their own, as after a strategic merge patch.
        let decoded = codec::decode_patched(resource, &merged, true);
        let mut merged = decoded.map_err(|why| unreadable(resource, object, &why))?.object;
        if options.manager.as_deref() == Some(KUBECTL) {
            note_last_applied(&mut merged, object);
        }
        check_name(&merged, key)?;
        settle_namespace(resource, &mut merged, &key.namespace)?;
        Ok(merged)
    }
}

/// Brings kubectl's note up to date in an object that has one: who applied on the client's side, then on the server's, and
/// then on the client's again would else get back what was wanted before the second time.
fn note_last_applied(merged: &mut Value, applied: &Value) {
    let note = merged.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    let Some(annotations) = note.filter(|annotations| annotations.contains_key(LAST_APPLIED)) else { return };
    let mut applied = applied.clone();
    if let Some(annotations) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    annotations.insert(LAST_APPLIED.to_owned(), format!("{applied}\n").into());
    if annotations_bytes(&*annotations) > ANNOTATIONS_BYTES_MAX {
        annotations.remove(LAST_APPLIED);
    }
}

/// Keys that come twice are refused, or told, once everything else about the fields is in order.
fn check_repeated(options: &WriteOptions) -> Result<(), Status> {
    let FieldValidation { strictness, found } = &options.field_validation;
    if *strictness == Strictness::Refuse && !found.is_empty() {
        let lines: String = found.iter().map(|line| format!("\n  {line}")).collect();
        let why = format!("error converting YAML to JSON: yaml: unmarshal errors:{lines}");
        return Err(Status::bad_request(format!("error strict decoding YAML: {why}")));
    }
    options.warnings.extend(found.iter().cloned());
    Ok(())
}

/// What is applied says of what kind it is, and leaves its managers to the server.
fn check_applied(resource: &Resource, applied: &Value) -> Result<(), Status> {
    let text = |field: &str| applied.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version != resource.names.api_version() || *kind != *resource.names.kind {
        let shown = shown_type(api_version, kind);
        return Err(Status::bad_request(format!("invalid object type: {shown}")));
    }
    if applied.pointer("/metadata/managedFields").is_some_and(|managers| !managers.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// A kind as Go prints it.
fn shown_type(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// A new object cannot be one that was there before.
fn new_from(resource: &Resource, key: &Key, mut merged: Value) -> Result<Value, Status> {
    let uid = object::uid(&merged);
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(Status::conflict(&resource.qualified(), &key.name, &why));
    }
    object::metadata(&mut merged).remove("resourceVersion");
    Ok(merged)
}

fn refusal(resource: &Resource, applied: &Value, why: Refused) -> Status {
    match why {
        Refused::Conflicts(conflicts) => Status::apply_conflict(&conflicts),
        Refused::NotTyped(fault) => {
            let (which, _) = shown_object(resource, applied);
            Status::plain(format!("failed to create typed patch object ({which}): {fault}"))
        }
    }
}

/// What was applied cannot be read as an object of its kind, though its types are right.
fn unreadable(resource: &Resource, applied: &Value, why: &str) -> Status {
    let (which, of) = shown_object(resource, applied);
    let to = format!("unable to convert unstructured object to {of}");
    Status::plain(format!("failed to convert new object ({which}) to proper version: {to}: {why}"))
}

/// An applied object as messages name it, and its kind.
fn shown_object(resource: &Resource, applied: &Value) -> (String, String) {
    let (namespace, name) = (object::namespace(applied), object::name(applied));
    let of = shown_type(&resource.names.api_version(), &resource.names.kind);
    (format!("{namespace}/{name}; {of}"), of)
}
