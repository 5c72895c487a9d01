//! Sequences of requests that change what is stored: create, update, patch, apply, status, delete, beside a watch.

use serde_json::{Value, json};

use crate::bases::Subject;
use crate::fields::{Change, edited};
use crate::rng::Rng;

/// How many requests a sequence has at most, beside its watch.
const STEPS_MAX: usize = 8;

/// A sequence about one object whose name nothing else uses. `changes` are changes of the variant.
pub(crate) fn sequence(subject: &Subject, variant: usize, changes: &[&Change], rng: &mut Rng) -> Vec<Value> {
    let name = format!("q{:010x}-{{{{u}}}}", rng.next() & 0xff_ffff_ffff);
    let mut base = subject.bases.get(variant).cloned().unwrap_or_default();
    let is_fixed = base["metadata"]["name"] != "base";
    if !is_fixed {
        base["metadata"]["name"] = json!(name);
    }
    // What a real server starts to serve a moment later is compared elsewhere.
    if is_fixed {
        return Vec::new();
    }
    let collection = subject.path().replace("{{ns}}-b", "{{ns}}").replace("{{ns}}", "{{ns}}-s");
    let sketch = Sketch {
        object: format!("{collection}/{name}"),
        collection,
        base,
        has_status: subject.resource.has_status(),
    };
    let mut steps = Vec::new();
    let watches = rng.below(4) == 0;
    if watches {
        let path = format!("{}?watch=true&fieldSelector=metadata.name={name}", sketch.collection);
        steps.push(json!({"op": "watch", "watch": "w", "path": path}));
    }
    steps.push(sketch.create(None));
    for _ in 0..1 + rng.below(STEPS_MAX) {
        steps.push(sketch.step(rng.pick(changes).copied(), rng));
    }
    steps.push(json!({"method": "GET", "path": sketch.object}));
    if watches {
        steps.push(json!({"op": "read", "watch": "w", "count": 0, "settle": 0.5}));
        steps.push(json!({"op": "close", "watch": "w"}));
    }
    // What stays must not change what later sequences see.
    steps.push(json!({"method": "PATCH", "path": sketch.object, "headers": {"Content-Type": "application/merge-patch+json"}, "body": {"metadata": {"finalizers": null}}, "status_only": true}));
    steps.push(json!({"method": "DELETE", "path": sketch.object, "body": {"gracePeriodSeconds": 0}, "status_only": true}));
    steps
}

struct Sketch {
    collection: String,
    object: String,
    base: Value,
    has_status: bool,
}

impl Sketch {
    fn create(&self, change: Option<&Change>) -> Value {
        json!({"method": "POST", "path": self.collection, "body": self.with(change)})
    }

    fn with(&self, change: Option<&Change>) -> Value {
        let mut object = edited(&self.base, change.map(Vec::as_slice).unwrap_or_default());
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("name".to_owned(), self.base["metadata"]["name"].clone());
        }
        object
    }

    fn step(&self, change: Option<&Change>, rng: &mut Rng) -> Value {
        let patch = |media: &str, body: Value, query: &str| json!({"method": "PATCH", "path": format!("{}{query}", self.object), "headers": {"Content-Type": media}, "body": body});
        let merge = "application/merge-patch+json";
        match rng.below(14) {
            0 => self.create(change),
            1 => json!({"method": "GET", "path": self.object}),
            2 | 3 => json!({"method": "PUT", "path": self.object, "body": self.with(change)}),
            4 => {
                let labels =
                    [json!({"a": "b"}), json!({"a": null}), json!({"c": "d", "app": null}), json!(null)];
                patch(merge, json!({"metadata": {"labels": rng.pick(&labels)}}), "")
            }
            5 => patch(
                "application/strategic-merge-patch+json",
                json!({"metadata": {"annotations": {"a": "b"}, "finalizers": ["example.com/one"]}}),
                "",
            ),
            6 => patch(
                "application/json-patch+json",
                json!([{"op": "test", "path": "/metadata/name", "value": self.base["metadata"]["name"]}, {"op": "add", "path": "/metadata/annotations", "value": {"c": "d"}}]),
                "",
            ),
            7 | 8 => {
                let manager = ["one", "two"].get(rng.below(2)).copied().unwrap_or_default();
                let force = ["", "&force=true"].get(rng.below(2)).copied().unwrap_or_default();
                patch(
                    "application/apply-patch+yaml",
                    self.with(change),
                    &format!("?fieldManager={manager}{force}"),
                )
            }
            9 if self.has_status => {
                json!({"method": "PUT", "path": format!("{}/status", self.object), "body": self.base})
            }
            10 if self.has_status => patch(merge, json!({"status": self.base["status"]}), "/status"),
            9 | 10 => patch(merge, json!({"metadata": {"finalizers": null}}), ""),
            11 => patch(
                merge,
                json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "00000000-0000-0000-0000-000000000007", "controller": true, "blockOwnerDeletion": true}]}}),
                "",
            ),
            _ => {
                let options = [
                    json!({}),
                    json!({"gracePeriodSeconds": 0}),
                    json!({"propagationPolicy": "Foreground"}),
                    json!({"propagationPolicy": "Orphan"}),
                    json!({"propagationPolicy": "Background"}),
                    json!({"preconditions": {"resourceVersion": "1"}}),
                    json!({"dryRun": ["All"]}),
                    json!({"dryRun": ["Some"]}),
                ];
                json!({"method": "DELETE", "path": self.object, "body": rng.pick(&options)})
            }
        }
    }
}
