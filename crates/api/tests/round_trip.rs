//! Whatever the CRDs accept, the types read; and what they read, they write back.
//!
//! The objects are generated from the CRDs' own schemas, so a field that is in one of the two and not in the other is
//! found here.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use krafla_api::volcano::{Command, CronJob, Job, JobFlow, JobPhase, JobTemplate, PodGroup, Queue, Resource};
use krafla_api::{Kind, crd};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

#[test]
fn jobs_survive_a_round_trip() {
    check_round_trip::<Job>();
}

#[test]
fn cronjobs_survive_a_round_trip() {
    check_round_trip::<CronJob>();
}

#[test]
fn jobflows_survive_a_round_trip() {
    check_round_trip::<JobFlow>();
}

#[test]
fn jobtemplates_survive_a_round_trip() {
    check_round_trip::<JobTemplate>();
}

#[test]
fn commands_survive_a_round_trip() {
    check_round_trip::<Command>();
}

#[test]
fn podgroups_survive_a_round_trip() {
    check_round_trip::<PodGroup>();
}

#[test]
fn queues_survive_a_round_trip() {
    check_round_trip::<Queue>();
}

fn check_round_trip<T: Resource + PartialEq + std::fmt::Debug>() {
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() });
    let result = runner.run(&objects(T::KIND), |object| {
        let read: T =
            serde_json::from_value(object.clone()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let written = read.to_manifest();
        prop_assert_eq!(without_nothing(&written), without_nothing(&object));
        let again: T =
            serde_json::from_value(written).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(again, read);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// Objects of a kind, from its CRD.
fn objects(kind: Kind) -> BoxedStrategy<Value> {
    let crd = crd::crd(kind).expect("a definition");
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let info = kind.info();
    values("", schema)
        .prop_map(move |mut object| {
            object["apiVersion"] = info.api_version().into();
            object["kind"] = info.kind.into();
            object["metadata"] =
                json!({ "name": "a", "uid": "u", "labels": { "a": "b" }, "resourceVersion": "7" });
            object
        })
        .boxed()
}

fn values(name: &str, schema: &Value) -> BoxedStrategy<Value> {
    if let Some(words) = schema["enum"].as_array() {
        let known = prop::sample::select(words.clone());
        return prop_oneof![9 => known, 1 => Just(json!("WordOfTheFuture"))].boxed();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return prop_oneof![Just(json!("500m")), Just(json!("3")), Just(json!("12Gi")), Just(json!("1k"))]
            .boxed();
    }
    match schema["type"].as_str() {
        Some("integer") => {
            let min = schema["minimum"].as_i64().unwrap_or(-5);
            (min..i64::from(i32::MAX)).prop_map(Value::from).boxed()
        }
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("array") => {
            prop::collection::vec(values(name, &schema["items"]), 0..3).prop_map(Value::from).boxed()
        }
        Some("object") => object_values(schema),
        _ if schema["format"] == "date-time" => Just(json!("2026-11-15T08:00:00Z")).boxed(),
        _ if ["timeout", "runningEstimate", "runningDuration"].contains(&name) => {
            prop_oneof![Just(json!("1h30m0s")), Just(json!("-1.5s")), Just(json!("250ms"))].boxed()
        }
        _ => "[a-z0-9\u{e9}-]{0,8}".prop_map(Value::from).boxed(),
    }
}

fn object_values(schema: &Value) -> BoxedStrategy<Value> {
    let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true;
    if let Some(any) = schema.get("additionalProperties") {
        let entries = prop::collection::btree_map("[a-z]{1,5}", values("", any), 0..3);
        return entries.prop_map(|entries| entries.into_iter().collect::<Map<_, _>>().into()).boxed();
    }
    let mut fields = Just(Map::new()).boxed();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let name = name.clone();
        let is_required = schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
        let value = values(&name, property);
        let value = if is_required { value.prop_map(Some).boxed() } else { prop::option::of(value).boxed() };
        let insert = move |(mut fields, value): (Map<String, Value>, Option<Value>)| {
            fields.extend(value.map(|value| (name.clone(), value)));
            fields
        };
        fields = (fields, value).prop_map(insert).boxed();
    }
    let newer = move |mut fields: Map<String, Value>| {
        if keeps_unknown {
            fields.insert("fieldOfTheFuture".to_owned(), json!([{ "deep": [1.5, "x"] }]));
        }
        Value::from(fields)
    };
    fields.prop_map(newer).boxed()
}

/// Go leaves zeros and empty things out, and so do the types: what remains must be equal.
fn without_nothing(value: &Value) -> Value {
    let is_something = |value: &Value| match value {
        Value::Null => false,
        Value::Number(number) => number.as_i64() != Some(0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) => true,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), without_nothing(value)));
            fields.filter(|(_, value)| is_something(value)).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(without_nothing).collect(),
        other => other.clone(),
    }
}

#[test]
fn nulls_read_as_nothing() {
    let job: Job = serde_json::from_value(json!({
        "spec": {
            "tasks": null, "volumes": null, "policies": null, "networkTopology": null, "runningEstimate": null,
            "plugins": { "svc": null },
        },
        "status": {
            "state": { "phase": null, "lastTransitionTime": null },
            "conditions": null, "taskStatusCount": null, "controlledResources": null,
        },
    }))
    .expect("a job");
    assert_eq!(job.status.state.phase, JobPhase::Unset);
    assert_eq!(serde_json::to_value(&job.spec).ok(), Some(json!({ "plugins": { "svc": [] } })));
}

#[test]
fn zero_counters_are_left_out() {
    let status = serde_json::to_value(krafla_api::volcano::JobStatus::default()).ok();
    assert_eq!(status, Some(json!({ "state": {} })));
}
