//! `metrics.k8s.io`: what the node and its pods use, as `kubectl top` asks for it. Nothing of it is stored.

use http::Method;
use krafla_api::{Key, Time};
use krafla_schema::object;
use serde_json::{Value, json};

use super::Context;
use super::path::ResourcePath;
use super::query::Query;
use crate::selector::LabelSelector;
use crate::status::{Qualified, Status};

/// The group.
pub(super) const GROUP: &str = "metrics.k8s.io";
const VERSION: &str = "v1beta1";
const GROUP_VERSION: &str = "metrics.k8s.io/v1beta1";

/// What a container or a machine uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Of the processor, in billionths of a core.
    pub cpu_nanos: u64,
    /// Memory that is in use.
    pub memory_bytes: u64,
}

/// What a node and its pods use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// How long it was looked at.
    pub window: std::time::Duration,
    /// The nodes.
    pub nodes: Vec<(String, Amount)>,
    /// Containers that run, by pod.
    pub pods: Vec<(Key, Vec<(String, Amount)>)>,
}

/// The group, as the old form of discovery shows it.
pub(super) fn group() -> Value {
    let version = json!({"groupVersion": GROUP_VERSION, "version": VERSION});
    json!({"name": GROUP, "versions": [version], "preferredVersion": version})
}

/// The same as an object of its own.
pub(super) fn one_group() -> Value {
    let mut shown = group();
    object::set(&mut shown, "kind", "APIGroup");
    object::set(&mut shown, "apiVersion", "v1");
    shown
}

/// The group, as the new form of discovery shows it.
pub(super) fn group_in_full() -> Value {
    let resources = KINDS.map(|(plural, kind, is_namespaced)| {
        json!({
            "resource": plural, "responseKind": {"group": "", "version": "", "kind": kind},
            "scope": if is_namespaced { "Namespaced" } else { "Cluster" }, "singularResource": "",
            "verbs": ["get", "list"],
        })
    });
    let version = json!({"version": VERSION, "freshness": "Current", "resources": resources});
    json!({"metadata": {"name": GROUP}, "versions": [version]})
}

const KINDS: [(&str, &str, bool); 2] = [("nodes", "NodeMetrics", false), ("pods", "PodMetrics", true)];

/// `/apis/metrics.k8s.io/v1beta1`; none for other versions.
pub(super) fn resources(version: &str) -> Option<Value> {
    let resources = KINDS.map(|(plural, kind, is_namespaced)| {
        json!({"name": plural, "singularName": "", "namespaced": is_namespaced, "kind": kind, "verbs": ["get", "list"]})
    });
    let list = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION, "resources": resources,
    });
    (version == VERSION).then_some(list)
}

/// Answers a request for usage.
pub(super) async fn answer(
    context: &Context,
    method: &Method,
    path: &ResourcePath,
    query: &Query,
) -> Result<Value, Status> {
    let is_known = path.version == VERSION && path.subresource.is_empty();
    let is_pods = match path.resource.as_str() {
        "pods" if is_known => true,
        "nodes" if is_known && !path.is_namespaced => false,
        _ => return Err(Status::unknown_resource()),
    };
    if *method != Method::GET {
        return Err(Status::method_not_allowed());
    }
    let Some(access) = &context.pod_access else {
        return Err(Status::unavailable("this server has no node: nothing can be measured"));
    };
    let selector = LabelSelector::parse(query.text("labelSelector"))?;
    // The labels of an object that is there and is meant.
    let labels = |plural: &str, key: &Key| -> Option<Value> {
        let resource = context.api.registry().find("", "v1", plural)?;
        let entry =
            context.api.get(&resource, key).ok().filter(|entry| selector.matches(&entry.meta.labels))?;
        let object: Value = serde_json::from_slice(&entry.bytes).ok()?;
        Some(object.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({})))
    };
    let usage = access.usage().await?;
    let now = context.env.now();
    let shown = Shown { now, usage: &usage };
    let items: Vec<Value> = if is_pods {
        let is_meant = |key: &Key| {
            (!path.is_namespaced || *key.namespace == *path.namespace)
                && (path.name.is_empty() || *key.name == *path.name)
        };
        let pods = usage.pods.iter().filter(|(key, _)| is_meant(key));
        pods.filter_map(|(key, containers)| Some(shown.pod(key, containers, labels("pods", key)?))).collect()
    } else {
        let nodes = usage.nodes.iter().filter(|(name, _)| path.name.is_empty() || *name == path.name);
        nodes
            .filter_map(|(name, used)| Some(shown.node(name, *used, labels("nodes", &Key::new("", name))?)))
            .collect()
    };
    if path.name.is_empty() {
        let kind = if is_pods { "PodMetricsList" } else { "NodeMetricsList" };
        return Ok(json!({"kind": kind, "apiVersion": GROUP_VERSION, "metadata": {}, "items": items}));
    }
    let qualified = Qualified { group: GROUP, what: if is_pods { "pods" } else { "nodes" } };
    items.into_iter().next().ok_or_else(|| Status::not_found(&qualified, &path.name))
}

/// How usage is shown.
struct Shown<'a> {
    now: Time,
    usage: &'a Usage,
}

impl Shown<'_> {
    fn pod(&self, key: &Key, containers: &[(String, Amount)], labels: Value) -> Value {
        let containers: Vec<Value> =
            containers.iter().map(|(name, used)| json!({"name": name, "usage": amount(*used)})).collect();
        let metadata = json!({
            "name": key.name.as_ref(), "namespace": key.namespace.as_ref(), "creationTimestamp": self.now, "labels": labels,
        });
        json!({
            "kind": "PodMetrics", "apiVersion": GROUP_VERSION, "metadata": metadata,
            "timestamp": self.now, "window": self.window(), "containers": containers,
        })
    }

    fn node(&self, name: &str, used: Amount, labels: Value) -> Value {
        json!({
            "kind": "NodeMetrics", "apiVersion": GROUP_VERSION,
            "metadata": {"name": name, "creationTimestamp": self.now, "labels": labels},
            "timestamp": self.now, "window": self.window(), "usage": amount(used),
        })
    }

    fn window(&self) -> String {
        format!("{}ms", self.usage.window.as_millis())
    }
}

fn amount(used: Amount) -> Value {
    json!({"cpu": format!("{}n", used.cpu_nanos), "memory": format!("{}Ki", used.memory_bytes / 1024)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_shown_as_a_metrics_server_shows_it() {
        let used = Amount { cpu_nanos: 1_500_000, memory_bytes: 10 << 20 };
        let usage = Usage { window: std::time::Duration::from_millis(500), ..Usage::default() };
        let shown = Shown { now: Time::from_seconds(0), usage: &usage };
        let pod = shown.pod(&Key::new("ns", "p"), &[("main".to_owned(), used)], json!({"a": "b"}));
        assert_eq!(pod["containers"][0]["usage"], json!({"cpu": "1500000n", "memory": "10240Ki"}));
        assert_eq!(pod["window"], "500ms");
        assert_eq!(shown.node("n", used, json!({}))["usage"], pod["containers"][0]["usage"]);
    }
}
