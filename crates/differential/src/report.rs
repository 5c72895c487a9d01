//! What was found: differences grouped by kind, field and class, each with an example.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::accepted::Accepted;
use crate::compare::Difference;
use crate::trial::Trial;

/// What makes differences the same: the kind, the class and the field.
pub(crate) type GroupKey = (String, String, String);

/// Differences of the same kind, class and field.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) kind: String,
    pub(crate) class: String,
    pub(crate) field: String,
    pub(crate) count: usize,
    /// Why the difference stays, if it is listed.
    pub(crate) accepted: Option<String>,
    pub(crate) example: Example,
}

/// One trial that showed a difference.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Example {
    pub(crate) id: String,
    pub(crate) trial: Trial,
    pub(crate) text: String,
    pub(crate) real: Vec<Value>,
    pub(crate) embedded: Vec<Value>,
}

/// Everything found by a run.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) n_trials: usize,
    pub(crate) n_differing: usize,
    groups: BTreeMap<GroupKey, Group>,
}

/// The key of a difference in a trial.
pub(crate) fn key(trial: &Trial, difference: &Difference) -> GroupKey {
    let is_body = difference.class == "body";
    let class = if is_body { format!("body of {}", trial.way.word()) } else { difference.class.clone() };
    (trial.kind.clone(), class, difference.field.clone())
}

impl Report {
    /// Whether a difference like this was not seen before.
    pub(crate) fn is_new(&self, key: &GroupKey) -> bool {
        !self.groups.contains_key(key)
    }

    /// Adds a difference. The shortest example is kept.
    pub(crate) fn add(
        &mut self,
        key: GroupKey,
        difference: &Difference,
        example: impl FnOnce() -> Example,
        accepted: &Accepted,
    ) {
        if let Some(group) = self.groups.get_mut(&key) {
            group.count += 1;
            return;
        }
        let (kind, class, field) = key.clone();
        let reason = accepted.reason(&kind, &class, &field, &difference.text);
        let group = Group { kind, class, field, count: 1, accepted: reason, example: example() };
        self.groups.insert(key, group);
    }

    /// The groups of a kind or of all, most frequent first.
    pub(crate) fn groups(&self) -> Vec<&Group> {
        let mut groups: Vec<&Group> = self.groups.values().collect();
        groups.sort_by_key(|group| (group.accepted.is_some(), std::cmp::Reverse(group.count)));
        groups
    }

    /// Groups that are not listed.
    pub(crate) fn n_unlisted(&self) -> usize {
        self.groups.values().filter(|group| group.accepted.is_none()).count()
    }

    /// One line that says it all.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{} trials, {} with a difference, {} sorts of difference, {} of them not listed",
            self.n_trials,
            self.n_differing,
            self.groups.len(),
            self.n_unlisted()
        )
    }

    /// Writes `report.json`, `report.txt` and one text file per kind.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        std::fs::create_dir_all(dir)?;
        let groups = self.groups();
        let document = json!({"summary": self.summary(), "groups": groups});
        std::fs::write(dir.join("report.json"), serde_json::to_vec_pretty(&document)?)?;
        let mut by_kind: BTreeMap<&str, Vec<&Group>> = BTreeMap::new();
        for group in &groups {
            by_kind.entry(&group.kind).or_default().push(group);
        }
        let mut all = format!("{}\n\n", self.summary());
        for group in &groups {
            writeln!(all, "{}", line(group))?;
        }
        std::fs::write(dir.join("report.txt"), all)?;
        let kinds = dir.join("kinds");
        let _ = std::fs::remove_dir_all(&kinds);
        std::fs::create_dir_all(&kinds)?;
        for (kind, groups) in by_kind {
            std::fs::write(kinds.join(format!("{kind}.txt")), told(&groups)?)?;
        }
        Ok(())
    }
}

/// A group in one line.
pub(crate) fn line(group: &Group) -> String {
    let accepted = group.accepted.as_ref().map(|reason| format!("  (listed: {reason})")).unwrap_or_default();
    format!(
        "{:6}  {}  {}  {}  [{}]{accepted}",
        group.count, group.kind, group.class, group.field, group.example.id
    )
}

fn told(groups: &[&Group]) -> Result<String> {
    let mut text = String::new();
    for group in groups {
        writeln!(text, "{}", line(group))?;
    }
    for group in groups.iter().filter(|group| group.accepted.is_none()) {
        writeln!(
            text,
            "\n== {} {}  ({} times)  {}",
            group.class, group.field, group.count, group.example.id
        )?;
        writeln!(text, "      {}", group.example.trial.about())?;
        writeln!(text, "      {}", group.example.text)?;
    }
    Ok(text)
}
