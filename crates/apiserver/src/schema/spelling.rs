//! Fields that a manifest has and its kind does not: a server drops them without a word unless it is asked, and then a
//! user wonders for long why `comand:` runs nothing.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use krafla_api::{Served, crd};
use serde_json::Value;

use super::decode::{self, Finding};
use super::json::Node;
use super::structural::Structural;
use super::table::{Shape, TypeId, TypeRef, builtin};

/// How different a word may be from the one that was meant: so many letters added, dropped or changed, or neighbours
/// swapped.
const TYPOS_MAX: usize = 2;

/// The schemas of Volcano's kinds by their names, made once: that takes longer than using them.
static SCHEMAS: LazyLock<BTreeMap<String, Structural>> = LazyLock::new(|| {
    let named = crd::crds().into_iter().filter_map(|definition| {
        let name = definition.pointer("/metadata/name")?.as_str()?.to_owned();
        let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema")?;
        Some((name, Structural::compile(schema)))
    });
    named.collect()
});

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
    let volcanos = SCHEMAS.get(&format!("{}.{}", of.plural, of.group));
    let mut unknown = volcanos.map(|schema| of_custom(schema, manifest)).unwrap_or_default();
    unknown.extend(volcanos.map(|_| of_templates(manifest)).unwrap_or_default());
    unknown
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
    let Some(of) = builtin().type_named("io.k8s.api.core.v1.PodTemplateSpec") else { return Vec::new() };
    let mut unknown = Vec::new();
    for place in ["spec.tasks", "spec.jobTemplate.spec.tasks"] {
        let tasks = manifest.pointer(&format!("/{}", place.replace('.', "/"))).and_then(Value::as_array);
        for (index, task) in tasks.into_iter().flatten().enumerate() {
            let found = task.get("template").map(|template| of_builtin(of, template)).unwrap_or_default();
            unknown.extend(found.into_iter().map(|Unknown { path, meant }| {
                let path = format!("{place}[{index}].template.{path}");
                Unknown { path, meant }
            }));
        }
    }
    unknown
}

/// Looks for what was meant among the fields beside each one that was found.
fn suggest(found: Vec<Finding>, names_at: impl Fn(&str) -> Vec<String>) -> Vec<Unknown> {
    let unknown = found.into_iter().filter_map(|finding| match finding {
        Finding::Unknown(path) => Some(path),
        Finding::Duplicate(_) => None,
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
        let metadata = builtin().type_named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
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
