//! Every scenario, every write, every fault.

use super::fleet::{Times, play_all};
use super::{Progress, Summary};
use crate::case::Case;
use crate::fault::{FAULTS, Injection};
use crate::program::Program;
use crate::scenario::Scenario;
use crate::world::play;

/// Plays every scenario without faults, and with every fault at every write of that run.
pub fn exhaustive(scenarios: &[&'static Scenario], program: &Program, progress: Progress<'_>) -> Summary {
    let cases: Vec<Case> = scenarios.iter().flat_map(|scenario| cases_of(scenario, program)).collect();
    play_all(&cases, program, Times::Once, progress)
}

/// A scenario without faults, and with every fault at every write of that run.
pub fn cases_of(scenario: &'static Scenario, program: &Program) -> Vec<Case> {
    let calm = Case::calm(scenario);
    let n_writes = play(&calm, program, false).n_writes;
    let mut cases = vec![calm.clone()];
    for write in 1..=n_writes {
        cases.extend(FAULTS.iter().map(|(_, fault)| calm.with([Injection { write, fault: *fault }])));
    }
    cases
}
