//! Values for one field: valid ones, those at the edge and those beyond it, by the field's type and name.

use krafla_schema::{Shape, TypeRef};
use serde_json::{Value, json};

/// How deep samples of types are filled in.
const SAMPLE_DEPTH: usize = 4;

/// Values that a field of this type can be set to. `current` is what it has.
pub(crate) fn values(field: &str, wanted: &TypeRef, current: Option<&Value>) -> Vec<Value> {
    let mut values = match &wanted.shape {
        Shape::String => strings(field, wanted),
        Shape::Bool => vec![json!(true), json!(false), json!("true"), json!(1)],
        Shape::Int32 | Shape::Int64 => integers(),
        Shape::Float64 => vec![json!(0), json!(1.5), json!(-1), json!("1")],
        Shape::Bytes => {
            ["YWJj", "!", "", "YQ"].map(|text| json!(text)).into_iter().chain([json!(1)]).collect()
        }
        Shape::Time | Shape::MicroTime => times(),
        Shape::Duration => ["1s", "0s", "-1s", "1", "abc", ""]
            .map(|text| json!(text))
            .into_iter()
            .chain([json!(1)])
            .collect(),
        Shape::Quantity => quantities(),
        Shape::IntOrString => ints_or_strings(),
        Shape::List(item) => lists(field, item, current),
        Shape::Map(item) => maps(field, item, current),
        Shape::Struct(_) => vec![json!({}), json!("a"), json!([]), json!({"unknownField": 1})],
        _ => vec![json!({}), json!("a"), json!(1), json!([])],
    };
    values.push(Value::Null);
    values.retain(|value| Some(value) != current);
    values
}

fn strings(field: &str, wanted: &TypeRef) -> Vec<Value> {
    let long = |length: usize| "x".repeat(length);
    let mut texts: Vec<String> = [
        "",
        "a",
        "A",
        "a b",
        "a_b",
        "a.b",
        "a/b",
        "-a",
        "a-",
        "1",
        "é",
        "*",
        "example.com/a",
        "kubernetes.io/a",
        "Example.com/a/b",
        "a:b",
        "/a",
        "../a",
        "a=b",
        "$(A)",
    ]
    .map(str::to_owned)
    .into();
    texts.extend([15, 16, 63, 64, 253, 254].map(long));
    texts.push(vec![long(63); 4].join("."));
    if let Some(named) = wanted.named() {
        texts.extend(named.enum_values.iter().map(|value| (*value).to_owned()));
        texts.extend(named.enum_values.iter().take(2).map(|value| value.to_lowercase()));
    }
    let lower = field.to_lowercase();
    let mut also = |values: &[&str]| texts.extend(values.iter().map(|text| (*text).to_owned()));
    if lower.contains("ip")
        || lower.contains("address")
        || lower.contains("host")
        || lower.contains("nameserver")
        || lower.contains("cidr")
        || lower.contains("range")
    {
        also(&[
            "10.0.0.1",
            "010.0.0.1",
            "300.0.0.1",
            "127.0.0.1",
            "0.0.0.0",
            "169.254.1.1",
            "224.0.0.1",
            "::1",
            "fd00::1",
            "::ffff:1.2.3.4",
            "fe80::1%eth0",
            "None",
        ]);
        also(&["10.0.0.0/8", "10.0.0.1/8", "10.0.0.0/33", "fd00::/64", "0.0.0.0/0", "10.0.0.0/08"]);
        also(&["a.example.com", "*.example.com", "a.*.com", "A.example.com", "example.com.", "a..b"]);
    }
    if lower.contains("operator") {
        also(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "in"]);
    }
    if lower.contains("path") || lower.contains("url") {
        also(&[
            "/a/../b",
            "/a//b",
            "a/../b",
            "..",
            ".",
            "/",
            "https://a.example.com/b",
            "http://a.example.com",
            "https://a:b@c.example.com",
            "https://a/?q=1",
            ".spec.a",
            ".spec[0]",
        ]);
    }
    if lower.contains("resource") || lower == "fieldpath" || lower == "key" || lower == "scopename" {
        also(&[
            "limits.cpu",
            "requests.memory",
            "limits.ephemeral-storage",
            "cpu",
            "memory",
            "hugepages-2Mi",
            "storage",
        ]);
        also(&[
            "metadata.name",
            "metadata.labels['a']",
            "metadata.labels",
            "spec.nodeName",
            "status.podIP",
            "status.podIPs",
            "spec.other",
            "metadata.annotations['a b']",
            "metadata.uid",
        ]);
    }
    if lower.contains("schedule") || lower == "timezone" {
        also(&[
            "* * * * *",
            "@daily",
            "@every 1h",
            "60 * * * *",
            "TZ=UTC * * * * *",
            "* * * *",
            "0 0 31 2 *",
            "Europe/Berlin",
            "Local",
            "UTC",
            "Not/AZone",
        ]);
    }
    if lower.contains("index") {
        also(&["0", "0-2", "1,3", "3,1", "0-9", "5-1", "0,0", "01"]);
    }
    if lower.contains("apiversion") || lower.contains("apigroup") || lower == "group" {
        also(&["v1", "apps/v1", "batch/v2", "a/b/c", "rbac.authorization.k8s.io"]);
    }
    if lower.contains("expression") || lower == "rule" {
        also(&[
            "true",
            "false",
            "1",
            "object.x",
            "self.size",
            "has(object.spec)",
            "1 +",
            "object.metadata.name == 'a'",
        ]);
    }
    if lower.contains("policy")
        || lower.contains("status")
        || lower == "type"
        || lower.contains("action")
        || lower.contains("mode")
        || lower.contains("scope")
    {
        also(&[
            "True",
            "False",
            "Unknown",
            "Always",
            "Never",
            "OnFailure",
            "None",
            "Retain",
            "Delete",
            "Fail",
            "Ignore",
            "Namespace",
            "Cluster",
            "Pod",
            "Container",
        ]);
    }
    let mut values: Vec<Value> = texts.into_iter().map(Value::from).collect();
    values.extend([json!(1), json!(true), json!({}), json!(["a"])]);
    values.dedup();
    values
}

