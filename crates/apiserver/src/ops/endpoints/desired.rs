//! Endpoints and EndpointSlices: the addresses behind a Service.
//!
//! Mirrors Kubernetes' endpoints and endpointslice controllers. A Service without a selector, or one that is only another
//! name (`ExternalName`), has none of its own: people write them by hand.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::meta::null_as_default;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The label by which a slice names its Service.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label that says who keeps a slice.
pub(super) const SLICE_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// Who keeps slices.
pub(super) const SLICE_MANAGER: &str = "endpointslice-controller.k8s.io";
/// The label that says who keeps Endpoints.
pub(super) const ENDPOINTS_MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
/// Who keeps Endpoints.
pub(super) const ENDPOINTS_MANAGER: &str = "endpoint-controller";
/// The label of what belongs to a Service without an address of its own.
const HEADLESS: &str = "service.kubernetes.io/headless";
/// How many addresses one slice holds.
const SLICE_ENDPOINTS_MAX: usize = 100;
/// How many addresses one Endpoints object holds. More are left out, and an annotation says so.
const ENDPOINTS_MAX: usize = 1000;
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// The parts of a Service that decide about its endpoints.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub(super) struct Service {
    pub metadata: Metadata,
    pub spec: ServiceSpec,
}

/// The metadata of a Service or a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub(super) struct Metadata {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub labels: BTreeMap<String, String>,
}

/// What a Service leads to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub(super) struct ServiceSpec {
    #[serde(rename = "type")]
    pub service_type: String,
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
    #[serde(deserialize_with = "null_as_default")]
    pub selector: BTreeMap<String, String>,
    pub publish_not_ready_addresses: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub ports: Vec<ServicePort>,
}

/// One port of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub(super) struct ServicePort {
    pub name: String,
    pub protocol: String,
    pub app_protocol: Option<String>,
    pub port: i64,
    /// A number, or the name of a container's port.
    pub target_port: Value,
}

impl Service {
    /// Whether its endpoints follow from the pods that there are.
    pub(super) fn is_managed(&self) -> bool {
        !self.spec.selector.is_empty() && self.spec.service_type != "ExternalName"
    }

    /// Whether its selector selects these labels.
    pub(super) fn selects<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.spec.selector.iter().all(|(name, value)| label(name) == Some(value))
    }

    fn is_headless(&self) -> bool {
        self.spec.cluster_ip == "None"
    }
}

/// The parts of a pod that decide about its address.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub(super) struct Pod {
    pub metadata: Metadata,
    pub spec: PodSpec,
    pub status: PodStatus,
}

/// What runs in a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub(super) struct PodSpec {
    pub hostname: String,
    pub subdomain: String,
    pub node_name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<Container>,
    #[serde(deserialize_with = "null_as_default")]
    pub init_containers: Vec<Container>,
}

/// A container and its ports.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub(super) struct Container {
    pub restart_policy: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub ports: Vec<ContainerPort>,
}

/// A named port of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub(super) struct ContainerPort {
    pub name: String,
    pub protocol: String,
    pub container_port: i64,
}

/// Where a pod is, and how it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub(super) struct PodStatus {
    pub phase: String,
    #[serde(rename = "podIP")]
    pub pod_ip: String,
    #[serde(deserialize_with = "null_as_default")]
    pub conditions: Vec<PodCondition>,
}

/// One condition of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub(super) struct PodCondition {
    #[serde(rename = "type")]
    pub condition_type: String,
    pub status: String,
}

impl Pod {
    fn is_ready(&self) -> bool {
        let mut ready = self.status.conditions.iter().filter(|condition| condition.condition_type == "Ready");
        ready.any(|condition| condition.status == "True")
    }

    fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether it has an address at which something may still answer.
    fn is_present(&self) -> bool {
        !self.status.pod_ip.is_empty() && !matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// The number of a port that a Service asks for; none if the pod has no port of that name.
    fn port(&self, wanted: &ServicePort) -> Option<i64> {
        let Value::String(name) = &wanted.target_port else {
            return Some(wanted.target_port.as_i64().filter(|port| *port != 0).unwrap_or(wanted.port));
        };
        let sidecars = self.spec.init_containers.iter();
        let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
        let mut ports = self.spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
        let is_meant =
            |port: &&ContainerPort| port.name == *name && is_same(&port.protocol, &wanted.protocol);
        ports.find(is_meant).map(|port| port.container_port)
    }
}

/// Whether two protocols are one. A port without one is of TCP.
fn is_same(one: &str, other: &str) -> bool {
    fn named(protocol: &str) -> &str {
        if protocol.is_empty() { "TCP" } else { protocol }
    }
    named(one) == named(other)
}

/// A port as endpoints show it: name, number, protocol, application protocol.
type Port = (String, i64, String, Option<String>);

/// What there should be for a Service.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Desired {
    /// The Endpoints of the Service's name.
    pub endpoints: Value,
    /// Its EndpointSlices.
    pub slices: Vec<Value>,
}

