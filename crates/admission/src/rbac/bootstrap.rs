//! The roles and bindings of a new cluster, and how those of an older one catch up.

use serde_json::{Map, Value, json};

use super::{GROUP, Rule, escalation};

/// The table, one object or rule in a line.
const TABLE: &str = include_str!("bootstrap.txt");
/// The prefix of labels by which a role becomes a part of another one.
const AGGREGATE_TO: &str = "rbac.authorization.k8s.io/aggregate-to-";
/// The annotation by which an administrator keeps an object as it is.
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// An object of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Standard {
    /// Plural of its resource.
    pub resource: &'static str,
    /// The object.
    pub object: Value,
}

/// All roles and bindings that a cluster has from its first moment.
pub fn standard() -> Vec<Standard> {
    let mut objects: Vec<Standard> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["clusterrole", name, about @ ..] => objects.push(cluster_role(name, about)),
            ["role", namespace, name] => objects.push(object("roles", "Role", namespace, name)),
            ["clusterrolebinding", name, role, subjects @ ..] => {
                let bound = object("clusterrolebindings", "ClusterRoleBinding", "", name);
                objects.push(bind(bound, "ClusterRole", role, subjects));
            }
            ["rolebinding", namespace, name, role, subjects @ ..] => {
                let bound = object("rolebindings", "RoleBinding", namespace, name);
                objects.push(bind(bound, "Role", role, subjects));
            }
            rule => {
                if let Some(last) = objects.last_mut() {
                    add_rule(&mut last.object, rule);
                }
            }
        }
    }
    objects
}

fn object(resource: &'static str, kind: &str, namespace: &str, name: &str) -> Standard {
    let mut metadata = json!({
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {AUTO_UPDATE: "true"},
    });
    if let (false, Some(metadata)) = (namespace.is_empty(), metadata.as_object_mut()) {
        metadata.insert("namespace".into(), namespace.into());
    }
    let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata});
    Standard { resource, object }
}

fn cluster_role(name: &str, about: &[&str]) -> Standard {
    let mut made = object("clusterroles", "ClusterRole", "", name);
    for word in about {
        match word.split_once('=') {
            Some(("aggregate-to", suffixes)) => {
                let labels = made.object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
                if let Some(labels) = labels {
                    let added =
                        suffixes.split(',').map(|suffix| (format!("{AGGREGATE_TO}{suffix}"), "true".into()));
                    labels.extend(added);
                }
            }
            Some(("aggregates", suffix)) => {
                let label = format!("{AGGREGATE_TO}{suffix}");
                let rule = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
                set(&mut made.object, "aggregationRule", rule);
            }
            _ => {}
        }
    }
    made
}

fn bind(mut bound: Standard, role_kind: &str, role: &str, subjects: &[&str]) -> Standard {
    set(&mut bound.object, "roleRef", json!({"apiGroup": GROUP, "kind": role_kind, "name": role}));
    let subjects: Vec<Value> = subjects.iter().filter_map(|subject| read_subject(subject)).collect();
    if !subjects.is_empty() {
        set(&mut bound.object, "subjects", subjects.into());
    }
    bound
}

fn read_subject(text: &str) -> Option<Value> {
    let (kind, name) = text.split_once('=')?;
    let of_group = |kind: &str| json!({"apiGroup": GROUP, "kind": kind, "name": name});
    match kind {
        "user" => Some(of_group("User")),
        "group" => Some(of_group("Group")),
        _ => {
            let (namespace, name) = name.split_once('/')?;
            Some(json!({"kind": "ServiceAccount", "namespace": namespace, "name": name}))
        }
    }
}

fn add_rule(role: &mut Value, words: &[&str]) {
    let list = |text: &&str| -> Vec<String> {
        text.split(',').map(|item| if item == "\"\"" { String::new() } else { item.to_owned() }).collect()
    };
    let rule = match words {
        [verbs, urls] => Rule { verbs: list(verbs), non_resource_urls: list(urls), ..Rule::default() },
        [verbs, groups, resources, names @ ..] => Rule {
            verbs: list(verbs),
            api_groups: list(groups),
            resources: list(resources),
            resource_names: names.first().map(list).unwrap_or_default(),
            ..Rule::default()
        },
        _ => return,
    };
    push_rules(role, [rule]);
}

fn push_rules(role: &mut Value, added: impl IntoIterator<Item = Rule>) {
    let Some(fields) = role.as_object_mut() else { return };
    let rules = fields.entry("rules").or_insert_with(|| json!([]));
    if rules.is_null() {
        *rules = json!([]);
    }
    if let Some(rules) = rules.as_array_mut() {
        rules.extend(added.into_iter().filter_map(|rule| serde_json::to_value(rule).ok()));
    }
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// What becomes of an object that exists already: nothing, a better one under the same name, or another one in its place.
#[derive(Clone, Debug, PartialEq)]
pub enum Reconciled {
    /// It has everything.
    Kept,
    /// This in its place, by an update.
    Updated(Value),
    /// This in its place, made anew: the role of a binding cannot be changed.
    Replaced(Value),
}

/// Compares a stored object with the standard one. What an administrator has added stays; what is missing comes back,
/// unless the object is marked to be left alone.
pub fn reconcile(existing: &Value, expected: &Value) -> Reconciled {
    let annotation = existing.pointer("/metadata/annotations").and_then(|all| all.get(AUTO_UPDATE));
    if annotation.and_then(Value::as_str) == Some("false") {
        return Reconciled::Kept;
    }
    let mut object = existing.clone();
    for field in ["annotations", "labels"] {
        merge_missing(&mut object, expected, field);
    }
    if expected.get("roleRef").is_some() {
        if expected.get("roleRef") != existing.get("roleRef") {
            return Reconciled::Replaced(expected.clone());
        }
        add_missing(&mut object, expected, "", "subjects");
    } else {
        let (held, wanted) = (Rule::of_role(existing), Rule::of_role(expected));
        let held: Vec<&Rule> = held.iter().collect();
        let missing = escalation::uncovered(&held, &wanted);
        if !missing.is_empty() {
            push_rules(&mut object, missing);
        }
        match expected.get("aggregationRule") {
            None => {
                if let Some(fields) = object.as_object_mut() {
                    fields.remove("aggregationRule");
                }
            }
            Some(rule) if existing.get("aggregationRule").is_none_or(Value::is_null) => {
                set(&mut object, "aggregationRule", rule.clone());
            }
            Some(_) => add_missing(&mut object, expected, "/aggregationRule", "clusterRoleSelectors"),
        }
    }
    if object == *existing { Reconciled::Kept } else { Reconciled::Updated(object) }
}

fn merge_missing(object: &mut Value, expected: &Value, field: &str) {
    let wanted = expected.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for (key, value) in wanted.into_iter().flatten() {
        let entries = metadata.entry(field).or_insert_with(|| Value::Object(Map::new()));
        if let Some(entries) = entries.as_object_mut() {
            entries.entry(key.as_str()).or_insert_with(|| value.clone());
        }
    }
}

/// Adds the items of a list that are not there yet.
fn add_missing(object: &mut Value, expected: &Value, at: &str, field: &str) {
    let wanted = expected.pointer(&format!("{at}/{field}")).and_then(Value::as_array);
    let Some(holder) = object.pointer_mut(at).and_then(Value::as_object_mut) else { return };
    for item in wanted.into_iter().flatten() {
        let items = holder.entry(field).or_insert_with(|| json!([]));
        if items.is_null() {
            *items = json!([]);
        }
        if let Some(items) = items.as_array_mut().filter(|items| !items.contains(item)) {
            items.push(item.clone());
        }
    }
}
