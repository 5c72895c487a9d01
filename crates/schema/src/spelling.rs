//! Fields that a manifest has and its kind does not: a server drops them without a word unless it is asked, and then a
//! user wonders for long why `comand:` runs nothing.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use krafla_api::{Kind, Served, crd};
use serde_json::Value;

use super::decode::{self, Finding};
use super::json::Node;
use super::scalar::canonical_quantity;
use super::structural::{JsonType, Structural};
use super::table::{Shape, TypeId, TypeRef, builtin};

/// How different a word may be from the one that was meant: so many letters added, dropped or changed, or neighbours
/// swapped.
const TYPOS_MAX: usize = 2;

/// The schemas of Volcano's kinds. Each is made once, when a manifest needs it: that takes longer than using it.
static SCHEMAS: [OnceLock<Option<Structural>>; Kind::VOLCANO.len()] =
    [const { OnceLock::new() }; Kind::VOLCANO.len()];

/// The schema of a kind, if it is one of Volcano's.
fn volcanos(of: &Served) -> Option<&'static Structural> {
    let is_it = |kind: Kind| {
        let info = kind.info();
        info.plural == of.plural && info.group == of.group
    };
    let (kind, schema) = Kind::VOLCANO.into_iter().zip(&SCHEMAS).find(|(kind, _)| is_it(*kind))?;
    let compile = || {
        let definition = crd::crd(kind)?;
        Some(Structural::compile(definition.pointer("/spec/versions/0/schema/openAPIV3Schema")?))
    };
    schema.get_or_init(compile).as_ref()
}

/// A field that a kind does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Where it stands: `spec.tasks[0].template.spec.containers[0].comand`.
    pub path: String,
    /// The field that was probably meant.
    pub meant: Option<String>,
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "unknown field {}", self.path)?;
        self.meant.as_ref().map_or(Ok(()), |meant| write!(f, ", did you mean {meant}?"))
    }
}

/// The fields of a manifest that its kind does not have: a built-in one, Volcano's, or one with this schema. What is wrong
/// in another way, and everything about other kinds, is left to the server.
pub fn unknown_fields(of: &Served, schema: Option<&Structural>, manifest: &Value) -> Vec<Unknown> {
    if let Some(of) = builtin().kind(&of.group, &of.version, &of.kind) {
        return of_builtin(of, manifest);
    }
    if let Some(schema) = schema {
        return of_custom(schema, manifest);
    }
    let volcanos = volcanos(of);
    let mut unknown = volcanos.map(|schema| of_custom(schema, manifest)).unwrap_or_default();
    unknown.extend(volcanos.map(|_| of_templates(manifest)).unwrap_or_default());
    unknown
}

/// A value that is not of the sort that its field wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongType {
    /// Where it stands.
    pub path: String,
    /// What it should be, and how to get that.
    pub remedy: String,
}

impl std::fmt::Display for WrongType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.remedy)
    }
}

/// The values of a manifest that its kind can not take, a built-in one or Volcano's: mostly text that YAML takes for something
/// else. A server would name them as its programming language does, and those of Volcano's pods only when they are made.
pub fn wrong_types(of: &Served, manifest: &Value) -> Vec<WrongType> {
    let mut wrong = Vec::new();
    if let Some(of) = builtin().kind(&of.group, &of.version, &of.kind) {
        find_wrong_types(&TypeRef::of(of), manifest, "", &mut wrong);
    } else if let Some(schema) = volcanos(of) {
        let by_schema = of_schema(schema, manifest);
        let of_parts = [
            (METADATA, vec![("metadata".to_owned(), manifest.get("metadata"))]),
            (
                POD_TEMPLATE,
                templates(manifest).into_iter().map(|(path, template)| (path, Some(template))).collect(),
            ),
        ];
        for (of, parts) in of_parts {
            let Some(of) = builtin().type_named(of) else { continue };
            for (path, part) in parts {
                find_wrong_types(&TypeRef::of(of), part.unwrap_or(&Value::Null), &path, &mut wrong);
            }
        }
        // The schema knows parts of the templates, too.
        let found: BTreeSet<String> = wrong.iter().map(|it| it.path.clone()).collect();
        wrong.extend(by_schema.into_iter().filter(|it| !found.contains(&it.path)));
        wrong.sort_by(|one, other| one.path.cmp(&other.path));
    }
    wrong
}

