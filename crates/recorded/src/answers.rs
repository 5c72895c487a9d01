//! From what came over the wire to what is compared.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::case::Step;
use crate::client::Answer;
use crate::comparable::Normaliser;
use crate::pointer;

const HEADERS: [&str; 6] = ["Content-Type", "Warning", "Retry-After", "Www-Authenticate", "Upgrade", "Etag"];

/// An answer in the form of the records, and the document it held.
pub fn comparable(step: &Step, answer: &Answer, normaliser: &mut Normaliser) -> (Value, Option<Value>) {
    let mut shown = Map::from_iter([("code".to_owned(), json!(answer.code))]);
    let headers = headers(step, answer, normaliser);
    if !headers.is_empty() {
        shown.insert("headers".to_owned(), Value::Object(headers));
    }
    let content_type =
        answer.headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if step.status_only {
        return (Value::Object(shown), None);
    }
    if content_type.contains("protobuf") {
        shown.insert("protobuf".to_owned(), envelope(&answer.body));
        return (Value::Object(shown), None);
    }
    let may_be_json = content_type.contains("json")
        || step.view.is_some() && matches!(answer.body.first(), Some(b'{' | b'['));
    let document = may_be_json.then(|| serde_json::from_slice::<Value>(&answer.body).ok()).flatten();
    let Some(document) = document else {
        if !answer.body.is_empty() {
            let text = normaliser.text(&String::from_utf8_lossy(&answer.body));
            shown.insert("text".to_owned(), json!(replaced(&text, &step.replace)));
        }
        return (Value::Object(shown), None);
    };
    let mut body = normaliser.value(&document, "");
    sort_what_has_no_order(&mut body);
    shown.insert("body".to_owned(), viewed(step, body));
    if is_older_than_its_items(&document) {
        shown.insert("listrv_older_than_items".to_owned(), json!(true));
    }
    (Value::Object(shown), Some(document))
}

fn headers(step: &Step, answer: &Answer, normaliser: &mut Normaliser) -> Map<String, Value> {
    let mut shown = Map::new();
    for name in HEADERS {
        let values: Vec<&str> =
            answer.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        let value = match values.as_slice() {
            [] => continue,
            _ if name == "Etag" && !step.compares_etag => continue,
            _ if name == "Etag" => json!("<etag>"),
            [value] => json!(normaliser.text(value)),
            values => values.iter().map(|value| json!(normaliser.text(value))).collect(),
        };
        shown.insert(name.to_owned(), value);
    }
    shown
}

/// What a step looks at, with its masks and replacements.
fn viewed(step: &Step, body: Value) -> Value {
    let viewed = match &step.view {
        Some(pointers) => pointers.iter().map(|at| (at.clone(), pointer::at(&body, at))).collect(),
        None => body,
    };
    masked(step, viewed)
}

fn masked(step: &Step, mut shown: Value) -> Value {
    step.mask.iter().for_each(|at| pointer::mask(&mut shown, at));
    if !step.replace.is_empty() {
        map_strings(&mut shown, &mut |text| replaced(text, &step.replace));
    }
    shown
}

/// The events of a watch in the form of the records.
pub fn events(step: &Step, events: &[Value], normaliser: &mut Normaliser) -> Value {
    let mut shown: Vec<Value> = events.iter().map(|event| normaliser.event(event)).collect();
    if let Some(pointers) = &step.view {
        for event in &mut shown {
            let object: Map<String, Value> =
                pointers.iter().map(|at| (at.clone(), pointer::at(&event["object"], at))).collect();
            event["object"] = Value::Object(object);
        }
    }
    shown.dedup_by(|later, earlier| later["type"] == "BOOKMARK" && later == earlier);
    if step.sort {
        shown.sort_by_key(Value::to_string);
    }
    masked(step, Value::Array(shown))
}

