//! Watchers see everything once and in order, and nobody waits for them.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake};

use expect_test::expect;

use super::*;

/// Counts how often a task is woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_write_wakes_those_who_watch_its_resource_and_nobody_else() {
    let store = Store::in_memory();
    let (of_pods, of_jobs) = (Arc::new(Wakes::default()), Arc::new(Wakes::default()));
    let mut pod_watcher = store.watch(&pods(), 1).unwrap();
    let mut job_watcher = store.watch(&"jobs.batch".into(), 1).unwrap();
    let (mut next_pod, mut next_job) = (pin!(pod_watcher.next()), pin!(job_watcher.next()));
    let (pod_waker, job_waker) = (Arc::clone(&of_pods).into(), Arc::clone(&of_jobs).into());
    assert!(next_pod.as_mut().poll(&mut Context::from_waker(&pod_waker)).is_pending());
    assert!(next_job.as_mut().poll(&mut Context::from_waker(&job_waker)).is_pending());

    store.commit_now(create("a", 0)).unwrap();
    assert_eq!((of_pods.0.load(Ordering::Relaxed), of_jobs.0.load(Ordering::Relaxed)), (1, 0));
    let Poll::Ready(Ok(event)) = next_pod.poll(&mut Context::from_waker(&pod_waker)) else {
        panic!("no event")
    };
    assert_eq!(event.revision, 2);
}

#[test]
fn a_watcher_that_stops_waiting_loses_nothing() {
    let store = Store::in_memory();
    let mut watcher = store.watch(&pods(), 1).unwrap();
    assert!(watcher.next().now_or_never().is_none());
    store.commit_now(create("a", 0)).unwrap();
    store.commit_now(create("b", 0)).unwrap();
    let mut next = || watcher.next().now_or_never().map(|event| event.unwrap().revision);
    assert_eq!([next(), next(), next()], [Some(2), Some(3), None]);
}

#[test]
fn a_bookmark_moves_with_the_store_but_never_past_an_unseen_event() {
    let store = Store::in_memory();
    let mut watcher = store.watch(&"jobs.batch".into(), 1).unwrap();
    store.commit_now(create("a", 0)).unwrap();
    assert_eq!(watcher.revision(), 2, "nothing happened to jobs");
    store.commit_now(Write { resource: "jobs.batch".into(), ..create("b", 0) }).unwrap();
    store.commit_now(create("c", 0)).unwrap();
    assert!(watcher.revision() < 3, "there is an event to see first");
    assert_eq!(watcher.try_next().unwrap().unwrap().revision, 3);
    assert_eq!(watcher.revision(), 4);
}

#[test]
fn a_watch_from_the_future_begins_there() {
    let store = Store::in_memory();
    let mut watcher = store.watch(&pods(), 3).unwrap();
    for name in ["a", "b", "c"] {
        assert!(watcher.try_next().is_none());
        store.commit_now(create(name, 0)).unwrap();
    }
    assert_eq!(watcher.try_next().unwrap().unwrap().revision, 4);
}

#[test]
fn a_watcher_that_falls_behind_is_told_so_and_stops_nobody() {
    let store = Store::in_memory();
    let mut slow = store.watch(&pods(), 1).unwrap();
    let mut revision = store.commit_now(create("a", 0)).unwrap().revision;
    let events_kept = Retention::BY_COUNT.events_max as u64;
    for value in 0..events_kept {
        revision = store.commit_now(update("a", revision, value)).unwrap().revision;
    }
    let expired = Expired { asked: 1, oldest: 2 };
    assert_eq!(slow.try_next().unwrap().unwrap_err(), expired);
    assert_eq!(store.watch(&pods(), 1).unwrap_err(), expired);
    expect!["too old resource version: 1 (2)"].assert_eq(&expired.to_string());
    assert!(store.watch(&pods(), 2).is_ok());
    assert!(store.watch(&"jobs.batch".into(), 1).is_ok(), "nothing happened to jobs since");
}

#[test]
fn after_a_restart_older_revisions_are_expired() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    runtime().block_on(store.commit(create("a", 0))).unwrap();
    store.close();
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.revision(), 2);
    for resource in ["pods", "jobs.batch"] {
        assert_eq!(store.watch(&resource.into(), 1).unwrap_err(), Expired { asked: 1, oldest: 2 });
        assert!(store.watch(&resource.into(), 2).is_ok());
    }
}

#[test]
fn a_line_is_made_once_and_begins_with_its_type() {
    let store = Store::in_memory();
    let (mut first, mut second) = (store.watch(&pods(), 1).unwrap(), store.watch(&pods(), 1).unwrap());
    let revision = store.commit_now(create("a", 7)).unwrap().revision;
    store.commit_now(delete("a", revision)).unwrap();
    let mut lines = String::new();
    while let Some(Ok(event)) = first.try_next() {
        let same = second.try_next().unwrap().unwrap();
        assert_eq!(event.line().as_ptr(), same.line().as_ptr());
        lines.push_str(std::str::from_utf8(event.line()).unwrap());
    }
    expect![[r#"
        {"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","resourceVersion":"2","uid":"uid-a"},"value":7}}
        {"type":"DELETED","object":{"kind":"Pod","metadata":{"name":"a","resourceVersion":"3","uid":"uid-a"},"value":0}}
    "#]]
    .assert_eq(&lines);
}
