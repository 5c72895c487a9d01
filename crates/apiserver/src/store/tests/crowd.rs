//! Many writers and watchers at once.

use super::*;

const WRITERS: u64 = 64;
const WRITES_EACH: u64 = 20;

/// Creates an object and changes it again and again; returns the revisions of its writes.
async fn write_many(store: Store, name: String) -> Vec<u64> {
    let mut revisions = vec![store.commit(create(&name, 0)).await.unwrap().revision];
    for value in 1..WRITES_EACH {
        let last = *revisions.last().unwrap();
        let entry = store.commit(update(&name, last, value)).await.unwrap();
        let visible = store.get(&pods(), &entry.key).unwrap();
        assert_eq!(visible.revision, entry.revision, "what is acknowledged is visible");
        revisions.push(entry.revision);
    }
    revisions
}

/// Sees every write, in order, each with the state before it.
async fn watch_all(store: Store) {
    let mut watcher = store.watch(&pods(), FIRST_REVISION).unwrap();
    let mut newest = std::collections::BTreeMap::new();
    for revision in 1..=WRITERS * WRITES_EACH {
        let event = watcher.next().await.unwrap();
        assert_eq!(event.revision, FIRST_REVISION + revision, "each once, in order");
        assert!(store.revision() >= event.revision, "what is seen is visible");
        let before = newest.insert(event.entry.key.clone(), event.revision);
        assert_eq!(event.previous.as_ref().map(|entry| entry.revision), before);
    }
    assert!(watcher.try_next().is_none());
}

#[test]
fn many_writers_get_all_revisions_in_order_and_watchers_see_each_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let revisions = runtime().block_on(async {
        let watchers: Vec<_> = (0..4).map(|_| tokio::spawn(watch_all(store.clone()))).collect();
        let names = (0..WRITERS).map(|n| format!("pod-{n}"));
        let writers: Vec<_> = names.map(|name| tokio::spawn(write_many(store.clone(), name))).collect();
        let mut revisions = Vec::new();
        for writer in writers {
            let of_one = writer.await.unwrap();
            assert!(of_one.is_sorted_by(|a, b| a < b));
            revisions.extend(of_one);
        }
        for watcher in watchers {
            watcher.await.unwrap();
        }
        revisions
    });
    let mut sorted = revisions;
    sorted.sort_unstable();
    let all = FIRST_REVISION + 1..=FIRST_REVISION + WRITERS * WRITES_EACH;
    assert!(sorted.into_iter().eq(all), "no revision is given twice or left out");
}

#[test]
fn of_many_writers_with_one_expectation_one_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let winners = runtime().block_on(async {
        let attempts: Vec<_> = (0..WRITERS).map(|n| tokio::spawn(store.commit(create("a", n)))).collect();
        let mut winners = 0;
        for attempt in attempts {
            match attempt.await.unwrap() {
                Ok(_) => winners += 1,
                Err(error) => assert_eq!(error, CommitError::Exists),
            }
        }
        winners
    });
    assert_eq!(winners, 1);
}
