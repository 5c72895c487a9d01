//! A server that refuses the pods of a Job is asked for few of them, and one that takes them loses no time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::time::Duration;

use bytes::Bytes;
use expect_test::expect;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::{Client, ClientError, Event, EventType, Listed, Step, Written};
use krafla_plan::{Object, Plan};
use krafla_runtime::apply::apply;
use krafla_runtime::{Engine, Outcome};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// When all of this happens.
fn start() -> Time {
    Time::from_seconds(1_800_000_000)
}

/// A server that takes so many pods and no more. It answers once all that were asked at the same time have been heard.
struct Server {
    quota: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    revision: u64,
    pods: Vec<Value>,
    /// How many pods were asked for, how many of these requests are under way, and how many were at most.
    n_asked: usize,
    n_under_way: usize,
    n_at_once: usize,
}

impl Server {
    fn with_room_for(quota: usize) -> Server {
        Server { quota, state: Mutex::default() }
    }

    fn create(&self, object: &Value) -> Result<Written, ClientError> {
        let mut state = self.state.lock();
        state.n_under_way -= 1;
        if state.pods.len() == self.quota {
            return Err(ClientError::forbidden("exceeded quota"));
        }
        let revision = state.next_revision();
        let mut pod = object.clone();
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        pod["metadata"]["uid"] = json!(name);
        pod["metadata"]["resourceVersion"] = json!(revision.to_string());
        state.pods.push(pod);
        Ok(Written { key: Key::new("n", &name), uid: Uid::from(name.as_str()), revision })
    }

    fn n_asked(&self) -> usize {
        self.state.lock().n_asked
    }
}

impl State {
    fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }
}

impl Client for Server {
    fn list(&self, _: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
        async { Ok(Listed::default()) }.boxed()
    }

    fn watch(&self, _: Kind, _: u64) -> BoxStream<'static, Result<Event, ClientError>> {
        stream::empty().boxed()
    }

    fn get(&self, _: Kind, _: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
        async { Err(ClientError::not_found(String::new())) }.boxed()
    }

    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
        async move {
            let Step::Create { object, .. } = step else {
                let revision = self.state.lock().next_revision();
                return Ok(Written { key: Key::new("n", "a"), uid: Uid::from("u"), revision });
            };
            {
                let mut state = self.state.lock();
                state.n_asked += 1;
                state.n_under_way += 1;
                state.n_at_once = state.n_at_once.max(state.n_under_way);
            }
            tokio::task::yield_now().await;
            self.create(object)
        }
        .boxed()
    }
}

/// A Job of five hundred pods.
fn job(revision: u64, status: &Value) -> Bytes {
    let job = json!({
        "metadata": { "namespace": "n", "name": "a", "uid": "u", "resourceVersion": revision.to_string() },
        "spec": { "parallelism": 500, "completions": 500, "template": {} },
        "status": status,
    });
    job.to_string().into()
}

fn engine() -> Engine {
    let mut engine = Engine::new(vec![Box::new(krafla_plan::k8sjob::JobController::default())]);
    let listed = Listed { revision: 0, items: vec![job(0, &json!({}))] };
    engine.listed(Kind::Job, &listed, start()).unwrap();
    engine.listed(Kind::Pod, &Listed::default(), start()).unwrap();
    engine
}

#[tokio::test]
async fn a_full_server_is_asked_for_twice_as_many_pods_as_it_takes() {
    let mut table = String::new();
    for quota in [0, 1, 3, 10, 100, 500] {
        let server = Server::with_room_for(quota);
        let work = engine().next(start()).unwrap();
        assert_eq!(work.plan.steps.len(), 500, "that many are wanted");
        let applied = apply(&server, None, &work.plan).await;
        assert_eq!(applied.failure.is_some(), quota < 500);
        assert_eq!(applied.writes, 1 + server.n_asked(), "the status, and the pods");
        let (state, n_failed) = (server.state.lock(), applied.creations_failed);
        let (n_asked, n_at_once) = (state.n_asked, state.n_at_once);
        table += &format!("room for {quota}: {n_asked} requests, {n_at_once} at once, {n_failed} failed\n");
    }
    expect![[r#"
        room for 0: 1 requests, 1 at once, 1 failed
        room for 1: 3 requests, 2 at once, 2 failed
        room for 3: 7 requests, 4 at once, 4 failed
        room for 10: 15 requests, 8 at once, 5 failed
        room for 100: 127 requests, 32 at once, 27 failed
        room for 500: 500 requests, 32 at once, 0 failed
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn a_server_that_stays_full_is_asked_for_one_pod_each_time() {
    let server = Server::with_room_for(3);
    let mut engine = engine();
    let work = engine.next(start()).unwrap();
    let applied = apply(&server, None, &work.plan).await;
    engine.finished(work, Outcome::Applied(applied), start());
    let status = json!({ "active": 500, "startTime": start(), "ready": 0, "terminating": 0, "uncountedTerminatedPods": {} });
    let stored = Event::new(EventType::Modified, 1, job(1, &status));
    engine.observed(Kind::Job, &stored, start());
    for (revision, pod) in (2..).zip(server.state.lock().pods.clone()) {
        let added = Event::new(EventType::Added, revision, pod.to_string().into());
        engine.observed(Kind::Pod, &added, start());
    }

    let (mut now, mut n_asked) = (start(), server.n_asked());
    for _ in 0..5 {
        now = now.after(Duration::from_secs(60));
        let mut work = engine.next(now).expect("it is tried again");
        // What the Job says of itself is another matter, and would have to be stored first.
        work.plan.status = None;
        let applied = apply(&server, None, &work.plan).await;
        engine.finished(work, Outcome::Applied(applied), now);
        n_asked += 1;
        assert_eq!(server.n_asked(), n_asked);
    }
}

#[tokio::test]
async fn what_is_of_no_more_use_is_removed_also_when_the_server_is_full() {
    let pod = json!({ "metadata": { "namespace": "n", "name": "b", "uid": "b" } });
    let plan = Plan {
        steps: vec![Step::Create { kind: Kind::Pod, object: pod }],
        aside: vec![Object::decode(Kind::Job, &job(1, &Value::Null)).deletion()],
        ..Plan::nothing()
    };
    let applied = apply(&Server::with_room_for(0), None, &plan).await;
    assert_eq!((applied.writes, applied.creations_failed, applied.expectations.len()), (2, 1, 1));
}
