//! One run as data: which scenario, in which order things happen, what goes wrong. It can be said in one word on a
//! command line, and the same word always leads to the same run.
//!
//! ```text
//!   restart                          nothing goes wrong
//!   restart+yields                   pods that are asked to go end well
//!   restart:12:crash-before          the process dies before write 12
//!   restart:12:crash-before:14:busy  and the server is too busy for write 14
//!   restart~4711:12:crash-before     things happen in the order drawn from seed 4711
//! ```

use std::str::FromStr;

use crate::fault::{Fault, Injection};
use crate::scenario::{self, Scenario};
use crate::termination::{KILLED, TERMINATIONS, Termination};

/// One run as data.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is to happen.
    pub scenario: &'static Scenario,
    /// How pods end that are asked to go.
    pub termination: &'static Termination,
    /// In which order.
    pub order: Order,
    /// What goes wrong on the way.
    pub injections: Vec<Injection>,
}

/// In which order things happen that could happen at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// News travel at once, plans are carried out in one go, and time moves on when all is said and done.
    Calm,
    /// Everything that could happen next is equally likely to; news of each kind lag as they like; other processes act
    /// between the writes of a plan; time moves on meanwhile.
    Shuffled(u64),
}

impl Case {
    /// A scenario in which nothing goes wrong.
    pub fn calm(scenario: &'static Scenario) -> Case {
        Case { scenario, termination: &KILLED, order: Order::Calm, injections: Vec::new() }
    }

    /// What must be there at the end.
    pub(crate) fn end(&self) -> &'static str {
        self.scenario.end_with(self.termination)
    }

    /// The same with faults.
    pub fn with(&self, injections: impl IntoIterator<Item = Injection>) -> Case {
        Case { injections: injections.into_iter().collect(), ..self.clone() }
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.scenario.name)?;
        if *self.termination != KILLED {
            write!(f, "+{}", self.termination.name)?;
        }
        if let Order::Shuffled(seed) = self.order {
            write!(f, "~{seed}")?;
        }
        self.injections.iter().try_for_each(|injection| write!(f, ":{injection}"))
    }
}

/// A word that says no case, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoCase(String);

impl std::fmt::Display for NoCase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoCase {}

impl FromStr for Case {
    type Err = NoCase;

    fn from_str(word: &str) -> Result<Case, NoCase> {
        let mut parts = word.split(':');
        let first = parts.next().unwrap_or_default();
        let (name, order) = match first.split_once('~') {
            None => (first, Order::Calm),
            Some((name, seed)) => (name, Order::Shuffled(number(seed, "seed")?)),
        };
        let (name, termination) = match name.split_once('+') {
            None => (name, &KILLED),
            Some((name, termination)) => (name, termination_named(termination)?),
        };
        let scenario = scenario::named(name).ok_or_else(|| {
            let known: Vec<&str> = scenario::ALL.iter().map(|scenario| scenario.name).collect();
            NoCase(format!("there is no scenario {name:?}; there are {}", known.join(", ")))
        })?;
        let mut injections = Vec::new();
        while let Some(write) = parts.next() {
            let write = number(write, "write")?;
            let fault = parts.next().unwrap_or_default();
            let fault = Fault::named(fault).ok_or_else(|| NoCase(format!("there is no fault {fault:?}")))?;
            injections.push(Injection { write, fault });
        }
        Ok(Case { scenario, termination, order, injections })
    }
}

fn termination_named(name: &str) -> Result<&'static Termination, NoCase> {
    Termination::named(name).ok_or_else(|| {
        let known = TERMINATIONS.map(|termination| termination.name);
        NoCase(format!("there is no termination {name:?}; there are {}", known.join(", ")))
    })
}

fn number<N: FromStr>(text: &str, what: &str) -> Result<N, NoCase> {
    text.parse().map_err(|_| NoCase(format!("{text:?} is not the number of a {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_said_in_one_word() {
        for word in [
            "restart",
            "restart:12:crash-before",
            "restart~4711:12:late-pods:14:busy",
            "restart+yields",
            "restart+forced~4711:12:busy",
        ] {
            assert_eq!(word.parse::<Case>().unwrap().to_string(), word);
        }
    }

    #[test]
    fn a_word_that_says_no_case_is_answered_with_the_reason() {
        let why = |word: &str| word.parse::<Case>().unwrap_err().to_string();
        assert!(why("nowhere").starts_with("there is no scenario \"nowhere\"; there are straight, "));
        assert_eq!(why("restart:12"), "there is no fault \"\"");
        assert_eq!(why("restart:x:busy"), "\"x\" is not the number of a write");
        assert!(why("restart+well").starts_with("there is no termination \"well\"; there are killed, "));
        assert_eq!(why("restart~x"), "\"x\" is not the number of a seed");
    }
}
