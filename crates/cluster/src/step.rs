//! One write to a cluster, as data that can be printed, compared and checked.

use krafla_api::{Key, Kind, Uid};
use serde_json::Value;

use crate::recipe::Recipe;

/// One write. Each names the object by UID where it exists already: a namesake is never touched.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Store a new object.
    Create {
        /// Its kind.
        kind: Kind,
        /// The manifest, with its owner reference.
        object: Value,
    },
    /// Store a new object, a part of which is drawn at random once, when it is stored.
    CreateGenerated {
        /// Its kind.
        kind: Kind,
        /// The manifest, with its owner reference and without what is drawn.
        object: Value,
        /// What is drawn.
        recipe: Recipe,
    },
    /// Change the named fields, and no others (JSON merge patch).
    Patch {
        /// The object's kind.
        kind: Kind,
        /// Where it is.
        key: Key,
        /// Who it must be.
        uid: Uid,
        /// The revision that the change was computed from, where it depends on it.
        revision: Option<u64>,
        /// Whether the patch goes to the status subresource.
        of_status: bool,
        /// The fields.
        patch: Value,
    },
    /// Remove an object.
    Delete {
        /// Its kind.
        kind: Kind,
        /// Where it is.
        key: Key,
        /// Who it must be.
        uid: Uid,
        /// The revision that it must still have, where the decision depends on what it says.
        revision: Option<u64>,
        /// What becomes of its children.
        propagation: Propagation,
        /// How long a pod has to end by itself; without it, as long as the pod's own spec says. The node confirms
        /// that a pod's processes are gone by deleting it with zero.
        grace_seconds: Option<i64>,
    },
    /// Give a pod to a node.
    Bind {
        /// The pod.
        pod: Key,
        /// Who it must be.
        uid: Uid,
        /// The node's name.
        node: String,
    },
}

impl Step {
    /// Whether it stores a new object.
    pub const fn creates(&self) -> bool {
        matches!(self, Step::Create { .. } | Step::CreateGenerated { .. })
    }

    /// The kind written to.
    pub fn kind(&self) -> Kind {
        match self {
            Step::Create { kind, .. }
            | Step::CreateGenerated { kind, .. }
            | Step::Patch { kind, .. }
            | Step::Delete { kind, .. } => *kind,
            Step::Bind { .. } => Kind::Pod,
        }
    }

    /// What it does to which object.
    pub fn write(&self) -> Write {
        let verb = match self {
            Step::Create { .. } | Step::CreateGenerated { .. } => Verb::Create,
            Step::Patch { of_status: true, .. } => Verb::Report,
            Step::Patch { .. } => Verb::Change,
            Step::Delete { .. } => Verb::Delete,
            Step::Bind { .. } => Verb::Bind,
        };
        Write { verb, kind: self.kind(), key: self.key() }
    }

    /// Where the object is that is written to.
    pub fn key(&self) -> Key {
        match self {
            Step::Create { object, .. } | Step::CreateGenerated { object, .. } => {
                let text = |field| object.pointer(field).and_then(Value::as_str).unwrap_or_default();
                Key::new(text("/metadata/namespace"), text("/metadata/name"))
            }
            Step::Patch { key, .. } | Step::Delete { key, .. } | Step::Bind { pod: key, .. } => key.clone(),
        }
    }

    /// The reason of the Event that says that the server refused it.
    pub fn refusal_reason(&self) -> &'static str {
        match self {
            Step::Create { .. } | Step::CreateGenerated { .. } => "FailedCreate",
            Step::Patch { .. } => "FailedUpdate",
            Step::Delete { .. } => "FailedDelete",
            Step::Bind { .. } => "FailedBinding",
        }
    }
}

/// What becomes of the children of a deleted object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after it.
    #[default]
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay, without an owner.
    Orphan,
}

/// What is done to which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Write {
    /// What.
    pub verb: Verb,
    /// The object's kind.
    pub kind: Kind,
    /// Where it is.
    pub key: Key,
}

/// The sorts of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// A new object is stored.
    Create,
    /// Something of it is changed, but for its status.
    Change,
    /// Its status is changed.
    Report,
    /// It is removed.
    Delete,
    /// A pod gets its node.
    Bind,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Create { kind, object } | Step::CreateGenerated { kind, object, .. } => {
                let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("?");
                write!(f, "create {} {name}", kind.info().singular)
            }
            Step::Patch { kind, key, of_status, patch, .. } => {
                let what = if *of_status { " status" } else { "" };
                write!(f, "patch {}{what} {} {patch}", kind.info().singular, key.name)
            }
            Step::Delete { kind, key, propagation, grace_seconds, .. } => {
                let how = if *propagation == Propagation::Background { "" } else { " in the foreground" };
                write!(f, "delete {} {}{how}", kind.info().singular, key.name)?;
                grace_seconds.map_or(Ok(()), |seconds| write!(f, " with {seconds} s of grace"))
            }
            Step::Bind { pod, node, .. } => write!(f, "bind pod {} to {node}", pod.name),
        }
    }
}