/// Findings on custom resources, and conflicts of several managers, come in no fixed order.
fn sort_what_has_no_order(body: &mut Value) {
    if body["kind"] != "Status" {
        return;
    }
    let group = body["details"]["group"].as_str().unwrap_or_default();
    let is_custom = group.ends_with(".example.com") || group.ends_with(".volcano.sh");
    let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) else { return };
    let are_conflicts = causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict");
    if !(are_conflicts || is_custom && causes.len() > 1) {
        return;
    }
    causes.sort_by_key(|cause| [&cause["field"], &cause["message"]].map(pointer::plain));
    let findings: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", pointer::plain(&cause["field"]), pointer::plain(&cause["message"])))
        .collect();
    let message = body["message"].as_str().unwrap_or_default();
    if let Some((head, _)) = message.split_once(" is invalid: [").filter(|_| is_custom && findings.len() > 1)
    {
        body["message"] = json!(format!("{head} is invalid: [{}]", findings.join(", ")));
    }
}

fn is_older_than_its_items(document: &Value) -> bool {
    let version = |object: &Value| object.pointer("/metadata/resourceVersion")?.as_str()?.parse::<u64>().ok();
    let newest = document["items"].as_array().and_then(|items| items.iter().filter_map(version).max());
    matches!((version(document), newest), (Some(list), Some(newest)) if list < newest)
}

/// Numbers the versions of all answers by size: order and equality are kept, distances are not.
pub fn rank_versions(answers: &mut [Value]) {
    let number = |text: &str| text.strip_prefix("<rv:")?.strip_suffix('>')?.parse::<u64>().ok();
    let mut seen = BTreeSet::new();
    for answer in &mut *answers {
        map_strings(answer, &mut |text| {
            seen.extend(number(text));
            text.to_owned()
        });
    }
    let ranks: Vec<u64> = seen.into_iter().collect();
    for answer in answers {
        map_strings(answer, &mut |text| match number(text).map(|version| ranks.binary_search(&version)) {
            Some(Ok(rank)) => format!("<rv:{}>", rank + 1),
            _ => text.to_owned(),
        });
    }
}

fn map_strings(value: &mut Value, change: &mut impl FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| map_strings(item, change)),
        Value::Object(map) => map.values_mut().for_each(|item| map_strings(item, change)),
        _ => {}
    }
}

/// Replacements are written in Python's dialect: `\1` for a group, and a look-ahead at the end.
fn replaced(text: &str, replacements: &[(String, String)]) -> String {
    let group = Regex::new(r"\\(\d)").expect("a pattern");
    let mut text = text.to_owned();
    for (pattern, replacement) in replacements {
        let mut replacement = group.replace_all(&replacement.replace('$', "$$"), "$${${1}}").into_owned();
        let pattern = match pattern.strip_suffix(')').and_then(|pattern| pattern.split_once("(?=")) {
            Some((before, ahead)) => {
                replacement.push_str("${ahead}");
                format!("{before}(?<ahead>{ahead})")
            }
            None => pattern.clone(),
        };
        let pattern = Regex::new(&pattern).expect("a pattern");
        text = pattern.replace_all(&text, replacement.as_str()).into_owned();
    }
    text
}

/// The outer message of `application/vnd.kubernetes.protobuf`: what it says it holds.
fn envelope(data: &[u8]) -> Value {
    let Some(message) = data.strip_prefix(b"k8s\0") else { return json!({"magic": false}) };
    let mut shown = json!({"magic": true});
    for (field, type_meta) in fields(message) {
        if field != 1 {
            continue;
        }
        for (field, text) in fields(type_meta) {
            let name = match field {
                1 => "apiVersion".to_owned(),
                2 => "kind".to_owned(),
                other => other.to_string(),
            };
            shown[name] = json!(String::from_utf8_lossy(text));
        }
    }
    shown
}

/// The fields of a message in which all have a length.
fn fields(mut message: &[u8]) -> Vec<(u64, &[u8])> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let (tag, rest) = varint(message);
        let (length, rest) = varint(rest);
        let (part, rest) = rest.split_at(length as usize);
        found.push((tag >> 3, part));
        message = rest;
    }
    found
}

fn varint(bytes: &[u8]) -> (u64, &[u8]) {
    let length = bytes.iter().position(|byte| *byte < 128).expect("a number ends") + 1;
    let (number, rest) = bytes.split_at(length);
    (number.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 127)), rest)
}
