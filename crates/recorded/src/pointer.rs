//! JSON pointers, with what the records add to RFC 6901: `list[key=value]` and `list{metadata.name}` pick from a list,
//! and `#keys` or `#len` at the end ask about what is there.

use serde_json::{Map, Value, json};

fn tokens(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
}

/// What a pointer points at; null when nothing is there.
pub fn at(document: &Value, pointer: &str) -> Value {
    if let Some(pointer) = pointer.strip_suffix("#keys") {
        return match find(document, pointer) {
            Some(Value::Object(map)) => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort();
                json!(keys)
            }
            _ => Value::Null,
        };
    }
    if let Some(pointer) = pointer.strip_suffix("#len") {
        return match find(document, pointer) {
            Some(Value::Object(map)) => json!(map.len()),
            Some(Value::Array(items)) => json!(items.len()),
            Some(Value::String(text)) => json!(text.chars().count()),
            _ => Value::Null,
        };
    }
    find(document, pointer).cloned().unwrap_or(Value::Null)
}

fn find<'a>(document: &'a Value, pointer: &str) -> Option<&'a Value> {
    tokens(pointer).iter().try_fold(document, |current, token| child(current, token))
}

fn child<'a>(current: &'a Value, token: &str) -> Option<&'a Value> {
    if let Some(found) = current.get(token) {
        return Some(found);
    }
    if let Some((list, name)) = token.strip_suffix('}').and_then(|token| token.split_once('{')) {
        let has_name = |item: &&Value| item.pointer("/metadata/name").and_then(Value::as_str) == Some(name);
        return current.get(list)?.as_array()?.iter().find(has_name);
    }
    if let Some((list, wanted)) = token.strip_suffix(']').and_then(|token| token.split_once('[')) {
        let (key, value) = wanted.split_once('=')?;
        let items = if list.is_empty() { current } else { current.get(list)? };
        return items
            .as_array()?
            .iter()
            .find(|item| item.get(key).is_some_and(|found| plain(found) == value));
    }
    current.as_array()?.get(token.parse::<usize>().ok()?)
}

/// A value as it stands in a path or a sentence: strings without quotes.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Puts a value at a pointer; objects on the way are made.
pub fn put(document: &mut Value, pointer: &str, value: Value) {
    let mut path = tokens(pointer);
    let last = path.pop().expect("a value is put below the root");
    let mut current = document;
    for token in path {
        current = match current {
            Value::Array(items) => items.get_mut(index(&token)).expect("the list has this item"),
            Value::Object(map) => map.entry(token).or_insert_with(|| Value::Object(Map::new())),
            other => panic!("{pointer}: {other} has no {token}"),
        };
    }
    match current {
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => items[index(&last)] = value,
        Value::Object(map) => {
            map.insert(last, value);
        }
        other => panic!("{pointer}: {other} has no {last}"),
    }
}

/// Removes what is at a pointer.
pub fn remove(document: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return };
    match document.pointer_mut(parent) {
        Some(Value::Array(items)) => {
            items.remove(index(last));
        }
        Some(Value::Object(map)) => {
            map.remove(&last.replace("~1", "/").replace("~0", "~"));
        }
        _ => {}
    }
}

fn index(token: &str) -> usize {
    token.parse().unwrap_or_else(|_| panic!("{token} is no position in a list"))
}

/// Shows what the pointers name as `<any>`; `*` stands for every element.
pub fn mask(document: &mut Value, pointer: &str) {
    mask_tokens(document, &tokens(pointer));
}

fn mask_tokens(current: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else {
        *current = json!("<any>");
        return;
    };
    match current {
        Value::Array(items) if first == "*" => items.iter_mut().for_each(|item| mask_tokens(item, rest)),
        Value::Object(map) if first == "*" => map.values_mut().for_each(|item| mask_tokens(item, rest)),
        Value::Array(items) => {
            let item = first.parse::<usize>().ok().and_then(|index| items.get_mut(index));
            item.into_iter().for_each(|item| mask_tokens(item, rest));
        }
        Value::Object(map) => map.get_mut(first).into_iter().for_each(|item| mask_tokens(item, rest)),
        _ => {}
    }
}