fn of_schema(schema: &Structural, manifest: &Value) -> Vec<WrongType> {
    let mut wrong = Vec::new();
    find_wrong_by_schema(schema, manifest, "", &mut wrong);
    wrong
}

fn find_wrong_by_schema(schema: &Structural, value: &Value, path: &str, wrong: &mut Vec<WrongType>) {
    let wanted = match (schema.types(), value) {
        (_, Value::Null) => return,
        ([JsonType::Object], Value::Object(fields)) => {
            for (name, value) in fields {
                if let Some(schema) = schema.property(name).or_else(|| schema.additional_property()) {
                    find_wrong_by_schema(schema, value, &below(path, name), wrong);
                }
            }
            return;
        }
        ([JsonType::Array], Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(schema) = schema.items() {
                    find_wrong_by_schema(schema, item, &format!("{path}[{index}]"), wrong);
                }
            }
            return;
        }
        ([JsonType::String], _) => Wanted::Text,
        ([JsonType::Boolean], _) => Wanted::Bool,
        ([JsonType::Integer], _) if schema.format() == Some("int32") => Wanted::Int32,
        ([JsonType::Integer], _) => Wanted::Int64,
        ([JsonType::Object], _) => Wanted::Map,
        ([JsonType::Array], _) => Wanted::List,
        _ => return,
    };
    wrong.extend(wanted.remedy(value).map(|remedy| WrongType { path: path.to_owned(), remedy }));
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// What a field wants that holds no others, or something else than others.
#[derive(Clone, Copy)]
enum Wanted {
    Text,
    Bool,
    Int32,
    Int64,
    Amount,
    Map,
    List,
}

impl Wanted {
    /// How to get what is wanted, if this is something else.
    fn remedy(self, value: &Value) -> Option<String> {
        let is_fine = match (self, value) {
            (_, Value::Null)
            | (Wanted::Text, Value::String(_))
            | (Wanted::Bool, Value::Bool(_))
            | (Wanted::Amount, Value::Number(_))
            | (Wanted::Map, Value::Object(_))
            | (Wanted::List, Value::Array(_)) => true,
            (Wanted::Int32, Value::Number(number)) => is_whole(number, i32::MIN.into(), i32::MAX.into()),
            (Wanted::Int64, Value::Number(number)) => is_whole(number, i64::MIN, i64::MAX),
            (Wanted::Amount, Value::String(text)) => canonical_quantity(text).is_ok(),
            _ => false,
        };
        let remedy = match (self, value) {
            _ if is_fine => return None,
            (Wanted::Text, Value::Bool(_) | Value::Number(_)) => {
                format!("YAML reads it as {value} and not as text: put it between quotes")
            }
            (Wanted::Text, _) => "it must be text".to_owned(),
            (Wanted::Bool, _) => "it must be true or false, without quotes".to_owned(),
            (Wanted::Int32 | Wanted::Int64, Value::String(_)) => {
                "it must be a number, without quotes".to_owned()
            }
            (Wanted::Int32, Value::Number(_)) => {
                format!("{value} is not possible: it must be a whole number of at most {}", i32::MAX)
            }
            (Wanted::Int64, Value::Number(_)) => {
                format!("{value} is not possible: it must be a whole number of at most {}", i64::MAX)
            }
            (Wanted::Int32 | Wanted::Int64, _) => "it must be a number".to_owned(),
            (Wanted::Amount, _) => format!("{value} is no amount: write one such as 2, 500m or 1Gi"),
            (Wanted::Map, _) => "it must be a map: `name: value`, a line each".to_owned(),
            (Wanted::List, _) => {
                "it must be a list: `[a, b]`, or a line that begins with `-` for each".to_owned()
            }
        };
        Some(remedy)
    }
}