fn integers() -> Vec<Value> {
    let mut values: Vec<Value> = [
        -1,
        0,
        1,
        2,
        5,
        10,
        99,
        100,
        101,
        511,
        512,
        1023,
        1024,
        30_000,
        65_535,
        65_536,
        100_000,
        100_001,
        1_000_000_001,
        i64::from(i32::MAX),
        i64::from(i32::MAX) + 1,
        i64::MAX,
    ]
    .map(Value::from)
    .into();
    values.extend([json!(1.5), json!(1.0), json!("1"), json!("a"), json!(true), json!({}), json!(1e30)]);
    values
}

fn times() -> Vec<Value> {
    let texts = [
        "2020-01-01T00:00:00Z",
        "2020-01-01T00:00:00.5Z",
        "2020-01-01T00:00:00+02:00",
        "2020-01-01",
        "",
        "yesterday",
        "2020-13-01T00:00:00Z",
        "2020-01-01T00:00:00.000001Z",
    ];
    texts.map(|text| json!(text)).into_iter().chain([json!(1)]).collect()
}

fn quantities() -> Vec<Value> {
    let texts = [
        "0",
        "1",
        "-1",
        "1.5",
        "1m",
        "0.5m",
        "1u",
        "1Ki",
        "1k",
        "1e3",
        "1E",
        "0.1",
        "10Gi",
        "",
        "a",
        "1 ",
        "+1",
        "1Kb",
        "100000000000000000000",
        "1000m",
        "0.0",
    ];
    texts.map(|text| json!(text)).into_iter().chain([json!(1), json!(1.5), json!(true), json!({})]).collect()
}

fn ints_or_strings() -> Vec<Value> {
    let numbers = [-1, 0, 1, 2, 100, 65_535, 65_536, i64::from(i32::MAX) + 1].map(Value::from);
    let texts = [
        "",
        "a",
        "A",
        "http",
        "1",
        "0%",
        "50%",
        "100%",
        "101%",
        "-1%",
        "a%",
        "1.5%",
        "a--b",
        "-a",
        "xxxxxxxxxxxxxxx",
        "xxxxxxxxxxxxxxxx",
        "a_b",
    ];
    numbers
        .into_iter()
        .chain(texts.map(|text| json!(text)))
        .chain([json!(1.5), json!(true), json!({})])
        .collect()
}

