//! Cases that begin alike are played from where they part, and only until one comes to where another has been.
//!
//! ```text
//!   trunk   ----o--------o--------o-------->     a case with some faults, or none
//!                \        \        \
//!   branches      `--> x   `-->     `---->       the same with one fault more, each in a fork of the world at its write
//!                      |
//!                      a state that an earlier run of the same trunk has been in, and after which that run found nothing:
//!                      what would follow is known
//! ```
//!
//! **Invariant:** what is found in a branch is what [`play`](crate::world::play) finds in its case.

use std::collections::HashSet;
use std::time::Duration;

use crate::case::Case;
use crate::oracle::Finding;
use crate::program::Program;
use crate::world::{Move, Next, World};

/// States in which runs of one scenario have been, as numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Nothing was found after these without another fault.
    ended: HashSet<u64>,
    /// Nor with another fault at any later write.
    branched: HashSet<u64>,
}

/// How a case went that was played with others.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What must not be and was.
    pub findings: Vec<Finding>,
    /// How much virtual time went by where it was played.
    pub simulated: Duration,
    /// Whether it came to where another run has been, and was played no further.
    pub is_joined: bool,
    /// The number of [`Outcome::hash`](crate::Outcome::hash), unless it was played no further.
    pub hash: u64,
}

/// Plays cases, each of which is the trunk with one fault more at one of the trunk's writes, in the order of these writes. Where
/// several trunks share what is `known`, the branches of each are to be made of the same faults. `told` hears of each how it went.
pub(crate) fn play_branches(
    trunk: &Case,
    branches: &[Case],
    program: &Program,
    known: &mut Known,
    mut told: impl FnMut(&Case, Verdict),
) {
    let mut world = World::new(trunk, program, false);
    let mut branches = branches.iter().peekable();
    let (mut passed, mut has_findings) = (Vec::new(), false);
    while !world.is_over() && branches.peek().is_some() {
        let next = world.next();
        if let (Next::PassTime { .. }, Some(state)) = (next, world.digest()) {
            if known.branched.contains(&state) {
                break;
            }
            passed.push(state);
        }
        // Only a process writes, and only then a branch can part.
        let before = match next {
            Next::Make(Move::Process(..)) => world.fork(&[]),
            _ => None,
        };
        world.advance(next);
        let n_writes = world.n_writes();
        while let Some(case) = branches.next_if(|case| strikes_at(case) <= n_writes) {
            let branch = before.as_ref().and_then(|before| before.fork(&case.injections));
            let verdict = match branch {
                Some(mut branch) => {
                    let began_at = branch.age();
                    branch.advance(next);
                    let verdict = finish(branch, case, known);
                    Verdict { simulated: verdict.simulated.saturating_sub(began_at), ..verdict }
                }
                None => finish(World::new(case, program, false), case, known),
            };
            has_findings |= !verdict.findings.is_empty();
            told(case, verdict);
        }
    }
    if !has_findings {
        known.branched.extend(passed);
    }
    // The trunk has come to where another has been, and each of these with it.
    for case in branches {
        told(case, Verdict { findings: Vec::new(), simulated: Duration::ZERO, is_joined: true, hash: 0 });
    }
}

/// Plays one case from the start.
pub(crate) fn play_known(case: &Case, program: &Program, known: &mut Known) -> Verdict {
    finish(World::new(case, program, false), case, known)
}

/// The write at which the last fault of a case strikes.
fn strikes_at(case: &Case) -> usize {
    case.injections.iter().map(|injection| injection.write as usize).max().unwrap_or(0)
}

/// Plays a world to its end, or until it comes to where another has been.
fn finish(mut world: World, case: &Case, known: &mut Known) -> Verdict {
    let mut passed = Vec::new();
    let mut is_joined = false;
    while !world.is_over() && !is_joined {
        let next = world.next();
        if matches!(next, Next::PassTime { .. })
            && let Some(state) = world.digest()
        {
            is_joined = known.ended.contains(&state);
            passed.push(state);
        }
        if !is_joined {
            world.advance(next);
        }
    }
    let findings = if is_joined { Vec::new() } else { world.judge(case) };
    if findings.is_empty() {
        known.ended.extend(passed);
    }
    Verdict { findings, simulated: world.age(), is_joined, hash: world.hash() }
}
