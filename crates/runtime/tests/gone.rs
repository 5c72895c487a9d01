//! A root that the server no longer has is left alone, however long its watch hangs behind.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use krafla_api::{Key, Kind, Uid};
use krafla_plan::{Plan, Step};
use krafla_runtime::apply::apply;
use krafla_runtime::{Client, ClientError, Event, Expectation, Listed, Written};
use serde_json::json;

/// A server that has nothing, and takes everything new.
struct Empty;

fn missing<T>() -> Result<T, ClientError> {
    Err(ClientError::NotFound("it is gone".to_owned()))
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
    let applied = apply(&Empty, &plan).now_or_never().unwrap();
    assert_eq!((applied.writes, applied.expectations), (1, vec![gone()]));
    assert!(applied.failure.is_none(), "that it is gone is no fault");
}

#[test]
fn another_object_that_is_gone_does_not_end_the_plan() {
    let plan = Plan { steps: vec![patch(false), child()], ..Plan::nothing() };
    let applied = apply(&Empty, &plan).now_or_never().unwrap();
    let made = Expectation::Revision { kind: Kind::ConfigMap, revision: 9 };
    assert_eq!((applied.writes, applied.expectations), (2, vec![gone(), made]));
}
