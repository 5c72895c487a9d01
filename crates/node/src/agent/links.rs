//! The variables by which containers find Services: `WEB_SERVICE_HOST` and others, as a kubelet sets them.
//!
//! They hold the Services of the pod's namespace that have an address of their own, as these were when the container started.

use std::collections::BTreeMap;

use bytes::Bytes;
use krafla_api::Key;
use krafla_api::meta::null_as_default;
use krafla_cluster::{Event, EventType};
use parking_lot::Mutex;
use serde::Deserialize;

use super::feed::Observer;

/// The Services that containers are told of.
#[derive(Default)]
pub(crate) struct Links {
    services: Mutex<BTreeMap<Key, Linked>>,
}

/// A Service with an address.
#[derive(Clone, Debug, PartialEq)]
struct Linked {
    address: String,
    ports: Vec<Port>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Port {
    name: String,
    port: u16,
    protocol: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Stored {
    metadata: StoredMetadata,
    spec: StoredSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredMetadata {
    name: String,
    namespace: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredSpec {
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    #[serde(deserialize_with = "null_as_default")]
    ports: Vec<Port>,
}

/// Reads a Service; nothing of one without an address or ports. The API server's own is told of in another way.
fn read(json: &[u8]) -> Option<(Key, Option<Linked>)> {
    let Stored { metadata, spec } = serde_json::from_slice(json).ok()?;
    let key = Key::new(&metadata.namespace, &metadata.name);
    let is_own = metadata.namespace == "default" && metadata.name == "kubernetes";
    let is_linked = !matches!(spec.cluster_ip.as_str(), "" | "None") && !spec.ports.is_empty() && !is_own;
    Some((key, is_linked.then_some(Linked { address: spec.cluster_ip, ports: spec.ports })))
}

impl Links {
    /// The variables of containers in a namespace.
    pub(super) fn variables(&self, namespace: &str) -> BTreeMap<String, String> {
        let services = self.services.lock();
        let near = services.iter().filter(|(key, _)| *key.namespace == *namespace);
        near.flat_map(|(key, service)| service.variables(&key.name)).collect()
    }
}

impl Linked {
    fn variables(&self, name: &str) -> BTreeMap<String, String> {
        let (prefix, address) = (variable(name), &self.address);
        let mut variables = BTreeMap::new();
        let mut set = |name: String, value: String| drop(variables.insert(format!("{prefix}_{name}"), value));
        set("SERVICE_HOST".to_owned(), address.clone());
        for (index, Port { name, port, protocol }) in self.ports.iter().enumerate() {
            let upper = if protocol.is_empty() { "TCP" } else { protocol };
            let lower = upper.to_lowercase();
            let url = format!("{lower}://{address}:{port}");
            if index == 0 {
                set("SERVICE_PORT".to_owned(), port.to_string());
                set("PORT".to_owned(), url.clone());
            }
            if !name.is_empty() {
                set(format!("SERVICE_PORT_{}", variable(name)), port.to_string());
            }
            let of_port = format!("PORT_{port}_{upper}");
            set(format!("{of_port}_PROTO"), lower);
            set(format!("{of_port}_PORT"), port.to_string());
            set(format!("{of_port}_ADDR"), address.clone());
            set(of_port, url);
        }
        variables
    }
}

/// A name as a variable is written.
fn variable(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

impl Observer for Links {
    async fn listed(&self, items: &[Bytes]) {
        let services = items.iter().filter_map(|json| read(json));
        *self.services.lock() = services.filter_map(|(key, service)| Some((key, service?))).collect();
    }

    async fn observed(&self, event: &Event) {
        let is_there = matches!(event.event_type, EventType::Added | EventType::Modified);
        if event.event_type != EventType::Bookmark
            && let Some((key, service)) = read(&event.object)
        {
            let mut services = self.services.lock();
            match service.filter(|_| is_there) {
                Some(service) => drop(services.insert(key, service)),
                None => drop(services.remove(&key)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use futures_util::FutureExt;
    use serde_json::{Value, json};

    use super::*;

    fn service(namespace: &str, name: &str, spec: Value) -> Bytes {
        json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec}).to_string().into()
    }

    #[test]
    fn a_service_with_an_address_is_told_of_in_variables() {
        let links = Links::default();
        let ports =
            json!([{"name": "http-web", "port": 8765, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]);
        let services = [
            service("ns", "foo-service", json!({"clusterIP": "10.250.0.7", "ports": ports})),
            service("ns", "headless", json!({"clusterIP": "None", "ports": ports})),
            service("other", "far", json!({"clusterIP": "10.250.0.8", "ports": ports})),
            service("default", "kubernetes", json!({"clusterIP": "10.250.0.1", "ports": ports})),
        ];
        links.listed(&services).now_or_never().unwrap();
        let shown: Vec<String> =
            links.variables("ns").iter().map(|(name, value)| format!("{name}={value}")).collect();
        expect![[r#"
            FOO_SERVICE_PORT=tcp://10.250.0.7:8765
            FOO_SERVICE_PORT_53_UDP=udp://10.250.0.7:53
            FOO_SERVICE_PORT_53_UDP_ADDR=10.250.0.7
            FOO_SERVICE_PORT_53_UDP_PORT=53
            FOO_SERVICE_PORT_53_UDP_PROTO=udp
            FOO_SERVICE_PORT_8765_TCP=tcp://10.250.0.7:8765
            FOO_SERVICE_PORT_8765_TCP_ADDR=10.250.0.7
            FOO_SERVICE_PORT_8765_TCP_PORT=8765
            FOO_SERVICE_PORT_8765_TCP_PROTO=tcp
            FOO_SERVICE_SERVICE_HOST=10.250.0.7
            FOO_SERVICE_SERVICE_PORT=8765
            FOO_SERVICE_SERVICE_PORT_HTTP_WEB=8765"#]]
        .assert_eq(&shown.join("\n"));
        assert!(links.variables("default").is_empty());
    }
}