/// Whether a number has no fraction and is not out of bounds. One that YAML has with a fraction of nothing is a whole one.
fn is_whole(number: &serde_json::Number, min: i64, max: i64) -> bool {
    let is_round = || number.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() < 1e9);
    number.as_i64().map_or_else(is_round, |number| (min..=max).contains(&number))
}

fn find_wrong_types(of: &TypeRef, value: &Value, path: &str, wrong: &mut Vec<WrongType>) {
    let wanted = match (&of.shape, value) {
        (_, Value::Null) => return,
        (Shape::Struct(id), Value::Object(fields)) => {
            for (name, value) in fields {
                if let Some(known) = id.get().field(name) {
                    find_wrong_types(&known.value, value, &below(path, name), wrong);
                }
            }
            return;
        }
        (Shape::Map(of), Value::Object(fields)) => {
            fields.iter().for_each(|(name, value)| find_wrong_types(of, value, &below(path, name), wrong));
            return;
        }
        (Shape::List(of), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                find_wrong_types(of, item, &format!("{path}[{index}]"), wrong);
            }
            return;
        }
        (Shape::String, _) => Wanted::Text,
        (Shape::Bool, _) => Wanted::Bool,
        (Shape::Int32, _) => Wanted::Int32,
        (Shape::Int64, _) => Wanted::Int64,
        (Shape::Quantity, _) => Wanted::Amount,
        (Shape::Struct(_) | Shape::Map(_), _) => Wanted::Map,
        (Shape::List(_), _) => Wanted::List,
        _ => return,
    };
    wrong.extend(wanted.remedy(value).map(|remedy| WrongType { path: path.to_owned(), remedy }));
}

const POD_TEMPLATE: &str = "io.k8s.api.core.v1.PodTemplateSpec";
const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The pod templates of the tasks of Volcano's kinds, and where each stands.
fn templates(manifest: &Value) -> Vec<(String, &Value)> {
    let of = |place: &str| {
        let tasks = manifest.pointer(&format!("/{}", place.replace('.', "/"))).and_then(Value::as_array);
        let templates = tasks.into_iter().flatten().enumerate();
        let named = templates
            .filter_map(|(index, task)| Some((format!("{place}[{index}].template"), task.get("template")?)));
        named.collect::<Vec<_>>()
    };
    ["spec.tasks", "spec.jobTemplate.spec.tasks"].into_iter().flat_map(of).collect()
}

fn of_builtin(of: TypeId, value: &Value) -> Vec<Unknown> {
    let found = decode::decode(&Node::from(value), of).map(|decoded| decoded.findings).unwrap_or_default();
    suggest(found, |parent| builtin_names(&TypeRef::of(of), parent))
}

fn of_custom(schema: &Structural, manifest: &Value) -> Vec<Unknown> {
    let Ok(mut decoded) = decode::decode_custom(&Node::from(manifest)) else { return Vec::new() };
    let mut found = decoded.findings;
    found.extend(schema.prune(&mut decoded.object).into_iter().map(Finding::Unknown));
    suggest(found, |parent| custom_names(schema, parent))
}

/// The same of the pods of tasks: the schemas of Volcano's kinds let everything through there.
fn of_templates(manifest: &Value) -> Vec<Unknown> {
    let Some(of) = builtin().type_named(POD_TEMPLATE) else { return Vec::new() };
    let mut unknown = Vec::new();
    for (place, template) in templates(manifest) {
        unknown.extend(of_builtin(of, template).into_iter().map(|Unknown { path, meant }| {
            let path = format!("{place}.{path}");
            Unknown { path, meant }
        }));
    }
    unknown
}

