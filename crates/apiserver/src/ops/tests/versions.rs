//! Custom kinds with more than one version: what clients of each version see, and what is stored.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::*;
use crate::admit::webhooks::{Caller, Destination};

const GATES: &str = "gates.example.com";

/// Converts between `hostPort` of v1 and `host` and `port` of v2, and remembers what it was asked for.
#[derive(Clone, Default)]
struct Converter {
    asked: Arc<Mutex<Vec<String>>>,
    is_down: Arc<Mutex<bool>>,
}

impl Caller for Converter {
    fn call<'a>(
        &'a self,
        destination: &'a Destination,
        question: Bytes,
        _timeout: Duration,
    ) -> BoxFuture<'a, Result<Bytes, String>> {
        let question: Value = serde_json::from_slice(&question).unwrap();
        let request = &question["request"];
        let desired = request["desiredAPIVersion"].as_str().unwrap();
        let objects = request["objects"].as_array().unwrap();
        self.asked.lock().push(format!("{} to {desired}", objects.len()));
        let converted: Vec<Value> = objects.iter().map(|object| convert(object.clone(), desired)).collect();
        let response =
            json!({"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted});
        let answer =
            json!({"apiVersion": question["apiVersion"], "kind": "ConversionReview", "response": response});
        let answer = match *self.is_down.lock() {
            true => Err(format!("Post {:?}: nobody there", destination.url)),
            false => Ok(answer.to_string().into()),
        };
        async move { answer }.boxed()
    }
}

fn convert(mut object: Value, desired: &str) -> Value {
    object["apiVersion"] = desired.into();
    let spec = object["spec"].clone();
    object["spec"] = if desired.ends_with("v2") {
        let (host, port) = spec["hostPort"].as_str().unwrap().split_once(':').unwrap();
        json!({"host": host, "port": port})
    } else {
        json!({"hostPort": format!("{}:{}", spec["host"].as_str().unwrap(), spec["port"].as_str().unwrap())})
    };
    object
}

fn version(name: &str, storage: bool, fields: &[&str]) -> Value {
    let text = json!({"type": "string"});
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), text.clone())).collect();
    let selectable: Vec<Value> =
        fields.iter().map(|field| json!({"jsonPath": format!(".spec.{field}")})).collect();
    json!({
        "name": name, "served": true, "storage": storage, "selectableFields": selectable,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": properties},
        }}},
    })
}

fn definition(versions: &[Value], conversion: &Value) -> Value {
    json!({
        "metadata": {"name": GATES},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "gates", "kind": "Gate"},
            "versions": versions, "conversion": conversion,
        },
    })
}

fn by_webhook() -> Value {
    let client = json!({"url": "https://converter/convert"});
    json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}})
}

struct World {
    cluster: Cluster,
    converter: Converter,
}

impl World {
    fn new(definition: Value) -> World {
        let converter = Converter::default();
        let admission = Admission::default().calling(converter.clone());
        let api = Api::new(Store::in_memory(), Arc::new(Still::default()), admission);
        api.bootstrap().now_or_never().unwrap().unwrap();
        let world = World { cluster: Cluster(api), converter };
        world.cluster.create(Kind::CustomResourceDefinition, definition).unwrap();
        world
    }

    fn split() -> World {
        let versions = [version("v1", true, &["hostPort"]), version("v2", false, &["host", "port"])];
        World::new(definition(&versions, &by_webhook()))
    }

    fn gates(&self, version: &str) -> Arc<Resource> {
        self.cluster.0.registry().find("example.com", version, "gates").unwrap()
    }

    fn create(&self, version: &str, name: &str, spec: Value) -> Result<Value, Status> {
        let gate = json!({"apiVersion": format!("example.com/{version}"), "kind": "Gate",
            "metadata": {"name": name}, "spec": spec});
        let options = WriteOptions::default();
        let gates = self.gates(version);
        let created = self.cluster.0.create(&gates, "default", gate, &options);
        created.now_or_never().unwrap().map(|answer| serde_json::from_slice(&answer.bytes).unwrap())
    }

