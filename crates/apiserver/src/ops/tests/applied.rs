//! What `kubectl apply --server-side` leaves to `kubectl apply`.

use super::*;

const NOTE: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// Applies on the server's side over what the other side left, and returns the note after it.
fn note_after_apply(note: Option<&str>, manager: &str, data: &Value) -> Option<String> {
    let cluster = Cluster::new();
    let mut live = config_map("a");
    if let Some(note) = note {
        live["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": note});
    }
    cluster.create(Kind::ConfigMap, live).unwrap();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"l": "x"}}, "data": data});
    let applied = Applied { object, is_forced: true };
    let options = WriteOptions { manager: Some(manager.into()), ..WriteOptions::default() };
    let (resource, key) = (cluster.resource(Kind::ConfigMap), key(Kind::ConfigMap, "a"));
    cluster.0.apply(&resource, &key, Part::Main, &applied, &options).now_or_never().unwrap().unwrap();
    let after = cluster.get(Kind::ConfigMap, "a").unwrap();
    Some(after.pointer(NOTE)?.as_str()?.to_owned())
}

#[test]
fn the_note_of_what_kubectl_applied_last_is_kept_up_to_date() {
    let applied = json!({"b": "2"});
    let updated = note_after_apply(Some("{}"), "kubectl", &applied);
    expect![[r#"
        {"apiVersion":"v1","data":{"b":"2"},"kind":"ConfigMap","metadata":{"labels":{"l":"x"},"name":"a"}}
    "#]]
    .assert_eq(&updated.unwrap());
    assert_eq!(note_after_apply(None, "kubectl", &applied), None, "there is none to keep");
    assert_eq!(note_after_apply(Some("{}"), "somebody", &applied).as_deref(), Some("{}"));
    let large = json!({"b": "x".repeat(300 << 10)});
    assert_eq!(note_after_apply(Some("{}"), "kubectl", &large), None, "there is no room for it");
}
