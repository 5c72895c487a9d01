//! What can go wrong with a directory, a file or a disk, and what is said about it.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::faulty_disk::FaultyDisk;
use super::*;

/// A directory with some objects in it.
fn directory_with_objects() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    runtime().block_on(async {
        for value in 0..20 {
            store.commit(create(&format!("pod-{value}"), value)).await.unwrap();
        }
    });
    dir
}

/// What is said when the directory is opened.
fn check(dir: &Path, expected: Expect) {
    let error = Store::open(dir).expect_err("it cannot be opened").to_string();
    let message = error.replace(&dir.display().to_string(), "DIR");
    expected.assert_eq(&message.replace(&format!("process {}", std::process::id()), "process PID"));
}

#[test]
fn a_directory_is_open_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    check(dir.path(), expect!["DIR is in use by process PID; stop that program or choose another directory"]);
    store.close();
    let again = Store::open(dir.path()).unwrap();
    check(dir.path(), expect!["DIR is in use by process PID; stop that program or choose another directory"]);
    drop(again);
    Store::open(dir.path()).unwrap();
}

#[test]
fn a_directory_that_is_none_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = Store::open(&dir.path().join("file")).unwrap_err().to_string();
    expect!["cannot use DIR/file: File exists (os error 17)"]
        .assert_eq(&error.replace(&dir.path().display().to_string(), "DIR"));
}

#[test]
fn a_file_of_something_else_is_not_touched() {
    let dir = directory_with_objects();
    let path = dir.path().join("store.redb");
    fs::write(&path, "dear diary").unwrap();
    check(
        dir.path(),
        expect![
            "DIR/store.redb is damaged: Not a redb database: magic number mismatch; put a copy of it in its place, or move it away to start empty"
        ],
    );
    assert_eq!(fs::read(&path).unwrap(), b"dear diary");
}

#[test]
fn a_truncated_file_is_damaged() {
    let dir = directory_with_objects();
    let file = fs::File::options().write(true).open(dir.path().join("store.redb")).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    check(
        dir.path(),
        expect![
            "DIR/store.redb is damaged: File truncated below stored layout: file_len=65536, layout_len=131072; put a copy of it in its place, or move it away to start empty"
        ],
    );
}

#[test]
fn a_changed_byte_is_damage() {
    let dir = directory_with_objects();
    let path = dir.path().join("store.redb");
    let mut bytes = fs::read(&path).unwrap();
    let place = bytes.windows(5).position(|text| text == b"pod-7").unwrap();
    bytes[place] = b'q';
    fs::write(&path, &bytes).unwrap();
    check(
        dir.path(),
        expect![
            "DIR/store.redb is damaged: Primary is corrupted despite 2-phase commit; put a copy of it in its place, or move it away to start empty"
        ],
    );
}

#[test]
fn a_file_of_a_later_version_is_left_alone() {
    let dir = directory_with_objects();
    let database = redb::Database::open(dir.path().join("store.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let table = redb::TableDefinition::<&str, u64>::new("store");
    transaction.open_table(table).unwrap().insert("format", 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    check(
        dir.path(),
        expect!["DIR/store.redb was written by another version of krafla (format 2); use that version"],
    );
}

#[test]
fn half_of_a_new_file_is_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("store.redb.new"), "redb, almost").unwrap();
    assert_eq!(Store::open(dir.path()).unwrap().revision(), FIRST_REVISION);
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    let (store, faulty_disk) = FaultyDisk::store();
    let mut watcher = store.watch(&pods(), FIRST_REVISION).unwrap();
    let runtime = runtime();
    let commit = |write| runtime.block_on(store.commit(write));
    let first = commit(create("a", 0)).unwrap();

    faulty_disk.is_full.store(true, Ordering::Relaxed);
    let refused = commit(update("a", first.revision, 1)).unwrap_err();
    expect!["the store could not write: no storage space"].assert_eq(&refused.to_string());
    assert_eq!(store.revision(), first.revision);
    assert_eq!(store.get(&pods(), &first.key).unwrap(), first);

    faulty_disk.is_full.store(false, Ordering::Relaxed);
    let second = commit(update("a", first.revision, 2)).unwrap();
    assert_eq!(second.revision, first.revision + 1);
    let seen: Vec<_> =
        std::iter::from_fn(|| watcher.try_next()).map(|event| event.unwrap().revision).collect();
    assert_eq!(seen, [first.revision, second.revision]);
    store.close();
    let (_disk, contents) = Disk::open(faulty_disk).unwrap();
    assert_eq!(contents.revision, second.revision);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_bit_is_harmless_or_refused(place in any::<prop::sample::Index>(), bit in 0..8) {
        let dir = directory_with_objects();
        let path = dir.path().join("store.redb");
        let mut bytes = fs::read(&path).unwrap();
        // Most of a small file is empty; where it is not, a bit matters.
        let used: Vec<usize> = (0..bytes.len()).filter(|n| bytes[*n] != 0).collect();
        bytes[used[place.index(used.len())]] ^= 1_u8 << bit;
        fs::write(&path, &bytes).unwrap();
        match Store::open(dir.path()) {
            Ok(store) => prop_assert_eq!((store.revision(), store.snapshot(&pods()).entries.len()), (21, 20)),
            Err(error) => prop_assert!(matches!(error, OpenError::Damaged { .. }), "{}", error),
        }
    }
}
