//! Which cases to play, and what to say about them.

mod exhaustive;
mod fleet;
mod pairs;
mod replay;
mod swarm;

use std::time::Duration;

pub use exhaustive::{cases_of, exhaustive, play_cases};
pub use pairs::{Pairing, pairs, smallest_scenarios};
pub use replay::replay;
pub use swarm::{case_of_seed, swarm};

use crate::case::Case;
use crate::oracle::Finding;

/// What came of playing many cases.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many runs there were.
    pub n_runs: u64,
    /// How many of them came to where another run had been and were played no further.
    pub n_joined: u64,
    /// How many of them found something.
    pub n_violations: u64,
    /// The first of those, in the order of cases, each made as small as it goes.
    pub failures: Vec<Failure>,
    /// How much virtual time went by in all runs together.
    pub simulated: Duration,
}

/// A case that fails.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The case as it was found.
    pub found: Case,
    /// The smallest case that still fails.
    pub smallest: Case,
    /// What the smallest case shows.
    pub findings: Vec<Finding>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "violation in {}", self.found)?;
        for finding in &self.findings {
            writeln!(f, "  {finding}")?;
        }
        write!(f, "  krafla-sim replay {}", self.smallest)
    }
}

/// Told now and then how many of how many runs are done.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);
