//! Many cases on all cores: each run has one thread, and the result does not depend on which.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::{Failure, Progress, Summary};
use crate::case::Case;
use crate::fault::Fault;
use crate::oracle::Finding;
use crate::program::Program;
use crate::shrink::shrink;
use crate::world::{Outcome, play};

/// So many failures are made small and told, each of another sort; the rest are counted.
const FAILURES_MAX: usize = 8;

/// How often each case is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    Once,
    /// Twice, and both runs must be equal, bit by bit.
    Twice,
}

/// Plays all cases.
pub(super) fn play_all(cases: &[Case], program: &Program, times: Times, progress: Progress<'_>) -> Summary {
    let next = AtomicUsize::new(0);
    let result = Mutex::new((Vec::new(), Duration::ZERO));
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                let mut simulated = Duration::ZERO;
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { break };
                    let outcome = play_times(case, program, times);
                    simulated += outcome.simulated;
                    if !outcome.findings.is_empty() {
                        result.lock().0.push(index);
                    }
                    progress(index, cases.len());
                }
                result.lock().1 += simulated;
            });
        }
    });
    let (mut failed, simulated) = result.into_inner();
    failed.sort_unstable();
    let mut sorts = BTreeSet::new();
    let told = failed.iter().filter_map(|index| cases.get(*index));
    let told: Vec<&Case> = told.filter(|case| sorts.insert(sort(case))).take(FAILURES_MAX).collect();
    Summary {
        n_runs: u64::try_from(cases.len()).unwrap_or(u64::MAX),
        n_violations: u64::try_from(failed.len()).unwrap_or(u64::MAX),
        failures: told.into_iter().map(|case| failure(case, program, times)).collect(),
        simulated,
    }
}

/// Cases of one sort differ only in where the same faults strike: most often one cause fails them all.
fn sort(case: &Case) -> (&'static str, Vec<Fault>) {
    let faults = case.injections.iter().map(|injection| injection.fault).collect();
    (case.scenario.name, faults)
}

fn play_times(case: &Case, program: &Program, times: Times) -> Outcome {
    let mut outcome = play(case, program, false);
    if times == Times::Twice {
        let again = play(case, program, false);
        if (again.hash, again.simulated, again.n_writes)
            != (outcome.hash, outcome.simulated, outcome.n_writes)
        {
            let message = "two runs of the same case differ".to_owned();
            outcome.findings.push(Finding { rule: "chance".to_owned(), message, at: outcome.simulated });
        }
    }
    outcome
}

fn failure(case: &Case, program: &Program, times: Times) -> Failure {
    let smallest = shrink(case.clone(), |smaller| !play_times(smaller, program, times).findings.is_empty());
    let findings = play_times(&smallest, program, times).findings;
    Failure { found: case.clone(), smallest, findings }
}
