//! The way from pods to the API server of their own cluster.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use krafla_api::Key;
use krafla_apiserver::{Api, Tokens};
use krafla_node::ServerAccess;
use krafla_node::pod::{AccountToken, Pod};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Makes tokens in this process, and tells where the server listens once it does.
pub(crate) struct OwnServer {
    pub(crate) api: Api,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) address: watch::Receiver<Option<Listening>>,
}

/// Where the server listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    /// Where it listens on the port of HTTPS, if it does.
    pub(crate) by_name: Option<SocketAddr>,
}

impl ServerAccess for OwnServer {
    fn token(&self, pod: &Pod, wanted: &AccountToken) -> Result<String, String> {
        let account = Key::new(&pod.metadata.namespace, &pod.spec.service_account_name);
        let audiences: Vec<&str> =
            Some(wanted.audience.as_str()).filter(|audience| !audience.is_empty()).into_iter().collect();
        let request = json!({"spec": {
            "audiences": audiences, "expirationSeconds": wanted.expiration_seconds,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid},
        }});
        let issued = self.tokens.issue(&self.api, &account, &request).map_err(|status| status.message)?;
        let token = issued.pointer("/status/token").and_then(|token| token.as_str());
        token.map(str::to_owned).ok_or_else(|| "the answer has none".to_owned())
    }

    fn address(&self) -> BoxFuture<'_, SocketAddr> {
        let mut address = self.address.clone();
        async move {
            let known = address.wait_for(Option::is_some).await.ok().and_then(|address| *address);
            let mut known = match known {
                Some(known) => known.address,
                // The server has ended before it began, and the node ends with it.
                None => std::future::pending().await,
            };
            if known.ip().is_unspecified() {
                known.set_ip(Ipv4Addr::LOCALHOST.into());
            }
            known
        }
        .boxed()
    }

    fn address_by_name(&self) -> Option<IpAddr> {
        let listening = *self.address.borrow();
        listening.and_then(|listening| listening.by_name).map(|address| address.ip())
    }

    fn retains_files(&self, claim: &[u8]) -> bool {
        // Of a claim that cannot be read the policy is unknown, and files may be data.
        let Ok(claim) = serde_json::from_slice::<Value>(claim) else { return true };
        let field = |path: &str| claim.pointer(path).and_then(Value::as_str).filter(|name| !name.is_empty());
        let policy = |resource: &str, name: &str, path: &str| {
            let entry = self.api.store().get(&resource.into(), &Key::new("", name))?;
            let object: Value = serde_json::from_slice(&entry.bytes).ok()?;
            object.pointer(path).and_then(Value::as_str).map(str::to_owned)
        };
        let of_volume = field("/spec/volumeName")
            .and_then(|name| policy("persistentvolumes", name, "/spec/persistentVolumeReclaimPolicy"));
        let of_class = || {
            let name = field("/spec/storageClassName")?;
            policy("storageclasses.storage.k8s.io", name, "/reclaimPolicy")
        };
        of_volume.or_else(of_class).is_some_and(|policy| policy != "Delete")
    }
}
