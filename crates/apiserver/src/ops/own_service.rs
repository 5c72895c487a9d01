//! The Service `default/kubernetes`, by which clients in the cluster find the API server.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use krafla_api::Key;
use serde_json::{Value, json};

use super::{Api, WriteOptions};
use crate::status::Status;

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";

impl Api {
    /// Keeps the Service of this server and its endpoints, for as long as it is polled, and brings them back when somebody
    /// takes them away.
    pub async fn run_own_service(self, address: SocketAddr) {
        loop {
            let since = self.store().revision();
            if let Err(error) = self.keep_own_service(address).await {
                tracing::warn!(%error, "the Service default/kubernetes cannot be written; the next change is a reason to try again");
            }
            let watched = ["services", "endpoints", "endpointslices.discovery.k8s.io"];
            let is_own = |key: &Key| &*key.namespace == NAMESPACE && &*key.name == NAME;
            self.changed_after(since, BTreeSet::from(watched.map(Into::into)), is_own).await;
        }
    }

    async fn keep_own_service(&self, address: SocketAddr) -> Result<(), Status> {
        let registry = self.registry();
        let (services, endpoints, slices) = (
            registry.find("", "v1", "services"),
            registry.find("", "v1", "endpoints"),
            registry.find("discovery.k8s.io", "v1", "endpointslices"),
        );
        let (Some(services), Some(endpoints), Some(slices)) = (services, endpoints, slices) else {
            return Ok(());
        };
        if self.store().get(&services.storage, &Key::new(NAMESPACE, NAME)).is_none() {
            let created = self.create(&services, NAMESPACE, service(address), &WriteOptions::default()).await;
            created
                .map(drop)
                .or_else(|status| if &*status.reason == "AlreadyExists" { Ok(()) } else { Err(status) })?;
        }
        let port = json!({"name": "https", "port": address.port(), "protocol": "TCP"});
        let labels = json!({"endpointslice.kubernetes.io/skip-mirror": "true"});
        let old = json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
            "subsets": [{"addresses": [{"ip": address.ip()}], "ports": [port]}],
        });
        self.bring_to(&endpoints, old, &["subsets"]).await?;
        let kind = if address.is_ipv4() { "IPv4" } else { "IPv6" };
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": kind,
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": NAME}},
            "endpoints": [{"addresses": [address.ip()], "conditions": {"ready": true}}], "ports": [port],
        });
        self.bring_to(&slices, slice, &["endpoints", "ports"]).await
    }
}

fn service(address: SocketAddr) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": NAME, "namespace": NAMESPACE,
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.250.0.1", "clusterIPs": ["10.250.0.1"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster", "sessionAffinity": "None",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": address.port()}],
        },
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;

    use super::*;
    use crate::admit::Admission;
    use crate::env::SystemEnv;
    use crate::ops::DeleteOptions;
    use crate::store::Store;

    #[test]
    fn the_servers_own_service_comes_back_and_leads_to_it() {
        let api = Api::new(Store::in_memory(), Arc::new(SystemEnv), Admission::default());
        api.bootstrap().now_or_never().expect("ready at once").expect("a new cluster");
        let mut running = Box::pin(api.clone().run_own_service("127.0.0.1:6443".parse().unwrap()));
        assert!(running.as_mut().now_or_never().is_none(), "it never ends");
        let key = Key::new(NAMESPACE, NAME);
        let read = |group: &str, plural: &str| -> Value {
            let resource = api.registry().find(group, "v1", plural).unwrap();
            serde_json::from_slice(&api.get(&resource, &key).unwrap().bytes).unwrap()
        };
        assert_eq!(read("", "services")["spec"]["ports"][0]["port"], 443);
        assert_eq!(read("", "endpoints")["subsets"][0]["ports"][0]["port"], 6443);
        assert_eq!(read("discovery.k8s.io", "endpointslices")["endpoints"][0]["addresses"][0], "127.0.0.1");

        let services = api.registry().find("", "v1", "services").unwrap();
        let first = api.get(&services, &key).unwrap().uid.clone();
        api.delete(&services, &key, &DeleteOptions::default()).now_or_never().unwrap().unwrap();
        assert!(running.as_mut().now_or_never().is_none(), "it never ends");
        assert_ne!(api.get(&services, &key).unwrap().uid, first);
    }
}
