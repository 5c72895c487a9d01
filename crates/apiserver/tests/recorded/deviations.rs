//! The cases that are known to differ: the table under "Recorded answers" in DEVIATIONS.md, `case | reason` in each row.
//! A case is named by its id, or several by a pattern with `*`.

use krafla_recorded::case::root;

const HEADING: &str = "\n## Recorded answers\n";

/// What is listed.
pub(crate) struct Deviations {
    /// The patterns of the rows; each says why, in its second column.
    patterns: Vec<String>,
}

impl Deviations {
    pub(crate) fn read() -> Deviations {
        let text = std::fs::read_to_string(root().join("DEVIATIONS.md")).expect("DEVIATIONS.md");
        let table = text.split_once(HEADING).map(|(_, rest)| rest).unwrap_or_default();
        let section = table.split("\n## ").next().unwrap_or_default();
        Deviations { patterns: section.lines().filter_map(pattern).map(str::to_owned).collect() }
    }

    /// Whether a case is known to differ.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.patterns.iter().any(|pattern| is_match(pattern, id))
    }

    /// The patterns of the table.
    pub(crate) fn patterns(&self) -> &[String] {
        &self.patterns
    }
}

/// A row of the table names its cases in code quotes, and says why.
fn pattern(line: &str) -> Option<&str> {
    let (pattern, reason) = line.strip_prefix("| `")?.split_once("` | ")?;
    (reason.trim_end_matches(['|', ' ']).len() > 3).then_some(pattern)
}

/// Whether a pattern names a case.
pub(crate) fn is_match(pattern: &str, id: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| id.strip_prefix(first)) else { return false };
    let mut ends_open = false;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        ends_open = part.is_empty();
    }
    rest.is_empty() || ends_open
}
