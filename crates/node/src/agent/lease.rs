//! The node's Lease: by it others see that the node is there.

use std::time::Duration;

use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::{Client, ClientError, Step};
use krafla_runtime::Clock;
use serde_json::{Value, json};

const NAMESPACE: &str = "kube-node-lease";
/// How often a kubelet renews its Lease, and how long it is good for.
const RENEWED_AFTER: Duration = Duration::from_secs(10);
const DURATION_SECONDS: u32 = 40;

/// Keeps the Lease of a node, until the future is dropped.
pub(super) async fn keep(client: &dyn Client, clock: &dyn Clock, node: &str) {
    loop {
        if let Err(error) = renew(client, node, clock.now()).await {
            tracing::debug!(%error, node, "the Lease of the node cannot be renewed; retrying");
        }
        tokio::time::sleep(RENEWED_AFTER).await;
    }
}

async fn renew(client: &dyn Client, node: &str, now: Time) -> Result<(), ClientError> {
    let key = Key::new(NAMESPACE, node);
    let spec = json!({
        "holderIdentity": node, "leaseDurationSeconds": DURATION_SECONDS, "renewTime": now.to_micro_string(),
    });
    let found = match client.get(Kind::Lease, &key).await {
        Ok(found) => found,
        Err(ClientError::NotFound(_)) => {
            let owner = client.get(Kind::Node, &Key::new("", node)).await?;
            let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid(&owner)?});
            let object = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec,
                "metadata": {"name": node, "namespace": NAMESPACE, "ownerReferences": [owner]},
            });
            return client.write(&Step::Create { kind: Kind::Lease, object }).await.map(drop);
        }
        Err(error) => return Err(error),
    };
    let uid = Uid::from(uid(&found)?.as_str());
    let patch = json!({ "spec": spec });
    client
        .write(&Step::Patch { kind: Kind::Lease, key, uid, revision: None, of_status: false, patch })
        .await
        .map(drop)
}

fn uid(object: &[u8]) -> Result<String, ClientError> {
    let object: Value =
        serde_json::from_slice(object).map_err(|error| ClientError::Unknown(error.to_string()))?;
    Ok(object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned())
}
