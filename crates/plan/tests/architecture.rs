//! The drawing of crates in ARCHITECTURE.md shows the dependencies of the Cargo.toml files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// The crates of this workspace that each crate depends on, apart from its tests.
type Edges = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_drawing_shows_the_dependencies_of_every_crate() {
    let (drawn, declared) = (drawn(), declared());
    let mut wrong = Vec::new();
    for (name, needs) in &declared {
        match drawn.get(name) {
            None => wrong.push(format!("{name} is missing: add the line `{name} -> {}`", joined(needs))),
            Some(shown) if shown != needs => {
                wrong.push(format!("{name} depends on {}, not on {}", joined(needs), joined(shown)));
            }
            Some(_) => {}
        }
    }
    wrong.extend(drawn.keys().filter(|name| !declared.contains_key(*name)).map(|it| format!("{it} is gone")));
    assert!(wrong.is_empty(), "the drawing in ARCHITECTURE.md is out of date:\n{}", wrong.join("\n"));
}

#[test]
fn a_crate_depends_on_crates_above_it_in_the_drawing_alone() {
    let order: Vec<String> = drawing().into_iter().map(|(name, _)| name).collect();
    let place = |name: &str| order.iter().position(|other| other == name);
    for (name, needs) in drawing() {
        for need in needs {
            assert!(place(&need) < place(&name), "{name} is drawn above {need}, which it depends on");
        }
    }
}

/// What no crate on the left may ever depend on, however indirectly.
#[test]
fn decisions_and_the_server_stay_apart() {
    let declared = declared();
    for (name, forbidden) in [
        ("admission", &["cluster", "runtime", "client", "apiserver"][..]),
        ("plan", &["runtime", "client", "apiserver", "keys"]),
        ("schema", &["plan", "runtime", "client", "apiserver"]),
        ("apiserver", &["plan", "guard", "runtime", "client", "scheduler", "node"]),
        ("client", &["plan", "runtime", "apiserver"]),
    ] {
        let Some(needs) = declared.get(name) else { continue };
        let mut all = BTreeSet::new();
        let mut next: Vec<&String> = needs.iter().collect();
        while let Some(need) = next.pop() {
            if all.insert(need.as_str()) {
                next.extend(declared.get(need).into_iter().flatten());
            }
        }
        let found: Vec<_> = forbidden.iter().filter(|it| all.contains(**it)).collect();
        assert!(found.is_empty(), "{name} depends on {found:?}");
    }
}

fn joined(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn drawn() -> Edges {
    drawing().into_iter().map(|(name, needs)| (name, needs.into_iter().collect())).collect()
}

/// The lines of the drawing: `plan -> admission, api`. A crate without dependencies stands alone.
fn drawing() -> Vec<(String, Vec<String>)> {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, rest) = page.split_once("## Dependencies\n").unwrap();
    let block = rest.split("```").nth(1).unwrap();
    let lines = block.lines().filter(|line| !line.trim().is_empty() && *line != "text");
    let lines = lines.map(|line| {
        let (name, needs) = line.split_once("->").unwrap_or((line, ""));
        let needs = needs.split(',').map(str::trim).filter(|need| !need.is_empty());
        (name.trim().to_owned(), needs.map(str::to_owned).collect())
    });
    lines.collect()
}

/// The `[dependencies]` of all crates.
fn declared() -> Edges {
    let mut edges = Edges::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(text) = fs::read_to_string(dir.join("Cargo.toml")) else { continue };
        let sections = text.split("\n[").filter_map(|section| section.strip_prefix("dependencies]\n"));
        let lines = sections.flat_map(str::lines).filter_map(|line| line.strip_prefix("krafla-"));
        let needs = lines.map(|line| line.split(['.', ' ', '=']).next().unwrap().to_owned());
        edges.insert(dir.file_name().unwrap().to_str().unwrap().to_owned(), needs.collect());
    }
    assert!(edges.len() > 10, "the crates were not found");
    edges
}
