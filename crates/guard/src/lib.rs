//! The properties as functions: what must hold of every plan before it is carried out ([`check`]), and of every
//! revision that the store ever had ([`history`]).
//!
//! The same rules stand in front of every write in production and behind every step of the simulator. A plan that breaks
//! one is a fault in a decision: it is refused as a whole, counted and logged; the process goes on.

pub mod history;
mod job;
mod jobflow;
mod queue;
mod vcjob;

use krafla_api::{Kind, Uid};
use krafla_cluster::Step;
use krafla_plan::{Plan, Snapshot};
use serde_json::Value;

/// The twelve properties that Krafla promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// One live pod per index.
    P1,
    /// Terminal is final.
    P2,
    /// The retry budget is exact.
    P3,
    /// Own deletions are not evictions.
    P4,
    /// Counted exactly once.
    P5,
    /// Touch only what you own.
    P6,
    /// No creation out of order.
    P7,
    /// Errors are not verdicts.
    P8,
    /// No trigger lost, none doubled.
    P9,
    /// Eventually stable.
    P10,
    /// No job is stuck, timers are kept.
    P11,
    /// Nothing left, nothing grows.
    P12,
}

/// A property that does not hold, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub property: Property,
    /// What was seen.
    pub message: String,
}

impl Violation {
    /// A violation of `property`.
    pub fn new(property: Property, message: impl Into<String>) -> Violation {
        Violation { property, message: message.into() }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {}", self.property, self.message)
    }
}

/// Whether a plan may be carried out.
pub fn check(snapshot: &Snapshot<'_>, plan: &Plan) -> Result<(), Violation> {
    match snapshot.kind {
        Kind::VcJob => {
            plan.writes().try_for_each(|step| touches_only_its_own(snapshot, step))?;
            vcjob::check(snapshot, plan)
        }
        Kind::JobFlow => {
            plan.writes().try_for_each(|step| touches_only_its_own(snapshot, step))?;
            jobflow::check(snapshot, plan)
        }
        Kind::VcCronJob | Kind::CronJob => {
            plan.writes().try_for_each(|step| touches_only_its_own(snapshot, step))
        }
        Kind::Job => job::check(snapshot, plan),
        // The scheduler, which is rooted in a queue, touches what jobs own: it has rules of its own.
        Kind::Queue => plan.writes().try_for_each(|step| queue::check(snapshot, step)),
        _ => plan.writes().try_for_each(|step| names_what_is_there(snapshot, step)),
    }
}

/// P6: a change or a deletion is meant for exactly the object that the decision saw.
fn names_what_is_there(snapshot: &Snapshot<'_>, step: &Step) -> Result<(), Violation> {
    let (key, uid) = match step {
        Step::Create { .. } | Step::CreateGenerated { .. } => return Ok(()),
        Step::Patch { key, uid, .. } | Step::Delete { key, uid, .. } | Step::Bind { pod: key, uid, .. } => {
            (key, uid)
        }
    };
    let is_there = snapshot.objects.get(step.kind(), key).is_some_and(|object| object.meta.uid == *uid);
    if is_there {
        Ok(())
    } else {
        Err(Violation::new(Property::P6, format!("{step}: that object has not been observed")))
    }
}

/// P6: every change or deletion names, by UID, the root itself or an object that the root controls; every new object is
/// owned by the root.
fn touches_only_its_own(snapshot: &Snapshot<'_>, step: &Step) -> Result<(), Violation> {
    let root = snapshot.root().ok_or_else(|| {
        Violation::new(Property::P6, format!("{step}: the root {} does not exist", snapshot.key))
    })?;
    let is_own = match step {
        Step::Create { object, .. } | Step::CreateGenerated { object, .. } => {
            is_controlled_by(object, &root.meta.uid)
        }
        Step::Patch { kind, key, uid, .. } | Step::Delete { kind, key, uid, .. } => {
            let target = snapshot.objects.get(*kind, key);
            target.is_some_and(|target| {
                let is_root = target.kind == root.kind && target.meta.uid == root.meta.uid;
                let is_child = target.meta.controller_uid() == Some(&root.meta.uid);
                // A Command is addressed to the root, whoever owns it.
                let addressee = target.as_command().and_then(|command| Some(&command.target.as_ref()?.uid));
                target.meta.uid == *uid && (is_root || is_child || addressee == Some(&root.meta.uid))
            })
        }
        Step::Bind { .. } => false,
    };
    if is_own {
        Ok(())
    } else {
        Err(Violation::new(Property::P6, format!("{step}: not owned by {}", snapshot.key)))
    }
}

/// Whether a manifest says that this root controls the object.
fn is_controlled_by(manifest: &Value, root: &Uid) -> bool {
    let owners = manifest.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| {
        owner.get("controller") == Some(&true.into())
            && owner.get("uid").and_then(Value::as_str) == Some(&root.0)
    })
}
