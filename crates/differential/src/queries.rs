//! Requests with query parameters, valid ones and others, for every verb.

use serde_json::{Value, json};

use crate::bases::Subject;
use crate::rng::Rng;

type Parameter = (&'static str, &'static [&'static str]);

/// Parameters that any request may carry.
const GENERAL: &[Parameter] = &[
    ("pretty", &["true", "false", "1", ""]),
    ("timeout", &["1s", "invalid", "1", "-1s", "0s", ""]),
    ("unknown", &["a"]),
];
/// Parameters of requests that write.
const WRITE: &[Parameter] = &[
    ("dryRun", &["All", "All", "Some", "all", "", "All&dryRun=All", "All&dryRun=Some"]),
    ("fieldManager", &["a", "", "a%20b", "a%00b", "%C3%A9", LONG_128, LONG_129]),
    ("fieldValidation", &["Strict", "Warn", "Ignore", "", "strict", "Bad", "Strict&fieldValidation=Warn"]),
];
const PATCH: &[Parameter] = &[("force", &["true", "false", "", "1", "maybe"])];
/// Parameters of lists and watches.
const LIST: &[Parameter] = &[
    (
        "labelSelector",
        &[
            "a=b",
            "a!=b",
            "a",
            "!a",
            "a%20in%20(b,c)",
            "a%20notin%20(b)",
            "a=b,c",
            "a%20in%20()",
            "a==b",
            "a>1",
            "a>x",
            "=",
            "a=b=c",
            "a%20in%20b",
            "A/b/c=d",
            "a=b%20c",
            "app%20in%20(a",
            "",
            ",",
        ],
    ),
    (
        "fieldSelector",
        &[
            "metadata.name=base",
            "metadata.name!=base",
            "metadata.namespace=x",
            "metadata.name=a,metadata.name=b",
            "spec.nodeName=",
            "status.phase=Running",
            "type=Opaque",
            "spec.other=1",
            "metadata.name",
            "=",
            "metadata.name=a=b",
            "metadata.name==base",
            "metadata.labels=a",
            "reason=Started",
            "",
            ",",
        ],
    ),
    ("limit", &["0", "1", "2", "-1", "abc", "500", "", "99999999999999999999"]),
    ("continue", &["abc", "", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYSJ9"]),
    ("resourceVersion", &["0", "abc", "-1", "", "1.5"]),
    ("resourceVersionMatch", &["Exact", "NotOlderThan", "Bad", ""]),
    ("timeoutSeconds", &["1", "-1", "abc", ""]),
    ("allowWatchBookmarks", &["true", "false", "maybe", ""]),
    ("sendInitialEvents", &["true", "false", "maybe", ""]),
    // Every other value opens a watch.
    ("watch", &["false", "0"]),
];
const GET: &[Parameter] = &[("resourceVersion", &["0", "abc", "-1", ""]), ("export", &["true"])];
const DELETE: &[Parameter] = &[
    ("gracePeriodSeconds", &["0", "1", "-1", "abc", "", "30"]),
    ("propagationPolicy", &["Orphan", "Background", "Foreground", "Bad", "", "orphan"]),
    ("orphanDependents", &["true", "false", "maybe", ""]),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", &["true", "false", "maybe"]),
];
const LONG_128: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
const LONG_129: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

const ACCEPT: [&str; 8] = [
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v2;g=meta.k8s.io",
    "application/yaml",
    "text/html",
    "*/*",
];
const PATCH_TYPES: [&str; 6] = [
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
    "application/json",
    "text/plain",
];
/// Bodies of deletes: where there is one, the query does not count.
const DELETE_OPTIONS: [&str; 9] = [
    r#"{"dryRun": ["All"]}"#,
    r#"{"dryRun": ["All"], "preconditions": {"uid": "00000000-0000-0000-0000-000000000009"}}"#,
    r#"{"dryRun": ["All"], "preconditions": {"resourceVersion": "1"}}"#,
    r#"{"dryRun": ["All"], "propagationPolicy": "Bad"}"#,
    r#"{"dryRun": ["All"], "gracePeriodSeconds": -5}"#,
    r#"{"dryRun": ["All", "All"]}"#,
    r#"{"dryRun": ["All"], "orphanDependents": true, "propagationPolicy": "Orphan"}"#,
    r#"{"dryRun": ["All"], "kind": "Pod", "apiVersion": "v1"}"#,
    r#"{"dryRun": ["All"], "unknown": 1}"#,
];

/// One request to a stored object or to the collection. It changes nothing: every write has `dryRun=All`, unless another
/// value is asked for, which a server must refuse.
pub(crate) fn query(subject: &Subject, variant: usize, rng: &mut Rng) -> Value {
    let (collection, object) = (subject.path(), subject.stored_path(variant));
    let stored = subject.stored(variant);
    let request = |method: &str, path: &str, parameters: String| json!({"method": method, "path": format!("{path}?{parameters}")});
    let mut step = match rng.below(7) {
        0 | 1 if subject.resource.is_namespaced() => {
            request("GET", &collection, drawn(&[LIST, GENERAL], rng))
        }
        0..3 => request("GET", &object, drawn(&[GET, GENERAL], rng)),
        3 => {
            let mut step = request("POST", &collection, dry(&[WRITE, GENERAL], rng));
            let mut body = subject.bases.get(variant).cloned().unwrap_or_default();
            if rng.below(3) == 0 {
                body["metadata"]["unknown"] = json!(1);
            }
            step["body"] = body;
            step
        }
        4 => {
            let mut step = request("PUT", &object, dry(&[WRITE, GENERAL], rng));
            step["body"] = stored;
            step
        }
        5 => {
            let mut step = request("PATCH", &object, dry(&[WRITE, PATCH, GENERAL], rng));
            let media = rng.pick(&PATCH_TYPES).copied().unwrap_or_default();
            step["headers"] = json!({"Content-Type": media});
            step["body"] = match media {
                "application/json-patch+json" => {
                    json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}])
                }
                "application/apply-patch+yaml" => stored,
                _ => json!({"metadata": {"labels": {"a": "b"}, "unknown": 1}}),
            };
            step
        }
        _ => {
            let mut step = request("DELETE", &object, dry(&[DELETE, GENERAL], rng));
            if rng.below(2) == 0 {
                let options = rng.pick(&DELETE_OPTIONS).copied().unwrap_or_default();
                step["body"] = serde_json::from_str(options).unwrap_or_default();
            }
            step
        }
    };
    if rng.below(4) == 0 {
        step["headers"]["Accept"] = json!(rng.pick(&ACCEPT));
    }
    step
}

/// One to three parameters.
fn drawn(from: &[&[Parameter]], rng: &mut Rng) -> String {
    let all = from.concat();
    let n = 1 + rng.below(3);
    let mut parts: Vec<String> = Vec::new();
    for _ in 0..n {
        let Some((name, values)) = rng.pick(&all) else { continue };
        let value = rng.pick(values).copied().unwrap_or_default();
        if !parts.iter().any(|part| part.starts_with(&format!("{name}="))) {
            parts.push(format!("{name}={value}"));
        }
    }
    parts.join("&")
}

/// Parameters of a write that must not be carried out.
fn dry(from: &[&[Parameter]], rng: &mut Rng) -> String {
    let parameters = drawn(from, rng);
    let has_dry_run = parameters.split('&').any(|part| part.starts_with("dryRun=") && part != "dryRun=");
    if has_dry_run { parameters } else { format!("dryRun=All&{}", parameters.replace("dryRun=", "")) }
}
