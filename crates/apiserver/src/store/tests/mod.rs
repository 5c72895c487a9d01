//! The store as a whole: against a model, under a crowd, and after a crash.

mod copy;
mod crash;
mod crowd;
mod damage;
mod faulty_disk;
pub(crate) mod gate;
mod model;
mod process;
mod watching;

use std::sync::Arc;

use futures_util::FutureExt;
use krafla_api::Key;
use serde_json::json;

use super::*;

fn pods() -> ResourceId {
    "pods".into()
}

fn draft(name: &str, value: u64) -> Draft {
    let object =
        json!({"kind": "Pod", "metadata": {"name": name, "uid": format!("uid-{name}")}, "value": value});
    let meta =
        EntryMeta { labels: [("value", value.to_string())].into_iter().collect(), ..EntryMeta::of(&object) };
    Draft::new(object, meta)
}

fn create(name: &str, value: u64) -> Write {
    Write {
        resource: pods(),
        key: Key::new("default", name),
        expect: Expect::Absent,
        change: Change::Put(draft(name, value)),
    }
}

fn update(name: &str, revision: u64, value: u64) -> Write {
    Write { expect: Expect::Revision(revision), ..create(name, value) }
}

fn delete(name: &str, revision: u64) -> Write {
    Write { change: Change::Delete(draft(name, 0)), ..update(name, revision, 0) }
}

impl Store {
    /// Makes a write in memory, where it is done at once.
    fn commit_now(&self, write: Write) -> Result<Arc<Entry>, CommitError> {
        self.commit(write).now_or_never().expect("without a disk there is nothing to wait for")
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

#[test]
fn a_write_happens_only_as_expected() {
    let store = Store::in_memory();
    assert_eq!(store.revision(), 1);
    assert_eq!(store.commit_now(update("a", 1, 0)).unwrap_err(), CommitError::Missing);
    assert_eq!(store.commit_now(create("a", 0)).unwrap().revision, 2);
    assert_eq!(store.commit_now(create("a", 0)).unwrap_err(), CommitError::Exists);
    assert_eq!(store.commit_now(update("a", 2, 1)).unwrap().revision, 3);
    assert_eq!(store.commit_now(update("a", 2, 2)).unwrap_err(), CommitError::Stale { current: 3 });
    assert_eq!(store.commit_now(delete("a", 2)).unwrap_err(), CommitError::Stale { current: 3 });

    let last = store.commit_now(delete("a", 3)).unwrap();
    assert_eq!((last.revision, store.get(&pods(), &last.key)), (4, None));
    assert!(last.bytes.windows(21).any(|text| text == br#""resourceVersion":"4""#));
    assert_eq!(store.revision(), 4);
}

#[test]
fn a_write_that_nobody_waits_for_happens_once_it_was_polled() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    drop(store.commit(create("never-polled", 0)));
    let _outcome = store.commit(create("polled-once", 0)).now_or_never();
    store.close();
    let names: Vec<_> = store.snapshot(&pods()).entries.keys().map(Key::to_string).collect();
    assert_eq!(names, ["default/polled-once"]);
}

#[test]
fn a_refusal_waits_until_its_cause_is_durable() {
    let (store, gate) = gate::Gate::store();
    let kept = runtime().block_on(store.commit(create("kept", 0))).unwrap();
    let gone = runtime().block_on(store.commit(create("gone", 0))).unwrap();
    gate.close();
    let mut accepted: Vec<_> =
        [create("a", 0), update("kept", kept.revision, 1), delete("gone", gone.revision)]
            .map(|write| Box::pin(store.commit(write)))
            .into();
    let mut refused: Vec<_> =
        [create("a", 1), update("kept", kept.revision, 2), update("gone", gone.revision, 2)]
            .map(|write| Box::pin(store.commit(write)))
            .into();
    let answered: Vec<bool> =
        accepted.iter_mut().chain(&mut refused).map(|write| write.now_or_never().is_some()).collect();
    gate.open();
    assert_eq!(answered, [false; 6], "an answer must not depend on what a crash can undo");
    let errors = runtime().block_on(futures_util::future::join_all(refused));
    let errors: Vec<_> = errors.into_iter().map(Result::unwrap_err).collect();
    assert_eq!(errors, [CommitError::Exists, CommitError::Stale { current: 5 }, CommitError::Missing]);
    assert!(store.revision() >= 6, "a read after the refusal sees its cause");
}

#[test]
fn a_closed_store_can_be_read_but_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let entry = runtime().block_on(store.commit(create("a", 0))).unwrap();
    store.close();
    store.close();
    assert_eq!(store.get(&pods(), &entry.key), Some(entry));
    assert_eq!(runtime().block_on(store.commit(create("b", 0))).unwrap_err(), CommitError::Closed);
}

#[test]
fn a_page_is_one_namespace_from_a_key_on() {
    let store = Store::in_memory();
    for (namespace, name) in [("b", "1"), ("a", "2"), ("b", "3"), ("a", "1"), ("b", "2"), ("c", "1")] {
        store.commit_now(Write { key: Key::new(namespace, name), ..create(name, 0) }).unwrap();
    }
    let page = |namespace, after: Option<&Key>| -> Vec<String> {
        store.snapshot(&pods()).range(namespace, after).map(|entry| entry.key.to_string()).collect()
    };
    assert_eq!(page(None, None), ["a/1", "a/2", "b/1", "b/2", "b/3", "c/1"]);
    assert_eq!(page(None, Some(&Key::new("b", "2"))), ["b/3", "c/1"]);
    assert_eq!(page(Some("b"), None), ["b/1", "b/2", "b/3"]);
    assert_eq!(page(Some("b"), Some(&Key::new("b", "1"))), ["b/2", "b/3"]);
    assert_eq!(page(Some("b"), Some(&Key::new("a", "9"))), ["b/1", "b/2", "b/3"]);
    assert_eq!(page(Some("b"), Some(&Key::new("c", "1"))), [""; 0]);
}

#[test]
fn an_object_is_not_written_again_as_it_is() {
    let store = Store::in_memory();
    let entry = store.commit_now(create("a", 7)).unwrap();
    assert!(draft("a", 7).is_stored_as(&entry));
    assert!(!draft("a", 8).is_stored_as(&entry));
}

#[test]
fn a_fork_goes_its_own_way() {
    let store = Store::in_memory();
    let entry = store.commit_now(create("a", 0)).unwrap();
    let fork = store.fork();
    let in_fork = fork.commit_now(update("a", entry.revision, 1)).unwrap();
    let in_store = store.commit_now(delete("a", entry.revision)).unwrap();
    assert_eq!(in_fork.revision, in_store.revision);
    assert_eq!((fork.get(&pods(), &entry.key), store.get(&pods(), &entry.key)), (Some(in_fork), None));
}
