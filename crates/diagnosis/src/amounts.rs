//! What pods ask for and nodes have.

use std::collections::BTreeMap;

use krafla_api::Quantity;
use krafla_why::Reason;
use serde_json::Value;

use crate::facts::{Facts, list, pairs, quantity, text};
use crate::resource::Resource;

/// What one pod asks for of a resource.
pub(crate) fn asked(pod_spec: &Value, resource: &str) -> Quantity {
    if resource == "pods" {
        return Quantity::from_units(1);
    }
    let of = |container: &Value| {
        let request = |field: &str| {
            pairs(container, field).find(|(name, _)| *name == resource).and_then(|(_, it)| quantity(it))
        };
        request("resources.requests").or_else(|| request("resources.limits")).unwrap_or(Quantity::ZERO)
    };
    let is_sidecar = |container: &&Value| text(container, "restartPolicy") == "Always";
    let containers: Quantity = list(pod_spec, "containers").map(of).sum();
    let sidecars: Quantity = list(pod_spec, "initContainers").filter(is_sidecar).map(of).sum();
    let init = list(pod_spec, "initContainers").filter(|it| !is_sidecar(it)).map(of).max();
    let overhead =
        pairs(pod_spec, "overhead").find(|(name, _)| *name == resource).and_then(|(_, it)| quantity(it));
    (containers + sidecars).max(init.unwrap_or(Quantity::ZERO)) + overhead.unwrap_or(Quantity::ZERO)
}

/// What a node has of a resource.
pub(crate) fn allocatable(node: &Value, resource: &str) -> Quantity {
    let of =
        |field: &str| pairs(node, field).find(|(name, _)| *name == resource).and_then(|(_, it)| quantity(it));
    of("status.allocatable").or_else(|| of("status.capacity")).unwrap_or(Quantity::ZERO)
}

/// What pods that have not ended use of a resource, by node.
pub(crate) fn used(facts: &Facts, resource: &str) -> BTreeMap<String, Quantity> {
    let mut used: BTreeMap<String, Quantity> = BTreeMap::new();
    for pod in facts.all(Resource::Pod).filter(|pod| is_alive(pod)) {
        let node = text(pod, "spec.nodeName");
        if !node.is_empty() {
            let spec = pod.get("spec").unwrap_or(&Value::Null);
            *used.entry(node.to_owned()).or_insert(Quantity::ZERO) += asked(spec, resource);
        }
    }
    used
}

/// Whether a pod still uses resources.
pub(crate) fn is_alive(pod: &Value) -> bool {
    !matches!(text(pod, "status.phase"), "Succeeded" | "Failed")
}

/// Whether a node takes pods.
pub(crate) fn is_open(node: &Value) -> bool {
    !is_cordoned(node) && is_ready(node)
}

pub(crate) fn is_cordoned(node: &Value) -> bool {
    node.pointer("/spec/unschedulable") == Some(&Value::Bool(true))
}

pub(crate) fn is_ready(node: &Value) -> bool {
    list(node, "status.conditions").all(|it| text(it, "type") != "Ready" || text(it, "status") == "True")
}

/// How many users of a resource are named.
const USERS_MAX: usize = 4;

/// A job that uses a resource which another one waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The job, or the pod if it belongs to none.
    pub name: String,
    /// The amount.
    pub uses: String,
}

/// Who uses what is short, the largest first.
pub(crate) fn users(facts: &Facts, reason: &Reason) -> Vec<User> {
    let (Reason::NodesFull { resource, .. }
    | Reason::ClusterFull { resource, .. }
    | Reason::QueueFull { resource, .. }
    | Reason::QueueLimit { resource, .. }
    | Reason::QueueShare { resource, .. }) = reason.root()
    else {
        return Vec::new();
    };
    let resource = resource.as_str();
    let mut used: BTreeMap<String, Quantity> = BTreeMap::new();
    let placed = |pod: &&Value| is_alive(pod) && !text(pod, "spec.nodeName").is_empty();
    for pod in facts.all(Resource::Pod).filter(placed) {
        let owner = list(pod, "metadata.ownerReferences").next();
        let namespace = text(pod, "metadata.namespace");
        let name = match owner {
            Some(owner) => {
                let kind = Resource::from_manifest(text(owner, "apiVersion"), text(owner, "kind"));
                let word = kind.map_or_else(|| text(owner, "kind").to_lowercase(), |it| it.word().to_owned());
                format!("{word} {namespace}/{}", text(owner, "name"))
            }
            None => format!("pod {namespace}/{}", text(pod, "metadata.name")),
        };
        let spec = pod.get("spec").unwrap_or(&Value::Null);
        *used.entry(name).or_insert(Quantity::ZERO) += asked(spec, resource);
    }
    let mut used: Vec<(String, Quantity)> =
        used.into_iter().filter(|(_, amount)| !amount.is_zero()).collect();
    used.sort_by_key(|(name, amount)| (std::cmp::Reverse(*amount), name.clone()));
    let user = |(name, amount): (String, Quantity)| User { name, uses: format!("{amount} {resource}") };
    used.into_iter().take(USERS_MAX).map(user).collect()
}
