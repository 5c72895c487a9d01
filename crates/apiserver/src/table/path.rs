//! The part of Kubernetes' JSONPath that printer columns use: `.a.b`, `['a.b']`, `[0]`, `[*]`, `[?(@.type=="Ready")]`.

use serde_json::Value;

/// A path into an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(i64),
    Every,
    Where(Path, String),
}

impl Path {
    /// Reads a path; `None` if it uses more of JSONPath than is known here.
    pub fn parse(text: &str) -> Option<Path> {
        let mut rest = text.trim();
        rest = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(rest);
        rest = rest.strip_prefix('$').or_else(|| rest.strip_prefix('@')).unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = if let Some(bracketed) = rest.strip_prefix('[') {
                parse_bracket(bracketed)?
            } else {
                parse_field(rest.strip_prefix('.')?)?
            };
            steps.push(step);
            rest = after;
        }
        Some(Path(steps))
    }

    /// The first value at this path.
    pub fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        // An empty path is one that could not be read: it finds nothing rather than everything.
        if self.0.is_empty() {
            return None;
        }
        walk(&self.0, object).filter(|value| !value.is_null())
    }
}

fn walk<'a>(steps: &[Step], at: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(at) };
    match step {
        Step::Field(name) => walk(rest, at.get(name)?),
        Step::Index(index) => {
            let items = at.as_array()?;
            let index = if *index < 0 { index + i64::try_from(items.len()).ok()? } else { *index };
            walk(rest, items.get(usize::try_from(index).ok()?)?)
        }
        Step::Every => at.as_array()?.iter().find_map(|item| walk(rest, item)),
        Step::Where(path, wanted) => {
            let is_wanted = |item: &&Value| match walk(&path.0, item) {
                Some(Value::String(text)) => text == wanted,
                Some(other) => wanted == &other.to_string(),
                None => false,
            };
            at.as_array()?.iter().filter(is_wanted).find_map(|item| walk(rest, item))
        }
    }
}

/// A name up to the next dot or bracket; a backslash makes the next character part of it.
fn parse_field(text: &str) -> Option<(Step, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '.' | '[' => {
                return (!name.is_empty()).then(|| (Step::Field(name), text.get(at..).unwrap_or_default()));
            }
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            other => name.push(other),
        }
    }
    (!name.is_empty()).then_some((Step::Field(name), ""))
}

/// What stands between brackets, without the first.
fn parse_bracket(text: &str) -> Option<(Step, &str)> {
    if let Some(filter) = text.strip_prefix("?(") {
        let (condition, rest) = filter.split_once(")]")?;
        let (path, wanted) = condition.split_once("==")?;
        let wanted = wanted.trim().trim_matches(['"', '\'']);
        return Some((Step::Where(Path::parse(path)?, wanted.to_owned()), rest));
    }
    let (inside, rest) = text.split_once(']')?;
    let step = match inside.trim() {
        "*" => Step::Every,
        quoted if quoted.starts_with(['"', '\'']) => Step::Field(quoted.trim_matches(['"', '\'']).to_owned()),
        index => Step::Index(index.parse().ok()?),
    };
    Some((step, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_finds_the_first_value_it_leads_to() {
        let object = json!({
            "status": {"state": {"phase": "Running"}, "conditions": [
                {"type": "A", "status": "False"}, {"type": "Ready", "status": "True"}, {"type": "Ready", "n": 3},
            ]},
            "metadata": {"labels": {"a.b/c": "x"}}, "none": null,
        });
        let cases = [
            (".status.state.phase", json!("Running")),
            ("{.status.state.phase}", json!("Running")),
            (".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
            (".status.conditions[?(@.type=='Ready')].n", json!(3)),
            (".status.conditions[1].type", json!("Ready")),
            (".status.conditions[-1].n", json!(3)),
            (".status.conditions[*].status", json!("False")),
            (".metadata.labels['a.b/c']", json!("x")),
            (".metadata.labels.a\\.b/c", json!("x")),
            (".none", json!(null)),
            (".not.there", json!(null)),
        ];
        for (path, expected) in cases {
            let found = Path::parse(path).unwrap().first(&object).cloned().unwrap_or_default();
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn what_is_not_known_of_jsonpath_is_refused() {
        for path in ["status", ".a[?(@.x>3)]", ".a[", "..a", ".a[x]"] {
            assert_eq!(Path::parse(path), None, "{path}");
        }
    }
}
