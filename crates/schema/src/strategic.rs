//! Strategic merge patch: a merge patch that merges lists too, by the keys that the table names.
//!
//! ```text
//!   {"containers": [{"name": "a", "image": "new"}]}     merges into the container called a
//!   {"name": "a", "$patch": "delete"}                   removes it; "replace" as an element replaces the whole list
//!   {"$patch": "replace", ...}                          replaces a map
//!   "$setElementOrder/containers": [...]                orders the merged list
//!   "$deleteFromPrimitiveList/finalizers": [...]        removes plain values from a list
//!   "$retainKeys": [...]                                drops all other keys
//! ```
//!
//! Errors are in kube-apiserver's words, which quote Go's print of the offending part.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::{Map, Value};

use super::table::{Field, Shape, Type, TypeId, TypeRef};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";

type Fields = Map<String, Value>;

/// Applies a patch to an object of a built-in type. A patch of null changes nothing.
pub fn merge(original: Value, patch: Value, of: TypeId) -> Result<Value, String> {
    match (original, patch) {
        (Value::Object(original), Value::Object(patch)) => {
            merge_maps(original, patch, At::Struct(of.get())).map(Value::Object)
        }
        (original, _) => Ok(original),
    }
}

/// Where in the types a merge stands.
#[derive(Clone, Copy)]
enum At<'t> {
    Struct(&'t Type),
    Map(&'t TypeRef),
    /// Inside a value of no type; lists are replaced there.
    Untyped,
}

impl<'t> At<'t> {
    fn below(value: &'t TypeRef) -> At<'t> {
        match &value.shape {
            Shape::Struct(id) => At::Struct(id.get()),
            Shape::Map(element) => At::Map(element),
            Shape::List(element) => At::below(element),
            _ => At::Untyped,
        }
    }

    /// What the table says about a key, and where its value stands.
    fn key(self, key: &str) -> (Option<&'t Field>, At<'t>) {
        match self {
            At::Struct(found) => match found.field(key) {
                Some(field) => (Some(field), At::below(&field.value)),
                None => (None, At::Untyped),
            },
            At::Map(element) => (None, At::below(element)),
            At::Untyped => (None, At::Untyped),
        }
    }

    fn name(self) -> &'t str {
        match self {
            At::Struct(found) => found.name,
            At::Map(_) | At::Untyped => "",
        }
    }
}

fn merge_maps(mut original: Fields, mut patch: Fields, at: At<'_>) -> Result<Fields, String> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Fields::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    set_element_order(&mut original, &mut patch, at)?;
    for (key, value) in patch {
        match key.split_once('/') {
            Some((DELETE_FROM_PRIMITIVE_LIST, list)) => delete_from_list(&mut original, list, &value),
            _ if key.starts_with(DELETE_FROM_PRIMITIVE_LIST) => {
                return Err("invalid patch format of primitive list".to_owned());
            }
            _ => merge_key(&mut original, key, value, at)?,
        }
    }
    Ok(original)
}

fn merge_key(original: &mut Fields, key: String, value: Value, at: At<'_>) -> Result<(), String> {
    let (field, below) = at.key(&key);
    let merged = match (original.remove(&key), value) {
        (_, Value::Null) => return Ok(()),
        (Some(Value::Object(old)), Value::Object(new)) => Value::Object(merge_maps(old, new, below)?),
        (Some(Value::Array(old)), Value::Array(new)) => {
            let is_merged = field.is_some_and(|field| field.patch_merge);
            Value::Array(if is_merged { merge_lists(old, new, merge_key_of(field), below)? } else { new })
        }
        (_, new) => match without_directives(new) {
            Some(new) => new,
            None => return Ok(()),
        },
    };
    original.insert(key, merged);
    Ok(())
}

fn merge_key_of(field: Option<&Field>) -> &str {
    field.and_then(|field| field.merge_key).unwrap_or_default()
}

/// A new value as it is stored: nulls delete nothing here, and parts with a directive were meant for something that is
/// not there.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => None,
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            Some(Value::Object(
                kept.filter_map(|(key, value)| Some((key, without_directives(value)?))).collect(),
            ))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        plain => Some(plain),
    }
}