/// Looks for what was meant among the fields beside each one that was found.
fn suggest(found: Vec<Finding>, names_at: impl Fn(&str) -> Vec<String>) -> Vec<Unknown> {
    let unknown = found.into_iter().filter_map(|finding| match finding {
        Finding::Unknown(path) => Some(path),
        Finding::Duplicate(_) | Finding::Line(_) => None,
    });
    unknown
        .map(|path| {
            let (parent, field) = path.rsplit_once('.').unwrap_or(("", &path));
            let meant = closest(field, names_at(parent).iter().map(String::as_str)).map(str::to_owned);
            Unknown { path, meant }
        })
        .collect()
}

/// The steps of a path: names, and nothing for the place in a list.
fn steps(path: &str) -> impl Iterator<Item = Option<&str>> {
    path.split('.').filter(|part| !part.is_empty()).flat_map(|part| {
        let (name, places) =
            part.split_once('[').map_or((part, 0), |(name, rest)| (name, 1 + rest.matches('[').count()));
        std::iter::once(Some(name)).chain(std::iter::repeat_n(None, places))
    })
}

fn builtin_names(of: &TypeRef, path: &str) -> Vec<String> {
    let at = steps(path).try_fold(of, |at, step| match (&at.shape, step) {
        (Shape::Struct(id), Some(name)) => id.get().field(name).map(|field| &field.value),
        (Shape::List(of), None) | (Shape::Map(of), Some(_)) => Some(of.as_ref()),
        _ => None,
    });
    match at.map(|at| &at.shape) {
        Some(Shape::Struct(id)) => id.get().fields.iter().map(|field| field.name.to_owned()).collect(),
        _ => Vec::new(),
    }
}

fn custom_names(schema: &Structural, path: &str) -> Vec<String> {
    // The metadata of an object is the same for every kind.
    if let Some(rest) = path.strip_prefix("metadata") {
        let metadata = builtin().type_named(METADATA);
        return metadata.map(|of| builtin_names(&TypeRef::of(of), rest)).unwrap_or_default();
    }
    let at = steps(path).try_fold(schema, |at, step| match step {
        Some(name) => at.property(name).or_else(|| at.additional_property()),
        None => at.items(),
    });
    at.map(|at| at.property_names().map(str::to_owned).collect()).unwrap_or_default()
}

/// The name that differs least from a word, if it differs little. Upper and lower case are the same here.
pub fn closest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let distances = names.map(|name| (distance(&lower, &name.to_lowercase()), name));
    let (_, name) = distances.filter(|(typos, _)| *typos <= TYPOS_MAX && *typos < word.len()).min()?;
    Some(name)
}