    fn get(&self, version: &str, name: &str) -> Result<Value, Status> {
        let key = Key::new("default", name);
        let entry = self.cluster.0.get_shown(&self.gates(version), &key).now_or_never().unwrap()?;
        Ok(serde_json::from_slice(&entry.bytes).unwrap())
    }

    fn list(&self, version: &str, selector: &str) -> Vec<Value> {
        let gates = self.gates(version);
        let fields = FieldSelector::parse(selector, &gates).unwrap();
        let options =
            ListOptions { filter: Filter { fields, ..Filter::default() }, ..ListOptions::default() };
        let listing = self.cluster.0.list_shown(&gates, &options).now_or_never().unwrap().unwrap();
        listing.items.iter().map(|entry| serde_json::from_slice(&entry.bytes).unwrap()).collect()
    }

    fn stored(&self, name: &str) -> Value {
        parse(&self.cluster.0.store().get(&GATES.into(), &Key::new("default", name)).unwrap()).unwrap()
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.converter.asked.lock())
    }
}

#[test]
fn a_webhook_converts_what_is_written_and_read_in_another_version() {
    let world = World::split();
    let created = world.create("v2", "a", json!({"host": "h", "port": "80"})).unwrap();
    assert_eq!(created["apiVersion"], "example.com/v2");
    assert_eq!(created["spec"], json!({"host": "h", "port": "80"}));
    assert_eq!(world.stored("a")["apiVersion"], "example.com/v1");
    assert_eq!(world.stored("a")["spec"], json!({"hostPort": "h:80"}));
    assert_eq!(world.asked(), ["1 to example.com/v1", "1 to example.com/v2"]);
    assert_eq!(world.get("v1", "a").unwrap()["spec"], json!({"hostPort": "h:80"}));
    assert!(world.asked().is_empty());
    assert_eq!(world.get("v2", "a").unwrap()["metadata"], created["metadata"]);
}