fn retain_keys(original: &mut Fields, patch: &mut Fields) -> Result<(), String> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let wrong = || "invalid patch format of retainKeys".to_owned();
    let retained = directive.as_array().ok_or_else(wrong)?;
    let is_retained = |key: &str| retained.iter().any(|retained| retained == key);
    for (key, value) in patch.iter() {
        let is_directive = key.starts_with(DELETE_FROM_PRIMITIVE_LIST) || key.starts_with(SET_ELEMENT_ORDER);
        if !value.is_null() && !is_directive && !is_retained(key) {
            return Err(wrong());
        }
    }
    original.retain(|key, _| is_retained(key));
    Ok(())
}

fn delete_from_list(original: &mut Fields, key: &str, deleted: &Value) {
    match (original.get_mut(key), deleted) {
        (Some(_), Value::Null) => {
            original.remove(key);
        }
        (Some(Value::Array(items)), Value::Array(deleted)) => {
            let deleted = Places::of(deleted, "");
            items.retain(|item| deleted.place(item).is_none());
        }
        _ => {}
    }
}

/// Merges the lists that the patch gives an order for, and takes them out of the patch.
fn set_element_order(original: &mut Fields, patch: &mut Fields, at: At<'_>) -> Result<(), String> {
    let directives: Vec<String> =
        patch.keys().filter(|key| key.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(wrong_kind("[]interface {}", &other.unwrap_or_default())),
        };
        let wrong = "invalid patch format of setElementOrder list";
        let (prefix, key) = directive.split_once('/').ok_or(wrong)?;
        if prefix != SET_ELEMENT_ORDER {
            return Err(wrong.to_owned());
        }
        let (field, below) = at.key(key);
        let merge_key = merge_key_of(field);
        let new = list_or_none(patch.remove(key))?;
        check_order(new.as_deref().unwrap_or_default(), &order, merge_key)?;
        let old = list_or_none(original.remove(key))?;
        let merged = match (old.clone(), new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
            (Some(old), Some(new)) if field.is_some_and(|field| field.patch_merge) => {
                merge_lists(old, new, merge_key, below)?
            }
            (Some(_), Some(new)) => new,
        };
        let old = old.unwrap_or_default();
        original.insert(key.to_owned(), Value::Array(ordered(merged, &order, &old, merge_key)?));
    }
    Ok(())
}

fn list_or_none(value: Option<Value>) -> Result<Option<Vec<Value>>, String> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(wrong_kind("slice", &other)),
    }
}

/// The elements of the patch must stand in the order that it asks for.
fn check_order(new: &[Value], order: &[Value], merge_key: &str) -> Result<(), String> {
    if new.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut places = order.iter();
    for item in new.iter().filter(|item| item.get(PATCH).is_none()) {
        let key = identity(item, merge_key)?;
        let mut is_found = false;
        for place in places.by_ref() {
            if identity(place, merge_key)? == key {
                is_found = true;
                break;
            }
        }
        if !is_found {
            let (new, order) = (go_print_list(new), go_print_list(order));
            return Err(format!(
                "The order in patch list:\n{new}\n doesn't match {SET_ELEMENT_ORDER} list:\n{order}\n"
            ));
        }
    }
    Ok(())
}

fn merge_lists(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
    at: At<'_>,
) -> Result<Vec<Value>, String> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if !are_maps(&original, &patch)? {
        let old = original.clone();
        let mut places = Places::of(&original, "");
        for item in &patch {
            if places.add(item) {
                original.push(item.clone());
            }
        }
        return ordered(original, &patch, &old, "");
    }
    if merge_key.is_empty() {
        return Err(format!("cannot merge lists without merge key for {}", at.name()));
    }
    let (original, patch) = apply_element_directives(original, patch, merge_key)?;
    let mut merged = original.clone();
    let mut places = Places::of(&merged, merge_key);
    for item in &patch {
        identity(item, merge_key)?;
        let old = places.place(item).and_then(|place| merged.get_mut(place));
        match (old, item) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                *old = merge_maps(std::mem::take(old), new.clone(), at)?;
            }
            _ => {
                places.add(item);
                merged.push(item.clone());
            }
        }
    }
    ordered(merged, &patch, &original, merge_key)
}

