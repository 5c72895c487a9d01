//! What differs between a recorded answer and ours, in lines that a person can read.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::case::Step;

/// How many differences of one step are shown.
const SHOWN_MAX: usize = 25;

/// Lines grouped by step; empty when the case passes.
pub fn of_case(steps: &[Step], answers: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, (step, answer)) in steps.iter().zip(answers).enumerate() {
        let mut found = Vec::new();
        match answer.get("error") {
            Some(error) => found.push(error.to_string()),
            None => between(&step.expect, answer, "", &mut found),
        }
        if found.is_empty() {
            continue;
        }
        lines.push(format!("  step {}: {}", number + 1, step.title()));
        let hidden = found.len().saturating_sub(SHOWN_MAX);
        lines.extend(found.into_iter().take(SHOWN_MAX).map(|line| format!("    {line}")));
        if hidden > 0 {
            lines.push(format!("    … and {hidden} more"));
        }
    }
    lines
}

/// What differs between two answers, line by line.
pub fn between(wanted: &Value, found: &Value, at: &str, lines: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            let keys: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
            for key in keys {
                // Descriptions are another project's text: they are left out here on purpose, see DEVIATIONS.md.
                if key != "description" {
                    let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                    either(wanted.get(key), found.get(key), &at, lines);
                }
            }
        }
        (Value::Array(wanted), Value::Array(found)) => {
            for index in 0..wanted.len().max(found.len()) {
                either(wanted.get(index), found.get(index), &format!("{at}/{index}"), lines);
            }
        }
        (wanted, found) if wanted == found => {}
        (Value::String(wanted), Value::String(found)) if wanted.len() + found.len() > 160 => {
            lines.push(format!("{at}: text differs"));
            lines.push(format!("    recorded  {wanted}"));
            lines.push(format!("    answered  {found}"));
        }
        _ => lines.push(format!("{at}: recorded {}, answered {}", short(wanted), short(found))),
    }
}

fn either(wanted: Option<&Value>, found: Option<&Value>, at: &str, lines: &mut Vec<String>) {
    match (wanted, found) {
        (Some(wanted), Some(found)) => between(wanted, found, at, lines),
        (Some(wanted), None) => lines.push(format!("{at}: missing, recorded {}", short(wanted))),
        (None, Some(found)) => lines.push(format!("{at}: not recorded: {}", short(found))),
        (None, None) => {}
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}