#[test]
fn a_list_is_converted_by_one_call_and_selected_by_the_fields_of_its_version() {
    let world = World::split();
    for (name, host_port) in [("a", "h:80"), ("b", "h:81"), ("c", "i:80")] {
        world.create("v1", name, json!({"hostPort": host_port})).unwrap();
    }
    let names = |list: Vec<Value>| -> Vec<String> {
        list.iter().map(|gate| gate["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(world.list("v2", "")), ["a", "b", "c"]);
    assert_eq!(world.asked(), ["3 to example.com/v2"]);
    assert_eq!(names(world.list("v2", "spec.host=h")), ["a", "b"]);
    assert_eq!(names(world.list("v2", "spec.host=h,spec.port!=80")), ["b"]);
    assert_eq!(names(world.list("v1", "spec.hostPort=i:80")), ["c"]);
}

#[test]
fn a_watch_shows_its_version_and_loses_sight_of_what_no_longer_matches() {
    let world = World::split();
    world.create("v1", "a", json!({"hostPort": "h:80"})).unwrap();
    let gates = world.gates("v2");
    let fields = FieldSelector::parse("spec.host=h", &gates).unwrap();
    let options = WatchOptions { filter: Filter { fields, ..Filter::default() }, ..WatchOptions::default() };
    let mut watch = world.cluster.0.watch_shown(&gates, options).unwrap();
    let mut next = || match watch.next().now_or_never().unwrap().unwrap() {
        WatchEvent::Stored(event) => {
            (event.event_type.as_str(), serde_json::from_slice::<Value>(&event.entry.bytes).unwrap())
        }
        WatchEvent::Added(entry) => ("ADDED", serde_json::from_slice(&entry.bytes).unwrap()),
        WatchEvent::Deleted(entry, _) => ("DELETED", serde_json::from_slice(&entry.bytes).unwrap()),
        WatchEvent::InitialEnd(_) => ("END", Value::Null),
    };
    let (event, gate) = next();
    assert_eq!((event, &gate["spec"]), ("ADDED", &json!({"host": "h", "port": "80"})));
    assert_eq!(next().0, "END");
    world.create("v1", "b", json!({"hostPort": "other:80"})).unwrap();
    let patch = |spec: Value| {
        let (key, patch) = (Key::new("default", "a"), Patch::Merge(json!({"spec": spec})));
        let (gates, options) = (world.gates("v1"), WriteOptions::default());
        let patched = world.cluster.0.patch(&gates, &key, Part::Main, &patch, &options);
        patched.now_or_never().unwrap().unwrap();
    };
    patch(json!({"hostPort": "h:81"}));
    let (event, gate) = next();
    assert_eq!(
        (event, &gate["spec"]["port"], &gate["apiVersion"]),
        ("MODIFIED", &json!("81"), &json!("example.com/v2"))
    );
    patch(json!({"hostPort": "i:81"}));
    let (event, gate) = next();
    assert_eq!((event, &gate["spec"]), ("DELETED", &json!({"host": "h", "port": "81"})));
}

#[test]
fn a_webhook_that_fails_fails_the_request_and_not_the_deletion_of_the_definition() {
    let world = World::split();
    world.create("v1", "a", json!({"hostPort": "h:80"})).unwrap();
    *world.converter.is_down.lock() = true;
    let why = "500 : conversion webhook for example.com/v1, Kind=Gate failed: \
               Post \"https://converter/convert?timeout=30s\": nobody there";
    let refused = world.get("v2", "a").unwrap_err();
    assert_eq!(format!("{} {}: {}", refused.code, refused.reason, refused.message), why);
    assert!(world.create("v2", "b", json!({"host": "h", "port": "80"})).is_err());
    assert!(world.get("v1", "b").is_err());
    world.cluster.delete(Kind::CustomResourceDefinition, GATES, &DeleteOptions::default()).unwrap();
    assert!(world.cluster.get(Kind::CustomResourceDefinition, GATES).is_none());
}

#[test]
fn without_a_webhook_only_the_name_of_the_version_changes_and_each_version_keeps_what_it_knows() {
    let none = json!({"strategy": "None"});
    let both = [version("v1", true, &["a", "b"]), version("v2", false, &["b", "c"])];
    let world = World::new(definition(&both, &none));
    world.create("v1", "old", json!({"a": "1", "b": "2"})).unwrap();
    assert_eq!(world.get("v2", "old").unwrap()["apiVersion"], "example.com/v2");
    assert_eq!(world.get("v2", "old").unwrap()["spec"], json!({"b": "2"}));
    // What the storage version does not know is not stored.
    assert_eq!(world.create("v2", "new", json!({"b": "2", "c": "3"})).unwrap()["spec"], json!({"b": "2"}));

    let both = [version("v1", false, &["a", "b"]), version("v2", true, &["b", "c"])];
    let patch = json!({"spec": {"versions": both}});
    let changed = world.cluster.patch(Kind::CustomResourceDefinition, GATES, Part::Main, patch).unwrap();
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(world.stored("old")["apiVersion"], "example.com/v1");
    let versions = |version: &str| -> Vec<Value> {
        world.list(version, "").into_iter().map(|gate| gate["apiVersion"].clone()).collect()
    };
    assert_eq!(versions("v2"), ["example.com/v2", "example.com/v2"]);
    assert_eq!(versions("v1"), ["example.com/v1", "example.com/v1"]);
    assert_eq!(world.get("v1", "old").unwrap()["spec"], json!({"a": "1", "b": "2"}));
    // The next write brings an object into the storage version, even if it changes nothing else.
    let (key, options) = (Key::new("default", "old"), WriteOptions::default());
    let (same, gates) = (Patch::Merge(json!({})), world.gates("v1"));
    let patched = world.cluster.0.patch(&gates, &key, Part::Main, &same, &options);
    patched.now_or_never().unwrap().unwrap();
    assert_eq!(world.stored("old")["apiVersion"], "example.com/v2");
    assert_eq!(world.stored("old")["spec"], json!({"b": "2"}));
}
