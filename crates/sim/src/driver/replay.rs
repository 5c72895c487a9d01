//! One case again, with a timeline for people.

use super::case_of_seed;
use crate::case::{Case, NoCase};
use crate::program::Program;
use crate::scenario;
use crate::world::{Outcome, play};

/// Plays the case of a seed, or the case that a word says.
pub fn replay(word: &str, program: &Program) -> Result<(Case, Outcome), NoCase> {
    let of_seed = word.parse().ok().and_then(|seed| case_of_seed(scenario::ALL, seed));
    let case = match of_seed {
        Some(case) => case,
        None => word.parse()?,
    };
    let outcome = play(&case, program, true);
    Ok((case, outcome))
}
