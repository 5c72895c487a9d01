//! Every record of Volcano's controllers (`tests/golden`), played on the
//! server that ships: the same objects, the same steps, and after each step the same state, except where a difference is
//! meant.
//!
//! A record that cannot be read or played ends the program with the reason: this is a tool for tests, and never part of what
//! ships.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod compare;
#[cfg(test)]
mod deviations;
mod faults;
mod normal;
mod partings;
mod play;
mod record;
mod rules;
mod site;
mod stage;

use std::collections::BTreeMap;

use serde_json::Value;

pub use self::compare::Difference;
pub use self::normal::{Identities, name_minutes, state};
pub use self::play::{create_all, play};
pub use self::record::{Entry, Record};
pub use self::site::{PHASED, Phases, Site, Stage, new_cluster};

use self::compare::differences;
use self::rules::Case;
use self::stage::SimulatedStage;

/// Plays a record, and says where what is found differs from it.
#[cfg(test)]
fn check(record: &Record) -> Vec<Difference> {
    steps(record).flat_map(|step| step.unmeant).collect()
}

/// What became of a sequence of steps that nobody wrote by hand.
#[derive(Debug, Default)]
pub struct Comparison {
    /// How many states were compared.
    pub n_states: usize,
    /// The differences that nobody meant, of the first step that has any. What follows it follows from them.
    pub differences: Vec<Difference>,
    /// How many differences were meant, by entry of DEVIATIONS.md.
    pub deviations: BTreeMap<&'static str, usize>,
    /// The entry of DEVIATIONS.md by which the two went separate ways, so that what follows is not compared.
    pub parting: Option<&'static str>,
}

/// Plays what was generated and recorded, and compares up to where the two go separate ways.
pub fn compare(record: &Record) -> Comparison {
    let mut comparison = Comparison::default();
    for step in steps(record) {
        comparison.n_states += 1;
        for entry in step.meant {
            *comparison.deviations.entry(entry).or_default() += 1;
        }
        if step.unmeant.is_empty() {
            continue;
        }
        let case = Case { record, recorded: &step.recorded, found: &step.found };
        comparison.parting = partings::parting(&case, &step.unmeant);
        if comparison.parting.is_none() {
            comparison.differences = step.unmeant;
        }
        break;
    }
    comparison
}

/// The states after one step, and where they differ.
struct Compared {
    recorded: Value,
    found: Value,
    meant: Vec<&'static str>,
    unmeant: Vec<Difference>,
}

fn steps(record: &Record) -> impl Iterator<Item = Compared> {
    let recorded: Vec<Value> =
        record.entries.iter().map(|entry| normal::recorded(entry.state.clone())).collect();
    let recorded = Identities::Recorded.name_all(normal::name_minutes(&recorded));
    let found = Identities::Found.name_all(normal::name_minutes(&found(record)));
    let steps = recorded.into_iter().zip(found).enumerate();
    steps.map(|(step, (mut recorded, mut found))| {
        for state in [&mut recorded, &mut found] {
            *state = normal::without_chance(state);
            normal::without_wording(state);
            normal::sort_lists(state);
        }
        let (mut meant, mut unmeant) = (Vec::new(), Vec::new());
        let case = Case { record, recorded: &recorded, found: &found };
        for difference in differences(step, &recorded, &found) {
            match rules::deviation(&case, &difference) {
                Some(entry) => meant.push(entry),
                None => unmeant.push(difference),
            }
        }
        Compared { recorded, found, meant, unmeant }
    })
}

/// The states that are found after each step of a record.
fn found(record: &Record) -> Vec<Value> {
    let mut stage = SimulatedStage::new(record.is_admitted(), &record.profile);
    let mut n_commands = 0;
    create_all(stage.site(), &record.objects).unwrap();
    let states = record.entries.iter().map(|entry| {
        let refusal = play(&mut stage, &entry.deed, &mut n_commands);
        let metrics = if record.is_generated { String::new() } else { stage.metrics() };
        let mut state = state(stage.site(), &metrics);
        let seen = stage.phases();
        if seen.as_object().is_some_and(|seen| !seen.is_empty()) {
            state["phases"] = seen;
        }
        if let Some(refusal) = refusal {
            state["refusal"] = refusal.replace(stage::NAMESPACE, "{ns}").into();
        }
        state
    });
    states.collect()
}

#[cfg(test)]
mod tests;
