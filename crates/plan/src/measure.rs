//! Metrics: their definitions, and what one stored change adds to them.
//!
//! ```text
//!   stored change --Controller::measure--> Measure   pure: which number, by how much
//!                                             |
//!                                             v
//!                               the shell's registry, served at /metrics
//!                                             ^
//!   attempt --Controller::measure_attempt-----+      only for those numbers that are about attempts
//! ```
//!
//! Numbers follow what is stored, not what was tried: a write that fails, is repeated or whose answer is lost is counted
//! exactly when the change that it led to is seen, and once. Names and labels are Volcano's and Kubernetes', since dashboards ask
//! for them.

use std::time::Duration;

use krafla_api::Kind;
use krafla_metrics::Metric;

use crate::object::Object;
use crate::objects::Objects;
use crate::plan::Plan;

/// What happens to one series.
#[derive(Debug)]
pub struct Measure {
    /// The number.
    pub metric: &'static Metric,
    /// The values of its labels, which say the series.
    pub labels: Vec<String>,
    /// What happens to it.
    pub effect: Effect,
}

/// What happens to a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// A counter grows, a gauge grows or shrinks.
    Add(f64),
    /// A gauge is so much from now on.
    Set(f64),
    /// A histogram has one more observation.
    Observe(f64),
    /// What the series was about is gone.
    Forget,
}

impl Measure {
    /// Something happens to the series of these labels.
    pub fn new<const N: usize>(metric: &'static Metric, labels: [&str; N], effect: Effect) -> Measure {
        Measure { metric, labels: labels.map(str::to_owned).into(), effect }
    }
}

impl std::fmt::Display for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{:?} {:?}", self.metric.name, self.labels, self.effect)
    }
}

/// An attempt to take a root further.
#[derive(Clone, Copy, Debug)]
pub enum Attempt<'a> {
    /// It was put off: an own write to this kind has not been seen yet.
    Skipped {
        /// The kind whose watch is behind.
        unseen: Kind,
    },
    /// It was made.
    Made {
        /// The root as it was when the decision was taken.
        root: &'a Object,
        /// The decision.
        plan: &'a Plan,
        /// Whether all of it could be carried out.
        is_success: bool,
        /// How many objects could not be created, of those that were tried.
        n_creations_failed: usize,
        /// How long that took, from the decision to the answer to its last write.
        took: Duration,
    },
}

/// A change as it was stored. An object that is replaced by another of its name goes first, and then the other comes.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// The object as it was known; nothing, if it is new.
    pub before: Option<&'a Object>,
    /// The object as it is now; nothing, if it is gone.
    pub after: Option<&'a Object>,
    /// Everything else that is known.
    pub objects: &'a Objects,
    /// Whether it happened while this program was looking. What was there at the start has been counted before.
    pub is_news: bool,
}

impl<'a> Stored<'a> {
    /// A part of the object before and after, if it was known and is still there, and that part is no longer the same.
    pub fn changed<T: PartialEq>(&self, part: impl Fn(&'a Object) -> Option<T>) -> Option<(T, T)> {
        let (before, after) = (part(self.before?)?, part(self.after?)?);
        (before != after).then_some((before, after))
    }
}
