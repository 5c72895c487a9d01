//! The cases by which Volcano tests its webhooks, as far as the recorded answers do not show them.

use krafla_admission::pod::{GroupSelector, ResourceGroup};
use krafla_admission::{Operation, Request, Settings, default, validate};
use krafla_api::Kind;
use serde_json::{Value, json};

use crate::records::Environment;

fn environment(objects: &[Value]) -> Environment {
    Environment::of(
        &json!({ "environments": { "e": { "objects": objects } } }),
        &json!({ "environment": "e" }),
    )
}

fn flow(steps: &[(&str, &[&str])]) -> Value {
    let step =
        |(name, targets): &(&str, &[&str])| json!({ "name": name, "dependsOn": { "targets": targets } });
    let flows: Vec<Value> = steps.iter().map(step).collect();
    json!({ "metadata": { "name": "f", "namespace": "ns" }, "spec": { "flows": flows } })
}

#[test]
fn a_chain_of_steps_is_taken_and_can_be_changed_into_another() {
    let chain = flow(&[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &["c"])]);
    let turned = flow(&[("d", &[]), ("c", &["d"]), ("b", &["c"]), ("a", &["b"])]);
    for (operation, object, old) in
        [(Operation::Create, &chain, &Value::Null), (Operation::Update, &turned, &chain)]
    {
        let request = Request { kind: Kind::JobFlow, operation, name: "f", object, old };
        let verdict = validate(request, &Settings::default(), &environment(&[]));
        assert!(verdict.is_allowed(), "{object}: {}", verdict.message());
    }
}

#[test]
fn how_deep_queues_may_be_is_a_setting() {
    let queue = |name: &str, parent: &str| json!({ "kind": "Queue", "metadata": { "name": name }, "spec": { "weight": 1, "parent": parent } });
    let cluster = environment(&[queue("root", ""), queue("one", "root"), queue("two", "one")]);
    let object = queue("three", "two");
    for (queue_depth_max, is_allowed) in [(5, true), (3, true), (2, false)] {
        let settings = Settings { queue_depth_max, ..Settings::default() };
        let operation = Operation::Create;
        let request =
            Request { kind: Kind::Queue, operation, name: "three", object: &object, old: &Value::Null };
        let verdict = validate(request, &settings, &cluster);
        assert_eq!(verdict.is_allowed(), is_allowed, "{queue_depth_max}: {}", verdict.message());
        let why = format!("queue three exceeds the maximum allowed depth of {queue_depth_max}");
        assert_eq!(verdict.message().contains(&why), !is_allowed, "{}", verdict.message());
    }
}

#[test]
fn a_queue_of_no_weight_has_the_weight_one() {
    let mut queue = json!({ "metadata": { "name": "q" }, "spec": { "weight": 0 } });
    default(Kind::Queue, &mut queue, &Settings::default(), &environment(&[]));
    assert_eq!((&queue["spec"]["weight"], &queue["spec"]["reclaimable"]), (&json!(1), &json!(true)));
}

#[test]
fn a_pod_that_says_where_it_may_run_keeps_that_in_a_resource_group() {
    let affinity = |zone: &str| {
        let term = json!({ "matchExpressions": [{ "key": "zone", "operator": "In", "values": [zone] }] });
        json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term] } } })
    };
    let group = ResourceGroup {
        selector: GroupSelector::Namespace(["ns".to_owned()].into_iter().collect()),
        affinity: Some(affinity("of-the-group")),
        ..ResourceGroup::default()
    };
    let settings = Settings { resource_groups: vec![group], ..Settings::default() };
    for (own, expected) in
        [(Value::Null, affinity("of-the-group")), (affinity("of-the-pod"), affinity("of-the-pod"))]
    {
        let mut pod = json!({ "metadata": { "name": "p", "namespace": "ns" }, "spec": { "containers": [] } });
        if !own.is_null() {
            pod["spec"]["affinity"] = own;
        }
        default(Kind::Pod, &mut pod, &settings, &environment(&[]));
        assert_eq!(pod["spec"]["affinity"], expected);
    }
}
