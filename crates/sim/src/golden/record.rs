//! One record: what was there, what was done, and what Volcano made of it step by step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// Records that do not say that they need no admission, and yet hold what is refused: a job whose spec is right as long as the
/// flow's patch is ignored, and a pod with two annotations that exclude each other.
const REFUSED: [&str; 2] = ["jobflow/patch-ignored", "podgroup/scheduling-annotations"];

/// One recorded scenario.
pub(super) struct Record {
    /// Folder and file name: `job/phase-pending-abortjob`.
    pub(super) name: String,
    pub(super) objects: Vec<Value>,
    pub(super) entries: Vec<Entry>,
    /// From which step on a fault of Volcano's shows, by its tag.
    pub(super) bugs_since: BTreeMap<String, usize>,
    /// The settings of the controllers.
    pub(super) profile: String,
    needs: Vec<Value>,
}

/// One step, and the whole state after it.
pub(super) struct Entry {
    pub(super) deed: Value,
    pub(super) state: Value,
}

/// All records of a folder, in order of their names.
pub(super) fn read_all(folder: &str) -> Vec<Record> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(folder);
    let files = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    files.sort();
    files.iter().map(|path| Record::read(folder, path)).collect()
}

impl Record {
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
            needs: record.get("needs").and_then(Value::as_array).cloned().unwrap_or_default(),
        }
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
