//! The durable records of attempts: one small JSON file each, replaced as a whole.
//!
//! They are not synced to disk: they must outlive the death of any process, not that of the machine, for when the
//! machine dies all containers die with it and are reported as lost.

use std::fs;
use std::io;
use std::path::Path;

use crate::container::{ContainerId, Record, is_file_name};

/// Writes a record, so that a reader finds either the old or the new one.
pub(super) fn save(pods: &Path, record: &Record) -> io::Result<()> {
    let path = record.id.record_path(pods);
    let beside = path.with_extension("json.new");
    fs::write(&beside, serde_json::to_vec(record)?)?;
    fs::rename(&beside, &path)
}

/// Removes the files of one attempt, as far as there are any.
pub(super) fn remove(pods: &Path, id: &ContainerId) {
    // What is not there need not be removed, and what can not be removed goes with the pod's directory.
    let _ = fs::remove_file(id.record_path(pods));
    let _ = fs::remove_file(id.log_path(pods));
}

/// All records below the directory of all pods. What can not be read is left out: it is not one of ours.
pub(super) fn load_all(pods: &Path) -> Vec<Record> {
    let mut records = Vec::new();
    for pod in children(pods) {
        for container in children(&pods.join(&pod).join("containers")) {
            let directory = pods.join(&pod).join("containers").join(container);
            let files = children(&directory).into_iter().filter(|name| name.ends_with(".json"));
            records.extend(files.filter_map(|name| load(&directory.join(name))));
        }
    }
    records
}

fn load(path: &Path) -> Option<Record> {
    let bytes = fs::read(path).ok()?;
    serde_json::from_slice::<Record>(&bytes).ok().filter(|record| record.id.is_safe())
}

fn children(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_file_name(name)).collect()
}
