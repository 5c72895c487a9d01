//! What one use of a template changes in it: `patch.jobSpec`.
//!
//! Maps are merged, lists of named things are merged by name, all else is replaced. A `null` removes a field.

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
        let keys = MERGED_BY.iter().find(|(list, _)| list == field).map_or(&[][..], |(_, keys)| keys);
        merge(target.entry(field.clone()).or_insert(Value::Null), value, keys);
    }
}

fn merge(target: &mut Value, patch: &Value, keys: &[&str]) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_fields(target, patch),
        (Value::Array(target), Value::Array(patch)) if !keys.is_empty() => {
            for entry in patch {
                match target.iter_mut().find(|known| is_same(known, entry, keys)) {
                    Some(known) => merge(known, entry, &[]),
                    None => target.push(entry.clone()),
                }
            }
        }
        (target, patch) => *target = patch.clone(),
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
