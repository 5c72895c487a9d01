//! Many cases on all cores: each run has one thread, and the result does not depend on which.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::{Failure, Progress, Summary};
use crate::branches::Verdict;
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

/// What came of some cases.
#[derive(Debug, Default)]
pub(super) struct Tally {
    n_runs: u64,
    n_joined: u64,
    failed: Vec<Case>,
    simulated: Duration,
}

impl Tally {
    /// Takes in how a case went.
    pub(super) fn add(&mut self, case: &Case, verdict: Verdict) {
        self.n_runs += 1;
        self.n_joined += u64::from(verdict.is_joined);
        self.simulated += verdict.simulated;
        if !verdict.findings.is_empty() {
            self.failed.push(case.clone());
        }
    }
}

/// Plays all cases.
pub(super) fn play_all(cases: &[Case], program: &Program, times: Times, progress: Progress<'_>) -> Summary {
    let tallies = each_in_parallel(cases, progress, |case| {
        let Outcome { findings, simulated, hash, .. } = play_times(case, program, times);
        let mut tally = Tally::default();
        tally.add(case, Verdict { findings, simulated, is_joined: false, hash });
        tally
    });
    summary(tallies, program, times)
}

/// Plays the cases of many things, each of which one thread plays.
pub(super) fn in_parallel<T: Sync>(
    of: &[T],
    play: impl Fn(&T) -> Tally + Sync,
    program: &Program,
    progress: Progress<'_>,
) -> Summary {
    summary(each_in_parallel(of, progress, play), program, Times::Once)
}

/// What came of each of many things, in their order.
fn each_in_parallel<T: Sync>(
    of: &[T],
    progress: Progress<'_>,
    play: impl Fn(&T) -> Tally + Sync,
) -> Vec<Tally> {
    let next = AtomicUsize::new(0);
    let tallies = Mutex::new(Vec::with_capacity(of.len()));
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = of.get(index) else { break };
                    let tally = play(one);
                    tallies.lock().push((index, tally));
                    progress(index, of.len());
                }
            });
        }
    });
    let mut tallies = tallies.into_inner();
    tallies.sort_unstable_by_key(|(index, _)| *index);
    tallies.into_iter().map(|(_, tally)| tally).collect()
}

fn summary(tallies: Vec<Tally>, program: &Program, times: Times) -> Summary {
    let mut all = Tally::default();
    for tally in tallies {
        all.n_runs += tally.n_runs;
        all.n_joined += tally.n_joined;
        all.simulated += tally.simulated;
        all.failed.extend(tally.failed);
    }
    let mut sorts = BTreeSet::new();
    let told = all.failed.iter().filter(|case| sorts.insert(sort(case))).take(FAILURES_MAX);
    Summary {
        n_runs: all.n_runs,
        n_joined: all.n_joined,
        n_violations: u64::try_from(all.failed.len()).unwrap_or(u64::MAX),
        failures: told.map(|case| failure(case, program, times)).collect(),
        simulated: all.simulated,
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
