//! Volcano's Commands: what a user asks the controllers to do with a job or a queue. Pure.

use krafla_api::Kind;
use serde_json::{Value, json};

/// A Command, and the namespace to create it in.
pub(crate) fn command(kind: Kind, namespace: &str, name: &str, uid: &Value, action: &str) -> (String, Value) {
    let info = kind.info();
    let reference = json!({
        "apiVersion": info.api_version(),
        "kind": info.kind,
        "name": name,
        "uid": uid,
        "controller": true,
        "blockOwnerDeletion": true,
    });
    // Those of queues, which are in no namespace, are in this one.
    let namespace = if kind == Kind::Queue { "default" } else { namespace };
    let of = Kind::Command.info();
    let command = json!({
        "apiVersion": of.api_version(),
        "kind": of.kind,
        "metadata": {
            "generateName": format!("{name}-{}-", action.to_lowercase()),
            "namespace": namespace,
            "ownerReferences": [reference],
        },
        "target": reference,
        "action": action,
    });
    (namespace.to_owned(), command)
}
