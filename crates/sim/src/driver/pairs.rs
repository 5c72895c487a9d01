//! Pairs of faults: each of them at each write, and after it each of them at each later write.

use super::exhaustive::with_every_fault;
use super::fleet::{Tally, in_parallel};
use super::{Progress, Summary};
use crate::branches::{Known, play_branches, play_known};
use crate::case::Case;
use crate::fault::Fault;
use crate::program::Program;
use crate::scenario::{self, Scenario};
use crate::world::play;

/// The scenarios with the fewest writes that show something of their own: a job that waits, one that ends well, one of Kubernetes,
/// and one that is deleted.
const SMALLEST: [&str; 4] = ["waiting", "straight", "batch-plain", "deleted"];

/// Of which faults pairs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Of those that strike the author or the answer of one write: F1, F5 and F6.
    OfWrites,
    /// Of all, but for two leaders, whose end is promised only while both hear the same.
    OfAll,
}

impl Pairing {
    fn includes(self, fault: Fault) -> bool {
        match self {
            Pairing::OfAll => fault != Fault::TwoLeaders,
            Pairing::OfWrites => matches!(
                fault,
                Fault::CrashBefore
                    | Fault::CrashAfter
                    | Fault::TimeoutBefore
                    | Fault::TimeoutAfter
                    | Fault::Busy
                    | Fault::Refused
                    | Fault::Outage
                    | Fault::Conflict
                    | Fault::Touched
                    | Fault::Retried
            ),
        }
    }
}

/// The scenarios in which pairs are played, unless others are asked for.
pub fn smallest_scenarios() -> Vec<&'static Scenario> {
    SMALLEST.iter().filter_map(|name| scenario::named(name)).collect()
}

/// Plays every pair of faults in some scenarios.
pub fn pairs(
    scenarios: &[&'static Scenario],
    pairing: Pairing,
    program: &Program,
    progress: Progress<'_>,
) -> Summary {
    let play_one = |scenario: &&'static Scenario| {
        let mut tally = Tally::default();
        let mut known = Known::default();
        let calm = Case::calm(scenario);
        tally.add(&calm, play_known(&calm, program, &mut known));
        let singles = branches(&calm, pairing, program);
        play_branches(&calm, &singles, program, &mut known, |case, verdict| tally.add(case, verdict));
        for trunk in singles {
            let pairs = branches(&trunk, pairing, program);
            play_branches(&trunk, &pairs, program, &mut known, |case, verdict| tally.add(case, verdict));
        }
        tally
    };
    in_parallel(scenarios, play_one, program, progress)
}

/// A case with one fault more.
fn branches(trunk: &Case, pairing: Pairing, program: &Program) -> Vec<Case> {
    let all = with_every_fault(trunk, play(trunk, program, false), program).into_iter().skip(1);
    let is_meant =
        |case: &Case| case.injections.last().is_some_and(|injection| pairing.includes(injection.fault));
    all.filter(is_meant).collect()
}