/// The endpoints of a Service, given the pods of its namespace that it selects; none if they are not ours to keep.
pub(super) fn desired(service: &Service, pods: &[Pod]) -> Option<Desired> {
    if !service.is_managed() {
        return None;
    }
    let mut present: Vec<&Pod> = pods.iter().filter(|pod| pod.is_present()).collect();
    present.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    let mut by_ports: BTreeMap<Vec<Port>, Vec<&Pod>> = BTreeMap::new();
    for pod in present {
        let ports = ports_of(service, pod);
        // A pod that has none of the ports is not one to be found. A Service without ports is about addresses alone.
        if !ports.is_empty() || service.spec.ports.is_empty() {
            by_ports.entry(ports).or_default().push(pod);
        }
    }
    Some(Desired { endpoints: endpoints(service, &by_ports), slices: slices(service, &by_ports) })
}

fn ports_of(service: &Service, pod: &Pod) -> Vec<Port> {
    let ports = service.spec.ports.iter().filter_map(|port| {
        let protocol = if port.protocol.is_empty() { "TCP" } else { &port.protocol };
        Some((port.name.clone(), pod.port(port)?, protocol.to_owned(), port.app_protocol.clone()))
    });
    let ports: BTreeSet<Port> = ports.collect();
    ports.into_iter().collect()
}

/// The labels of what belongs to a Service: its own, and those that say what it is.
fn labels(service: &Service, own: &[(&str, &str)]) -> Value {
    let given = service.metadata.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let given = given.filter(|(name, _)| *name != HEADLESS);
    let headless = service.is_headless().then_some((HEADLESS, ""));
    let all = given.chain(headless).chain(own.iter().copied());
    Value::Object(all.map(|(name, value)| (name.to_owned(), value.into())).collect())
}

fn target(pod: &Pod) -> Value {
    let Metadata { name, namespace, uid, .. } = &pod.metadata;
    json!({"kind": "Pod", "namespace": namespace, "name": name, "uid": uid})
}

/// The name by which a pod is found below the Service's.
fn hostname<'a>(service: &Service, pod: &'a Pod) -> Option<&'a str> {
    let is_below = pod.spec.subdomain == service.metadata.name && !pod.spec.hostname.is_empty();
    is_below.then_some(pod.spec.hostname.as_str())
}

fn shown_port((name, number, protocol, app): &Port, names_all: bool) -> Value {
    let mut shown = Map::new();
    if names_all || !name.is_empty() {
        shown.insert("name".to_owned(), name.as_str().into());
    }
    shown.insert("port".to_owned(), (*number).into());
    shown.insert("protocol".to_owned(), protocol.as_str().into());
    if let Some(app) = app {
        shown.insert("appProtocol".to_owned(), app.as_str().into());
    }
    shown.into()
}

fn endpoints(service: &Service, by_ports: &BTreeMap<Vec<Port>, Vec<&Pod>>) -> Value {
    let publishes_all = service.spec.publish_not_ready_addresses;
    let mut n_left = ENDPOINTS_MAX;
    let mut is_cut = false;
    let mut subsets = Vec::new();
    for (ports, pods) in by_ports {
        let is_listed = |pod: &&&Pod| publishes_all || !pod.is_leaving();
        let listed: Vec<&&Pod> = pods.iter().filter(is_listed).collect();
        is_cut |= listed.len() > n_left;
        let listed = listed.get(..n_left.min(listed.len())).unwrap_or_default();
        n_left = n_left.saturating_sub(listed.len());
        let (ready, unready): (Vec<&Pod>, Vec<&Pod>) =
            listed.iter().map(|pod| **pod).partition(|pod| publishes_all || pod.is_ready());
        let mut subset = Map::new();
        for (field, pods) in [("addresses", ready), ("notReadyAddresses", unready)] {
            let shown: Vec<Value> = pods.into_iter().map(|pod| address(service, pod)).collect();
            if !shown.is_empty() {
                subset.insert(field.to_owned(), shown.into());
            }
        }
        if subset.is_empty() {
            continue;
        }
        if !ports.is_empty() {
            let ports: Vec<Value> = ports.iter().map(|port| shown_port(port, false)).collect();
            subset.insert("ports".to_owned(), ports.into());
        }
        subsets.push(Value::Object(subset));
    }
    let Metadata { name, namespace, .. } = &service.metadata;
    let labels = labels(service, &[(ENDPOINTS_MANAGED_BY, ENDPOINTS_MANAGER)]);
    let mut metadata = json!({"name": name, "namespace": namespace, "labels": labels});
    if let (true, Some(metadata)) = (is_cut, metadata.as_object_mut()) {
        metadata.insert("annotations".to_owned(), json!({OVER_CAPACITY: "truncated"}));
    }
    let mut endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata});
    if let (false, Some(fields)) = (subsets.is_empty(), endpoints.as_object_mut()) {
        fields.insert("subsets".to_owned(), subsets.into());
    }
    endpoints
}