/// How many letters have to be added, dropped or changed, or neighbours swapped, to get from one word to another.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let cost = |cells: &[usize], at: usize| cells.get(at).copied().unwrap_or(usize::MAX - 1);
            let changed = cost(&last, column) + usize::from(letter != other);
            let mut best = changed.min(cost(&last, column + 1) + 1).min(cost(&next, column) + 1);
            let is_swapped = row > 0
                && column > 0
                && from.get(row - 1) == Some(other)
                && to.get(column - 1) == Some(letter);
            if is_swapped {
                best = best.min(cost(&before_last, column - 1) + 1);
            }
            next.push(best);
        }
        before_last = std::mem::replace(&mut last, next);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use krafla_api::Kind;
    use serde_json::json;

    use super::*;

    fn check(kind: Kind, manifest: &Value, expected: Expect) {
        let found: Vec<String> =
            unknown_fields(&kind.into(), None, manifest).iter().map(Unknown::to_string).collect();
        expected.assert_eq(&found.join("\n"));
    }

    #[test]
    fn a_misspelt_field_is_found_wherever_it_stands() {
        let template = json!({ "spec": { "containers": [{ "name": "c", "comand": ["true"] }], "restartpolicy": "Never" } });
        let spec =
            json!({ "minAvailible": 1, "tasks": [{ "name": "t", "replica": 1, "template": template }] });
        let job = json!({ "metadata": { "name": "a", "lables": {} }, "spec": spec, "sepc": {} });
        check(
            Kind::VcJob,
            &job,
            expect![[r#"
            unknown field metadata.lables, did you mean labels?
            unknown field sepc, did you mean spec?
            unknown field spec.minAvailible, did you mean minAvailable?
            unknown field spec.tasks[0].replica, did you mean replicas?
            unknown field spec.tasks[0].template.spec.containers[0].comand, did you mean command?
            unknown field spec.tasks[0].template.spec.restartpolicy, did you mean restartPolicy?"#]],
        );
        let job = json!({ "metadata": { "name": "a" }, "spec": { "paralelism": 2, "zzz": 1, "template": template } });
        check(
            Kind::Job,
            &job,
            expect![[r#"
            unknown field spec.paralelism, did you mean parallelism?
            unknown field spec.template.spec.containers[0].comand, did you mean command?
            unknown field spec.template.spec.restartpolicy, did you mean restartPolicy?
            unknown field spec.zzz"#]],
        );
    }

    #[test]
    fn what_is_spelt_right_or_may_be_anything_is_left_alone() {
        let template = json!({ "metadata": { "labels": { "any": "thing" } }, "spec": { "containers": [
            { "name": "c", "resources": { "limits": { "my.example/device": 1 } } }] } });
        let spec = json!({ "tasks": [{ "template": template }], "plugins": { "svc": [], "own": [] } });
        check(
            Kind::VcJob,
            &json!({ "apiVersion": "v", "kind": "Job", "metadata": { "name": "a" }, "spec": spec }),
            expect![""],
        );
        check(Kind::ConfigMap, &json!({ "data": { "any": "thing" } }), expect![""]);
        check(Kind::Pod, &json!({ "spec": 7 }), expect![""]);
    }

    #[test]
    fn values_that_yaml_takes_for_something_else_are_named() {
        let pod = json!({ "spec": { "hostNetwork": "yes", "containers": [{ "name": "c", "command": "echo hello",
            "env": [{ "name": "X", "value": 5 }, { "name": "Y", "value": true }, "Z"], "ports": [{ "containerPort": "80" }] }] } });
        let wrong = |kind: Kind, manifest: &Value| {
            let found = wrong_types(&kind.into(), manifest);
            found.iter().map(|it| format!("{it}\n")).collect::<String>()
        };
        expect![[r#"
            spec.tasks[0].template.spec.containers[0].command: it must be a list: `[a, b]`, or a line that begins with `-` for each
            spec.tasks[0].template.spec.containers[0].env[0].value: YAML reads it as 5 and not as text: put it between quotes
            spec.tasks[0].template.spec.containers[0].env[1].value: YAML reads it as true and not as text: put it between quotes
            spec.tasks[0].template.spec.containers[0].env[2]: it must be a map: `name: value`, a line each
            spec.tasks[0].template.spec.containers[0].ports[0].containerPort: it must be a number, without quotes
            spec.tasks[0].template.spec.hostNetwork: it must be true or false, without quotes
        "#]]
        .assert_eq(&wrong(Kind::VcJob, &json!({ "spec": { "tasks": [{ "template": pod }] } })));
        let map =
            json!({ "metadata": { "annotations": { "a": true } }, "data": { "a": 1, "b": "1", "c": null } });
        expect![[r#"
            data.a: YAML reads it as 1 and not as text: put it between quotes
            metadata.annotations.a: YAML reads it as true and not as text: put it between quotes
        "#]]
        .assert_eq(&wrong(Kind::ConfigMap, &map));
        let fine = json!({ "spec": { "containers": [{ "resources": { "limits": { "cpu": 1, "memory": "1Gi" } },
            "livenessProbe": { "httpGet": { "port": "web" } } }], "terminationGracePeriodSeconds": 5 } });
        assert_eq!(wrong(Kind::Pod, &fine), "");
    }

    #[test]
    fn what_a_field_can_not_hold_is_said_in_plain_words() {
        let wrong = |kind: Kind, manifest: &Value| {
            let found = wrong_types(&kind.into(), manifest);
            found.iter().map(|it| format!("{it}\n")).collect::<String>()
        };
        let template = json!({ "spec": { "containers": [{ "ports": [{ "containerPort": 99_999_999_999_i64 }],
            "resources": { "requests": { "cpu": "lots", "memory": "1Gi" }, "limits": { "cpu": [1] } } }] } });
        let spec = json!({ "minAvailable": 3_000_000_000_i64, "maxRetry": 1.5, "plugins": ["svc"], "queue": 7,
            "ttlSecondsAfterFinished": 2.0, "policies": [{ "action": true, "event": "PodFailed" }],
            "tasks": [{ "replicas": "2", "template": template }, "b"] });
        expect![[r#"
            metadata.labels.a: YAML reads it as 1 and not as text: put it between quotes
            spec.maxRetry: 1.5 is not possible: it must be a whole number of at most 2147483647
            spec.minAvailable: 3000000000 is not possible: it must be a whole number of at most 2147483647
            spec.plugins: it must be a map: `name: value`, a line each
            spec.policies[0].action: YAML reads it as true and not as text: put it between quotes
            spec.queue: YAML reads it as 7 and not as text: put it between quotes
            spec.tasks[0].replicas: it must be a number, without quotes
            spec.tasks[0].template.spec.containers[0].ports[0].containerPort: 99999999999 is not possible: it must be a whole number of at most 2147483647
            spec.tasks[0].template.spec.containers[0].resources.limits.cpu: [1] is no amount: write one such as 2, 500m or 1Gi
            spec.tasks[0].template.spec.containers[0].resources.requests.cpu: "lots" is no amount: write one such as 2, 500m or 1Gi
            spec.tasks[1]: it must be a map: `name: value`, a line each
        "#]].assert_eq(&wrong(
            Kind::VcJob,
            &json!({ "metadata": { "name": "a", "labels": { "a": 1 } }, "spec": spec }),
        ));
        expect![[r#"
            spec.completions: 3000000000 is not possible: it must be a whole number of at most 2147483647
            spec.parallelism: 1.5 is not possible: it must be a whole number of at most 2147483647
            spec.template.spec.containers[0].ports[0].containerPort: 99999999999 is not possible: it must be a whole number of at most 2147483647
            spec.template.spec.containers[0].resources.limits.cpu: [1] is no amount: write one such as 2, 500m or 1Gi
            spec.template.spec.containers[0].resources.requests.cpu: "lots" is no amount: write one such as 2, 500m or 1Gi
        "#]].assert_eq(&wrong(
            Kind::Job,
            &json!({ "spec": { "parallelism": 1.5, "completions": 3_000_000_000_i64, "template": template } }),
        ));
    }

    #[test]
    fn a_schema_of_ones_own_is_looked_at_too() {
        let schema = json!({ "type": "object", "properties": { "spec": { "type": "object",
            "properties": { "size": { "type": "integer" } } } } });
        let of = Served { group: "example.com".to_owned(), ..Kind::Queue.into() };
        let manifest = json!({ "metadata": { "nam": "a" }, "spec": { "sise": 1 } });
        let found = unknown_fields(&of, Some(&Structural::compile(&schema)), &manifest);
        let found: Vec<String> = found.iter().map(Unknown::to_string).collect();
        assert_eq!(
            found,
            ["unknown field metadata.nam, did you mean name?", "unknown field spec.sise, did you mean size?"]
        );
        assert_eq!(unknown_fields(&of, None, &manifest), []);
    }

    #[test]
    fn words_are_as_far_apart_as_there_are_typos() {
        for (from, to, typos) in [
            ("command", "command", 0),
            ("comand", "command", 1),
            ("commnad", "command", 1),
            ("", "abc", 3),
            ("cmd", "env", 3),
        ] {
            assert_eq!(distance(from, to), typos, "{from} {to}");
            assert_eq!(distance(to, from), typos, "{to} {from}");
        }
    }
}
