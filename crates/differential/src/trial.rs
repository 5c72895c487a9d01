//! One thing to ask both servers: an object with changes, and the request that carries it.

use krafla_recorded::case::Case;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::bases::Subject;
use crate::fields::{Change, Edit, edited};

/// How an object reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    Create,
    CreateStrict,
    Replace,
    MergePatch,
    JsonPatch,
    StrategicPatch,
    Apply,
    ReplaceStatus,
    PatchStatus,
    /// One request with query parameters.
    Query,
    /// Several requests that change what is stored.
    Sequence,
}

/// The ways that change what is stored, other than its status.
pub(crate) const UPDATES: [Way; 5] =
    [Way::Replace, Way::MergePatch, Way::JsonPatch, Way::StrategicPatch, Way::Apply];
/// The ways that change the status.
pub(crate) const STATUS: [Way; 2] = [Way::ReplaceStatus, Way::PatchStatus];

impl Way {
    /// The word for reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Way::Create => "create",
            Way::CreateStrict => "create-strict",
            Way::Replace => "replace",
            Way::MergePatch => "merge-patch",
            Way::JsonPatch => "json-patch",
            Way::StrategicPatch => "strategic-patch",
            Way::Apply => "apply",
            Way::ReplaceStatus => "replace-status",
            Way::PatchStatus => "patch-status",
            Way::Query => "query",
            Way::Sequence => "sequence",
        }
    }
}

/// One thing to ask both servers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Trial {
    /// The kind, as reports name it.
    pub(crate) kind: String,
    /// Which of the kind's valid objects is changed.
    pub(crate) variant: usize,
    pub(crate) way: Way,
    /// Changes of the object, each of which could be made alone.
    pub(crate) changes: Vec<Change>,
    /// The requests of a query or a sequence; others follow from the edits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<Value>,
}

impl Trial {
    /// How many parts can be left out, one by one.
    pub(crate) fn n_parts(&self) -> usize {
        if self.steps.is_empty() { self.changes.len() } else { self.steps.len() }
    }

    /// The trial without one part.
    pub(crate) fn without(&self, part: usize) -> Trial {
        let mut smaller = self.clone();
        if self.steps.is_empty() {
            smaller.changes.remove(part);
        } else {
            smaller.steps.remove(part);
        }
        smaller
    }

    /// The name of the trial: the same for the same content.
    pub(crate) fn id(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{}/{}/{:012x}", self.kind, self.way.word(), hash & 0xffff_ffff_ffff)
    }

    /// What is changed, in words.
    pub(crate) fn about(&self) -> String {
        if !self.steps.is_empty() {
            let steps: Vec<String> =
                self.steps.iter().map(|step| shortened(&step.to_string(), 300)).collect();
            return steps.join("\n      ");
        }
        let edits: Vec<String> = self
            .changes
            .iter()
            .flatten()
            .map(|edit| match &edit.value {
                Some(value) => format!("{} = {}", edit.at, shortened(&value.to_string(), 80)),
                None => format!("{} removed", edit.at),
            })
            .collect();
        format!("{} of variant {}: {}", self.way.word(), self.variant, edits.join("; "))
    }

    /// The requests, in the form of the records.
    pub(crate) fn case(&self, subject: &Subject) -> Case {
        let steps = self.steps(subject);
        Case::new(&self.id(), &steps)
    }

    fn steps(&self, subject: &Subject) -> Value {
        if !self.steps.is_empty() {
            return json!(self.steps);
        }
        let edits: Vec<Edit> = self.changes.iter().flatten().cloned().collect();
        if matches!(self.way, Way::Create | Way::CreateStrict) {
            let base = subject.bases.get(self.variant).cloned().unwrap_or_default();
            let strict = if self.way == Way::CreateStrict { "&fieldValidation=Strict" } else { "" };
            let path = format!("{}?dryRun=All{strict}", subject.path());
            return json!([{"method": "POST", "path": path, "body": edited(&base, &edits)}]);
        }
        let base = subject.stored(self.variant);
        let wanted = edited(&base, &edits);
        let path = subject.stored_path(self.variant);
        let patch = |path: &str, media: &str, body: Value| json!([{"method": "PATCH", "path": path, "headers": {"Content-Type": media}, "body": body}]);
        let is_status = STATUS.contains(&self.way);
        let path = format!("{path}{}?dryRun=All", if is_status { "/status" } else { "" });
        match self.way {
            Way::MergePatch => patch(&path, "application/merge-patch+json", merge_patch(&base, &wanted)),
            Way::StrategicPatch => {
                patch(&path, "application/strategic-merge-patch+json", merge_patch(&base, &wanted))
            }
            Way::PatchStatus => {
                patch(&path, "application/merge-patch+json", json!({"status": wanted["status"]}))
            }
            Way::JsonPatch => patch(&path, "application/json-patch+json", json_patch(&edits)),
            Way::Apply => {
                let path = format!("{path}&fieldManager=tester&force=true");
                patch(&path, "application/apply-patch+yaml", wanted)
            }
            _ if subject.resource.unconditional_update => {
                json!([{"method": "PUT", "path": path, "body": wanted}])
            }
            _ => replace_with_version(&path, wanted),
        }
    }
}

/// Some kinds are only replaced by those who name the version that they have seen.
fn replace_with_version(path: &str, mut wanted: Value) -> Value {
    let read = path.split('?').next().unwrap_or_default().trim_end_matches("/status");
    if let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.entry("resourceVersion").or_insert(json!("{{rv}}"));
    }
    json!([
        {"method": "GET", "path": read, "save": {"rv": "/metadata/resourceVersion"}, "view": []},
        {"method": "PUT", "path": path, "body": wanted},
    ])
}

/// A patch that turns one object into another, as far as RFC 7386 can say it.
fn merge_patch(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let mut patch = Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in to {
        match from.get(key) {
            Some(before) if before == value => {}
            Some(before) => {
                patch.insert(key.clone(), merge_patch(before, value));
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

fn json_patch(edits: &[Edit]) -> Value {
    let operations = edits.iter().map(|edit| match &edit.value {
        Some(value) => {
            let is_item = edit.at.rsplit('/').next().is_some_and(|last| last.parse::<usize>().is_ok());
            json!({"op": if is_item { "replace" } else { "add" }, "path": edit.at, "value": value})
        }
        None => json!({"op": "remove", "path": edit.at}),
    });
    operations.collect()
}

/// A text of at most so many letters.
pub(crate) fn shortened(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
