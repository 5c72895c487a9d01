//! The records of `tests/golden`, played.

use std::collections::BTreeSet;

use super::check;
use super::compare::Difference;
use super::deviations::{self, DEVIATIONS};
use super::record::{self, Record};

/// What was recorded, controller by controller.
const FOLDERS: [&str; 7] = ["job", "plugins", "ttl", "jobflow", "queue", "podgroup", "cronjob"];

/// Which records differ, and why, stands in [`deviations`]; how, in `differences.txt`, which `UPDATE_EXPECT=1` writes anew. Both
/// are exact: a record that differs without a reason fails, and so does one that has a reason and does not differ.
#[test]
fn volcano_s_records_are_reproduced_but_for_what_is_meant_to_differ() {
    let records: Vec<Record> = FOLDERS.into_iter().flat_map(record::read_all).collect();
    assert_eq!(records.len(), 608);
    let (one_half, other_half) = records.split_at(records.len() / 2);
    let differing: Vec<(&str, Vec<Difference>)> = std::thread::scope(|scope| {
        let other_half = scope.spawn(|| check_all(other_half));
        check_all(one_half).into_iter().chain(other_half.join().unwrap()).collect()
    });
    expect_test::expect_file!["differences.txt"].assert_eq(&print(&differing));
    let found: BTreeSet<&str> = differing.iter().map(|(name, _)| *name).collect();
    let meant: BTreeSet<&str> = DEVIATIONS.iter().map(|(name, _)| *name).collect();
    let unmeant: Vec<&&str> = found.difference(&meant).collect();
    assert!(unmeant.is_empty(), "these differ, see differences.txt, and nobody said why: {unmeant:?}");
    let equal: Vec<&&str> = meant.difference(&found).collect();
    assert!(equal.is_empty(), "these are said to differ and do not: {equal:?}");
}

fn check_all(records: &[Record]) -> Vec<(&str, Vec<Difference>)> {
    let checked = records.iter().map(|record| (record.name.as_str(), check(record)));
    checked.filter(|(_, differences)| !differences.is_empty()).collect()
}

fn print(differing: &[(&str, Vec<Difference>)]) -> String {
    let mut printed = String::new();
    for (name, differences) in differing {
        printed += &format!("{name}: {}\n", deviations::reason(name).unwrap_or("not known why"));
        differences.iter().for_each(|difference| printed += &format!("    {difference}\n"));
    }
    printed
}
