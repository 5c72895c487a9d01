//! Weighted choices.

use krafla_sim::Rng;
use serde_json::{Value, json};

/// One of several by weight, unless there are none.
pub(super) fn weighted<T: Clone>(rng: &mut Rng, of: &[(u64, T)]) -> Option<T> {
    let mut at = rng.below(of.iter().map(|(weight, _)| weight).sum());
    of.iter()
        .find(|(weight, _)| match at.checked_sub(*weight) {
            Some(left) => {
                at = left;
                false
            }
            None => true,
        })
        .map(|(_, item)| item.clone())
}

/// The steps that are possible, each with its weight.
pub(super) struct Choices<'a> {
    pub(super) rng: &'a mut Rng,
    steps: Vec<(u64, Value)>,
}

impl<'a> Choices<'a> {
    pub(super) fn new(rng: &'a mut Rng) -> Choices<'a> {
        Choices { rng, steps: Vec::new() }
    }

    pub(super) fn add(&mut self, weight: u64, step: Value) {
        self.steps.push((weight, step));
    }

    /// One of the steps, or seldom two in a row without a pause.
    pub(super) fn take(self) -> Option<Value> {
        let one = weighted(self.rng, &self.steps)?;
        if !self.rng.percent(4) {
            return Some(one);
        }
        let other = weighted(self.rng, &self.steps)?;
        // Which of two Commands comes first is chance, and so is what a controller has seen of pods when it gets to one. And a pod
        // that has ended does not end once more.
        let is = |step: &Value, ops: &[&str]| ops.iter().any(|op| step["op"] == *op);
        let (chance, of_pods) = (["command", "burst"], ["command", "burst", "pods", "evict", "reap"]);
        let is_chance = |one: &Value, other: &Value| is(one, &chance) && is(other, &of_pods);
        if is_chance(&one, &other)
            || is_chance(&other, &one)
            || (is(&one, &["pods"]) && is(&other, &["pods"]))
        {
            return Some(one);
        }
        Some(json!({ "op": "burst", "ops": [one, other] }))
    }
}

/// The objects of a section.
pub(super) fn objects<'a>(state: &'a Value, section: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let objects = state.get(section).and_then(Value::as_object).into_iter().flatten();
    objects.map(|(name, object)| (name.as_str(), object))
}

/// A text within an object, or nothing.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
