//! The cases that are known to differ: the table under "Recorded answers" in DEVIATIONS.md, `case | reason` in each row.
//! A case is named by its id, or several by a pattern with `*`.

use crate::case::root;

const HEADING: &str = "\n## Recorded answers\n";
const NOT_YET: &str = "tests/golden/apiserver/not-yet.txt";

/// What is listed.
pub(crate) struct Deviations {
    rows: Vec<(String, String)>,
    not_yet: Vec<String>,
}

/// What is known of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// It differs on purpose, and must.
    Deviates,
    /// It is to pass one day, and may.
    NotYet,
}

impl Deviations {
    pub(crate) fn read() -> Deviations {
        let text = std::fs::read_to_string(root().join("DEVIATIONS.md")).expect("DEVIATIONS.md");
        let table = text.split_once(HEADING).map(|(_, rest)| rest).unwrap_or_default();
        let section = table.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter_map(row).collect();
        let not_yet = std::fs::read_to_string(root().join(NOT_YET)).unwrap_or_default();
        Deviations { rows, not_yet: not_yet.lines().map(str::to_owned).collect() }
    }

    /// What the list says of a case.
    pub(crate) fn known(&self, id: &str) -> Option<Known> {
        if self.rows.iter().any(|(pattern, _)| is_match(pattern, id)) {
            return Some(Known::Deviates);
        }
        self.not_yet.iter().any(|listed| listed == id).then_some(Known::NotYet)
    }

    /// The patterns of the table.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|(pattern, _)| pattern.as_str())
    }
}

/// A row of the table names its cases in code quotes, and says why.
fn row(line: &str) -> Option<(String, String)> {
    let (cases, reason) = line.strip_prefix("| `")?.split_once("` | ")?;
    Some((cases.to_owned(), reason.trim_end_matches(" |").to_owned()))
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
