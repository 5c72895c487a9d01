//! What a PodGroup looks like, from a pod and the workloads that own it.

use std::collections::BTreeMap;

use krafla_api::volcano::{NetworkTopologyMode, NetworkTopologySpec, ResourceList};
use krafla_api::{Key, Kind, OwnerReference, Pairs, labels};
use krafla_cluster::Step;
use serde_json::{Map, Value, json};

use crate::object::{Object, Pod};
use crate::vcjob::pod_usage;

/// Annotations of owners that start with this reach the PodGroup.
const INHERITED_PREFIX: &str = "volcano.sh/";
/// Annotations of the pod that reach the PodGroup.
const OF_POD: [&str; 3] = [labels::PREEMPTABLE, labels::COOLDOWN_TIME, labels::REVOCABLE_ZONE];
/// Labels of the pod that reach the PodGroup.
const LABELS_OF_POD: [&str; 2] = [labels::PREEMPTABLE, labels::COOLDOWN_TIME];

type Entries = BTreeMap<String, String>;

/// Makes the PodGroup.
pub(super) fn group(key: &Key, pod: &Object, workloads: &[&Object]) -> Option<Step> {
    let body = pod.as_pod()?;
    let info = Kind::PodGroup.info();
    let mut metadata = Map::from_iter([
        ("name".to_owned(), json!(key.name.as_ref())),
        ("namespace".to_owned(), json!(key.namespace.as_ref())),
        ("ownerReferences".to_owned(), json!(owner_references(pod))),
    ]);
    let mut annotations = inherited(workloads);
    annotations.extend(of_pod(pod));
    let labels = picked(&pod.meta.labels, &LABELS_OF_POD);
    for (field, entries) in [("annotations", annotations), ("labels", labels)] {
        if !entries.is_empty() {
            metadata.insert(field.to_owned(), json!(entries));
        }
    }
    let object = json!({
        "apiVersion": info.api_version(),
        "kind": info.kind,
        "metadata": metadata,
        "spec": spec(pod, body, workloads),
        "status": { "phase": "Pending" },
    });
    Some(Step::Create { kind: Kind::PodGroup, object })
}

/// Brings an existing PodGroup up to what its workload says now; `pod` is one of the workload's. What others have set in the
/// PodGroup stays, its queue above all. How many pods it needs is not changed before it is known what they use.
pub(super) fn update(group: &Object, pod: Option<&Object>, workloads: &[&Object]) -> Option<Step> {
    let spec = &group.as_podgroup()?.spec;
    let mut patch = Map::new();
    let said = said_min_member(workloads).filter(|n| *n != spec.min_member);
    if let (Some(n), Some(body)) = (said, pod.and_then(Object::as_pod)) {
        let before = spec.min_resources.iter().flatten();
        let mut amounts: Map<String, Value> = before.map(|(name, _)| (name.clone(), Value::Null)).collect();
        amounts.extend(min_resources(body, n).into_iter().map(|(name, amount)| (name, json!(amount))));
        patch.insert("spec".to_owned(), json!({ "minMember": n, "minResources": amounts }));
    }
    let overridden = pod.map(of_pod).unwrap_or_default();
    let mut annotations = inherited(workloads);
    annotations.retain(|key, value| {
        !overridden.contains_key(key) && group.meta.annotations.get(key).is_none_or(|known| known != value)
    });
    if !annotations.is_empty() {
        patch.insert("metadata".to_owned(), json!({ "annotations": annotations }));
    }
    (!patch.is_empty()).then(|| Step::Patch {
        kind: Kind::PodGroup,
        key: group.meta.key.clone(),
        uid: group.meta.uid.clone(),
        revision: None,
        of_status: false,
        patch: Value::Object(patch),
    })
}

/// The pod's owners if one of them controls it, else the pod itself.
fn owner_references(pod: &Object) -> Vec<OwnerReference> {
    if pod.meta.controller_uid().is_some() {
        return pod.meta.owners.clone();
    }
    vec![pod.meta.as_controller(Kind::Pod)]
}

fn spec(pod: &Object, body: &Pod, workloads: &[&Object]) -> Value {
    let min_member = said_min_member(workloads).unwrap_or(1);
    let mut spec = Map::from_iter([
        ("minMember".to_owned(), json!(min_member)),
        ("minResources".to_owned(), json!(min_resources(body, min_member))),
    ]);
    // Without a queue, the namespace's or the cluster's default decides.
    if let Some(queue) = pod.meta.annotations.get(labels::WANTED_QUEUE) {
        spec.insert("queue".to_owned(), json!(queue));
    }
    if !body.spec.priority_class_name.is_empty() {
        spec.insert("priorityClassName".to_owned(), json!(body.spec.priority_class_name));
    }
    if let Some(topology) = network_topology(pod) {
        spec.insert("networkTopology".to_owned(), json!(topology));
    }
    Value::Object(spec)
}

/// How many pods must be placed at once, if an owner says so in a way that makes sense.
fn said_min_member(workloads: &[&Object]) -> Option<i32> {
    let said =
        workloads.iter().find_map(|workload| workload.meta.annotations.get(labels::GROUP_MIN_MEMBER))?;
    Some(said.parse().ok().filter(|n| *n >= 1).unwrap_or(1))
}

/// What so many pods use of a quota, each like this one. One that has ended is still an object, and uses nothing else.
fn min_resources(pod: &Pod, min_member: i32) -> ResourceList {
    let is_used = |resource: &str| resource == "count/pods" || !pod.status.phase.is_finished();
    let usage = pod_usage(&pod.spec).into_iter().filter(|(resource, _)| is_used(resource));
    usage.map(|(resource, amount)| (resource, amount.times(i64::from(min_member)))).collect()
}

/// What owners say about scheduling. The first owner wins.
fn inherited(workloads: &[&Object]) -> Entries {
    let annotations = workloads.iter().rev().flat_map(|workload| workload.meta.annotations.iter());
    let inherited = annotations.filter(|(key, _)| key.starts_with(INHERITED_PREFIX));
    inherited.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// What the pod says about scheduling.
fn of_pod(pod: &Object) -> Entries {
    let budgets = [labels::JDB_MIN_AVAILABLE, labels::JDB_MAX_UNAVAILABLE];
    let budget = budgets.into_iter().find(|key| pod.meta.annotations.contains_key(key));
    let mut entries = picked(&pod.meta.annotations, &OF_POD);
    entries.extend(picked(&pod.meta.annotations, budget.as_slice()));
    entries
}

fn picked(entries: &Pairs, keys: &[&str]) -> Entries {
    let found = keys.iter().filter_map(|key| Some((*key, entries.get(key)?)));
    found.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn network_topology(pod: &Object) -> Option<NetworkTopologySpec> {
    let annotation = |key: &str| pod.meta.annotations.get(key);
    let mode = annotation(labels::NETWORK_TOPOLOGY_MODE);
    let tier = annotation(labels::NETWORK_TOPOLOGY_HIGHEST_TIER);
    if mode.is_none() && tier.is_none() {
        return None;
    }
    let is_soft = mode.is_some_and(|mode| mode.eq_ignore_ascii_case("soft"));
    Some(NetworkTopologySpec {
        mode: if is_soft { NetworkTopologyMode::Soft } else { NetworkTopologyMode::Hard },
        highest_tier_allowed: tier.and_then(|tier| tier.parse().ok()),
        ..NetworkTopologySpec::default()
    })
}
