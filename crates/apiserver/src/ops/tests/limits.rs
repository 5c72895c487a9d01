//! What is too large or too deep is refused before it is stored, and what is stored can always go.

use super::*;
use crate::store::{Draft, EntryMeta};

fn config_map(name: &str, bytes: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "x".repeat(bytes)}})
}

/// Levels of objects.
fn nested(depth: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
}

fn things(cluster: &Cluster) -> Arc<Resource> {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    let definitions =
        cluster.0.registry().find("apiextensions.k8s.io", "v1", "customresourcedefinitions").unwrap();
    let options = WriteOptions::default();
    cluster.0.create(&definitions, "", definition, &options).now_or_never().unwrap().unwrap();
    cluster.0.registry().find("example.com", "v1", "things").unwrap()
}

/// What a request with a body leads to.
fn create(cluster: &Cluster, resource: &Resource, media_type: &str, body: &str) -> Result<Answer, Status> {
    let decoded = crate::codec::decode(resource, media_type, body.as_bytes())?;
    let options = WriteOptions { manager: Some("m".into()), ..WriteOptions::default() };
    cluster.0.create(resource, "default", decoded.object, &options).now_or_never().unwrap()
}

#[test]
fn an_object_that_is_stored_can_be_read_changed_and_deleted() {
    let cluster = Cluster::new();
    let things = things(&cluster);
    let mut n_stored = 0;
    for depth in (50..140).chain([200, 300, 499, 500, 5000]) {
        for media_type in ["application/json", "application/yaml"] {
            let body = format!(
                r#"{{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"a"}},"spec":{}}}"#,
                nested(depth)
            );
            match create(&cluster, &things, media_type, &body) {
                Err(status) => assert_eq!(status.code, 400, "{depth} {status:?}"),
                Ok(answer) => {
                    n_stored += 1;
                    serde_json::from_slice::<Value>(&answer.bytes).unwrap();
                    let key = Key::new("default", "a");
                    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
                    let options = WriteOptions { manager: Some("n".into()), ..WriteOptions::default() };
                    let patched = cluster.0.patch(&things, &key, Part::Main, &patch, &options);
                    let patched = patched.now_or_never().unwrap().unwrap();
                    // What was read can be sent back.
                    let text = std::str::from_utf8(&patched.bytes).unwrap();
                    let again = crate::codec::decode(&things, media_type, text.as_bytes()).unwrap();
                    let updated = cluster.0.update(&things, &key, Part::Main, again.object, &options);
                    updated.now_or_never().unwrap().unwrap();
                    let options = DeleteOptions::default();
                    cluster.0.delete(&things, &key, &options).now_or_never().unwrap().unwrap();
                }
            }
        }
    }
    assert!(n_stored > 100, "{n_stored}");
}

#[test]
fn a_patch_cannot_store_what_is_too_deep_to_be_read() {
    let cluster = Cluster::new();
    let things = things(&cluster);
    let body = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{}}"#;
    create(&cluster, &things, "application/json", body).unwrap();
    let (key, options) =
        (Key::new("default", "a"), WriteOptions { manager: Some("n".into()), ..WriteOptions::default() });
    for depth in 80..130 {
        let merge = format!(r#"{{"spec":{}}}"#, nested(depth));
        let json = format!(r#"[{{"op":"add","path":"/spec/a/b/c/d","value":{}}}]"#, nested(depth));
        for (media_type, patch) in
            [("application/merge-patch+json", merge), ("application/json-patch+json", json)]
        {
            let Ok((patch, _)) = Patch::decode(media_type, patch.as_bytes()).unwrap() else { continue };
            let _ = cluster.0.patch(&things, &key, Part::Main, &patch, &options).now_or_never().unwrap();
            let stored = cluster.0.store().get(&things.storage, &key).unwrap();
            serde_json::from_slice::<Value>(&stored.bytes).unwrap();
        }
        let applied = format!(r#"{{"apiVersion":"example.com/v1","kind":"Thing","spec":{}}}"#, nested(depth));
        let Ok(object) = crate::codec::decode_applied(applied.as_bytes()) else { continue };
        let applied = Applied { object, is_forced: true };
        let _ = cluster.0.apply(&things, &key, Part::Main, &applied, &options).now_or_never().unwrap();
        let stored = cluster.0.store().get(&things.storage, &key).unwrap();
        serde_json::from_slice::<Value>(&stored.bytes).unwrap();
    }
}

#[test]
fn what_an_earlier_version_stored_too_deep_can_be_listed_and_deleted() {
    let cluster = Cluster::new();
    let things = things(&cluster);
    let put = |name: &str| {
        let mut spec = json!(1);
        for _ in 0..400 {
            spec = json!({"a": spec});
        }
        let metadata = json!({"name": name, "namespace": "default", "uid": name, "finalizers": ["a/b"]});
        let object =
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": spec});
        let meta = EntryMeta::of(&object);
        let write = crate::store::Write {
            resource: things.storage.clone(),
            key: Key::new("default", name),
            expect: crate::store::Expect::Absent,
            change: crate::store::Change::Put(Draft::new(object, meta)),
        };
        cluster.0.store().commit(write).now_or_never().unwrap().unwrap();
    };
    put("deep");
    let key = Key::new("default", "deep");
    let marked = cluster.0.delete(&things, &key, &DeleteOptions::default()).now_or_never().unwrap().unwrap();
    assert!(matches!(marked, Deleted::Marked(_)), "{marked:?}");
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let options = WriteOptions { manager: Some("n".into()), ..WriteOptions::default() };
    cluster.0.patch(&things, &key, Part::Main, &patch, &options).now_or_never().unwrap().unwrap();
    assert_eq!(cluster.0.store().get(&things.storage, &key), None);
}

#[test]
fn an_object_is_as_large_as_etcd_takes_it() {
    let cluster = Cluster::new();
    let (config_maps, services) =
        (cluster.0.registry().find("", "v1", "configmaps").unwrap(), cluster.resource(Kind::Pod));
    let create = |resource: &Resource, object: Value| {
        cluster.0.create(resource, "default", object, &WriteOptions::default()).now_or_never().unwrap()
    };
    assert!(create(&config_maps, config_map("a", 1_000_000)).is_ok());
    let sized = |bytes: usize| {
        let mut pod = pod("a");
        pod["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "x".repeat(bytes)}]);
        pod
    };
    let refused = create(&services, sized(1_600_000)).unwrap_err();
    assert_eq!(
        (refused.code, &*refused.reason, &*refused.message),
        (500, "", "etcdserver: request is too large")
    );
    assert!(create(&services, sized(1_500_000)).is_ok());
}

#[test]
fn many_owners_and_many_findings_cost_in_proportion() {
    let owner = |at: usize| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("p{at}"), "uid": format!("u{at}")});
    let cluster = Cluster::new();
    let config_maps = cluster.0.registry().find("", "v1", "configmaps").unwrap();
    let write = |name: &str, owners: Vec<Value>| {
        let mut object = config_map(name, 1);
        object["metadata"]["ownerReferences"] = owners.into();
        cluster.0.create(&config_maps, "default", object, &WriteOptions::default()).now_or_never().unwrap()
    };
    let n = 15_000;
    let stored = write("a", (0..n).chain(0..n).map(owner).collect()).unwrap();
    let object: Value = serde_json::from_slice(&stored.bytes).unwrap();
    assert_eq!(object["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(n));
    let wrong = |at: usize| json!({"apiVersion": "v1", "kind": "", "name": "", "uid": format!("u{at}")});
    assert_eq!(write("b", (0..n).map(wrong).collect()).unwrap_err().code, 422);
}
