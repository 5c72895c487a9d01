//! What differs between two answers, sorted into classes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use krafla_recorded::differences::between;
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A difference between the answer of the real server and that of the embedded one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Difference {
    /// What sort of difference: `missing cause FieldValueInvalid`, `body`, `code 201 is 422`.
    pub(crate) class: String,
    /// The field that it is about, with all indexes and keys folded into `[]`.
    pub(crate) field: String,
    /// What both servers say.
    pub(crate) text: String,
}

#[allow(clippy::expect_used, reason = "the pattern is a constant")]
static INDEX: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[[^\]]*\]").expect("a pattern"));

/// A field's path without indexes and keys.
pub(crate) fn folded(field: &str) -> String {
    INDEX.replace_all(field, "[]").into_owned()
}

/// A JSON pointer in the form of the paths that findings name.
pub(crate) fn folded_pointer(pointer: &str) -> String {
    let mut path = String::new();
    for token in pointer.split('/').skip(1) {
        let is_index = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
        match (is_index, path.is_empty()) {
            (true, _) => path.push_str("[]"),
            (false, true) => path.push_str(token),
            (false, false) => {
                path.push('.');
                path.push_str(token);
            }
        }
    }
    path
}

/// What differs between the answers to all steps.
pub(crate) fn differences(real: &[Value], embedded: &[Value]) -> Vec<Difference> {
    let mut found = Vec::new();
    for (real, embedded) in real.iter().zip(embedded) {
        if real != embedded {
            of_answer(real, embedded, &mut found);
        }
        // What follows would only repeat it: the servers no longer hold the same.
        if !found.is_empty() {
            return found;
        }
    }
    if real.len() != embedded.len() {
        found.push(difference("steps", "", &real.len(), &embedded.len()));
    }
    found
}

fn difference(
    class: &str,
    field: &str,
    real: &dyn std::fmt::Display,
    embedded: &dyn std::fmt::Display,
) -> Difference {
    Difference {
        class: class.to_owned(),
        field: folded(field),
        text: format!("real: {real}\n      embedded: {embedded}"),
    }
}

fn of_answer(real: &Value, embedded: &Value, found: &mut Vec<Difference>) {
    if let Some(error) = real.get("error").or(embedded.get("error")) {
        found.push(difference("not answered", "", error, &embedded["code"]));
        return;
    }
    let (real_code, embedded_code) =
        (real["code"].as_u64().unwrap_or(0), embedded["code"].as_u64().unwrap_or(0));
    let message = |answer: &Value| answer["body"]["message"].as_str().unwrap_or("accepted").to_owned();
    if real_code != embedded_code {
        let causes = [causes(real), causes(embedded)].concat();
        let cause = causes.first();
        let reason =
            cause.map(|cause| cause.reason.as_str()).or(real["body"]["reason"].as_str()).unwrap_or_default();
        let class = format!("code {real_code} is {embedded_code} {reason}");
        let field = cause.map(|cause| cause.field.clone()).unwrap_or_default();
        found.push(difference(class.trim_end(), &field, &message(real), &message(embedded)));
        return;
    }
    of_headers(real, embedded, found);
    if real["body"] == embedded["body"] {
        if real["text"] != embedded["text"] {
            found.push(difference("text", "", &real["text"], &embedded["text"]));
        }
        return;
    }
    if real_code < 300 {
        of_bodies(&real["body"], &embedded["body"], found);
    } else {
        of_refusals(real, embedded, found);
    }
}

