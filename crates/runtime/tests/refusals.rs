//! What the server refuses is said to whoever looks at the root, once; what passes by itself is not.

use std::time::Duration;

use krafla_api::{Key, Kind, Time};
use krafla_plan::{Controller, Note, Object, Objects, Plan, Severity, Snapshot, Step};
use krafla_runtime::apply::{Applied, Failure};
use krafla_runtime::{ClientError, Engine, Listed, Outcome};
use serde_json::json;

/// Wants a ConfigMap that never comes to be.
struct Hopeful;

impl Controller for Hopeful {
    fn name(&self) -> &'static str {
        "hopeful"
    }

    fn root(&self) -> Kind {
        Kind::Namespace
    }

    fn watches(&self) -> &'static [Kind] {
        &[]
    }

    fn keys(&self, _: &Object, _: &Objects) -> Vec<Key> {
        vec![Key::new("", "home")]
    }

    fn plan(&self, _: &Snapshot<'_>) -> Plan {
        let object = json!({ "metadata": { "namespace": "home", "name": "one" } });
        let notes = vec![note(Severity::Normal, "Created"), missing()];
        Plan { steps: vec![Step::Create { kind: Kind::ConfigMap, object }], notes, ..Plan::nothing() }
    }
}

fn note(severity: Severity, reason: &'static str) -> Note {
    Note { severity, reason, message: String::new() }
}

/// What else keeps the root from going on.
fn missing() -> Note {
    note(Severity::Warning, "Missing")
}

#[test]
fn a_refusal_is_said_once_and_an_outage_is_not() {
    let start = Time::from_seconds(0);
    let mut engine = Engine::new(vec![Box::new(Hopeful)]);
    let home = json!({ "metadata": { "name": "home", "uid": "home", "resourceVersion": "1" } });
    let listed = Listed { revision: 1, items: vec![home.to_string().into()] };
    engine.listed(Kind::Namespace, &listed, start).unwrap();

    let refused = || ClientError::Refused { code: 403, message: "exceeded quota".to_owned() };
    let answers = [ClientError::Unknown("no answer".to_owned()), refused(), refused()];
    let mut said = Vec::new();
    for (minutes, error) in (0..).zip(answers) {
        let now = start.after(Duration::from_secs(60 * minutes));
        let work = engine.next(now).expect("it is tried again");
        let refusal_reason = work.plan.steps[0].refusal_reason();
        let failure = Failure { step: work.plan.steps[0].to_string(), refusal_reason, error };
        let applied = Applied { expectations: Vec::new(), writes: 1, failure: Some(failure) };
        engine.finished(work, Outcome::Applied(applied), now);
        said.push(engine.take_remarks().iter().map(|remark| remark.note.clone()).collect::<Vec<Note>>());
    }
    let message = "exceeded quota".to_owned();
    let refusal = Note { message, ..note(Severity::Warning, "FailedCreate") };
    assert_eq!(said, [vec![], vec![missing(), refusal], vec![]]);
}
