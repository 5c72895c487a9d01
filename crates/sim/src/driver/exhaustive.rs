//! Every scenario, every write, every fault.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::Kind;

use super::fleet::{Tally, in_parallel};
use super::{Progress, Summary};
use crate::branches::{Known, Verdict, play_branches, play_known};
use crate::case::Case;
use crate::fault::{FAULTS, Fault, Injection};
use crate::program::Program;
use crate::scenario::Scenario;
use crate::termination::{KILLED, TERMINATIONS};
use crate::world::{Outcome, play};

/// The scenarios in which clocks are set and processes stopped at every write: small ones.
const STOPPED_IN: [&str; 3] = ["straight", "restart", "again"];

/// Plays every scenario as [`cases_of`] says. What is found is what [`play`] finds in these cases one by one.
pub fn exhaustive(scenarios: &[&'static Scenario], program: &Program, progress: Progress<'_>) -> Summary {
    let play_one = |scenario: &&'static Scenario| {
        let mut tally = Tally::default();
        play_cases(&cases_of(scenario, program), program, |case, verdict| tally.add(case, verdict));
        tally
    };
    in_parallel(scenarios, play_one, program, progress)
}

/// Plays the cases of one scenario, those with one termination after those with another, and each of them first without faults
/// and then with one fault. `told` hears of each how it went.
pub fn play_cases(cases: &[Case], program: &Program, mut told: impl FnMut(&Case, Verdict)) {
    for cases in cases.chunk_by(|one, other| one.termination == other.termination) {
        let Some((trunk, branches)) = cases.split_first() else { continue };
        let mut known = Known::default();
        told(trunk, play_known(trunk, program, &mut known));
        play_branches(trunk, branches, program, &mut known, &mut told);
    }
}

/// A scenario without faults, and with every fault at every write of that run at which it can strike. Where it matters how pods are
/// terminated, each other way is played without faults, and one of them with every second fault, in turn.
pub fn cases_of(scenario: &'static Scenario, program: &Program) -> Vec<Case> {
    let calm = Case::calm(scenario);
    let usual = play(&calm, program, false);
    let hash = usual.hash;
    let mut cases = with_every_fault(&calm, usual, program);
    let others: Vec<_> = TERMINATIONS.into_iter().filter(|termination| **termination != KILLED).collect();
    for (position, termination) in others.iter().enumerate() {
        let calm = Case { termination, ..calm.clone() };
        let outcome = play(&calm, program, false);
        if outcome.hash == hash {
            continue;
        }
        let is_in_turn = |number: &usize| number % (2 * others.len()) == 2 * position;
        let all = with_every_fault(&calm, outcome, program).into_iter().enumerate();
        cases.extend(all.filter(|(number, _)| *number == 0 || is_in_turn(number)).map(|(_, case)| case));
    }
    cases
}

/// A case, which went like this, and the same with one fault more at every later write of that run at which it can strike.
pub(super) fn with_every_fault(case: &Case, outcome: Outcome, program: &Program) -> Vec<Case> {
    let scenario = case.scenario;
    let watched: BTreeMap<&str, BTreeSet<Kind>> =
        program.parts.iter().map(|part| (part.name, part.kinds())).collect();
    let mut cases = vec![case.clone()];
    let Outcome { writes, kinds, .. } = outcome;
    let last = case.injections.iter().map(|injection| injection.write).max().unwrap_or(0);
    for (write, attempt) in (1..).zip(writes).filter(|(write, _)| *write > last) {
        // News of a kind of which there is nothing can not be late.
        let watches = |kind| {
            kinds.contains(&kind) && watched.get(attempt.process).is_some_and(|kinds| kinds.contains(&kind))
        };
        let can_strike = |fault: &Fault| match fault {
            Fault::Late(kind) | Fault::Hang(kind) | Fault::Relist(kind) | Fault::Repeat(kind) => {
                watches(*kind)
            }
            Fault::Touched => !attempt.creates,
            // Elsewhere they are drawn by lot.
            Fault::Paused | Fault::ClockAhead | Fault::ClockBehind | Fault::ClockGlitch => {
                STOPPED_IN.contains(&scenario.name)
            }
            _ => true,
        };
        let faults = FAULTS.iter().map(|(_, fault)| *fault).filter(can_strike);
        cases.extend(
            faults
                .map(|fault| case.with(case.injections.iter().copied().chain([Injection { write, fault }]))),
        );
    }
    cases
}
