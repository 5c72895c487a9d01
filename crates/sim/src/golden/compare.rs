//! Where what is found differs from what was recorded.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// One place at which the two differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step after which it shows.
    pub step: usize,
    /// Section, name of the object, and fields.
    pub path: Vec<String>,
    /// The value with Volcano's controllers.
    pub recorded: Option<Value>,
    /// The value with ours.
    pub found: Option<Value>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let print = |value: &Option<Value>| match value {
            None => "nothing".to_owned(),
            Some(Value::Object(_)) => "{..}".to_owned(),
            Some(Value::Array(items)) if items.iter().all(|item| item.get("status").is_some()) => {
                let phases: Vec<&str> = items.iter().filter_map(|item| item["status"].as_str()).collect();
                phases.join(" > ")
            }
            Some(value) => value.to_string(),
        };
        write!(
            f,
            "{} {}: {} -> {}",
            self.step,
            self.path.join("/"),
            print(&self.recorded),
            print(&self.found)
        )
    }
}

/// All places at which the states after a step differ. Nothing is compared where the recorded runs themselves differed.
pub(super) fn differences(step: usize, recorded: &Value, found: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    compare(&mut Place { step, path: Vec::new() }, Some(recorded), Some(found), &mut all);
    all
}

/// Whether anything may stand there.
fn is_open(recorded: &str) -> bool {
    recorded.starts_with("<unstable") || recorded == "<script>"
}

struct Place {
    step: usize,
    path: Vec<String>,
}

fn compare(place: &mut Place, recorded: Option<&Value>, found: Option<&Value>, all: &mut Vec<Difference>) {
    if recorded == found || recorded.and_then(Value::as_str).is_some_and(is_open) {
        return;
    }
    match (recorded, found) {
        (Some(Value::Object(recorded)), Some(Value::Object(found))) => {
            let names: BTreeSet<&String> = recorded.keys().chain(found.keys()).collect();
            for name in names {
                place.path.push(name.clone());
                compare(place, recorded.get(name), found.get(name), all);
                place.path.pop();
            }
        }
        // A section that is missing is an empty one.
        (Some(Value::Object(_)), None) if place.path.len() == 1 => {
            compare(place, recorded, Some(&json!({})), all)
        }
        (None, Some(Value::Object(_))) if place.path.len() == 1 => {
            compare(place, Some(&json!({})), found, all)
        }
        (Some(Value::Array(recorded)), Some(Value::Array(found)))
            if recorded.len() == found.len()
                && (place.path.last().is_some_and(|name| name != "conditions")
                    || recorded.iter().any(|item| item["status"].as_str().is_some_and(is_open))) =>
        {
            for (index, (recorded, found)) in recorded.iter().zip(found).enumerate() {
                place.path.push(index.to_string());
                compare(place, Some(recorded), Some(found), all);
                place.path.pop();
            }
        }
        _ => all.push(Difference {
            step: place.step,
            path: place.path.clone(),
            recorded: recorded.cloned(),
            found: found.cloned(),
        }),
    }
}
