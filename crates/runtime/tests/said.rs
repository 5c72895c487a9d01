//! A note that tells of a write is said when that was made, whatever became of the others of its plan.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{self, BoxStream, StreamExt};
use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::{Client, ClientError, Event, Listed, Step, Verb, Written};
use krafla_plan::{Controller, Note, Object, Objects, Plan, Snapshot};
use krafla_runtime::apply::apply;
use krafla_runtime::{Engine, Outcome};
use serde_json::json;

/// Sets its root right, and wants two ConfigMaps and no third, which it marks before it removes it.
struct Busy;

impl Controller for Busy {
    fn name(&self) -> &'static str {
        "busy"
    }

    fn root(&self) -> Kind {
        Kind::Namespace
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::ConfigMap]
    }

    fn keys(&self, _: &Object, _: &Objects) -> Vec<Key> {
        vec![Key::new("", "home")]
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        let Some(root) = snapshot.root() else { return Plan::nothing() };
        let created = |name: &str| {
            Note::normal("Created", name.to_owned()).of(Verb::Create, Kind::ConfigMap, &key(name))
        };
        let Some(old) = snapshot.objects.get(Kind::ConfigMap, &key("old")) else { return Plan::nothing() };
        let mark = Step::Patch {
            kind: Kind::ConfigMap,
            key: key("old"),
            uid: old.meta.uid.clone(),
            revision: None,
            of_status: false,
            patch: json!({}),
        };
        Plan {
            status: Some(root.meta.status_patch(Kind::Namespace, &json!({}))),
            steps: vec![mark, create("one"), create("two")],
            aside: vec![old.deletion()],
            notes: vec![
                Note::normal("Set", "right".to_owned()).of(Verb::Report, Kind::Namespace, snapshot.key),
                created("one"),
                created("two"),
                Note::normal("Deleted", "old".to_owned()).of(Verb::Delete, Kind::ConfigMap, &key("old")),
                Note::warning("Missing", "something".to_owned()),
            ],
            ..Plan::nothing()
        }
    }
}

fn key(name: &str) -> Key {
    Key::new("home", name)
}

fn create(name: &str) -> Step {
    let object = json!({ "metadata": { "namespace": "home", "name": name } });
    Step::Create { kind: Kind::ConfigMap, object }
}

/// Answers one write in its own way.
struct Server(Verb, &'static str, ClientError);

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
        let write = step.write();
        let is_refused = write.verb == self.0 && *write.key.name == *self.1;
        let written = Written { key: write.key, uid: Uid::from("u"), revision: 2 };
        async move { if is_refused { Err(self.2.clone()) } else { Ok(written) } }.boxed()
    }
}

/// What is said of a plan of which the server answers one write like this.
fn said(verb: Verb, name: &'static str, error: ClientError) -> Vec<String> {
    let now = Time::from_seconds(0);
    let mut engine = Engine::new(vec![Box::new(Busy)]);
    let home = json!({ "metadata": { "name": "home", "uid": "home", "resourceVersion": "1" } });
    let old =
        json!({ "metadata": { "namespace": "home", "name": "old", "uid": "old", "resourceVersion": "1" } });
    for (kind, object) in [(Kind::Namespace, home), (Kind::ConfigMap, old)] {
        let listed = Listed { revision: 1, items: vec![object.to_string().into()] };
        engine.listed(kind, &listed, now).unwrap();
    }
    let work = engine.next(now).unwrap();
    let applied = apply(&Server(verb, name, error), None, &work.plan).now_or_never().unwrap();
    engine.finished(work, Outcome::Applied(applied), now);
    let remarks = engine.take_remarks();
    remarks.iter().map(|remark| format!("{} {}", remark.note.reason, remark.note.message)).collect()
}

fn refusal() -> ClientError {
    ClientError::forbidden("exceeded quota")
}

fn busy() -> ClientError {
    ClientError::busy("later", None)
}

#[test]
fn all_is_said_of_what_is_carried_out() {
    let all = ["Set right", "Created one", "Created two", "Deleted old", "Missing something"];
    assert_eq!(said(Verb::Create, "nobody", refusal()), all);
}

#[test]
fn beside_a_refusal_what_was_done_is_said_too() {
    let but_two =
        ["Set right", "Created one", "Deleted old", "Missing something", "FailedCreate exceeded quota"];
    assert_eq!(said(Verb::Create, "two", refusal()), but_two);
    let but_home = ["Deleted old", "Missing something", "FailedUpdate exceeded quota"];
    assert_eq!(said(Verb::Report, "home", refusal()), but_home);
}

#[test]
fn beside_what_passes_only_what_was_done_is_said() {
    assert_eq!(said(Verb::Create, "two", busy()), ["Set right", "Created one", "Deleted old"]);
    assert_eq!(said(Verb::Delete, "old", busy()), ["Set right", "Created one", "Created two"]);
}

#[test]
fn what_was_not_done_because_the_root_is_gone_is_not_said() {
    assert_eq!(said(Verb::Report, "home", ClientError::not_found("gone")), ["Missing something"]);
}
