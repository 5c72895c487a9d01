//! Every record of Volcano's controllers (`tests/golden`), played on the
//! server that ships: the same objects, the same steps, and after each step the same state, except where a difference is
//! meant.

mod compare;
mod deviations;
mod normal;
mod play;
mod record;
mod rules;
mod stage;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use self::compare::{Difference, differences};
use self::deviations::DEVIATIONS;
use self::normal::Identities;
use self::record::Record;
use self::rules::Case;
use self::stage::Stage;

/// Plays a record, and says where what is found differs from it.
fn check(record: &Record) -> Vec<Difference> {
    let recorded: Vec<Value> =
        record.entries.iter().map(|entry| normal::recorded(entry.state.clone())).collect();
    let recorded = Identities::Recorded.name_all(normal::name_minutes(&recorded));
    let found = Identities::Found.name_all(normal::name_minutes(&found(record)));
    let steps = recorded.into_iter().zip(found).enumerate();
    steps
        .flat_map(|(step, (mut recorded, mut found))| {
            for state in [&mut recorded, &mut found] {
                *state = normal::without_chance(state);
                normal::without_wording(state);
                normal::sort_lists(state);
            }
            let differences = differences(step, &recorded, &found);
            let case = Case { record, found: &found };
            differences
                .into_iter()
                .filter(|difference| rules::deviation(&case, difference).is_none())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The states that are found after each step of a record.
fn found(record: &Record) -> Vec<Value> {
    let mut stage = Stage::new(record.is_admitted(), &record.profile);
    let mut phases = Map::new();
    let mut n_commands = 0;
    play::create_all(&stage, &record.objects);
    let states = record.entries.iter().map(|entry| {
        let refusal = play::play(&mut stage, &entry.deed, &mut n_commands);
        let mut state = normal::state(&stage);
        let seen = stage.phases(&mut phases);
        if seen.as_object().is_some_and(|seen| !seen.is_empty()) {
            state["phases"] = seen;
        }
        if let Some(refusal) = refusal {
            state["refusal"] = refusal.into();
        }
        state
    });
    states.collect()
}

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
