//! The durable records of attempts: one small file each, to which each change is added as a line of JSON.
//!
//! The last whole line counts, so a write that was cut off does no harm, and no file has to be replaced:
//! starting a container costs one new file. The files are not synced to disk: they must outlive the death of
//! any process, not that of the machine, for when the machine dies all containers die with it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::container::{ContainerId, Record, is_file_name};

/// Adds the newest state of a record.
pub(super) fn save(pods: &Path, record: &Record) -> io::Result<()> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    File::options().create(true).append(true).open(record.id.record_path(pods))?.write_all(&line)
}

/// Removes the files of one attempt, as far as there are any.
pub(super) fn remove(pods: &Path, id: &ContainerId) {
    // What is not there need not be removed, and what can not be removed goes with the pod's directory.
    let _ = fs::remove_file(id.record_path(pods));
    for path in super::log_file::segments(&id.log_path(pods)) {
        let _ = fs::remove_file(path);
    }
}

/// All records below the directory of all pods. What can not be read is left out: it is not one of ours.
pub(super) fn load_all(pods: &Path) -> Vec<Record> {
    let mut records = Vec::new();
    for pod in children(pods) {
        let directory = pods.join(pod);
        let files = children(&directory).into_iter().filter(|name| name.ends_with(".json"));
        records.extend(files.filter_map(|name| load(&directory.join(name))));
    }
    records
}

fn load(path: &Path) -> Option<Record> {
    let bytes = fs::read(path).ok()?;
    let lines = bytes.split(|byte| *byte == b'\n').rev();
    let mut records = lines.filter_map(|line| serde_json::from_slice::<Record>(line).ok());
    records.next().filter(|record| record.id.is_safe())
}

fn children(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_file_name(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(pid: Option<i32>) -> Record {
        let id = ContainerId { pod: "u".into(), name: "main".to_owned(), attempt: 0 };
        Record {
            id,
            backoff_seconds: 10,
            grace_seconds: 30,
            pid,
            started_at: None,
            stopping_at: None,
            end: None,
        }
    }

    #[test]
    fn the_last_whole_line_of_a_record_counts() {
        let pods = tempfile::tempdir().unwrap();
        fs::create_dir(pods.path().join("u")).unwrap();
        save(pods.path(), &record(None)).unwrap();
        save(pods.path(), &record(Some(7))).unwrap();
        assert_eq!(load_all(pods.path()), [record(Some(7))]);
        let mut file = File::options().append(true).open(record(None).id.record_path(pods.path())).unwrap();
        file.write_all(b"{\"pod\":\"u\",\"na").unwrap();
        assert_eq!(load_all(pods.path()), [record(Some(7))]);
    }
}