fn lists(field: &str, item: &TypeRef, current: Option<&Value>) -> Vec<Value> {
    let mut values = vec![json!([]), json!({}), json!("a"), json!([null])];
    let current = current.and_then(Value::as_array).filter(|items| !items.is_empty());
    let sample = json!([sample(field, item, 0)]);
    let items = match current {
        Some(items) => items,
        None => {
            values.push(sample.clone());
            sample.as_array().unwrap_or(&EMPTY)
        }
    };
    if let Some(first) = items.first() {
        values.push(items.iter().chain([first]).cloned().collect());
        values.push(items.iter().rev().cloned().collect());
        values.push(json!([first]));
    }
    values
}

static EMPTY: Vec<Value> = Vec::new();

fn maps(field: &str, item: &TypeRef, current: Option<&Value>) -> Vec<Value> {
    let mut values = vec![json!({}), json!([]), json!("a"), json!({"a": null})];
    let value = current.and_then(Value::as_object).and_then(|map| map.values().next().cloned());
    let value = value.unwrap_or_else(|| sample(field, item, 0));
    let long = |length: usize| "x".repeat(length);
    let keys = [
        "",
        "a",
        "A.b_c-d",
        "a b",
        "-a",
        "a/b",
        "/a",
        "a/",
        "a/b/c",
        "é",
        "A.b/c",
        "a_b/c",
        "kubernetes.io/a",
        "cpu",
        "memory",
        "storage",
        "hugepages-2Mi",
        "example.com/gpu",
        "requests.cpu",
        "limits.a/b",
        "pods",
        ".",
        "..",
        "..a",
    ];
    let keys = keys.into_iter().map(str::to_owned).chain([63, 64, 253, 254].map(long));
    values.extend(keys.map(|key| json!({key: value})));
    let qualified = [format!("a/{}", long(63)), format!("b/{}", long(64)), format!("{}/c", long(254))];
    values.extend(qualified.map(|key| json!({key: value})));
    values
}

/// A likely valid value of a type: what a struct must have, and nothing that it may have.
pub(crate) fn sample(field: &str, wanted: &TypeRef, depth: usize) -> Value {
    match &wanted.shape {
        Shape::String => text_sample(field, wanted),
        Shape::Bool => json!(true),
        Shape::Int32 | Shape::Int64 => json!(if field.to_lowercase().contains("port") { 80 } else { 1 }),
        Shape::Float64 => json!(1),
        Shape::Bytes => json!("YWJj"),
        Shape::Time => json!("2020-01-01T00:00:00Z"),
        Shape::MicroTime => json!("2020-01-01T00:00:00.000001Z"),
        Shape::Duration => json!("1s"),
        Shape::Quantity => json!("1"),
        Shape::IntOrString => json!(1),
        Shape::List(item) if depth < SAMPLE_DEPTH => json!([sample(field, item, depth + 1)]),
        Shape::List(_) => json!([]),
        Shape::Map(item) if depth < SAMPLE_DEPTH => json!({"a": sample(field, item, depth + 1)}),
        Shape::Struct(id) if depth < SAMPLE_DEPTH => {
            let needed = id.get().fields.iter().filter(|field| !field.is_optional && !field.omit_empty);
            needed.map(|field| (field.name.to_owned(), sample(field.name, &field.value, depth + 1))).collect()
        }
        _ => json!({}),
    }
}

/// A struct with everything in it that it may have.
pub(crate) fn full_sample(field: &str, wanted: &TypeRef, depth: usize) -> Value {
    match &wanted.shape {
        Shape::Struct(id) if depth < 3 => {
            let fields = id.get().fields.iter();
            fields
                .map(|field| (field.name.to_owned(), full_sample(field.name, &field.value, depth + 1)))
                .collect()
        }
        Shape::List(item) if depth < 3 => json!([full_sample(field, item, depth + 1)]),
        _ => sample(field, wanted, depth),
    }
}

fn text_sample(field: &str, wanted: &TypeRef) -> Value {
    if let Some(value) = wanted.named().and_then(|named| named.enum_values.first()) {
        return json!(value);
    }
    let lower = field.to_lowercase();
    json!(match () {
        () if lower.ends_with("ip") || lower.ends_with("ips") || lower.contains("nameserver") => "10.0.0.1",
        () if lower.contains("cidr") => "10.0.0.0/8",
        () if lower.ends_with("path") => "/a",
        () if lower == "operator" => "In",
        () => "a",
    })
}
