//! DEVIATIONS.md names tests, recordings and scenarios that exist.
//!
//! A name resolves if it is part of the path of a test (`plan::vcjob::tests::volcano::volcano_b1_…`), of a file (`job/pod-quota`), or the name
//! of a scenario or fault of the simulator. A `*` in a name stands for any text.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A row without a test says so.
const NO_TEST: &str = "none";
/// A row with the tests of an earlier row.
const EARLIER_TEST: &str = "same";

#[test]
fn every_test_that_the_page_names_exists() {
    let names = Names::read(&root());
    let page = fs::read_to_string(root().join("DEVIATIONS.md")).unwrap();
    let gone: Vec<String> = rows(&page)
        .flat_map(|row| {
            test_names(row).filter(|name| !names.has(name)).map(move |name| format!("{name}: {row}"))
        })
        .collect();
    assert!(gone.is_empty(), "DEVIATIONS.md names tests that do not exist:\n{}", gone.join("\n"));
}

#[test]
fn every_row_names_a_test_or_says_that_there_is_none() {
    let page = fs::read_to_string(root().join("DEVIATIONS.md")).unwrap();
    let silent: Vec<&str> = rows(&page)
        .filter(|row| {
            let cell = last_cell(row);
            cell != NO_TEST && !cell.starts_with(EARLIER_TEST) && test_names(row).next().is_none()
        })
        .collect();
    assert!(rows(&page).count() > 100, "the tables were not found");
    assert!(silent.is_empty(), "rows without a test:\n{}", silent.join("\n"));
}

#[test]
fn a_name_that_does_not_exist_is_found() {
    let names = Names::read(&root());
    for name in [
        "deviations::a_name_that_does_not_exist_is_found",
        "plan::deviations",
        "…a_name_that_does_*_found",
        "job/pod-quota",
        "restart",
    ] {
        assert!(names.has(name), "{name}");
    }
    for name in
        ["volcano_b1000_*", "plan::nowhere", "guard::deviations", "job/no-such-record", "no-such-scenario"]
    {
        assert!(!names.has(name), "{name}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of all tables but the recorded answers, which the replay of the recordings checks.
fn rows(page: &str) -> impl Iterator<Item = &str> {
    let checked = page.split("\n## Recorded answers\n").next().unwrap_or_default();
    let lines: Vec<&str> = checked.lines().collect();
    let is_head = |at: usize| lines.get(at + 1).is_some_and(|next| next.starts_with("|---"));
    let rows: Vec<&str> = (0..lines.len())
        .filter(|&at| lines[at].starts_with("| ") && !is_head(at))
        .map(|at| lines[at])
        .collect();
    rows.into_iter()
}

fn last_cell(row: &str) -> &str {
    row.trim_end_matches(['|', ' ']).rsplit(" | ").next().unwrap_or_default()
}

/// The names in code quotes in the last column.
fn test_names(row: &str) -> impl Iterator<Item = &str> {
    last_cell(row).split('`').skip(1).step_by(2)
}

/// All names that a row may use.
struct Names {
    /// Tests by crate, module and function.
    tests: Vec<Vec<String>>,
    /// Files by directory and name, without their extension.
    files: Vec<Vec<String>>,
    /// Words in quotes in the code of the simulator's scenarios and faults.
    quoted: BTreeSet<String>,
}

impl Names {
    fn read(root: &Path) -> Names {
        let mut names = Names { tests: Vec::new(), files: Vec::new(), quoted: BTreeSet::new() };
        for top in ["crates", "tests/golden"] {
            for path in files_below(&root.join(top)) {
                names.add(path.strip_prefix(root).unwrap());
            }
        }
        for code in ["crates/sim/src/scenario", "crates/sim/src/fault.rs"] {
            for path in files_below(&root.join(code)) {
                let text = fs::read_to_string(path).unwrap();
                names.quoted.extend(text.split('"').skip(1).step_by(2).map(str::to_owned));
            }
        }
        names
    }

    fn add(&mut self, path: &Path) {
        let mut parts: Vec<String> =
            path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
        self.files.push(parts.clone());
        if path.extension().is_none_or(|extension| extension != "rs") {
            return;
        }
        // `crates/plan/src/vcjob/mod.rs` is the module `plan::vcjob`.
        parts.remove(0);
        parts.remove(1);
        if parts.last().is_some_and(|name| matches!(name.as_str(), "mod" | "main" | "lib")) {
            parts.pop();
        }
        let text = fs::read_to_string(root().join(path)).unwrap();
        self.tests.extend(tests_in(&text).into_iter().map(|test| [parts.clone(), test].concat()));
    }

    fn has(&self, name: &str) -> bool {
        let name = name.trim_start_matches('…').trim_start_matches("::");
        if name.contains('/') {
            let name = name.trim_end_matches(".rs");
            return self.files.iter().any(|path| contains(path, &name.split('/').collect::<Vec<_>>()));
        }
        let parts: Vec<&str> = name.split("::").collect();
        self.tests.iter().any(|path| contains(path, &parts)) || self.quoted.contains(name)
    }
}

fn files_below(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|entry| files_below(&entry)).collect()
}

/// The tests of a file, each with the modules that it is in.
fn tests_in(text: &str) -> Vec<Vec<String>> {
    let (mut tests, mut modules, mut is_test) = (Vec::new(), Vec::<(String, usize)>::new(), false);
    for line in text.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        if code == "}" && modules.last().is_some_and(|(_, at)| *at == indent) {
            modules.pop();
        } else if let Some(name) = code.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            modules.push((name.to_owned(), indent));
        } else if code.starts_with("#[test]") || code.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(rest) = code.trim_start_matches("async ").strip_prefix("fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            if is_test {
                tests.push(
                    modules.iter().map(|(module, _)| module.clone()).chain([name.to_owned()]).collect(),
                );
            }
            is_test = false;
        }
    }
    tests
}

/// Whether the parts follow each other somewhere in a path.
fn contains(path: &[String], parts: &[&str]) -> bool {
    path.windows(parts.len())
        .any(|window| window.iter().zip(parts).all(|(text, pattern)| is_match(pattern, text)))
}

fn is_match(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    (0..=text.len()).any(|at| text.get(at..).is_some_and(|tail| is_match(rest, tail)))
}
