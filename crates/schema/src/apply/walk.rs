//! Walks over typed values: checking, naming the fields, comparing, merging, removing.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::set::{FieldSet, Node, field_step, shown};
use super::shape::{At, Atom, Container, Scalar};

/// What is wrong with an applied object, each with its path. Elements of lists may not come twice.
pub(super) fn check(value: &Value, at: At<'_>, path: &str, faults: &mut Vec<String>) {
    let mut fail = |what: String| faults.push(format!("{path}: {what}"));
    match (at.atom(value), value) {
        (_, Value::Null) => {}
        (Atom::Scalar(expected), value) => {
            if let Some(what) = scalar_fault(expected, value) {
                fail(what);
            }
        }
        (Atom::Map | Atom::Whole(Container::Map), Value::Object(fields)) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                match at.field(name) {
                    Some((at, _)) => check(value, at, &path, faults),
                    None => faults.push(format!("{path}: field not declared in schema")),
                }
            }
        }
        (Atom::List, Value::Array(items)) => {
            let mut seen = HashSet::new();
            for (index, item) in items.iter().enumerate() {
                match at.step_to(item) {
                    Ok(step) => {
                        let place = shown(&step);
                        if !seen.insert(step) {
                            faults.push(format!("{path}: duplicate entries for key {place}"));
                        }
                        check(item, at.element(), &format!("{path}{place}"), faults);
                    }
                    Err(what) => {
                        faults.push(format!("{path}: element {index}: {what}"));
                        return;
                    }
                }
            }
        }
        (Atom::Whole(Container::List), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                check(item, at.element(), &format!("{path}[{index}]"), faults);
            }
        }
        (Atom::Whole(Container::Any), _) => {}
        (Atom::Map | Atom::Whole(Container::Map), value) => {
            fail(format!("expected map, got &{}", go_value(value)))
        }
        (Atom::List | Atom::Whole(Container::List), value) => {
            fail(format!("expected list, got &{}", go_value(value)))
        }
    }
}

