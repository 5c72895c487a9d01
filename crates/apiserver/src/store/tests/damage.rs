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
            "DIR/store.redb is damaged: Not a redb database: magic number mismatch; put a copy of it in its place, or move the whole directory away to start empty"
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
            "DIR/store.redb is damaged: File truncated below stored layout: file_len=268288, layout_len=536576; put a copy of it in its place, or move the whole directory away to start empty"
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
            "DIR/store.redb is damaged: Primary is corrupted despite 2-phase commit; put a copy of it in its place, or move the whole directory away to start empty"
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

/// What the files of a store are, as a killed process would leave them.
fn files_of(dir: &Path) -> [Vec<u8>; 2] {
    FILES.map(|name| fs::read(dir.join(name)).unwrap())
}

const FILES: [&str; 2] = ["store.redb", "store.head"];

#[test]
fn after_a_kill_no_damaged_bit_of_the_header_takes_back_what_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let runtime = runtime();
    for value in 0..3 {
        runtime.block_on(store.commit(create(&format!("pod-{value}"), value))).unwrap();
    }
    let [file, head] = files_of(dir.path());
    // Hundreds of stores are made; no power is lost meanwhile.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let (mut n_bits, mut n_restored) = (0, 0);
    for byte in (0..head::HEADER_BYTES).filter(|n| file[*n] != 0) {
        for bit in 0..8 {
            let mut damaged = file.clone();
            damaged[byte] ^= 1_u8 << bit;
            let killed = tempfile::tempdir_in(&place).unwrap();
            fs::write(killed.path().join("store.redb"), &damaged).unwrap();
            fs::write(killed.path().join("store.head"), &head).unwrap();
            n_bits += 1;
            // Refused is noticed.
            if let Ok(opened) = Store::open(killed.path()) {
                assert_eq!(opened.revision(), store.revision(), "bit {bit} of byte {byte}");
                assert_eq!(opened.snapshot(&pods()).entries.len(), 3, "bit {bit} of byte {byte}");
                n_restored += 1;
            }
        }
    }
    assert!(n_bits >= 328, "{n_bits}");
    assert_eq!(n_restored, n_bits, "the head has a copy of the header");
}

#[test]
fn an_older_copy_is_refused_until_it_is_wanted() {
    let dir = directory_with_objects();
    let [older, _] = files_of(dir.path());
    let store = Store::open(dir.path()).unwrap();
    let cluster = store.cluster().cloned();
    let added = runtime().block_on(store.commit(create("new", 0))).unwrap();
    store.close();
    let [newer, _] = files_of(dir.path());
    fs::write(dir.path().join("store.redb"), &older).unwrap();
    check(
        dir.path(),
        expect![
            "DIR/store.redb ends at revision 21, but revision 22 was acknowledged: it is an older copy, or it was damaged; put the newest copy in its place, or delete DIR/store.head to go on without what is missing"
        ],
    );
    assert_eq!(fs::read(dir.path().join("store.redb")).unwrap(), older, "it is not touched");

    fs::write(dir.path().join("store.redb"), &newer).unwrap();
    assert_eq!(Store::open(dir.path()).unwrap().revision(), added.revision);

    fs::write(dir.path().join("store.redb"), &older).unwrap();
    fs::remove_file(dir.path().join("store.head")).unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert_eq!((store.revision(), store.cluster()), (21, cluster.as_ref()));
    // Another history reaches the same revision.
    runtime().block_on(store.commit(create("other", 0))).unwrap();
    store.close();
    fs::write(dir.path().join("store.redb"), &newer).unwrap();
    check(
        dir.path(),
        expect![
            "DIR/store.redb ends at revision 22, but revision 22 was acknowledged: its history is another one; put the newest copy in its place, or delete DIR/store.head to go on without what is missing"
        ],
    );
}

#[test]
fn a_store_that_was_moved_away_is_missed() {
    let dir = directory_with_objects();
    fs::remove_file(dir.path().join("store.redb")).unwrap();
    check(
        dir.path(),
        expect![
            "DIR/store.redb is missing, and was at revision 21; put it back, or move the whole directory away to start empty"
        ],
    );
    assert!(!dir.path().join("store.redb").exists());
}

#[test]
fn an_empty_file_is_no_new_store() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("store.redb"), "").unwrap();
    check(
        dir.path(),
        expect![
            "DIR/store.redb is damaged: it is empty; put a copy of it in its place, or move the whole directory away to start empty"
        ],
    );
}

/// A file that version 0.1 left when it was killed, before stores had a cluster and a head.
#[test]
fn a_file_of_an_earlier_version_is_opened_and_gets_a_name_that_stays() {
    let file = miniz_oxide::inflate::decompress_to_vec(include_bytes!("format-1.redb.deflate")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("store.redb"), file).unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (cluster, revision) = (store.cluster().cloned().unwrap(), store.revision());
    let namespaces = store.snapshot(&"namespaces".into()).entries.len();
    assert_eq!((cluster.0.len(), namespaces, revision), (36, 5, 43));
    let entry = runtime().block_on(store.commit(create("a", 0))).unwrap();
    drop(store);
    let store = Store::open(dir.path()).unwrap();
    assert_eq!((store.cluster(), store.revision()), (Some(&cluster), entry.revision));
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
    expect!["no space left on the disk of the store: it takes only deletes until there is room again"]
        .assert_eq(&refused.to_string());
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

#[test]
fn a_full_disk_takes_deletes_and_recovers_by_itself() {
    let (store, faulty_disk) = FaultyDisk::store_with_reserve();
    let runtime = runtime();
    let commit = |write| runtime.block_on(store.commit(write));
    let entries: Vec<_> = (0..4).map(|n| commit(create(&format!("pod-{n}"), n)).unwrap()).collect();
    assert!(!store.is_full());

    faulty_disk.is_full.store(true, Ordering::Relaxed);
    // The write that finds the disk full is the last one that is taken.
    let last = commit(create("last", 0)).unwrap();
    assert!(store.is_full());
    assert_eq!(commit(create("more", 0)).unwrap_err(), CommitError::NoSpace);
    assert_eq!(commit(create("last", 0)).unwrap_err(), CommitError::Exists);
    assert_eq!(commit(update("last", last.revision, 1)).unwrap_err(), CommitError::NoSpace);
    commit(delete("pod-0", entries[0].revision)).unwrap();
    // One that waits for finalizers is written before it is gone.
    let mut marked = draft("pod-1", 1);
    marked.meta.is_deleting = true;
    let marked = Write { change: Change::Put(marked), ..update("pod-1", entries[1].revision, 0) };
    commit(marked).unwrap();
    assert!(store.is_full());

    faulty_disk.is_full.store(false, Ordering::Relaxed);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while store.is_full() {
        assert!(std::time::Instant::now() < deadline, "it does not notice that there is room");
        std::thread::yield_now();
    }
    commit(create("more", 0)).unwrap();
    let names: Vec<_> = store.snapshot(&pods()).entries.keys().map(|key| key.name.to_string()).collect();
    assert_eq!(names, ["last", "more", "pod-1", "pod-2", "pod-3"]);
    assert!(!faulty_disk.is_released.load(Ordering::Relaxed), "the reserve is there again");
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
