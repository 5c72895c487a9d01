//! No decision is taken before the engine has seen what the last one wrote, however long a watch hangs.

use std::time::Duration;

use krafla_api::{Key, Kind, Time};
use krafla_cluster::{Event, EventType, Listed, Step};
use krafla_plan::{Controller, Object, Objects, Plan, Snapshot};
use krafla_runtime::apply::Applied;
use krafla_runtime::{Engine, Expectation, Outcome};
use serde_json::{Value, json};

/// Wants every namespace to have one ConfigMap.
struct OnePerNamespace;

impl Controller for OnePerNamespace {
    fn name(&self) -> &'static str {
        "one-per-namespace"
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
        if snapshot.objects.len(Kind::ConfigMap) == 0 {
            let create = Step::Create { kind: Kind::ConfigMap, object: config_map(0) };
            Plan { steps: vec![create], ..Plan::nothing() }
        } else {
            Plan::nothing()
        }
    }
}

fn config_map(revision: u64) -> Value {
    let revision = revision.to_string();
    json!({ "metadata": { "namespace": "home", "name": "one", "uid": "one", "resourceVersion": revision } })
}

#[test]
fn a_watch_that_hangs_does_not_make_the_engine_write_twice() {
    let start = Time::from_seconds(0);
    let at = |seconds| start.after(Duration::from_secs(seconds));
    let mut engine = Engine::new(vec![Box::new(OnePerNamespace)]);
    let home = json!({ "metadata": { "name": "home", "uid": "home", "resourceVersion": "1" } });
    engine
        .listed(Kind::Namespace, &Listed { revision: 1, items: vec![home.to_string().into()] }, start)
        .unwrap();
    engine.listed(Kind::ConfigMap, &Listed { revision: 1, items: vec![] }, start).unwrap();

    let work = engine.next(start).expect("the ConfigMap is missing");
    let expectations = vec![Expectation::Revision { kind: Kind::ConfigMap, revision: 2 }];
    let applied = Applied { expectations, writes: 1, ..Applied::default() };
    engine.finished(work, Outcome::Applied(applied), start);

    // Something else happens meanwhile, again and again, and the root is looked at each time.
    for (revision, seconds) in (3..).zip([1, 29, 31, 300, 3600]) {
        let object =
            json!({ "metadata": { "name": "home", "uid": "home", "resourceVersion": revision.to_string() } });
        let event = Event::new(EventType::Modified, revision, object.to_string().into());
        engine.observed(Kind::Namespace, &event, at(seconds));
        assert!(
            engine.next(at(seconds)).is_none(),
            "decided after {seconds} s without having seen its own write"
        );
    }

    let event = Event::new(EventType::Added, 2, config_map(2).to_string().into());
    engine.observed(Kind::ConfigMap, &event, at(3601));
    assert!(engine.next(at(3601)).is_none(), "nothing is missing");
    assert_eq!(engine.counts().plans, 2, "the root was looked at once its own write was seen");
}
