//! Changing objects by patches.

use krafla_api::Key;
use krafla_schema::field::FieldError;
use krafla_schema::object;
use krafla_schema::strategic::go_print;
use serde_json::{Map, Value};

use super::create::settle_namespace;
use super::ownership::Ownership;
use super::update::{check_name, check_versioned};
use super::{Answer, Api, Part, WriteOptions};
use crate::codec;
use crate::patch::{Patch, merge};
use crate::registry::Resource;
use crate::status::{Qualified, Status};

/// What is to be done about fields that nobody knows, and about those that come twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Nothing: they are dropped in silence.
    #[default]
    Ignore,
    /// The author is told.
    Warn,
    /// The request is refused.
    Refuse,
}

impl Strictness {
    /// What the author is to be told, or why the request is refused.
    pub fn judge(self, findings: Vec<String>) -> Result<Vec<String>, String> {
        match self {
            Strictness::Ignore => Ok(Vec::new()),
            Strictness::Refuse if !findings.is_empty() => {
                Err(format!("strict decoding error: {}", in_one(findings)))
            }
            Strictness::Warn | Strictness::Refuse => Ok(findings),
        }
    }
}

/// All findings in one text. Those of the reader of YAML come as one.
fn in_one(findings: Vec<String>) -> String {
    let is_yaml = |finding: &String| finding.starts_with("line ") && finding.ends_with("already set in map");
    let (lines, others): (Vec<String>, Vec<String>) = findings.into_iter().partition(is_yaml);
    let lines = (!lines.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", lines.join("\n  ")));
    lines.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

/// How the fields of what is written are looked at.
#[derive(Clone, Debug, Default)]
pub struct FieldValidation {
    /// What is to be done about findings.
    pub strictness: Strictness,
    /// What was found in the text of a patch, before it was applied.
    pub found: Vec<String>,
}

impl Api {
    /// Changes what a patch says, and no more.
    pub async fn patch(
        &self,
        resource: &Resource,
        key: &Key,
        part: Part,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Answer, Status> {
        let patched = |old: &Value| {
            let mut new = patched(resource, patch, options, old)?;
            check_name(&new, key)?;
            settle_namespace(resource, &mut new, &key.namespace)?;
            check_versioned(resource, &new, key)?;
            Ok(new)
        };
        self.change(resource, key, part, Ownership::Tracked, options, patched).await
    }
}

/// What a patch makes of an object, if that can be read as an object of its kind.
fn patched(resource: &Resource, patch: &Patch, options: &WriteOptions, old: &Value) -> Result<Value, Status> {
    if options.field_validation.found.is_empty()
        && let Some(new) = merged_in_part(resource, patch, old)
    {
        return Ok(new);
    }
    let is_strategic = matches!(patch, Patch::Strategic(_));
    let mut patched = patch.apply(old, resource.schema)?;
    if is_strategic {
        keep_type(&mut patched, old);
    }
    let refuse = |why: String| unreadable(patch, &patched, why);
    if !is_strategic {
        codec::check_still_of_kind(resource, &patched, old).map_err(refuse)?;
    }
    let has = |name: &str| patched.get(name).is_some_and(Value::is_string);
    if !is_strategic && !resource.is_custom && !has("apiVersion") && has("kind") {
        // Upstream then reads the text as an object of no version, which has no fields.
        let names = patched.as_object().into_iter().flat_map(|fields| fields.keys());
        let unknown = names.filter(|name| *name != "kind").map(|name| format!("unknown field {name:?}"));
        let strictness = options.field_validation.strictness;
        options.warnings.extend(strictness.judge(unknown.collect()).map_err(refuse)?);
        let name = object::name(old);
        let why = "was undeterminable: name must be provided";
        return Err(Status::bad_request(format!("the name of the object ({name} based on URL) {why}")));
    }
    let decoded = codec::decode_patched(resource, &patched, is_strategic).map_err(refuse)?;
    let FieldValidation { strictness, found } = &options.field_validation;
    let findings = found.iter().cloned().chain(decoded.findings.iter().map(ToString::to_string));
    options.warnings.extend(strictness.judge(findings.collect()).map_err(refuse)?);
    Ok(decoded.object)
}

/// A strategic merge patch fills the type of the object, so texts that it gives for the type say nothing.
fn keep_type(patched: &mut Value, old: &Value) {
    for name in ["apiVersion", "kind"] {
        if let (Some(Value::String(new)), Some(Value::String(old))) = (patched.get_mut(name), old.get(name)) {
            new.clone_from(old);
        }
    }
}

/// What a merge patch makes of an object, if there is nothing to say about it. What is stored was read when it was
/// written, so only the fields at the top that the patch names are read again: the report of a pod's status does not read
/// the pod's spec.
fn merged_in_part(resource: &Resource, patch: &Patch, old: &Value) -> Option<Value> {
    let Patch::Merge(patch) = patch else { return None };
    let (old, names) = (old.as_object()?, patch.as_object()?);
    // Of what kind the object is concerns all of it.
    if names.contains_key("apiVersion") || names.contains_key("kind") {
        return None;
    }
    let those = |are_named: bool| -> Map<String, Value> {
        let fields = old.iter().filter(|(name, _)| names.contains_key(*name) == are_named);
        fields.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let mut part = Value::Object(those(true));
    merge(&mut part, patch);
    let read = codec::decode_patched(resource, &part, false).ok()?;
    match read.object {
        Value::Object(fields) if read.findings.is_empty() => {
            let mut new = those(false);
            new.extend(fields);
            Some(Value::Object(new))
        }
        _ => None,
    }
}

/// A patch made something of the object that its kind cannot be. A strategic one is shown itself, others by what they
/// made.
pub(crate) fn unreadable(patch: &Patch, patched: &Value, why: String) -> Status {
    let shown = match patch {
        Patch::Strategic(patch) => go_print(patch),
        Patch::Merge(_) | Patch::Json(_) => patched.to_string(),
    };
    let error = FieldError::invalid("patch", shown, why);
    Status::invalid(&Qualified { group: "", what: "" }, "", &[error])
}

#[cfg(test)]
mod tests {
    use krafla_api::Kind;
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    /// A value in the form in which it is stored.
    fn stored(resource: &Resource, object: &Value) -> Value {
        let mut object = codec::normalise(resource, object).unwrap();
        settle(resource, &mut object);
        object
    }

    fn settle(resource: &Resource, object: &mut Value) {
        resource.rules.default(object);
        codec::complete(resource, object);
    }

    fn pod() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "default", "labels": {"a": "1", "b": "2"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1000m"}}}]},
            "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]},
        })
    }

    #[test]
    fn a_part_becomes_what_it_becomes_in_the_whole() {
        let registry = Registry::builtin();
        let pods = registry.of_kind(Kind::Pod).unwrap();
        let old = stored(&pods, &pod());
        for patch in [
            json!({"status": {"phase": "Running", "podIP": ""}}),
            json!({"status": null}),
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
            json!({"metadata": {"labels": {"a": null, "c": "3"}}}),
            json!({"metadata": {"managedFields": []}}),
            json!({"metadata": {"finalizers": ["x/y"]}, "spec": {"nodeName": "n", "priority": 0}}),
            json!({}),
        ] {
            let mut whole = old.clone();
            merge(&mut whole, &patch);
            let whole = stored(&pods, &whole);
            let mut part = merged_in_part(&pods, &Patch::Merge(patch.clone()), &old).unwrap();
            settle(&pods, &mut part);
            assert_eq!(part, whole, "{patch}");
        }
    }

    #[test]
    fn what_there_is_something_to_say_about_is_read_as_a_whole() {
        let registry = Registry::builtin();
        let pods = registry.of_kind(Kind::Pod).unwrap();
        let old = stored(&pods, &pod());
        for patch in [
            json!({"kind": "Node"}),
            json!({"status": {"phase": 5}}),
            json!({"status": {"unknown": "x"}}),
            json!({"unknown": {}}),
            json!({"metadata": "x"}),
        ] {
            assert_eq!(merged_in_part(&pods, &Patch::Merge(patch.clone()), &old), None, "{patch}");
        }
        assert_eq!(merged_in_part(&pods, &Patch::Strategic(json!({})), &old), None);
    }
}
