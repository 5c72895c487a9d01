//! The generated CRDs against recorded answers of a real API server to Volcano's own CRDs
//! (`tests/golden/crd`: one file per kind, one case per request).
//!
//! A small reading of Kubernetes' structural schemas (drop nulls, prune, fill in defaults, check) is enough to see that
//! both accept the same objects, store the same, and refuse the rest at the same fields. What the schema of a pod
//! template does is not looked at here: it is the built-in types' own.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use krafla_api::quantity::PATTERN;
use krafla_api::volcano::{DNS_LABEL, DNS_SUBDOMAIN};
use krafla_api::{Kind, Quantity, Time, crd};
use serde_json::{Map, Value};

#[test]
fn the_crds_accept_store_and_refuse_what_volcanos_do() {
    let mut n_checked = 0;
    for kind in recorded_kinds() {
        let schema =
            crd::crd(kind).expect("a definition")["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        for case in cases(kind) {
            if is_about_the_schema(&case) {
                check(kind, &schema, &case);
                n_checked += 1;
            }
        }
    }
    assert!(n_checked > 200, "only {n_checked} cases were checked");
}

/// Of the other kinds there is no record; `crd::tests` lists their rules.
fn recorded_kinds() -> impl Iterator<Item = Kind> {
    let unrecorded = [Kind::Numatopology, Kind::NodeShard, Kind::ColocationConfiguration];
    Kind::VOLCANO.into_iter().filter(move |kind| !unrecorded.contains(kind))
}

fn cases(kind: Kind) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/crd");
    let text =
        fs::read_to_string(folder.join(format!("{}.json", kind.info().plural))).expect("a recorded file");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    file["cases"].as_array().expect("cases").clone()
}

/// Names, namespaces, strict decoding, patches and updates are the server's matter, whatever the CRD says.
fn is_about_the_schema(case: &Value) -> bool {
    let name = case["name"].as_str().unwrap_or_default();
    let is_of_the_server = [
        "template ",
        "unknown task and template fields",
        "volumeClaim unknown field",
        "container without name",
        "name ",
        "label value",
        "annotation key",
        // Rules in CEL.
        "selector empty",
        "two selectors",
    ];
    let code = case["response"]["error"]["code"].as_u64();
    let is_invalid = code.is_none_or(|code| code == 422);
    let is_request = case["operation"] == "create" || case["operation"] == "status";
    is_invalid
        && is_request
        && !name.contains("kind")
        && !is_of_the_server.iter().any(|start| name.starts_with(start))
}

fn check(kind: Kind, schema: &Value, case: &Value) {
    let name = format!("{kind}: {}", case["name"]);
    let mut object = case["object"].clone();
    if case["operation"] == "create" && kind.info().has_status_subresource {
        object.as_object_mut().expect("an object").remove("status");
    }
    settle(schema, &mut object);
    let mut refused = BTreeSet::new();
    validate(schema, &object, "", &mut refused);

    let response = &case["response"];
    if let Some(causes) = response["error"]["causes"].as_array() {
        let fields = causes.iter().filter_map(|cause| cause["field"].as_str());
        // A value of the wrong number format is reported without its field.
        let expected: BTreeSet<String> =
            fields.filter(|field| *field != "<nil>").map(str::to_owned).collect();
        assert!(!refused.is_empty(), "{name} is accepted");
        assert!(expected.is_empty() || refused == expected, "{name}: {refused:?} instead of {expected:?}");
    } else {
        assert_eq!(refused, BTreeSet::new(), "{name}");
        let of_status = case["operation"] == "status";
        let parts: &[&str] = if of_status {
            &["status"]
        } else {
            &["spec", "status", "action", "target", "reason", "message"]
        };
        for &part in parts {
            assert_eq!(object[part], response["object"][part], "{name}: {part}");
        }
    }
}

/// Drops nulls and unknown fields, fills in defaults and writes whole numbers as such.
fn settle(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => settle_fields(schema, fields),
        Value::Array(items) => items.iter_mut().for_each(|item| settle(&schema["items"], item)),
        // JSON knows one kind of number: 2.0 is stored as 2.
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => {
            *value = (number.as_f64().unwrap_or_default() as i64).into();
        }
        _ => {}
    }
}

fn settle_fields(schema: &Value, fields: &mut Map<String, Value>) {
    fields.retain(|_, value| !value.is_null());
    let any = schema.get("additionalProperties");
    if let Some(properties) = schema["properties"].as_object() {
        let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true;
        fields.retain(|name, _| keeps_unknown || properties.contains_key(name));
        for (name, property) in properties {
            if let Some(default) = property.get("default") {
                fields.entry(name).or_insert_with(|| default.clone());
            }
        }
    }
    for (name, value) in fields {
        if let Some(property) = any.or(schema["properties"].get(name.as_str())) {
            settle(property, value);
        }
    }
}

/// Adds the path of each field that breaks a rule.
fn validate(schema: &Value, value: &Value, path: &str, refused: &mut BTreeSet<String>) {
    if !has_right_type(schema, value) || !keeps_rules(schema, value) {
        refused.insert(path.to_owned());
        return;
    }
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(required).is_none() {
            refused.insert(join(path, required));
        }
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let property = schema.get("additionalProperties").or(schema["properties"].get(name.as_str()));
        if let Some(property) = property {
            validate(property, field, &join(path, name), refused);
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        validate(&schema["items"], item, &format!("{path}[{index}]"), refused);
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn has_right_type(schema: &Value, value: &Value) -> bool {
    if schema["x-kubernetes-int-or-string"] == true {
        return value.is_string() || value.is_i64();
    }
    let whole = value.as_f64().filter(|number| number.fract() == 0.0);
    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") if schema["format"] == "int32" => {
            whole.is_some_and(|number| number.abs() < 2_147_483_648.0)
        }
        Some("integer") => whole.is_some(),
        other => panic!("no such type: {other:?}"),
    }
}

fn keeps_rules(schema: &Value, value: &Value) -> bool {
    let limit = |keyword: &str| schema[keyword].as_f64();
    let (number, text) = (value.as_f64(), value.as_str());
    let length = text.map(|text| text.chars().count() as f64);
    let n_items = value.as_array().map(|items| items.len() as f64);
    let at_least =
        |amount: Option<f64>, keyword| amount.zip(limit(keyword)).is_none_or(|(amount, min)| amount >= min);
    let at_most =
        |amount: Option<f64>, keyword| amount.zip(limit(keyword)).is_none_or(|(amount, max)| amount <= max);
    at_least(number, "minimum")
        && at_most(number, "maximum")
        && at_least(length, "minLength")
        && at_most(length, "maxLength")
        && at_least(n_items, "minItems")
        && schema["enum"].as_array().is_none_or(|words| words.contains(value))
        && (schema["format"] != "date-time" || serde_json::from_value::<Time>(value.clone()).is_ok())
        && text.zip(schema["pattern"].as_str()).is_none_or(|(text, pattern)| matches(text, pattern))
}

/// The four patterns of the CRDs.
fn matches(text: &str, pattern: &str) -> bool {
    let is_label = |text: &str| {
        let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        text.starts_with(edge) && text.ends_with(edge) && text.chars().all(|c| edge(c) || c == '-')
    };
    match pattern {
        DNS_LABEL => is_label(text),
        DNS_SUBDOMAIN => text.split('.').all(is_label),
        "^[^:]+$" => !text.is_empty() && !text.contains(':'),
        PATTERN => text.parse::<Quantity>().is_ok(),
        other => panic!("no such pattern: {other}"),
    }
}