fn address(service: &Service, pod: &Pod) -> Value {
    let mut address = json!({"ip": pod.status.pod_ip, "targetRef": target(pod)});
    if let Some(fields) = address.as_object_mut() {
        if !pod.spec.node_name.is_empty() {
            fields.insert("nodeName".to_owned(), pod.spec.node_name.as_str().into());
        }
        if let Some(hostname) = hostname(service, pod) {
            fields.insert("hostname".to_owned(), hostname.into());
        }
    }
    address
}

fn slices(service: &Service, by_ports: &BTreeMap<Vec<Port>, Vec<&Pod>>) -> Vec<Value> {
    // A Service without pods has a slice that says so.
    let nothing = (Vec::new(), Vec::new());
    let nothing = Some((&nothing.0, &nothing.1)).filter(|_| by_ports.is_empty());
    let mut slices: Vec<Value> = Vec::new();
    for (ports, pods) in by_ports.iter().chain(nothing) {
        let ports: Vec<Value> = ports.iter().map(|port| shown_port(port, true)).collect();
        let parts = pods.chunks(SLICE_ENDPOINTS_MAX).chain(pods.is_empty().then_some(&[][..]));
        for part in parts {
            let shown: Vec<Value> = part.iter().map(|pod| endpoint(service, pod)).collect();
            let name = format!("{}-{}", service.metadata.name, slices.len());
            slices.push(slice(service, &name, ports.clone(), shown));
        }
    }
    slices
}

fn slice(service: &Service, name: &str, ports: Vec<Value>, endpoints: Vec<Value>) -> Value {
    let Metadata { name: of, namespace, uid, .. } = &service.metadata;
    let owner = json!({
        "apiVersion": "v1", "kind": "Service", "name": of, "uid": uid, "controller": true, "blockOwnerDeletion": true,
    });
    let labels = labels(service, &[(SERVICE_NAME, of), (SLICE_MANAGED_BY, SLICE_MANAGER)]);
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": [owner]},
        "endpoints": endpoints, "ports": ports,
    })
}

