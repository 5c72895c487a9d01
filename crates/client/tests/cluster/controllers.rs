//! Controllers over HTTPS, and a server that dies under them.

use std::sync::Arc;

use futures_util::StreamExt;
use krafla_api::Kind;
use krafla_client::{HttpsClient, Limits};
use krafla_cluster::{Client, Step};
use krafla_runtime::{Engine, SystemClock};
use serde_json::{Value, json};

use crate::proxy::Proxy;
use crate::support::Server;

fn job(name: &str) -> Step {
    let template =
        json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] } });
    let tasks = json!([{ "name": "t", "replicas": 2, "template": template }]);
    let object = json!({
        "metadata": { "namespace": "default", "name": name },
        "spec": { "minAvailable": 2, "queue": "default", "tasks": tasks, "plugins": { "ssh": [], "svc": [] } },
    });
    Step::Create { kind: Kind::VcJob, object }
}

/// Waits until the controllers have taken a job in hand: its ssh key is among the first that they make.
async fn wait_for_key(client: &dyn Client, job: &str) {
    let mut events = client.watch(Kind::Secret, 0);
    loop {
        let event = events.next().await.unwrap().unwrap();
        let secret: Value = serde_json::from_slice(&event.object).unwrap_or_default();
        if secret["metadata"]["ownerReferences"][0]["name"] == job && secret["data"]["id_rsa"].is_string() {
            return;
        }
    }
}

#[tokio::test]
async fn controllers_go_on_when_the_server_dies_in_the_middle_of_their_watches() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::in_dir(dir.path()).await;
    let proxy = Proxy::start(server.running.address()).await;
    let client = HttpsClient::new(server.access_at(proxy.address), Limits::default()).unwrap();
    let engine = Engine::new(krafla_plan::controllers());
    let controllers = tokio::spawn(krafla_runtime::run(engine, Arc::new(client), Arc::new(SystemClock), 4));
    server.local.write(&job("before")).await.unwrap();
    wait_for_key(server.local.as_ref(), "before").await;

    // The new server has the same objects and another history: every watch has to begin anew.
    drop(server.running);
    server.store.close();
    drop(server.local);
    let server = Server::in_dir(dir.path()).await;
    server.local.write(&job("after")).await.unwrap();
    proxy.cut(server.running.address());
    wait_for_key(server.local.as_ref(), "after").await;
    controllers.abort();
}
