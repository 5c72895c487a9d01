//! One record: what was there, what was done, and what Volcano made of it step by step.

use std::collections::BTreeMap;
#[cfg(test)]
use std::path::Path;

use serde_json::{Map, Value, json};

use super::faults;
use super::normal::{Identities, name_minutes};

/// Records that do not say that they need no admission, and yet hold what is refused: a job whose spec is right as long as the
/// flow's patch is ignored, and a pod with two annotations that exclude each other.
const REFUSED: [&str; 2] = ["jobflow/patch-ignored", "podgroup/scheduling-annotations"];

/// One recorded scenario.
pub struct Record {
    /// Folder and file name: `job/phase-pending-abortjob`.
    pub name: String,
    /// The objects at the start, in the order of their creation.
    pub objects: Vec<Value>,
    /// The steps.
    pub entries: Vec<Entry>,
    /// From which step on a fault of Volcano's shows, by its tag.
    pub(super) bugs_since: BTreeMap<String, usize>,
    /// The settings of the controllers.
    pub(super) profile: String,
    /// Whether it was made by a generator. Such records have no metrics.
    pub(super) is_generated: bool,
    needs: Vec<Value>,
}

/// One step, and the whole state after it.
pub struct Entry {
    /// The step.
    pub deed: Value,
    /// The objects after it.
    pub state: Value,
}

/// All records of a folder, in order of their names.
#[cfg(test)]
pub(super) fn read_all(folder: &str) -> Vec<Record> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(folder);
    let files = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<std::path::PathBuf> =
        files.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    files.sort();
    files.iter().map(|path| Record::read(folder, path)).collect()
}

impl Record {
    #[cfg(test)]
    fn read(folder: &str, path: &Path) -> Record {
        let record: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut objects = json!({});
        let entries = record["trace"].as_array().unwrap().iter().map(|entry| {
            merge(&mut objects, entry.get("delta").unwrap_or(&Value::Null));
            let mut state = objects.clone();
            if let Some(phases) = entry.get("phases") {
                state["phases"] = phases.clone();
            }
            Entry { deed: entry["do"].clone(), state }
        });
        let entries = entries.collect();
        let bugs = record.get("bug_steps").and_then(Value::as_object).into_iter().flatten();
        let first = |steps: &Value| steps[0].as_u64().and_then(|step| usize::try_from(step).ok());
        Record {
            name: format!("{folder}/{}", path.file_stem().unwrap().to_str().unwrap()),
            objects: record["objects"].as_array().unwrap().clone(),
            entries,
            bugs_since: bugs.filter_map(|(bug, steps)| Some((bug.clone(), first(steps)?))).collect(),
            profile: record.get("profile").and_then(Value::as_str).unwrap_or_default().to_owned(),
            is_generated: false,
            needs: record.get("needs").and_then(Value::as_array).cloned().unwrap_or_default(),
        }
    }

    /// What Volcano's controllers made of these steps just now. `states` are in the form of [`super::state`].
    pub fn new(name: &str, objects: Vec<Value>, deeds: Vec<Value>, states: &[Value]) -> Record {
        let states = Identities::Found.name_all(name_minutes(states));
        let entries = deeds.into_iter().zip(states).map(|(deed, state)| Entry { deed, state });
        let entries: Vec<Entry> = entries.collect();
        Record {
            name: name.to_owned(),
            objects,
            bugs_since: faults::shown_since(&entries),
            entries,
            profile: String::new(),
            is_generated: true,
            needs: Vec::new(),
        }
    }

    /// Reads what [`Record::to_json`] wrote.
    pub fn from_json(record: &Value) -> Record {
        let list = |field: &str| record[field].as_array().cloned().unwrap_or_default();
        let mut state = json!({});
        let (mut deeds, mut states) = (Vec::new(), Vec::new());
        for entry in list("trace") {
            merge(&mut state, entry.get("delta").unwrap_or(&Value::Null));
            deeds.push(entry["do"].clone());
            states.push(state.clone());
        }
        Record::new(record["name"].as_str().unwrap_or_default(), list("objects"), deeds, &states)
    }

    /// The form of a file: states as merge patches, each against the one before.
    pub fn to_json(&self) -> Value {
        let mut before = json!({});
        let entries = self.entries.iter().map(|entry| {
            let delta = difference(&before, &entry.state);
            before = entry.state.clone();
            json!({ "do": entry.deed, "delta": delta })
        });
        let trace: Vec<Value> = entries.collect();
        json!({ "format": 1, "name": self.name, "objects": self.objects, "trace": trace })
    }

    /// Whether it is played with the admission that ships; some have objects that it would refuse.
    pub(super) fn is_admitted(&self) -> bool {
        !self.needs("no-admission") && !REFUSED.contains(&self.name.as_str())
    }

    /// Whether it takes this from its surroundings.
    fn needs(&self, what: &str) -> bool {
        self.needs.iter().any(|need| need == what)
    }
}

/// JSON merge patch, RFC 7386.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (name, change) in patch {
        match change {
            Value::Null => drop(target.remove(name)),
            Value::Object(_) => merge(target.entry(name).or_insert(Value::Null), change),
            other => drop(target.insert(name.clone(), other.clone())),
        }
    }
}

/// The merge patch that leads from one state to another.
fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let removed = from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = to.iter().filter(|(name, value)| from.get(*name) != Some(value)).map(|(name, value)| {
        let patch = from.get(name).map_or_else(|| value.clone(), |from| difference(from, value));
        (name.clone(), patch)
    });
    Value::Object(removed.chain(changed).collect())
}
