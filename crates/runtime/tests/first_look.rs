//! What happened while nobody looked is looked for once, when everything has been seen that could show it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use krafla_api::{Key, Kind, Time};
use krafla_cluster::{Event, EventType, Listed};
use krafla_plan::{Controller, Note, Object, Objects, Plan, Snapshot};
use krafla_runtime::Engine;
use serde_json::{Value, json};

/// Says what it takes for its first look.
struct Newcomer;

impl Controller for Newcomer {
    fn name(&self) -> &'static str {
        "newcomer"
    }

    fn root(&self) -> Kind {
        Kind::Namespace
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::ConfigMap, Kind::Secret]
    }

    fn recorded(&self) -> &'static [Kind] {
        &[Kind::ConfigMap]
    }

    fn keys(&self, changed: &Object, _: &Objects) -> Vec<Key> {
        let key = &changed.meta.key;
        vec![Key::new("", if key.namespace.is_empty() { &key.name } else { &key.namespace })]
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        let message = format!("{} {}", snapshot.key.name, snapshot.is_first_look);
        Plan { notes: vec![Note::normal("Looked", message)], ..Plan::nothing() }
    }
}

/// What the newcomer says of a look at a root of revision 5 when its ConfigMaps were listed at this one.
fn first_look(listed_at: u64) -> (Engine, Vec<String>) {
    let at = Time::from_seconds(0);
    let mut engine = Engine::new(vec![Box::new(Newcomer)]);
    let home = vec![object("", "home", 5).to_string().into()];
    engine.listed(Kind::Secret, &Listed { revision: 1, items: vec![] }, at).unwrap();
    engine.listed(Kind::ConfigMap, &Listed { revision: listed_at, items: vec![] }, at).unwrap();
    engine.listed(Kind::Namespace, &Listed { revision: 5, items: home }, at).unwrap();
    let said = looks(&mut engine, at);
    (engine, said)
}

fn object(namespace: &str, name: &str, revision: u64) -> Value {
    json!({ "metadata": { "namespace": namespace, "name": name, "uid": name, "resourceVersion": revision.to_string() } })
}

/// What the newcomer says of its looks since it was last asked.
fn looks(engine: &mut Engine, now: Time) -> Vec<String> {
    assert!(engine.next(now).is_none(), "it writes nothing");
    engine.take_remarks().into_iter().map(|remark| remark.note.message).collect()
}

#[test]
fn a_look_before_everything_has_been_seen_is_not_the_first() {
    let at = |seconds| Time::from_seconds(0).after(Duration::from_secs(seconds));
    let (mut engine, said) = first_look(3);
    assert_eq!(said, ["home false"]);

    let observe = |engine: &mut Engine, kind: Kind, event_type, revision: u64, object: Value| {
        engine.observed(kind, &Event::new(event_type, revision, object.to_string().into()), at(revision));
    };
    observe(&mut engine, Kind::ConfigMap, EventType::Added, 6, object("home", "one", 6));
    assert_eq!(looks(&mut engine, at(6)), ["home true"]);
    observe(&mut engine, Kind::ConfigMap, EventType::Modified, 7, object("home", "one", 7));
    assert_eq!(looks(&mut engine, at(7)), ["home false"]);

    // What is on record was stored before the record, and what is on no record may be older still.
    assert_eq!(first_look(4).1, ["home true"]);

    // Of what begins before our eyes nothing has been missed.
    observe(&mut engine, Kind::Namespace, EventType::Added, 8, object("", "new", 8));
    observe(&mut engine, Kind::ConfigMap, EventType::Added, 9, object("new", "one", 9));
    assert_eq!(looks(&mut engine, at(9)), ["new false"]);
}
