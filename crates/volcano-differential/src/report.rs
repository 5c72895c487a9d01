//! What came of many sequences: how many were compared, and which differences there are, by sort.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use krafla_sim::golden::{Comparison, Difference};
use serde_json::Value;

/// The seeds that are named of each sort.
const NAMED_MAX: usize = 6;

/// What came of many sequences.
#[derive(Default)]
pub(crate) struct Report {
    n_sequences: usize,
    n_states: usize,
    n_differing: usize,
    /// Sequences whose objects the server refuses.
    pub(crate) n_refused: usize,
    /// Sequences that were played a second time.
    pub(crate) n_again: usize,
    deviations: BTreeMap<&'static str, usize>,
    partings: BTreeMap<&'static str, usize>,
    sorts: BTreeMap<String, Sort>,
}

#[derive(Default)]
struct Sort {
    seeds: Vec<u64>,
    example: Vec<String>,
}

impl Report {
    /// Adds what came of a sequence.
    pub(crate) fn add(&mut self, comparison: &Comparison) {
        self.n_sequences += 1;
        self.n_states += comparison.n_states;
        for (entry, n) in &comparison.deviations {
            *self.deviations.entry(entry).or_default() += n;
        }
        if let Some(entry) = comparison.parting {
            *self.partings.entry(entry).or_default() += 1;
        }
    }

    /// Adds differences that nobody meant.
    pub(crate) fn found(&mut self, seed: u64, differences: &[Difference]) {
        self.n_differing += 1;
        let sort = self.sorts.entry(sort_of(differences)).or_default();
        sort.seeds.push(seed);
        if sort.example.is_empty() {
            sort.example = differences.iter().map(Difference::to_string).collect();
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.n_differing == 0
    }

    /// The figures on one line.
    pub(crate) fn line(&self, elapsed: Duration) -> String {
        let n_parted: usize = self.partings.values().sum();
        format!(
            "{} sequences, {} states compared, {} parted by a listed deviation, {} differ; {} played twice, {} refused, {} s",
            self.n_sequences,
            self.n_states,
            n_parted,
            self.n_differing,
            self.n_again,
            self.n_refused,
            elapsed.as_secs(),
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} sequences, {} states compared", self.n_sequences, self.n_states)?;
        writeln!(f, "listed deviations in single fields:")?;
        self.deviations.iter().try_for_each(|(entry, n)| writeln!(f, "  {entry}: {n}"))?;
        writeln!(f, "sequences that part by a listed deviation:")?;
        self.partings.iter().try_for_each(|(entry, n)| writeln!(f, "  {entry}: {n}"))?;
        writeln!(f, "sequences that differ otherwise: {}", self.n_differing)?;
        let mut sorts: Vec<(&String, &Sort)> = self.sorts.iter().collect();
        sorts.sort_by_key(|(_, sort)| std::cmp::Reverse(sort.seeds.len()));
        for (name, sort) in sorts {
            let seeds: Vec<String> = sort.seeds.iter().take(NAMED_MAX).map(u64::to_string).collect();
            writeln!(f, "  {} x {name} (seeds {})", sort.seeds.len(), seeds.join(" "))?;
            sort.example.iter().take(12).try_for_each(|line| writeln!(f, "      {line}"))?;
        }
        Ok(())
    }
}

/// The sort of a difference: the most telling of the paths, without names, and what was found in place of what.
pub(crate) fn sort_of(differences: &[Difference]) -> String {
    let telling = differences.iter().min_by_key(|difference| {
        let path = general_path(difference);
        let rank = [
            "refusal",
            "jobs/*/status/state/phase",
            "jobs/*",
            "phases/*",
            "pods/*",
            "podgroups/*",
            "jobs/*/status/retryCount",
        ];
        rank.iter().position(|it| *it == path).unwrap_or(rank.len())
    });
    telling.map_or_else(String::new, |difference| {
        let (recorded, found) = (brief(&difference.recorded), brief(&difference.found));
        format!("{}: {recorded} -> {found}", general_path(difference))
    })
}

fn general_path(difference: &Difference) -> String {
    let mut path = difference.path.clone();
    if let Some(name) = path.get_mut(1) {
        let of_event = name.split(' ').take(2).collect::<Vec<&str>>().join(" ");
        *name = if difference.path.first().is_some_and(|section| section == "events") {
            of_event
        } else {
            "*".to_owned()
        };
    }
    path.join("/")
}

fn brief(value: &Option<Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::Object(_) | Value::Array(_)) => "{..}".to_owned(),
        Some(value) => value.to_string(),
    }
}