/// Whether both lists hold maps; they may not hold a mixture, nor lists.
fn are_maps(original: &[Value], patch: &[Value]) -> Result<bool, String> {
    let mut kinds = original.iter().chain(patch).map(std::mem::discriminant);
    let first = kinds.next();
    if kinds.any(|kind| Some(kind) != first) {
        let (original, patch) = (go_print_list(original), go_print_list(patch));
        return Err(format!("list element types are not identical: [{original} {patch}]"));
    }
    match original.first().or(patch.first()) {
        Some(Value::Array(_)) => Err("lists of lists are not supported".to_owned()),
        first => Ok(first.is_some_and(Value::is_object)),
    }
}

/// Carries out the elements of a patch that say what to do with others, and returns the rest.
fn apply_element_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), String> {
    let mut plain = Vec::new();
    let mut is_replaced = false;
    for item in patch {
        let Some(directive) = item.get(PATCH) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let key = identity(&item, merge_key)?;
                original.retain(|old| old.get(merge_key) != Some(key));
            }
            Some("replace") => is_replaced = true,
            Some("merge") => return Err("merging lists cannot yet be specified in the patch".to_owned()),
            _ => {
                let fields = item.as_object().cloned().unwrap_or_default();
                return Err(unknown_directive(directive, &fields));
            }
        }
    }
    Ok(if is_replaced { (plain, Vec::new()) } else { (original, plain) })
}

/// Puts a merged list in order. The elements that `order` names stand in its order; the others keep their place among
/// those that were there before, and what is new comes first.
fn ordered(
    merged: Vec<Value>,
    order: &[Value],
    before: &[Value],
    merge_key: &str,
) -> Result<Vec<Value>, String> {
    for item in merged.iter().chain(order).filter(|item| item.is_object() && item.get(PATCH).is_none()) {
        identity(item, merge_key)?;
    }
    let (order, before) = (Places::of(order, merge_key), Places::of(before, merge_key));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| order.place(item).is_some());
    named.sort_by_cached_key(|item| order.place(item));
    others.sort_by_cached_key(|item| before.place(item));
    let mut list = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(item), Some(other)) = (named.peek(), others.peek()) {
        let is_before = match (before.place(other), before.place(item)) {
            (Some(other), Some(item)) => other < item,
            _ => false,
        };
        list.extend(if is_before { others.next() } else { named.next() });
    }
    list.extend(named.chain(others));
    Ok(list)
}

/// Where the elements of a list stand, so that long lists merge in the time they take to read.
struct Places<'k> {
    merge_key: &'k str,
    by_key: HashMap<String, usize>,
    n_elements: usize,
}

impl<'k> Places<'k> {
    fn of(list: &[Value], merge_key: &'k str) -> Places<'k> {
        let mut places = Places { merge_key, by_key: HashMap::new(), n_elements: 0 };
        list.iter().for_each(|item| {
            places.add(item);
        });
        places
    }

    /// Counts one more element; tells whether it is the first of its key.
    fn add(&mut self, item: &Value) -> bool {
        self.n_elements += 1;
        let Ok(key) = identity(item, self.merge_key) else { return true };
        match self.by_key.entry(key.to_string()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert(self.n_elements - 1);
                true
            }
        }
    }

    fn place(&self, item: &Value) -> Option<usize> {
        let key = identity(item, self.merge_key).ok()?;
        self.by_key.get(&key.to_string()).copied()
    }
}

/// What tells an element of a list from the others: its merge key, or itself if it is a plain value.
fn identity<'a>(item: &'a Value, merge_key: &str) -> Result<&'a Value, String> {
    match item {
        _ if merge_key.is_empty() => Ok(item),
        Value::Object(fields) => fields.get(merge_key).ok_or_else(|| {
            format!("map: {} does not contain declared merge key: {merge_key}", go_print(item))
        }),
        other => Err(wrong_kind("map", other)),
    }
}

fn unknown_directive(directive: &Value, patch: &Fields) -> String {
    let patch = go_print(&Value::Object(patch.clone()));
    let directive = match directive {
        Value::Number(number) if number.is_f64() => format!("%!s(float64={number})"),
        Value::Number(number) => format!("%!s(int64={number})"),
        Value::Bool(bool) => format!("%!s(bool={bool})"),
        Value::Null => "%!s(<nil>)".to_owned(),
        other => go_print(other),
    };
    format!("unknown patch type: {directive} in map: {patch}")
}

