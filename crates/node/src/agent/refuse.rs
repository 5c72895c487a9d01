//! What becomes of a pod that this node can not read: it fails, and says why. It must not wait for ever, and
//! must not be in the way of its own deletion.

use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::{Client, ClientError, Propagation, Step};
use serde::Deserialize;
use serde_json::json;

/// The little that can be read of any object, a pod or not.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Glance {
    pub(super) metadata: GlanceMetadata,
    pub(super) spec: GlanceSpec,
    status: GlanceStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GlanceMetadata {
    name: String,
    namespace: String,
    pub(super) uid: Uid,
    deletion_timestamp: Option<Time>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct GlanceSpec {
    pub(super) node_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GlanceStatus {
    phase: String,
}

impl Glance {
    pub(super) fn at(json: &[u8]) -> Option<Glance> {
        serde_json::from_slice(json).ok()
    }

    pub(super) fn key(&self) -> Key {
        Key::new(&self.metadata.namespace, &self.metadata.name)
    }
}

/// Lets a pod fail, or lets it go if its deletion was asked for. Writes nothing if it has failed already.
pub(super) async fn refuse(client: &dyn Client, pod: &Glance, why: &str) -> Result<(), ClientError> {
    let (kind, key, uid) = (Kind::Pod, pod.key(), pod.metadata.uid.clone());
    let step = if pod.metadata.deletion_timestamp.is_some() {
        Step::Delete {
            kind,
            key,
            uid,
            revision: None,
            propagation: Propagation::Background,
            grace_seconds: Some(0),
        }
    } else if pod.status.phase == "Failed" {
        return Ok(());
    } else {
        let message = format!("Pod was rejected: this node cannot read it: {why}");
        let status = json!({"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": message});
        Step::Patch { kind, key, uid, revision: None, of_status: true, patch: json!({ "status": status }) }
    };
    client.write(&step).await.map(drop)
}
