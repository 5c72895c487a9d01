//! A plan: what should be written, in order, as data that can be printed, compared and checked.

use std::collections::BTreeSet;

use krafla_api::{Key, Kind, Time, Uid};
use serde_json::{Value, json};

use crate::object::{Meta, Object};
use crate::plugin::Recipe;
use crate::probe::Probe;

/// What should be done for one root.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The root's new status. It is written before any step: what cannot be repeated harmlessly (a charged retry, a new
    /// version) is on record before the first effect.
    pub status: Option<Step>,
    /// Whether nothing but counters changed in the status: it may wait a moment, so that many changes become one write. What
    /// the plan settles is settled all the same.
    pub status_may_wait: bool,
    /// The writes, in order. The first that fails ends the plan; the next plan starts from what is then true.
    pub steps: Vec<Step>,
    /// Writes that nothing depends on, and that depend on nothing, as removals of what is of no more use: they are made last,
    /// whatever became of the steps. One that is refused keeps nothing from being made, and what is refused for want of room
    /// gets it by removals.
    pub aside: Vec<Step>,
    /// Whether the objects that it creates are all alike. A server that refuses one of them would refuse the others too, so
    /// it is asked for few at first, and for no more once it has refused one.
    pub creates_alike: bool,
    /// When to look again even if nothing changes.
    pub wake_at: Option<Time>,
    /// Questions to pods that this decision hangs on. Those without a good answer are asked, and the answer leads to
    /// another look.
    pub probes: BTreeSet<Probe>,
    /// What a person should know about this decision.
    pub notes: Vec<Note>,
    /// Departed children whose going this plan takes into account: once it is stored, they are no longer evidence.
    pub settled: Vec<Uid>,
}

impl Plan {
    /// Nothing to do.
    pub fn nothing() -> Plan {
        Plan::default()
    }

    /// Nothing can be done, and why. The condition is looked at again when something changes.
    pub fn hold(reason: &'static str, message: String) -> Plan {
        Plan { notes: vec![Note::warning(reason, message)], ..Plan::default() }
    }

    /// All writes in the order in which they are made.
    pub fn writes(&self) -> impl Iterator<Item = &Step> {
        self.status.iter().chain(&self.steps).chain(&self.aside)
    }

    /// Whether the plan writes nothing.
    pub fn is_quiet(&self) -> bool {
        self.writes().next().is_none()
    }
}

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
    /// Removes this object, whatever it says by now, and then its children.
    pub fn delete(object: &Object) -> Step {
        Step::Delete {
            kind: object.kind,
            key: object.meta.key.clone(),
            uid: object.meta.uid.clone(),
            revision: None,
            propagation: Propagation::Background,
            grace_seconds: None,
        }
    }

    /// Changes these fields of an object's status, if the object is still as it was read.
    pub fn patch_status(kind: Kind, meta: &Meta, fields: &Value) -> Step {
        Step::Patch {
            kind,
            key: meta.key.clone(),
            uid: meta.uid.clone(),
            revision: Some(meta.revision),
            of_status: true,
            patch: json!({ "status": fields }),
        }
    }

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

/// What a person should know about a decision.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// Whether somebody should look.
    pub severity: Severity,
    /// One word in upper camel case, as in Kubernetes' events.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// The write that it tells of: it is said once that is made, whatever becomes of the rest of the plan. Without one it tells
    /// how things are, and every plan says it for as long as they are so.
    pub tells_of: Option<Write>,
    /// Whether it is the object of that write that it is about, and not the root.
    pub is_about_written: bool,
}

impl Note {
    /// How things are, and all is well.
    pub fn normal(reason: &'static str, message: String) -> Note {
        Note { severity: Severity::Normal, reason, message, tells_of: None, is_about_written: false }
    }

    /// How things are, and somebody should look.
    pub fn warning(reason: &'static str, message: String) -> Note {
        Note { severity: Severity::Warning, reason, message, tells_of: None, is_about_written: false }
    }

    /// The same, of what the plan does to an object.
    pub fn of(self, verb: Verb, kind: Kind, key: &Key) -> Note {
        Note { tells_of: Some(Write { verb, kind, key: key.clone() }), ..self }
    }

    /// The same, about the object of one of the plan's writes, once that is made.
    pub fn about(self, write: &Step) -> Note {
        Note { tells_of: Some(write.write()), is_about_written: true, ..self }
    }
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

/// The two types of Kubernetes' events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// All is well.
    Normal,
    /// Somebody should look.
    Warning,
}

impl std::fmt::Display for Plan {
    /// One line per write, then the wake-up and the notes: the form of decision tables and traces.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for step in self.writes() {
            writeln!(f, "{step}")?;
        }
        if let Some(at) = self.wake_at {
            writeln!(f, "wake at {}", at.0)?;
        }
        for Probe { address, port, http_get, .. } in &self.probes {
            let path = http_get.as_ref().map_or("", |get| &get.path);
            writeln!(f, "hangs on {address}:{port}{path}")?;
        }
        for note in &self.notes {
            let Note { severity, reason, message, .. } = note;
            writeln!(f, "note {severity:?} {reason}: {message}")?;
        }
        Ok(())
    }
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
