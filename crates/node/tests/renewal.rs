//! What changes in the volumes of a pod that runs.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

mod common;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{Machine, once};
use futures_util::future::BoxFuture;
use krafla_api::Kind;
use krafla_node::pod::{AccountToken, Pod};
use krafla_node::{Mode, ServerAccess};
use serde_json::{Value, json};

/// Gives another token each time.
#[derive(Default)]
struct Access(AtomicU32);

impl ServerAccess for Access {
    fn token(&self, _: &Pod, _: &AccountToken) -> Result<String, String> {
        Ok(format!("token {}", self.0.fetch_add(1, Ordering::Relaxed)))
    }

    fn address(&self) -> BoxFuture<'_, SocketAddr> {
        Box::pin(async { SocketAddr::from(([127, 0, 0, 1], 6443)) })
    }

    fn address_by_name(&self) -> Option<IpAddr> {
        None
    }
}

/// A machine whose containers find the volume `v` by its variable.
fn machine() -> Machine {
    let mut machine = Machine::new(Mode::OutliveNode);
    machine.isolation = false;
    machine
}

/// A pod with a volume `v`, in whose script `next FILE` waits until a file of it has changed.
fn with_volume(volume: &Value, script: &str) -> Value {
    let next = "next() { was=$(cat $KRAFLA_VOLUME_V/$1); \
                while test \"$(cat $KRAFLA_VOLUME_V/$1)\" = \"$was\"; do sleep 0.02; done; }";
    let mut pod = once(&format!("{next}; {script}"));
    pod["volumes"] = json!([volume]);
    pod["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/krafla-test"}]);
    pod
}

#[tokio::test]
async fn a_token_is_renewed_in_time_also_by_the_next_node_and_whatever_other_volumes_lack() {
    let mut machine = machine();
    machine.access = Some(Arc::new(Access::default()));
    let (gate, last_gate) = (machine.make_gate("gate"), machine.make_gate("last"));
    let node = machine.start_node();
    let metadata = json!({"name": "cm", "namespace": "default"});
    machine.server.create(Kind::ConfigMap, json!({"metadata": metadata, "data": {"k": "v"}}));
    let token = json!({"path": "token", "expirationSeconds": 1});
    let volume = json!({"name": "v", "projected": {"sources": [{"serviceAccountToken": token}]}});
    let script = "read x < gate; next token; next token; echo renewed; read x < last; next token";
    let mut pod = with_volume(&volume, script);
    let other = json!({"name": "other", "configMap": {"name": "cm"}});
    pod["volumes"].as_array_mut().unwrap().insert(0, other);
    machine.server.create_pod("p", pod);
    machine.server.until_phase("p", "Running").await;
    machine.server.remove(Kind::ConfigMap, "cm");
    gate.open().await;
    node.until_output("p").await;
    node.kill().await;

    let node = machine.start_node();
    last_gate.open().await;
    machine.server.until_phase("p", "Succeeded").await;
    node.stop().await;
}

#[tokio::test]
async fn a_volume_that_tells_a_pod_of_itself_follows_its_labels_and_annotations() {
    let machine = machine();
    let node = machine.start_node();
    let file = |path: &str, field: &str| json!({"path": path, "fieldRef": {"fieldPath": field}});
    let labels = json!({"downwardAPI": {"items": [file("labels", "metadata.labels")]}});
    let note = json!({"downwardAPI": {"items": [file("note", "metadata.annotations['note']")]}});
    let volume = json!({"name": "v", "projected": {"sources": [labels, note]}});
    // Each file is empty until it has something to tell.
    let until = |path: &str| format!("until test -s $KRAFLA_VOLUME_V/{path}; do sleep 0.02; done");
    let script = format!("{}; echo one; {}", until("labels"), until("note"));
    machine.server.create_pod("p", with_volume(&volume, &script));
    machine.server.until_phase("p", "Running").await;
    machine.server.patch(Kind::Pod, "p", &json!({"metadata": {"labels": {"a": "b"}}}));
    node.until_output("p").await;
    machine.server.patch(Kind::Pod, "p", &json!({"metadata": {"annotations": {"note": "x"}}}));
    machine.server.until_phase("p", "Succeeded").await;
    node.stop().await;
}
