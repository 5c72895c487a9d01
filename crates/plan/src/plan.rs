//! A plan: what should be written, in order, and what a person should know about it.

use std::collections::BTreeSet;

use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::{Step, Verb, Write};

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
