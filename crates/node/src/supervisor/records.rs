//! The records of all attempts, and the journal that keeps them: one file, to which each change is added as a line
//! of JSON.
//!
//! One file for all, because a new file for each container costs more than its process. It is not synced to disk: it
//! must outlive the death of any process, not that of the machine, for when the machine dies all containers die with
//! it. It is written anew when most of its lines no longer count, so it does not grow with what has been.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use krafla_api::Uid;
use serde::{Deserialize, Serialize};

use crate::container::{ContainerId, Record};

/// The journal's name in the root directory.
const JOURNAL: &str = "records";

/// So many lines that no longer count are never worth a new file.
const STALE_LINES_MAX: usize = 4096;

/// One change.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The newest state of an attempt.
    Is(Record),
    /// An attempt that nobody will ask for again.
    Forgotten(ContainerId),
}

/// The records of all attempts. What changes here is in the journal first: what was reported must not be forgotten.
pub(super) struct Records {
    all: BTreeMap<ContainerId, Record>,
    path: PathBuf,
    /// None if it could not be written: the next change writes a new one.
    journal: Option<Journal>,
}

impl Records {
    /// What the journal in a root directory says. What can not be read is left out: it was cut off, or is not ours.
    pub(super) fn load(root: &Path) -> Records {
        let path = root.join(JOURNAL);
        let bytes = fs::read(&path).unwrap_or_default();
        let mut all = BTreeMap::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Line::Is(record)) if record.id.is_safe() => drop(all.insert(record.id.clone(), record)),
                Ok(Line::Forgotten(id)) => drop(all.remove(&id)),
                Ok(Line::Is(_)) | Err(_) => {}
            }
        }
        Records { all, path, journal: None }
    }

    /// Removes the journal of a root directory of which nobody will ask again.
    pub(super) fn remove_all(root: &Path) {
        let _ = fs::remove_file(root.join(JOURNAL));
    }

    pub(super) fn get(&self, id: &ContainerId) -> Option<&Record> {
        self.all.get(id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &ContainerId> {
        self.all.keys()
    }

    pub(super) fn running(&self) -> impl Iterator<Item = &Record> {
        self.all.values().filter(|record| record.is_running())
    }

    /// All attempts at a pod's containers.
    pub(super) fn of_pod<'a>(&'a self, pod: &'a Uid) -> impl Iterator<Item = &'a Record> {
        let first = ContainerId { pod: pod.clone(), name: String::new(), attempt: 0 };
        self.all.range(first..).map(|(_, record)| record).take_while(move |record| record.id.pod == *pod)
    }

    /// Stores the newest state of an attempt.
    pub(super) fn put(&mut self, record: Record) {
        let line = Line::Is(record.clone());
        self.all.insert(record.id.clone(), record);
        self.write([line]);
    }

    /// Forgets attempts.
    pub(super) fn forget(&mut self, ids: &[ContainerId]) {
        ids.iter().for_each(|id| drop(self.all.remove(id)));
        self.write(ids.iter().cloned().map(Line::Forgotten));
    }

    fn write(&mut self, lines: impl IntoIterator<Item = Line>) {
        if let Err(error) = self.try_to_write(lines) {
            self.journal = None;
            note!("cannot write {}: {error}", self.path.display());
        }
    }

    fn try_to_write(&mut self, lines: impl IntoIterator<Item = Line>) -> io::Result<()> {
        let n_lines_max = self.all.len().saturating_add(STALE_LINES_MAX);
        match &mut self.journal {
            Some(journal) if journal.n_lines < n_lines_max => journal.add(lines),
            _ => {
                let all = self.all.values().cloned().map(Line::Is);
                self.journal = Some(Journal::of(&self.path, all)?);
                Ok(())
            }
        }
    }
}

struct Journal {
    file: File,
    n_lines: usize,
}

impl Journal {
    /// A new journal in place of the one before, which stays as it is until the new one is whole.
    fn of(path: &Path, lines: impl Iterator<Item = Line>) -> io::Result<Journal> {
        let beside = path.with_added_extension("new");
        let mut journal = Journal { file: File::create(&beside)?, n_lines: 0 };
        journal.add(lines)?;
        fs::rename(beside, path)?;
        Ok(journal)
    }

    fn add(&mut self, lines: impl IntoIterator<Item = Line>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut bytes, &line)?;
            bytes.push(b'\n');
            self.n_lines = self.n_lines.saturating_add(1);
        }
        self.file.write_all(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(pod: &str, attempt: u32, pid: i32) -> Record {
        let id = ContainerId { pod: pod.into(), name: "main".to_owned(), attempt };
        Record {
            id,
            backoff_seconds: 10,
            grace_seconds: 30,
            pid: Some(pid),
            started_at: None,
            address: None,
            is_unlimited: false,
            stopping_at: None,
            end: None,
        }
    }

    /// What another supervisor would find.
    fn found(root: &Path) -> Vec<Record> {
        Records::load(root).all.into_values().collect()
    }

    #[test]
    fn the_newest_state_counts_and_what_was_cut_off_does_no_harm() {
        let root = tempfile::tempdir().unwrap();
        let mut records = Records::load(root.path());
        records.put(record("a", 0, 1));
        records.put(record("b", 0, 2));
        records.put(record("a", 0, 3));
        assert_eq!(found(root.path()), [record("a", 0, 3), record("b", 0, 2)]);

        let mut file = File::options().append(true).open(root.path().join(JOURNAL)).unwrap();
        file.write_all(b"{\"is\":{\"pod\":\"a\",\"na").unwrap();
        let mut records = Records::load(root.path());
        records.put(record("c", 0, 4));
        assert_eq!(found(root.path()), [record("a", 0, 3), record("b", 0, 2), record("c", 0, 4)]);
    }

    #[test]
    fn what_is_forgotten_stays_so() {
        let root = tempfile::tempdir().unwrap();
        let mut records = Records::load(root.path());
        for record in [record("a", 0, 1), record("a", 1, 2), record("ab", 0, 3)] {
            records.put(record);
        }
        let of_pod: Vec<_> = records.of_pod(&"a".into()).map(|record| record.id.clone()).collect();
        assert_eq!(of_pod.len(), 2);
        records.forget(&of_pod);
        assert_eq!(found(root.path()), [record("ab", 0, 3)]);
    }

    #[test]
    fn the_journal_does_not_grow_with_what_has_been() {
        let root = tempfile::tempdir().unwrap();
        let mut records = Records::load(root.path());
        records.put(record("a", 0, 0));
        let line = fs::metadata(root.path().join(JOURNAL)).unwrap().len();
        for pid in 0..10_000 {
            records.put(record("b", 0, pid));
        }
        assert_eq!(found(root.path()), [record("a", 0, 0), record("b", 0, 9999)]);
        let n_bytes = fs::metadata(root.path().join(JOURNAL)).unwrap().len();
        assert!(n_bytes < 2 * line * STALE_LINES_MAX as u64, "{n_bytes} bytes");
    }

    #[test]
    fn a_journal_that_could_not_be_written_is_made_anew_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = root.path().join("not yet");
        let mut records = Records::load(&elsewhere);
        records.put(record("a", 0, 1));
        fs::create_dir(&elsewhere).unwrap();
        records.put(record("b", 0, 2));
        assert_eq!(found(&elsewhere), [record("a", 0, 1), record("b", 0, 2)]);
    }
}
