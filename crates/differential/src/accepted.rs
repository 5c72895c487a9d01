//! Differences that stay: `tests/differential/accepted.txt`.
//!
//! One line each: `kind | class | field | text | reason`, with a space on both sides of each bar. The first three may
//! contain `*`; the text is a regular expression that what both servers say must match, or empty.

use anyhow::{Context, Result};
use regex::Regex;

const LIST: &str = include_str!("../../../tests/differential/accepted.txt");

/// The list.
pub(crate) struct Accepted(Vec<Row>);

struct Row {
    kind: Regex,
    class: Regex,
    field: Regex,
    text: Regex,
    reason: String,
}

impl Accepted {
    /// Reads the list.
    pub(crate) fn read() -> Result<Accepted> {
        let lines = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines
            .map(|line| Row::parse(line).with_context(|| format!("accepted.txt: {line}")))
            .collect::<Result<_>>()
            .map(Accepted)
    }

    /// Why a difference stays, if it does.
    pub(crate) fn reason(&self, kind: &str, class: &str, field: &str, text: &str) -> Option<String> {
        let is_match = |row: &&Row| {
            row.kind.is_match(kind)
                && row.class.is_match(class)
                && row.field.is_match(field)
                && row.text.is_match(text)
        };
        self.0.iter().find(is_match).map(|row| row.reason.clone())
    }
}

impl Row {
    fn parse(line: &str) -> Result<Row> {
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [kind, class, field, text, reason] = parts.as_slice() else {
            anyhow::bail!("five columns are needed: kind | class | field | text | reason");
        };
        anyhow::ensure!(reason.len() > 3, "the reason is missing");
        let text = Regex::new(text)?;
        Ok(Row {
            kind: glob(kind)?,
            class: glob(class)?,
            field: glob(field)?,
            text,
            reason: (*reason).to_owned(),
        })
    }
}

fn glob(pattern: &str) -> Result<Regex> {
    Ok(Regex::new(&format!("^{}$", regex::escape(pattern).replace("\\*", ".*")))?)
}
