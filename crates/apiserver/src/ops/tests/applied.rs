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

/// Applies on the client's side, lets somebody change something, and applies on the server's side as `manager`.
fn apply_after(theirs: Option<Value>, manager: &str) -> Result<Value, Status> {
    let cluster = Cluster::new();
    let resource = cluster.resource(Kind::ConfigMap);
    let note = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v", "l": "w"}});
    let mut live = note.clone();
    live["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": note.to_string()});
    let as_manager = |name: &str| WriteOptions { manager: Some(name.into()), ..WriteOptions::default() };
    let live = crate::codec::normalise(&resource, &live).unwrap();
    let options = as_manager("kubectl-client-side-apply");
    let created = cluster.0.create(&resource, "default", live, &options);
    created.now_or_never().unwrap().unwrap();
    let key = key(Kind::ConfigMap, "a");
    if let Some(theirs) = theirs {
        let (patch, options) = (Patch::Merge(theirs), as_manager("somebody"));
        cluster.0.patch(&resource, &key, Part::Main, &patch, &options).now_or_never().unwrap().unwrap();
    }
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "new", "l": "w"}});
    let applied = Applied { object, is_forced: false };
    let options = as_manager(manager);
    let answer = cluster.0.apply(&resource, &key, Part::Main, &applied, &options).now_or_never().unwrap()?;
    Ok(serde_json::from_slice(&answer.bytes).unwrap())
}

#[test]
fn kubectl_may_change_on_the_servers_side_what_it_set_on_the_clients_side() {
    let after = apply_after(None, "kubectl").unwrap();
    assert_eq!(after["data"], json!({"k": "new", "l": "w"}));
    let unrelated = apply_after(Some(json!({"data": {"other": "x"}})), "kubectl").unwrap();
    assert_eq!(unrelated["data"], json!({"k": "new", "l": "w", "other": "x"}));
}

#[test]
fn what_somebody_changed_since_is_still_a_conflict() {
    let refused = apply_after(Some(json!({"data": {"k": "theirs"}})), "kubectl").unwrap_err();
    says(
        &refused,
        expect![[
            r#"409 Conflict: Apply failed with 1 conflict: conflict with "somebody" using v1: .data.k"#
        ]],
    );
    let another = apply_after(None, "me").unwrap_err();
    says(
        &another,
        expect![[
            r#"409 Conflict: Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.k"#
        ]],
    );
}