fn wrong_kind(expected: &str, received: &Value) -> String {
    let received = match received {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    };
    format!("expected a {expected}, but received a {received}")
}

/// A value as Go's `%v` prints it: `map[image:new ports:[80 81]]`.
pub fn go_print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => go_print_list(items),
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(key, value)| format!("{key}:{}", go_print(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        plain => plain.to_string(),
    }
}

fn go_print_list(items: &[Value]) -> String {
    let items: Vec<_> = items.iter().map(go_print).collect();
    format!("[{}]", items.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::builtin;
    use super::super::decode;
    use super::super::golden;
    use super::super::json::Node;
    use super::*;

    /// The kind behind a recorded path.
    fn kind_of(path: &str) -> Option<TypeId> {
        let (group, kind) = match path.split(['?', '/']).find(|part| {
            ["deployments", "configmaps", "pods", "services", "nodes", "serviceaccounts"].contains(part)
        })? {
            "deployments" => ("apps", "Deployment"),
            "configmaps" => ("", "ConfigMap"),
            "pods" => ("", "Pod"),
            "services" => ("", "Service"),
            "nodes" => ("", "Node"),
            _ => ("", "ServiceAccount"),
        };
        builtin().kind(group, "v1", kind)
    }

    /// The part of an object that a recorded answer shows, without what defaulting added.
    fn without_defaults(value: &mut Value) {
        const DEFAULTED: [&str; 6] = [
            "imagePullPolicy",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "protocol",
            "targetPort",
            "defaultMode",
        ];
        match value {
            Value::Object(fields) => {
                fields.retain(|key, value| {
                    let is_empty = value.as_object().is_some_and(Map::is_empty);
                    let is_structure = ["emptyDir"].contains(&key.as_str());
                    let says_something = !value.is_null() && value != "" && (is_structure || !is_empty);
                    says_something && !DEFAULTED.contains(&key.as_str())
                });
                fields.values_mut().for_each(without_defaults);
            }
            Value::Array(items) => items.iter_mut().for_each(without_defaults),
            _ => {}
        }
    }

    fn tidy(value: &Value, of: TypeId) -> Value {
        let mut value = decode::decode(&Node::from(value), of).unwrap().object;
        without_defaults(&mut value);
        value
    }

    /// Plays a recorded case on plain values: creates, then patches, each result the next one's original.
    fn play(case: &Value) -> usize {
        let mut object = Value::Null;
        let mut n_compared = 0;
        for step in golden::steps(case) {
            let Some(of) = kind_of(step["path"].as_str().unwrap()) else { return n_compared };
            let id = case["id"].as_str().unwrap();
            if step["method"] == "POST" {
                object = step["body"].clone();
                continue;
            }
            let is_strategic = step["headers"]["Content-Type"] == "application/strategic-merge-patch+json";
            let Some(patch) = step.get("body").filter(|_| is_strategic) else { continue };
            let answer = &step["expect"]["body"];
            let merged = merge(tidy(&object, of), patch.clone(), of);
            match (merged, step["expect"]["code"].as_u64()) {
                (Err(fault), _) => assert_eq!(json!(fault), answer["/message"], "{id}"),
                (Ok(merged), Some(200)) => {
                    let shown = tidy(&merged, of);
                    for view in step["view"].as_array().unwrap() {
                        let pointer = view.as_str().unwrap();
                        let mut expected = answer[pointer].clone();
                        without_defaults(&mut expected);
                        let expected: Value = expected
                            .to_string()
                            .replace("<uid:1>", "{{uid}}")
                            .replace("<uid:2>", "{{uid2}}")
                            .parse()
                            .unwrap();
                        let found = shown.pointer(pointer).cloned().unwrap_or_default();
                        if !expected.as_object().is_some_and(Map::is_empty) {
                            assert_eq!(found, expected, "{id} {pointer}");
                        }
                    }
                    object = merged;
                }
                (Ok(_), _) => {}
            }
            n_compared += 1;
        }
        n_compared
    }

    #[test]
    fn recorded_patches_give_recorded_answers() {
        let mut n_compared = 0;
        for case in golden::cases("06-patch.json") {
            if case["id"].as_str().unwrap().starts_with("patch/strategic-") {
                n_compared += play(&case);
            }
        }
        assert!(n_compared > 40, "{n_compared} compared");
    }
}
