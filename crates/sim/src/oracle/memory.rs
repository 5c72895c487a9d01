//! What one life of a process was told about its own writes: a decision that does not know them is a fault.
//!
//! The engine waits until its cache shows its own last writes before it decides again. A process that forgot to would
//! create what it has created, delete what it has deleted, or compute a change from a state before its own last one.

use std::collections::BTreeMap;

use krafla_api::{Key, Kind, Uid};
use krafla_cluster::{Step, Written};
use krafla_runtime::Root;
use serde_json::Value;

/// What one life of a process was told.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Memory {
    roots: BTreeMap<Root, BTreeMap<(Kind, Key), Last>>,
}

/// The last thing that was told of an object.
#[derive(Clone, Debug, Hash)]
struct Last {
    sort: Sort,
    uid: Uid,
    revision: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sort {
    Created,
    Changed,
    Bound,
    Deleted,
}

impl Memory {
    /// A write for this root was answered with success.
    pub(crate) fn learn(&mut self, root: &Root, step: &Step, written: &Written) {
        let sort = match step {
            Step::Create { .. } | Step::CreateGenerated { .. } => Sort::Created,
            Step::Patch { .. } => Sort::Changed,
            Step::Bind { .. } => Sort::Bound,
            Step::Delete { .. } => Sort::Deleted,
        };
        let last = Last { sort, uid: written.uid.clone(), revision: written.revision };
        let of_root = self.roots.entry(root.clone()).or_default();
        of_root.insert((step.kind(), written.key.clone()), last);
    }

    /// Whether a write says that its author does not know its own last ones. `is_stored` says whether an object is still
    /// there: what somebody else removed may be made again.
    pub(crate) fn repeats(
        &self,
        root: &Root,
        step: &Step,
        is_stored: impl FnOnce(Kind, &Key, &Uid) -> bool,
    ) -> Option<String> {
        let target = match step {
            Step::Create { object, .. } | Step::CreateGenerated { object, .. } => {
                (step.kind(), created_key(object))
            }
            Step::Patch { key, .. } | Step::Delete { key, .. } | Step::Bind { pod: key, .. } => {
                (step.kind(), key.clone())
            }
        };
        let last = self.roots.get(root)?.get(&target)?;
        let is_repetition = match step {
            Step::Create { .. } | Step::CreateGenerated { .. } => {
                last.sort == Sort::Created && is_stored(target.0, &target.1, &last.uid)
            }
            Step::Patch { uid, revision, .. } => {
                *uid == last.uid && revision.is_some_and(|revision| revision < last.revision)
            }
            Step::Delete { uid, .. } => *uid == last.uid && last.sort == Sort::Deleted,
            Step::Bind { uid, .. } => *uid == last.uid && last.sort == Sort::Bound,
        };
        is_repetition.then(|| format!("{step}: decided without having seen the last own write to it"))
    }
}

fn created_key(object: &Value) -> Key {
    let text = |field: &str| object.pointer(field).and_then(Value::as_str).unwrap_or_default();
    Key::new(text("/metadata/namespace"), text("/metadata/name"))
}