fn of_headers(real: &Value, embedded: &Value, found: &mut Vec<Difference>) {
    let headers = ["Content-Type", "Retry-After", "Www-Authenticate", "Upgrade"];
    for name in headers {
        if real["headers"][name] != embedded["headers"][name] {
            found.push(difference("header", name, &real["headers"][name], &embedded["headers"][name]));
        }
    }
    let warnings = |answer: &Value| match &answer["headers"]["Warning"] {
        Value::Array(texts) => texts.iter().map(krafla_recorded::pointer::plain).collect(),
        Value::String(text) => vec![text.clone()],
        _ => Vec::new(),
    };
    let (real, embedded) = (warnings(real), warnings(embedded));
    if real == embedded {
        return;
    }
    let missing: Vec<&String> = real.iter().filter(|text| !embedded.contains(text)).collect();
    let extra: Vec<&String> = embedded.iter().filter(|text| !real.contains(text)).collect();
    let class = match (missing.is_empty(), extra.is_empty()) {
        (false, true) => "missing warning",
        (true, false) => "extra warning",
        (false, false) => "other warning",
        (true, true) => "order of warnings",
    };
    // `299 - "spec.x: text"` names its field.
    let first = missing.first().or(extra.first()).map(|text| text.as_str()).unwrap_or_default();
    let field = first.split('"').nth(1).unwrap_or_default().split(':').next().unwrap_or_default();
    let field = if field.contains(' ') { "" } else { field };
    found.push(difference(class, field, &format!("{real:?}"), &format!("{embedded:?}")));
}

fn of_bodies(real: &Value, embedded: &Value, found: &mut Vec<Difference>) {
    let mut lines = Vec::new();
    between(real, embedded, "", &mut lines);
    let mut by_field: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut last = String::new();
    for line in lines {
        if let Some((at, _)) = line.split_once(": ").filter(|(at, _)| at.starts_with('/')) {
            // Of what a managed field holds, only that it differs is interesting.
            last = match at.split_once("/managedFields") {
                Some((before, _)) => folded_pointer(&format!("{before}/managedFields")),
                None => folded_pointer(at),
            };
        }
        by_field.entry(last.clone()).or_default().push(line);
    }
    // `recorded` is what the real server said.
    found.extend(by_field.into_iter().map(|(field, lines)| Difference {
        class: "body".to_owned(),
        field,
        text: lines.join("\n      ").replace("recorded", "real").replace("answered", "embedded"),
    }));
}

#[derive(Clone, Debug, PartialEq)]
struct Cause {
    field: String,
    reason: String,
    message: String,
}

fn causes(answer: &Value) -> Vec<Cause> {
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
    let causes = answer["body"]["details"]["causes"].as_array();
    let causes = causes.into_iter().flatten();
    causes
        .map(|cause| Cause {
            field: text(cause, "field"),
            reason: text(cause, "reason"),
            message: text(cause, "message"),
        })
        .collect()
}

fn of_refusals(real: &Value, embedded: &Value, found: &mut Vec<Difference>) {
    let before = found.len();
    let (wanted, given) = (causes(real), causes(embedded));
    let mut extra = given.clone();
    let mut missing = Vec::new();
    for cause in &wanted {
        match extra.iter().position(|other| other == cause) {
            Some(at) => {
                extra.remove(at);
            }
            None => missing.push(cause.clone()),
        }
    }
    for cause in missing {
        let near = extra.iter().position(|other| other.field == cause.field && other.reason == cause.reason);
        match near.map(|at| extra.remove(at)) {
            Some(other) => {
                let class = format!("wording {}", cause.reason);
                found.push(difference(&class, &cause.field, &cause.message, &other.message));
            }
            None => {
                let class = format!("missing cause {}", cause.reason);
                found.push(difference(&class, &cause.field, &cause.message, &"nothing"));
            }
        }
    }
    for cause in extra {
        let class = format!("extra cause {}", cause.reason);
        found.push(difference(&class, &cause.field, &"nothing", &cause.message));
    }
    if found.len() > before {
        return;
    }
    let message = |answer: &Value| answer["body"]["message"].as_str().unwrap_or_default().to_owned();
    if wanted != given {
        let first = wanted.iter().zip(&given).find(|(a, b)| a != b).map(|(a, _)| a.field.clone());
        found.push(difference(
            "order of causes",
            &first.unwrap_or_default(),
            &message(real),
            &message(embedded),
        ));
    } else if message(real) != message(embedded) {
        let field = wanted.first().map(|cause| cause.field.clone()).unwrap_or_default();
        found.push(difference("message", &field, &message(real), &message(embedded)));
    } else {
        of_bodies(&real["body"], &embedded["body"], found);
    }
}
