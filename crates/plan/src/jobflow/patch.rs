//! `patch.jobSpec`: changes of one step to its template.
//!
//! What is made of parts is merged: a job, its plugins, tasks, pods, containers and resources, and lists of named things by name.
//! All else is replaced, as many of its fields exclude each other: a probe asks in one way, a tier has a number or a name. A
//! `null` removes a field.

use serde_json::{Map, Value};

/// What a list's entries are known by, by the list's name. Job volumes have no name but a mount path.
const MERGED_BY: [(&str, &[&str]); 9] = [
    ("tasks", &["name"]),
    ("volumes", &["name", "mountPath"]),
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("env", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("ports", &["containerPort"]),
    ("tolerations", &["key"]),
    ("hostAliases", &["ip"]),
];

/// Lists of things each of which comes from one source: an entry takes the place of the one of its name.
const OF_ONE_SOURCE: [&str; 2] = ["env", "volumes"];

/// The maps that are merged. The entries of lists that are merged by name are too.
const MERGED: [&str; 9] =
    ["plugins", "template", "metadata", "labels", "annotations", "spec", "resources", "limits", "requests"];

/// What the CRD fills in wherever a job's spec stands: in a patch it can not be told from what nobody said.
const FILLED_IN: [(&str, Filled); 2] = [("queue", Filled::Text("default")), ("maxRetry", Filled::Number(3))];

enum Filled {
    Text(&'static str),
    Number(i64),
}

impl Filled {
    fn is(&self, value: &Value) -> bool {
        match self {
            Filled::Text(text) => value.as_str() == Some(text),
            Filled::Number(number) => value.as_i64() == Some(*number),
        }
    }
}

/// Changes a job's spec as the patch says.
pub(super) fn apply(spec: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return };
    let mut said = patch.clone();
    for (field, filled) in FILLED_IN {
        if said.get(field).is_some_and(|value| filled.is(value)) {
            said.remove(field);
        }
    }
    if !spec.is_object() {
        *spec = Value::Object(Map::new());
    }
    if let Value::Object(spec) = spec {
        merge_fields(spec, &said);
    }
}

fn merge_fields(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (field, value) in patch {
        if value.is_null() {
            target.remove(field);
            continue;
        }
        let keys = MERGED_BY.iter().find(|(list, _)| list == field).map(|(_, keys)| keys);
        match (target.entry(field.clone()).or_insert(Value::Null), value, keys) {
            (Value::Object(target), Value::Object(patch), _) if MERGED.contains(&field.as_str()) => {
                merge_fields(target, patch);
            }
            (Value::Array(target), Value::Array(patch), Some(keys)) => {
                let is_merged = !OF_ONE_SOURCE.contains(&field.as_str());
                patch.iter().for_each(|entry| merge_entry(target, entry, keys, is_merged));
            }
            (target, patch, _) => *target = patch.clone(),
        }
    }
}

fn merge_entry(list: &mut Vec<Value>, entry: &Value, keys: &[&str], is_merged: bool) {
    match (list.iter_mut().find(|known| is_same(known, entry, keys)), entry) {
        (Some(Value::Object(known)), Value::Object(entry)) if is_merged => merge_fields(known, entry),
        (Some(known), entry) => *known = entry.clone(),
        (None, entry) => list.push(entry.clone()),
    }
}

/// Whether two entries of a list are about the same thing.
fn is_same(one: &Value, other: &Value, keys: &[&str]) -> bool {
    let key = keys.iter().find(|key| other.get(key).is_some());
    key.is_some_and(|key| one.get(key) == other.get(key))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(patch: Value, expected: Expect) {
        let mut spec = json!({
            "queue": "fast", "maxRetry": 5, "minAvailable": 2,
            "plugins": { "env": [], "svc": ["--a=b"] },
            "tasks": [
                { "name": "lead", "replicas": 1, "template": { "spec": { "containers": [{ "name": "main", "image": "img:1" }] } } },
                { "name": "work", "replicas": 4, "template": { "spec": { "containers": [
                    { "name": "main", "image": "img:1", "args": ["a", "b"], "env": [{ "name": "A", "value": "1" }] } ] } } },
            ],
        });
        apply(&mut spec, &patch);
        expected.assert_eq(&format!("{spec}\n"));
    }

    #[test]
    fn no_patch_changes_nothing() {
        check(
            Value::Null,
            expect![[r#"
            {"maxRetry":5,"minAvailable":2,"plugins":{"env":[],"svc":["--a=b"]},"queue":"fast","tasks":[{"name":"lead","replicas":1,"template":{"spec":{"containers":[{"image":"img:1","name":"main"}]}}},{"name":"work","replicas":4,"template":{"spec":{"containers":[{"args":["a","b"],"env":[{"name":"A","value":"1"}],"image":"img:1","name":"main"}]}}}]}
        "#]],
        );
    }

    #[test]
    fn tasks_containers_and_variables_are_merged_by_name_and_lists_of_words_are_replaced() {
        check(
            json!({ "minAvailable": 3, "plugins": { "svc": [] }, "tasks": [
                { "name": "work", "replicas": 2, "template": { "spec": { "nodeSelector": { "gpu": "yes" }, "containers": [
                    { "name": "main", "args": ["c"], "env": [{ "name": "A", "value": "2" }, { "name": "B", "value": "3" }] } ] } } },
                { "name": "extra", "replicas": 1 },
            ] }),
            expect![[r#"
                {"maxRetry":5,"minAvailable":3,"plugins":{"env":[],"svc":[]},"queue":"fast","tasks":[{"name":"lead","replicas":1,"template":{"spec":{"containers":[{"image":"img:1","name":"main"}]}}},{"name":"work","replicas":2,"template":{"spec":{"containers":[{"args":["c"],"env":[{"name":"A","value":"2"},{"name":"B","value":"3"}],"image":"img:1","name":"main"}],"nodeSelector":{"gpu":"yes"}}}},{"name":"extra","replicas":1}]}
            "#]],
        );
    }

    #[test]
    fn what_excludes_each_other_is_replaced_and_what_is_made_of_parts_is_merged() {
        let patched = |mut spec: Value, patch: Value| {
            apply(&mut spec, &patch);
            spec
        };
        let number = json!({ "networkTopology": { "mode": "hard", "highestTierAllowed": 2 } });
        let name = json!({ "networkTopology": { "highestTierName": "rack" } });
        assert_eq!(patched(number, name.clone()), name);
        let pod = |spec: Value| json!({ "tasks": [{ "name": "work", "template": { "spec": spec } }] });
        for (field, one, other) in [
            (
                "livenessProbe",
                json!({ "httpGet": { "port": 80 } }),
                json!({ "exec": { "command": ["true"] } }),
            ),
            ("env", json!([{ "name": "A", "value": "1" }]), json!([{ "name": "A", "valueFrom": {} }])),
        ] {
            let container = |value: Value| pod(json!({ "containers": [{ "name": "main", field: value }] }));
            assert_eq!(patched(container(one), container(other.clone())), container(other));
        }
        for (field, one, other) in [
            ("affinity", json!({ "nodeAffinity": {} }), json!({ "podAffinity": {} })),
            ("nodeSelector", json!({ "gpu": "no" }), json!({ "zone": "a" })),
            ("volumes", json!([{ "name": "v", "emptyDir": {} }]), json!([{ "name": "v", "secret": {} }])),
        ] {
            let other = pod(json!({ field: other }));
            assert_eq!(patched(pod(json!({ field: one })), other.clone()), other);
        }
        let resources = |value: Value| pod(json!({ "containers": [{ "name": "main", "resources": value }] }));
        assert_eq!(
            patched(
                resources(json!({ "requests": { "cpu": "1" }, "limits": { "cpu": "2" } })),
                resources(json!({ "requests": { "memory": "1Gi" } })),
            ),
            resources(json!({ "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "cpu": "2" } })),
        );
    }

    #[test]
    fn what_the_crd_fills_into_a_patch_does_not_override_the_template() {
        check(
            json!({ "queue": "default", "maxRetry": 3, "minAvailable": 1 }),
            expect![[r#"
            {"maxRetry":5,"minAvailable":1,"plugins":{"env":[],"svc":["--a=b"]},"queue":"fast","tasks":[{"name":"lead","replicas":1,"template":{"spec":{"containers":[{"image":"img:1","name":"main"}]}}},{"name":"work","replicas":4,"template":{"spec":{"containers":[{"args":["a","b"],"env":[{"name":"A","value":"1"}],"image":"img:1","name":"main"}]}}}]}
        "#]],
        );
        check(
            json!({ "queue": "slow", "maxRetry": 0 }),
            expect![[r#"
            {"maxRetry":0,"minAvailable":2,"plugins":{"env":[],"svc":["--a=b"]},"queue":"slow","tasks":[{"name":"lead","replicas":1,"template":{"spec":{"containers":[{"image":"img:1","name":"main"}]}}},{"name":"work","replicas":4,"template":{"spec":{"containers":[{"args":["a","b"],"env":[{"name":"A","value":"1"}],"image":"img:1","name":"main"}]}}}]}
        "#]],
        );
    }
}
