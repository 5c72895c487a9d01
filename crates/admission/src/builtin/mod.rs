//! Kubernetes' own kinds that are set up around jobs rather than run: what may be left out, and what is refused.
//!
//! ```text
//!   network.rs   NetworkPolicy, EndpointSlice, Endpoints      rbac.rs       roles and their bindings
//!   driver.rs    StorageClass, CSIDriver, CSINode, VolumeAttachment, CSIStorageCapacity, RuntimeClass, ControllerRevision
//!   aggregation.rs  APIService                              flow.rs       FlowSchema, PriorityLevelConfiguration
//!   device.rs    DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
//!   service.rs   Service                                      ingress.rs    Ingress, IngressClass
//!   storage.rs   PersistentVolume                             disruption.rs PodDisruptionBudget
//!   budget.rs    what a PodDisruptionBudget allows           certificate.rs CertificateSigningRequest
//!   workload.rs  Deployment, ReplicaSet, StatefulSet, DaemonSet, ReplicationController; amount.rs how many of their pods
//!   limits.rs    LimitRange: what pods get and may ask for    quota.rs      ResourceQuota: what objects cost
//! ```
//!
//! The words are kube-apiserver's. Each function says everything that is wrong at once.

pub mod aggregation;
mod amount;
pub mod autoscaler;
pub mod budget;
pub mod certificate;
pub mod device;
pub mod disruption;
pub mod driver;
pub mod flow;
pub mod ingress;
pub mod limits;
pub mod network;
pub mod quota;
pub mod rbac;
pub mod service;
pub mod storage;
pub mod workload;

use std::collections::BTreeMap;

use krafla_api::Quantity;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Verdict;
use crate::json::At;
use crate::look::findings;

/// A list of amounts; what is no amount is left out.
fn amounts(list: Option<&Value>) -> BTreeMap<String, Quantity> {
    let list = list.and_then(Value::as_object).into_iter().flatten();
    list.filter_map(|(name, amount)| Some((name.clone(), Quantity::deserialize(amount).ok()?))).collect()
}

/// What a pod asks for in all: its containers together, or the neediest init container with those that run beside it, and
/// its overhead.
fn pod_amounts(pod: &Value, list: &str) -> BTreeMap<String, Quantity> {
    let of = |container: &Value| amounts(container.pointer(&format!("/resources/{list}")));
    let containers = |name: &str| {
        pod.pointer(&format!("/spec/{name}")).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
    };
    let mut total = BTreeMap::new();
    containers("containers").iter().for_each(|container| add(&mut total, of(container)));
    let (mut beside, mut peak) = (BTreeMap::new(), BTreeMap::new());
    for container in containers("initContainers") {
        let is_sidecar = container.get("restartPolicy").is_some_and(|policy| policy == "Always");
        let mut during = beside.clone();
        add(&mut during, of(container));
        if is_sidecar {
            beside.clone_from(&during);
        }
        raise(&mut peak, during);
    }
    add(&mut total, beside);
    raise(&mut total, peak);
    add(&mut total, amounts(pod.pointer("/spec/overhead")));
    total
}

fn add(total: &mut BTreeMap<String, Quantity>, more: BTreeMap<String, Quantity>) {
    for (name, amount) in more {
        *total.entry(name).or_default() += amount;
    }
}

fn raise(total: &mut BTreeMap<String, Quantity>, other: BTreeMap<String, Quantity>) {
    for (name, amount) in other {
        let slot = total.entry(name).or_default();
        *slot = amount.max(*slot);
    }
}

/// The objects in a list field.
fn items<'a>(of: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let list = of.get_mut(list).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Sets a field unless it is there.
fn default_to(fields: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    let slot = fields.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = value.into();
    }
}

/// A word must be one of these, if it is there.
fn validate_word(at: &At<'_>, words: &[&str], verdict: &mut Verdict) {
    if at.is_set() && !words.contains(&at.text()) {
        verdict.unsupported(at.path(), at.text(), words);
    }
}

/// A number must not be below zero, if it is there.
fn validate_not_negative(at: &At<'_>, verdict: &mut Verdict) {
    if let Some(number) = at.int().filter(|number| *number < 0) {
        verdict.invalid(at.path(), number, "must be greater than or equal to 0");
    }
}

#[cfg(test)]
fn said(findings: &[crate::Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