/// The lists and maps in a value that are one value to a merge, by their paths.
pub(super) fn find_whole(value: &Value, at: At<'_>, path: &str, found: &mut Vec<String>) {
    let is_whole = matches!(at.atom(value), Atom::Whole(_));
    match value {
        Value::Object(fields) => {
            if is_whole {
                found.push(path.to_owned());
            }
            for (name, value) in fields {
                if let Some((at, true)) = at.field(name) {
                    find_whole(value, at, &format!("{path}.{name}"), found);
                }
            }
        }
        Value::Array(items) => {
            if is_whole {
                found.push(path.to_owned());
            }
            for (index, item) in items.iter().enumerate() {
                find_whole(item, at.element(), &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

fn scalar_fault(expected: Scalar, value: &Value) -> Option<String> {
    match (expected, value) {
        (Scalar::Text, Value::String(_))
        | (Scalar::Number, Value::Number(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Any, Value::String(_) | Value::Number(_) | Value::Bool(_)) => None,
        (Scalar::Text, value) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value)))
        }
        (Scalar::Number, value) => Some(format!("expected numeric (int or float), got {}", go_type(value))),
        (Scalar::Boolean, value) => Some(format!("expected boolean, got &{}", go_value(value))),
        (Scalar::Any, value) => Some(format!("expected any scalar, got &{}", go_value(value))),
    }
}

/// A value as Go prints its wrapper.
fn go_value(value: &Value) -> String {
    format!("{{{}}}", crate::strategic::go_print(value))
}

/// A value as Go's `%#v` prints it.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{key:?}:{}", go_syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        plain => plain.to_string(),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The fields that an applied object sets.
pub(super) fn fields_of(value: &Value, at: At<'_>) -> FieldSet {
    node_of(value, at).below
}

fn node_of(value: &Value, at: At<'_>) -> Node {
    let mut node = Node::default();
    match (at.atom(value), value) {
        (Atom::Map, Value::Object(fields)) => {
            for (name, value) in fields {
                let Some((below, is_named)) = at.field(name) else { continue };
                let mut inner = node_of(value, below);
                inner.is_member |= is_empty(value) && !value.is_array() || !is_named;
                if !inner.is_empty() {
                    node.below.attach(field_step(name), inner);
                }
            }
        }
        (Atom::List, Value::Array(items)) => {
            let step_to = |item: &Value| {
                let inner = Node { is_member: true, ..node_of(item, at.element()) };
                Some((at.step_to(item).ok()?, inner))
            };
            let mut steps: Vec<(String, Node)> = items.iter().filter_map(step_to).collect();
            steps.sort_by(|(left, _), (right, _)| left.cmp(right));
            steps.into_iter().for_each(|(step, inner)| node.below.attach(step, inner));
        }
        (Atom::Map | Atom::List, _) => {}
        (Atom::Scalar(_) | Atom::Whole(_), _) => node.is_member = true,
    }
    node
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// What has changed between two objects.
pub(super) struct Comparison {
    pub(super) removed: FieldSet,
    /// What is new or other than before.
    pub(super) changed: FieldSet,
}

pub(super) fn compare(before: &Value, after: &Value, at: At<'_>) -> Comparison {
    let change = compare_values(Some(before), Some(after), at);
    Comparison { removed: change.removed.below, changed: change.changed.below }
}

/// What has changed at one place and inside it.
#[derive(Default)]
struct Change {
    removed: Node,
    changed: Node,
}

impl Change {
    fn attach(&mut self, step: impl Fn() -> String, inner: Change) {
        if !inner.removed.is_empty() {
            self.removed.below.attach(step(), inner.removed);
        }
        if !inner.changed.is_empty() {
            self.changed.below.attach(step(), inner.changed);
        }
    }
}

fn compare_values(before: Option<&Value>, after: Option<&Value>, at: At<'_>) -> Change {
    let mut change = Change::default();
    if let (None, Some(after)) = (before, after) {
        change.changed = added(after, at);
        return change;
    }
    // Most of an object stays as it is in any one write, and need not be walked.
    if before == after {
        return change;
    }
    let Some(shown) = after.filter(|value| !value.is_null()).or(before).or(after) else { return change };
    let are_empty = before.is_none_or(is_empty) && after.is_none_or(is_empty);
    match at.atom(shown) {
        Atom::Map if !are_empty => {
            let gone = fields(before).filter(|(name, _)| field(after, name).is_none());
            for (name, _) in fields(after).chain(gone) {
                let Some((below, _)) = at.field(name) else { continue };
                let inner = compare_values(field(before, name), field(after, name), below);
                change.attach(|| field_step(name), inner);
            }
        }
        Atom::List if !are_empty => change = compare_lists(before, after, at),
        Atom::Scalar(_) | Atom::Whole(_) | Atom::Map | Atom::List => {
            change.changed.is_member |= before.is_some() && after.is_some();
        }
    }
    change.removed.is_member |= after.is_none();
    change
}

/// What is new where nothing was: all of it. An object that is created is mostly that.
fn added(value: &Value, at: At<'_>) -> Node {
    match (at.atom(value), value) {
        (Atom::Map, Value::Object(fields)) => {
            let mut node = Node::member(fields.len());
            for (name, value) in fields {
                if let Some((below, _)) = at.field(name) {
                    node.below.attach(field_step(name), added(value, below));
                }
            }
            node
        }
        (Atom::List, Value::Array(items)) => {
            let mut node = Node::member(items.len());
            let step_to = |item: &Value| Some((at.step_to(item).ok()?, added(item, at.element())));
            node.below.attach_elements(items.iter().filter_map(step_to));
            node
        }
        (Atom::Map | Atom::List | Atom::Scalar(_) | Atom::Whole(_), _) => Node::member(0),
    }
}

fn field<'v>(value: Option<&'v Value>, name: &str) -> Option<&'v Value> {
    value.and_then(|value| value.get(name))
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn fields(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

fn compare_lists(before: Option<&Value>, after: Option<&Value>, at: At<'_>) -> Change {
    let (before, after) = (by_step(before, at), by_step(after, at));
    let mut change = Change::default();
    let gone = before.keys().filter(|step| !after.contains_key(*step));
    for step in after.keys().chain(gone) {
        let old = before.get(step).map(Vec::as_slice).unwrap_or_default();
        let new = after.get(step).map(Vec::as_slice).unwrap_or_default();
        let mut inner = Change::default();
        match (old, new) {
            // Elements that come twice are owned as one.
            ([_, _, ..], [_, _, ..]) => inner.changed.is_member = old != new,
            ([_, _, ..], new) => {
                inner = compare_values(None, new.first().copied(), at.element());
                inner.removed.is_member = true;
            }
            (old, [_, _, ..]) => {
                inner = compare_values(old.first().copied(), None, at.element());
                inner.changed.is_member = true;
            }
            (old, new) => inner = compare_values(old.first().copied(), new.first().copied(), at.element()),
        }
        change.attach(|| step.clone(), inner);
    }
    change
}

/// A list's elements by the steps to them; one step leads to several where elements come twice.
fn by_step<'v>(list: Option<&'v Value>, at: At<'_>) -> BTreeMap<String, Vec<&'v Value>> {
    let mut groups: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for item in list.and_then(Value::as_array).into_iter().flatten() {
        if let Ok(step) = at.step_to(item) {
            groups.entry(step).or_default().push(item);
        }
    }
    groups
}

/// Puts an applied object over the live one. None: nothing is left of the two.
pub(super) fn merge(live: Option<&Value>, applied: Option<&Value>, at: At<'_>) -> Option<Value> {
    let shown = applied.filter(|value| !value.is_null()).or(live).or(applied)?;
    let are_empty = live.is_none_or(is_empty) && applied.is_none_or(is_empty);
    match at.atom(shown) {
        Atom::Map if !are_empty => {
            let names: BTreeSet<&String> =
                fields(live).chain(fields(applied)).map(|(name, _)| name).collect();
            let merged: Map<String, Value> = names
                .into_iter()
                .filter_map(|name| {
                    let below = at.field(name).map_or(At::Opaque, |(below, _)| below);
                    Some((name.clone(), merge(field(live, name), field(applied, name), below)?))
                })
                .collect();
            Some(Value::Object(merged))
        }
        Atom::List if !are_empty => Some(Value::Array(merge_lists(items(live), items(applied), at))),
        Atom::Scalar(_) | Atom::Whole(_) | Atom::Map | Atom::List => applied.or(live).cloned(),
    }
}

/// Merges two lists element by element. What is applied keeps its order; what only the live list has stays between the
/// elements it stood between.
fn merge_lists(live: &[Value], applied: &[Value], at: At<'_>) -> Vec<Value> {
    let steps =
        |items: &[Value]| items.iter().map(|item| at.step_to(item).unwrap_or_default()).collect::<Vec<_>>();
    let (live_steps, applied_steps) = (steps(live), steps(applied));
    let index = |steps: &[String]| {
        let mut index = HashMap::new();
        for (place, step) in steps.iter().enumerate() {
            index.entry(step.clone()).or_insert(place);
        }
        index
    };
    let (live_index, applied_index) = (index(&live_steps), index(&applied_steps));
    let mut shared = applied_steps.iter().filter(|step| live_index.contains_key(*step)).peekable();
    let live_item = |step: &str| live_index.get(step).and_then(|place| live.get(*place));
    let mut merged_steps = HashSet::new();
    let mut list = Vec::new();
    let (mut left, mut right) = (0, 0);
    loop {
        match (live_steps.get(left), applied_steps.get(right)) {
            (None, None) => return list,
            (Some(step), Some(other)) if step == other => {
                list.extend(merge(live_item(step), applied.get(right), at.element()));
                merged_steps.insert(step);
                (left, right) = (left + 1, right + 1);
                shared.next();
                continue;
            }
            // Shared, but not the next one that is wanted.
            (Some(step), Some(_))
                if applied_index.contains_key(step)
                    && shared.peek().is_some_and(|wanted| *wanted != step) =>
            {
                left += 1;
                continue;
            }
            _ => {}
        }
        if let Some(step) = live_steps.get(left) {
            if !applied_index.contains_key(step) {
                list.extend(merge(live.get(left), None, at.element()));
                left += 1;
                continue;
            }
            left += usize::from(merged_steps.contains(step));
        }
        if let Some(step) = applied_steps.get(right) {
            list.extend(merge(live_item(step), applied.get(right), at.element()));
            merged_steps.insert(step);
            right += 1;
            if shared.peek().is_some_and(|wanted| *wanted == step) {
                shared.next();
            }
        }
    }
}

/// The value without these fields. A list that is emptied by it becomes null.
pub(super) fn remove(value: &Value, removed: &FieldSet, at: At<'_>) -> Value {
    match (at.atom(value), value) {
        (Atom::Map, Value::Object(fields)) => {
            let mut kept = Map::new();
            for (name, value) in fields {
                let step = field_step(name);
                if removed.has(&step) {
                    continue;
                }
                let below = at.field(name).map_or(At::Opaque, |(below, _)| below);
                let value = match removed.below(&step) {
                    Some(removed) => remove(value, removed, below),
                    None => value.clone(),
                };
                kept.insert(name.clone(), value);
            }
            Value::Object(kept)
        }
        (Atom::List, Value::Array(items)) => {
            let mut kept = Vec::new();
            for item in items {
                let step = at.step_to(item).unwrap_or_default();
                match removed.below(&step) {
                    _ if removed.has(&step) => {}
                    Some(removed) => kept.push(remove(item, removed, at.element())),
                    None => kept.push(item.clone()),
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        (Atom::Map | Atom::List | Atom::Whole(_), _) => Value::Null,
        (Atom::Scalar(_), value) => value.clone(),
    }
}
