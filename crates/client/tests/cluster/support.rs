//! An embedded server for one test, and clients of it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use krafla_api::{Key, Kind, Uid};
use krafla_apiserver::admit::{Admission, Volcano};
use krafla_apiserver::store::Store;
use krafla_apiserver::{Api, LocalClient, RunningServer, ServerConfig, SystemEnv, Tokens, serve};
use krafla_client::{Access, HttpsClient, Limits};
use krafla_cluster::{Client, Step, Written};
use serde_json::{Value, json};

/// A server, reached both ways.
pub(crate) struct Server {
    pub(crate) local: Arc<dyn Client>,
    pub(crate) running: RunningServer,
    pub(crate) store: Store,
}

impl Server {
    /// A server whose objects are in memory.
    pub(crate) async fn start() -> Server {
        Server::with(Store::in_memory(), None).await
    }

    /// A server whose objects and certificates are in a directory.
    pub(crate) async fn in_dir(dir: &Path) -> Server {
        Server::with(Store::open(dir).unwrap(), Some(dir)).await
    }

    async fn with(store: Store, dir: Option<&Path>) -> Server {
        let env = Arc::new(SystemEnv);
        let admission = Admission::default().with(Volcano::default());
        let api = Api::new(store.clone(), env.clone(), admission);
        api.bootstrap().await.unwrap();
        let listen: SocketAddr = ([127, 0, 0, 1], 0).into();
        let tokens = Arc::new(Tokens::for_now());
        let config = ServerConfig { data_dir: dir.map(Path::to_owned), ..ServerConfig::new(listen, tokens) };
        let running = serve(api.clone(), env, config).await.unwrap();
        Server { local: Arc::new(LocalClient::new(api)), running, store }
    }

    /// How to reach it, as kubectl would.
    pub(crate) fn access(&self) -> Access {
        self.access_at(self.running.address())
    }

    /// How to reach it by another address.
    pub(crate) fn access_at(&self, address: SocketAddr) -> Access {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("kubeconfig");
        let own = self.running.address().to_string();
        std::fs::write(&file, self.running.kubeconfig().replace(&own, &address.to_string())).unwrap();
        Access::of_file(&file).unwrap()
    }

    /// A client over HTTPS that lists in small pages.
    pub(crate) fn https(&self) -> Arc<HttpsClient> {
        let limits = Limits { page: 3, ..Limits::default() };
        Arc::new(HttpsClient::new(self.access(), limits).unwrap())
    }
}

pub(crate) fn config_map(name: &str) -> Step {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "namespace": "default", "name": name },
        "data": { "k": "v" },
    });
    Step::Create { kind: Kind::ConfigMap, object }
}

pub(crate) fn patch(of: &Written, revision: Option<u64>, patch: Value) -> Step {
    let (key, uid) = (of.key.clone(), of.uid.clone());
    Step::Patch { kind: Kind::ConfigMap, key, uid, revision, of_status: false, patch }
}

pub(crate) fn delete(key: &Key, uid: &Uid) -> Step {
    Step::Delete {
        kind: Kind::ConfigMap,
        key: key.clone(),
        uid: uid.clone(),
        revision: None,
        propagation: Default::default(),
        grace_seconds: None,
    }
}
