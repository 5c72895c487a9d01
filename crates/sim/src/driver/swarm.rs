//! Seeds: each draws a scenario, an order of events, a few faults of a few sorts, and how pods are terminated.
//!
//! A run that draws from all faults at once hides what only some of them show, because the loudest mask the others. So
//! every seed first draws which faults it draws from.

use super::fleet::{Times, play_all};
use super::{Progress, Summary};
use crate::case::{Case, Order};
use crate::fault::{FAULTS, Fault, Injection};
use crate::program::Program;
use crate::rng::Rng;
use crate::scenario::Scenario;
use crate::termination::{KILLED, TERMINATIONS};

/// A seed draws at most so many faults.
const INJECTIONS_MAX: u64 = 6;
/// Faults strike one of so many first writes; the longest scenarios have about as many.
const WRITES_MAX: u64 = 80;

/// Plays the cases of these seeds, each twice: both runs must be equal, bit by bit.
pub fn swarm(
    scenarios: &[&'static Scenario],
    program: &Program,
    seeds: std::ops::Range<u64>,
    progress: Progress<'_>,
) -> Summary {
    let cases: Vec<Case> = seeds.filter_map(|seed| case_of_seed(scenarios, seed)).collect();
    play_all(&cases, program, Times::Twice, progress)
}

/// The case that a seed stands for.
pub fn case_of_seed(scenarios: &[&'static Scenario], seed: u64) -> Option<Case> {
    let mut rng = Rng::new(seed);
    let scenario = *rng.pick(scenarios)?;
    // Two leaders of whom one hears of pods later than the other write against each other until one ends, and what they make of
    // a pod that has just finished is not promised. Where both hear the same, they are played at every write.
    let may_be_drawn = |fault: &Fault| *fault != Fault::TwoLeaders;
    let faults = FAULTS.iter().map(|(_, fault)| *fault).filter(may_be_drawn);
    let sorts: Vec<Fault> = faults.filter(|_| rng.percent(30)).collect();
    let n_injections = rng.below(INJECTIONS_MAX + 1);
    let mut injections: Vec<Injection> = (0..n_injections)
        .filter_map(|_| {
            let write = u32::try_from(rng.below(WRITES_MAX) + 1).unwrap_or(1);
            Some(Injection { write, fault: *rng.pick(&sorts)? })
        })
        .collect();
    injections.sort_unstable();
    injections.dedup_by_key(|injection| injection.write);
    let order = Order::Shuffled(rng.next());
    let termination = rng.pick(&TERMINATIONS).copied().unwrap_or(&KILLED);
    Some(Case { scenario, termination, order, injections })
}
