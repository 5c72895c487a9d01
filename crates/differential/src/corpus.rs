//! Trials that once showed a difference, with the answers of the real server: `tests/golden/differential/*.jsonl`.
//!
//! One trial a line, one file per kind. `scripts/differential --record` adds what a run has found. The test below plays
//! all of them on the embedded server, without a real one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::report::{Group, Report};
use crate::trial::Trial;

/// A trial and what the real server answered.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) trial: Trial,
    pub(crate) real: Vec<Value>,
}

/// The directory of the corpus.
pub(crate) fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/differential")
}

/// All records, by id.
pub(crate) fn load() -> Result<BTreeMap<String, Record>> {
    let mut records = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(dir()) else { return Ok(records) };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(&path)?.lines() {
            let record: Record = serde_json::from_str(line).with_context(|| path.display().to_string())?;
            records.insert(record.trial.id(), record);
        }
    }
    Ok(records)
}

/// Adds the examples of a report.
pub(crate) fn add(report: &Report) -> Result<usize> {
    let mut records = load()?;
    let n_before = records.len();
    let is_comparable = |group: &&&Group| group.class != "not answered";
    for group in report.groups().iter().filter(is_comparable) {
        let example = &group.example;
        let record = Record { trial: example.trial.clone(), real: example.real.clone() };
        records.entry(example.id.clone()).or_insert(record);
    }
    let n_added = records.len() - n_before;
    let mut by_kind: BTreeMap<String, String> = BTreeMap::new();
    for record in records.values() {
        let text = by_kind.entry(record.trial.kind.clone()).or_default();
        text.push_str(&serde_json::to_string(record)?);
        text.push('\n');
    }
    std::fs::create_dir_all(dir())?;
    for (kind, text) in by_kind {
        std::fs::write(dir().join(format!("{kind}.jsonl")), text)?;
    }
    Ok(n_added)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on stops")]

    use std::collections::BTreeSet;

    use super::*;
    use crate::accepted::Accepted;
    use crate::compare::differences;
    use crate::report::key;
    use crate::run::Pair;
    use crate::{bases, servers};

    /// Trials that still differ, one id a line: a mended one is taken off the list.
    const OPEN: &str = include_str!("../../../tests/golden/differential/open.txt");

    #[test]
    fn what_once_differed_is_answered_as_by_the_real_server() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let different = runtime.block_on(different()).unwrap();
        let open: BTreeSet<&str> = OPEN.lines().filter(|line| !line.starts_with('#')).collect();
        let surprises: Vec<String> = different
            .iter()
            .filter(|(id, _)| !open.contains(id.as_str()))
            .map(|(id, text)| format!("{id}\n{text}"))
            .collect();
        println!("{} trials still differ, {} are listed", different.len(), open.len());
        if std::env::var("UPDATE_EXPECT").is_ok() {
            let ids: Vec<&str> = different.keys().map(String::as_str).collect();
            let text = format!(
                "# Trials of the corpus that the embedded server still answers in another way.\n{}\n",
                ids.join("\n")
            );
            std::fs::write(dir().join("open.txt"), text).unwrap();
            return;
        }
        assert!(
            surprises.is_empty(),
            "{} trials differ that are not listed\n{}",
            surprises.len(),
            surprises.join("\n")
        );
    }

    /// The trials that differ from the records, with what differs.
    async fn different() -> Result<BTreeMap<String, String>> {
        let accepted = Accepted::read()?;
        let subjects = bases::subjects()?;
        let server = servers::embedded().await?;
        let pair = Pair::prepare(servers::target(&server), servers::target(&server)).await?;
        pair.store(&subjects).await?;
        let mut clients = pair.clients();
        let mut different = BTreeMap::new();
        for (id, record) in load()? {
            let trial = &record.trial;
            let Some(subject) = subjects.iter().find(|subject| subject.name() == trial.kind) else {
                continue;
            };
            let answers = clients.ask_one(subject, trial, true).await;
            let found = differences(&record.real, &answers);
            let open = found.into_iter().filter(|difference| {
                let (kind, class, field) = key(trial, difference);
                accepted.reason(&kind, &class, &field, &difference.text).is_none()
            });
            let lines: Vec<String> = open
                .map(|found| format!("  {} {}\n      {}", found.class, found.field, found.text))
                .collect();
            if !lines.is_empty() {
                different.insert(id, format!("      {}\n{}", trial.about(), lines.join("\n")));
            }
        }
        Ok(different)
    }
}
