//! What only a process of its own can show: a test that runs itself again as the victim.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

use super::faulty_disk::FaultyDisk;
use super::*;

/// Set in the victim: the directory of its store.
const DIRECTORY: &str = "KRAFLA_TEST_STORE";

fn is_victim() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// Runs the current test once more, as the victim.
fn victim(dir: &Path) -> Child {
    let test = std::thread::current().name().expect("tests have names").to_owned();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test, "--nocapture"])
        .env(DIRECTORY, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_process_loses_nothing_it_has_acknowledged() {
    if let Some(dir) = is_victim() {
        return write_until_killed(&dir);
    }
    let dir = tempfile::tempdir().unwrap();
    let mut revision = FIRST_REVISION;
    for _ in 0..4 {
        let mut victim = victim(dir.path());
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut acknowledged =
            lines.filter_map(|line| line.strip_prefix("acknowledged ").map(|n| n.parse::<u64>().unwrap()));
        let until_then = acknowledged.by_ref().take(40).max().expect("it writes");
        victim.kill().unwrap();
        let newest = acknowledged.max().unwrap_or_default().max(until_then);
        victim.wait().unwrap();

        assert!(newest > revision, "it goes on where the one before was stopped");
        let store = Store::open(dir.path()).unwrap();
        assert!(store.revision() >= newest, "{newest} was acknowledged, {} is left", store.revision());
        revision = store.revision();
    }
}

fn write_until_killed(dir: &Path) {
    let store = Store::open(dir).unwrap();
    let write_many = async |writer: u64| {
        for value in 0..10_000 {
            let name = format!("pod-{writer}-{value}-{}", std::process::id());
            let entry = store.commit(create(&name, value)).await.unwrap();
            println!("acknowledged {}", entry.revision);
        }
    };
    runtime().block_on(futures_util::future::join_all((0..8).map(write_many)));
}

#[test]
fn a_process_whose_disk_cannot_be_synced_says_so_and_ends() {
    if is_victim().is_some() {
        return write_without_sync();
    }
    let output = victim(Path::new("")).wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(6), "aborted");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(stdout.contains("first write done") && !stdout.contains("second write done"), "{stdout}");
    assert!(
        stderr.contains("krafla: the store cannot go on: the disk could not be synced: timed out"),
        "{stderr}"
    );
}

fn write_without_sync() {
    let (store, disk) = FaultyDisk::store();
    runtime().block_on(store.commit(create("a", 0))).unwrap();
    println!("first write done");
    disk.cannot_sync.store(true, Ordering::Relaxed);
    let outcome = runtime().block_on(store.commit(create("b", 0)));
    println!("second write done: {outcome:?}");
}
