//! A root that the server no longer has is left alone, however long its watch hangs behind.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use krafla_api::{Key, Kind, Uid};
use krafla_cluster::{Client, ClientError, Event, Listed, Step, Written};
use krafla_plan::Plan;
use krafla_runtime::Expectation;
use krafla_runtime::apply::{Premise, apply};
use serde_json::json;

/// A server that has nothing, and takes everything new.
struct Empty;

fn missing<T>() -> Result<T, ClientError> {
    Err(ClientError::not_found("it is gone"))
}

/// A server that has one root, of this UID at this revision, and takes everything new.
struct Rooted(&'static str, u64);

impl Client for Rooted {
    fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
        Empty.list(kind)
    }

    fn watch(&self, kind: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>> {
        Empty.watch(kind, revision)
    }

    fn get(&self, _: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
        let Rooted(uid, revision) = self;
        let root = json!({"metadata": {
            "namespace": key.namespace, "name": key.name, "uid": uid, "resourceVersion": revision.to_string(),
        }});
        async move { Ok(Bytes::from(root.to_string())) }.boxed()
    }

    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
        Empty.write(step)
    }
}

impl Client for Empty {
    fn list(&self, _: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
        async { missing() }.boxed()
    }

    fn watch(&self, _: Kind, _: u64) -> BoxStream<'static, Result<Event, ClientError>> {
        stream::empty().boxed()
    }

    fn get(&self, _: Kind, _: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
        async { missing() }.boxed()
    }

    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
        let answer = match step {
            Step::Create { .. } => {
                Ok(Written { key: Key::new("n", "child"), uid: Uid::from("child"), revision: 9 })
            }
            _ => missing(),
        };
        async { answer }.boxed()
    }
}

fn patch(of_status: bool) -> Step {
    let (key, uid) = (Key::new("n", "root"), Uid::from("root"));
    Step::Patch { kind: Kind::VcJob, key, uid, revision: None, of_status, patch: json!({}) }
}

fn child() -> Step {
    Step::Create { kind: Kind::ConfigMap, object: json!({}) }
}

fn gone() -> Expectation {
    Expectation::Gone { kind: Kind::VcJob, key: Key::new("n", "root"), uid: Uid::from("root") }
}

#[test]
fn nothing_is_made_for_a_root_that_is_gone_and_its_end_is_awaited() {
    let plan = Plan { status: Some(patch(true)), steps: vec![child()], ..Plan::nothing() };
    let applied = apply(&Empty, None, &plan).now_or_never().unwrap();
    assert_eq!((applied.writes, applied.expectations), (1, vec![gone()]));
    assert!(applied.failure.is_none(), "that it is gone is no fault");
}

#[test]
fn another_object_that_is_gone_does_not_end_the_plan() {
    let plan = Plan { steps: vec![patch(false), child()], ..Plan::nothing() };
    let applied = apply(&Empty, None, &plan).now_or_never().unwrap();
    let made = Expectation::Revision { kind: Kind::ConfigMap, revision: 9 };
    assert_eq!((applied.writes, applied.expectations), (2, vec![gone(), made]));
}

fn premise(revision: u64) -> Premise {
    Premise { kind: Kind::VcJob, key: Key::new("n", "root"), uid: Uid::from("root"), revision }
}

#[test]
fn nothing_is_made_on_a_premise_that_does_not_hold() {
    let plan = Plan { steps: vec![child()], ..Plan::nothing() };
    let of_a_lost_root = apply(&Empty, Some(&premise(4)), &plan).now_or_never().unwrap();
    assert_eq!((of_a_lost_root.writes, of_a_lost_root.expectations), (0, vec![gone()]));
    assert!(of_a_lost_root.failure.is_none(), "that it is gone is no fault");

    let of_another_root = apply(&Rooted("other", 5), Some(&premise(4)), &plan).now_or_never().unwrap();
    assert_eq!((of_another_root.writes, of_another_root.expectations), (0, vec![gone()]));

    let of_an_old_root = apply(&Rooted("root", 5), Some(&premise(4)), &plan).now_or_never().unwrap();
    let newer = Expectation::Revision { kind: Kind::VcJob, revision: 5 };
    assert_eq!((of_an_old_root.writes, of_an_old_root.expectations), (0, vec![newer]));
    let failure = of_an_old_root.failure.map(|failure| failure.error);
    assert!(matches!(failure, Some(ClientError::Conflict(_))), "it is decided again: {failure:?}");

    let of_this_root = apply(&Rooted("root", 4), Some(&premise(4)), &plan).now_or_never().unwrap();
    assert_eq!((of_this_root.writes, of_this_root.failure.is_none()), (1, true));
}