fn endpoint(service: &Service, pod: &Pod) -> Value {
    let (is_ready, is_leaving) = (pod.is_ready(), pod.is_leaving());
    let publishes_all = service.spec.publish_not_ready_addresses;
    let conditions = json!({
        "ready": publishes_all || (is_ready && !is_leaving), "serving": is_ready, "terminating": is_leaving,
    });
    let mut shown = json!({
        "addresses": [pod.status.pod_ip], "conditions": conditions, "targetRef": target(pod),
    });
    if let Some(fields) = shown.as_object_mut() {
        if !pod.spec.node_name.is_empty() {
            fields.insert("nodeName".to_owned(), pod.spec.node_name.as_str().into());
        }
        if let Some(hostname) = hostname(service, pod) {
            fields.insert("hostname".to_owned(), hostname.into());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(spec: Value) -> Service {
        let metadata = json!({"name": "web", "namespace": "ns", "uid": "u", "labels": {"team": "a"}});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn pod(name: &str, ip: &str, is_ready: bool, change: Value) -> Pod {
        let ready = json!([{"type": "Ready", "status": if is_ready { "True" } else { "False" }}]);
        let mut pod = json!({
            "metadata": {"name": name, "namespace": "ns", "uid": name},
            "spec": {"nodeName": "n", "containers": [{"ports": [{"name": "http", "containerPort": 8080}]}]},
            "status": {"phase": "Running", "podIP": ip, "conditions": ready},
        });
        for (pointer, value) in change.as_object().unwrap() {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            pod.pointer_mut(parent).unwrap()[field] = value.clone();
        }
        serde_json::from_value(pod).unwrap()
    }

    /// Addresses, unready addresses and ports of Endpoints; addresses, conditions and ports of slices.
    fn check(spec: Value, pods: &[Pod], subsets: &[&str], slices: &[&str]) {
        let desired = desired(&service(spec), pods).unwrap();
        let ips = |list: &Value| {
            let list = list.as_array().into_iter().flatten();
            list.map(|address| address["ip"].as_str().unwrap_or("?").to_owned()).collect::<Vec<_>>().join(",")
        };
        let ports = |list: &Value| {
            let list = list.as_array().into_iter().flatten();
            list.map(|port| port["port"].to_string()).collect::<Vec<_>>().join(",")
        };
        let found: Vec<String> = desired.endpoints["subsets"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|subset| {
                format!(
                    "{} / {} : {}",
                    ips(&subset["addresses"]),
                    ips(&subset["notReadyAddresses"]),
                    ports(&subset["ports"])
                )
            })
            .collect();
        assert_eq!(found, subsets);
        let found: Vec<String> = desired
            .slices
            .iter()
            .map(|slice| {
                let endpoints = slice["endpoints"].as_array().unwrap().iter().map(|endpoint| {
                    let of = |name: &str| {
                        if endpoint["conditions"][name] == true {
                            name[..1].to_owned()
                        } else {
                            "-".to_owned()
                        }
                    };
                    format!(
                        "{} {}{}{}",
                        endpoint["addresses"][0].as_str().unwrap(),
                        of("ready"),
                        of("serving"),
                        of("terminating")
                    )
                });
                format!("{} : {}", endpoints.collect::<Vec<_>>().join(", "), ports(&slice["ports"]))
            })
            .collect();
        assert_eq!(found, slices);
    }

    fn selecting(more: Value) -> Value {
        let mut spec = json!({"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]});
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        spec
    }

    #[test]
    fn ready_pods_are_addresses_and_others_are_known_to_be_unready() {
        let pods = [pod("b", "10.0.0.2", false, json!({})), pod("a", "10.0.0.1", true, json!({}))];
        check(
            selecting(json!({})),
            &pods,
            &["10.0.0.1 / 10.0.0.2 : 8080"],
            &["10.0.0.1 rs-, 10.0.0.2 --- : 8080"],
        );
        check(
            selecting(json!({"publishNotReadyAddresses": true})),
            &pods,
            &["10.0.0.1,10.0.0.2 /  : 8080"],
            &["10.0.0.1 rs-, 10.0.0.2 r-- : 8080"],
        );
    }

    #[test]
    fn a_pod_that_leaves_still_serves_and_one_that_has_ended_does_not() {
        let leaving = json!({"/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"});
        let pods = [
            pod("a", "10.0.0.1", true, leaving),
            pod("b", "10.0.0.2", false, json!({"/status/phase": "Succeeded"})),
            pod("c", "", false, json!({})),
        ];
        check(selecting(json!({})), &pods, &[], &["10.0.0.1 -st : 8080"]);
    }

    #[test]
    fn pods_are_grouped_by_the_numbers_of_their_ports() {
        let other = json!({"/spec/containers": [{"ports": [{"name": "http", "containerPort": 9090}]}]});
        let without = json!({"/spec/containers": [{}]});
        let pods = [
            pod("a", "10.0.0.1", true, json!({})),
            pod("b", "10.0.0.2", true, other),
            pod("c", "10.0.0.3", true, without),
        ];
        check(
            selecting(json!({})),
            &pods,
            &["10.0.0.1 /  : 8080", "10.0.0.2 /  : 9090"],
            &["10.0.0.1 rs- : 8080", "10.0.0.2 rs- : 9090"],
        );
    }

    #[test]
    fn a_headless_service_without_ports_is_about_addresses() {
        let named = json!({"/spec/hostname": "h", "/spec/subdomain": "web"});
        let pods = [pod("a", "10.0.0.1", true, named)];
        let spec = selecting(json!({"clusterIP": "None", "ports": []}));
        check(spec.clone(), &pods, &["10.0.0.1 /  : "], &["10.0.0.1 rs- : "]);
        let desired = desired(&service(spec), &pods).unwrap();
        assert_eq!(desired.slices[0]["endpoints"][0]["hostname"], "h");
        assert_eq!(desired.endpoints["metadata"]["labels"][HEADLESS], "");
        assert_eq!(desired.slices[0]["metadata"]["labels"]["team"], "a");
        assert_eq!(desired.slices[0]["metadata"]["labels"][SERVICE_NAME], "web");
    }

    #[test]
    fn a_service_without_pods_has_a_slice_that_says_so() {
        check(selecting(json!({})), &[], &[], &[" : "]);
    }

    #[test]
    fn what_people_write_by_hand_is_left_alone() {
        assert_eq!(desired(&service(json!({"ports": [{"port": 80}]})), &[]), None);
        let external = json!({"type": "ExternalName", "selector": {"app": "web"}});
        assert_eq!(desired(&service(external), &[]), None);
    }

    #[test]
    fn many_pods_take_several_slices() {
        let pods: Vec<Pod> = (0..250)
            .map(|index| pod(&format!("p{index:03}"), &format!("10.0.0.{index}"), true, json!({})))
            .collect();
        let desired = desired(&service(selecting(json!({}))), &pods).unwrap();
        let sizes: Vec<usize> =
            desired.slices.iter().map(|slice| slice["endpoints"].as_array().unwrap().len()).collect();
        assert_eq!(sizes, [100, 100, 50]);
    }
}
