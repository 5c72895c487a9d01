//! What Volcano's mutating webhooks made of new objects (`tests/golden/admission`), replayed.
//!
//! Volcano sends back whole lists as its own types print them: fields that it does not know are lost, quantities are
//! rewritten, empty objects appear. Here only what was missing is written, so both results are compared without that.

use expect_test::expect;
use krafla_admission::pod::{GroupSelector, ResourceGroup};
use krafla_admission::{Settings, default, patch};
use krafla_api::{Kind, Quantity};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::records::{Environment, recorded, settings};

/// Replays a file. `settings` gives the settings of the server that answered a case.
fn replay(kind: Kind, name: &str, settings: fn(&Value) -> Settings) {
    let file = recorded(name);
    let mut n_replayed = 0;
    for case in file["cases"].as_array().expect("cases") {
        let (name, response) = (case["name"].as_str().unwrap_or_default(), &case["response"]);
        // A template field that only the future knows is kept here.
        let is_better = name == "unknown template field is dropped by the patch";
        if response["allowed"] != true || is_better {
            continue;
        }
        let mut object = case["object"].clone();
        if let Some(namespace) = case["request"]["namespace"].as_str() {
            object["metadata"]["namespace"] = namespace.into();
        }
        let before = object.clone();
        default(kind, &mut object, &settings(case), &Environment::of(&file, case));
        let recorded = patched(before.clone(), &response["patch"]);
        assert_eq!(even("", &object), even("", &recorded), "{name}");
        n_replayed += 1;
    }
    assert!(n_replayed > 5, "only {n_replayed} cases of {name}");
}

/// Applies a recorded JSON patch, which only ever adds and replaces.
fn patched(mut object: Value, patch: &Value) -> Value {
    for operation in patch.as_array().into_iter().flatten() {
        let pointer = operation["path"].as_str().expect("a path");
        let parts = pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
        let mut at = &mut object;
        for part in parts {
            at = if part == "-" {
                let items = at.as_array_mut().expect("a list");
                items.push(Value::Null);
                items.last_mut().expect("the new item")
            } else {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                at.as_object_mut().expect("an object").entry(part).or_insert(Value::Null)
            };
        }
        *at = operation["value"].clone();
    }
    object
}

/// The value without empty parts, and with amounts in one notation.
fn even(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_amount = ["requests", "limits"].contains(&name);
            let fields = fields.iter().map(|(key, value)| {
                let value = if is_amount {
                    Quantity::deserialize(value).map_or(Value::Null, |amount| json!(amount))
                } else {
                    even(key, value)
                };
                (key.clone(), value)
            });
            let is_something = |value: &Value| !value.is_null() && *value != json!({}) && *value != 0;
            // Zero means something here: this task needs no pods.
            let is_minimum = |key: &str| name == "tasks" && key == "minAvailable";
            fields.filter(|(key, value)| is_something(value) || is_minimum(key)).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(|item| even(name, item)).collect(),
        other => other.clone(),
    }
}

#[test]
fn jobs() {
    replay(Kind::VcJob, "jobs-mutate.json", settings);
}

/// What a webhook answers: the fields that were missing, and nothing else.
#[test]
fn volcano_b45_a_patch_names_only_what_was_missing() {
    let mut job = json!({
        "metadata": { "name": "a" },
        "spec": {
            "queue": "",
            "plugins": { "mpi": ["--master=m"] },
            "tasks": [
                { "name": "m", "replicas": 1, "minAvailable": 1, "maxRetry": 3 },
                {
                    "replicas": 4,
                    "fieldOfTheFuture": true,
                    "template": { "spec": { "hostNetwork": true, "containers": [{ "resources": { "limits": { "cpu": "0.5" } } }] } },
                },
            ],
        },
    });
    let before = job.clone();
    default(Kind::VcJob, &mut job, &Settings::default(), &Environment::of(&Value::Null, &Value::Null));
    let operations: Vec<String> = patch::diff(&before, &job)
        .iter()
        .map(|operation| {
            format!("{} {} {}\n", operation["op"], operation["path"], operation["value"]).replace('"', "")
        })
        .collect();
    expect![[r#"
        add /spec/maxRetry 3
        add /spec/minAvailable 5
        add /spec/plugins/ssh []
        add /spec/plugins/svc []
        replace /spec/queue default
        add /spec/schedulerName volcano
        add /spec/tasks/1/maxRetry 3
        add /spec/tasks/1/minAvailable 4
        add /spec/tasks/1/name default1
        add /spec/tasks/1/template/spec/dnsPolicy ClusterFirstWithHostNet
    "#]]
    .assert_eq(&operations.concat());
}

#[test]
fn queues() {
    replay(Kind::Queue, "queues-mutate.json", settings);
}

#[test]
fn podgroups() {
    replay(Kind::PodGroup, "podgroups-mutate.json", settings);
}

#[test]
fn pods() {
    replay(Kind::Pod, "pods-mutate.json", pod_settings);
}

/// The configuration files of the recorded servers.
fn pod_settings(case: &Value) -> Settings {
    let map = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let namespaces =
        |names: &[&str]| GroupSelector::Namespace(names.iter().map(|name| (*name).to_owned()).collect());
    let group = |name: &str, selector: GroupSelector, node_type: &str| ResourceGroup {
        name: name.to_owned(),
        selector,
        labels: if node_type.is_empty() { map(&[]) } else { map(&[("volcano.sh/nodetype", node_type)]) },
        ..ResourceGroup::default()
    };
    let zones = json!([{ "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a", "b"] }] }]);
    let configured = vec![
        ResourceGroup {
            scheduler_name: "default-scheduler".to_owned(),
            tolerations: vec![
                json!({ "effect": "NoSchedule", "key": "taint", "operator": "Exists" }),
                json!({ "effect": "NoExecute", "key": "slow", "operator": "Equal", "value": "yes" }),
            ],
            affinity: Some(json!({
                "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": zones } },
            })),
            ..group("management", namespaces(&["mng-ns-1", "mng-ns-2"]), "management")
        },
        ResourceGroup {
            scheduler_name: "volcano".to_owned(),
            labels: map(&[("volcano.sh/nodetype", "cpu"), ("disk", "ssd")]),
            ..group(
                "cpu",
                GroupSelector::Annotation(map(&[("volcano.sh/resource-group", "cpu"), ("pool", "small")])),
                "",
            )
        },
        ResourceGroup {
            scheduler_name: "volcano-gpu".to_owned(),
            ..group("gpu", GroupSelector::default(), "gpu")
        },
        group("strange", GroupSelector::Nothing, "strange"),
        ResourceGroup {
            tolerations: vec![json!({ "key": "k1", "operator": "Exists" })],
            ..group("broken", namespaces(&["broken-ns"]), "")
        },
        group("nothing", namespaces(&["plain-ns"]), ""),
        group("second-management", namespaces(&["mng-ns-1", "late-ns"]), "second"),
    ];
    let catch_all = group("", GroupSelector::NamedOrAnnotation(map(&[("pool", "small")])), "any");
    let (gates_pods, resource_groups) = match case["server"].as_str() {
        Some("conf") => (false, configured),
        Some("conf-gate") => (true, configured),
        Some("catch-all") => (false, vec![catch_all]),
        _ => (false, Vec::new()),
    };
    Settings { gates_pods, resource_groups, ..Settings::default() }
}
