//! Gives every pod of a Volcano scheduler that has no PodGroup one.
//!
//! ```text
//!   ReplicaSet, StatefulSet, DaemonSet, Job --owns--> Pod, Pod, Pod --named in an annotation--> PodGroup podgroup-<uid of the owner>
//!                                                     a pod of its own ---------------------->  PodGroup podgroup-<uid of the pod>
//! ```
//!
//! One decision is about one PodGroup, whether it exists or not: its name says whose it is. So pods that share a PodGroup are
//! never at odds over who makes it, and a workload that is scaled to nothing gives it back.
//!
//! Mirrors Volcano's `pkg/controllers/podgroup`; what is deliberately different stands in DEVIATIONS.md.

mod build;

use std::sync::Arc;

use krafla_api::{Key, Kind, OwnerReference, Uid, labels};
use krafla_cluster::Step;
use serde_json::{Value, json};

use crate::object::{Body, Meta, Pod};
use crate::{Controller, Object, Objects, Plan, Snapshot};

/// What the names of these PodGroups start with.
const PREFIX: &str = "podgroup-";

/// The kinds of owners whose annotations reach the PodGroup.
const WORKLOADS: [Kind; 4] = [Kind::ReplicaSet, Kind::StatefulSet, Kind::DaemonSet, Kind::Job];

/// The controller of PodGroups for pods that nobody else groups.
pub struct PodGroupController {
    /// The schedulers whose pods are grouped.
    pub scheduler_names: Vec<String>,
    /// Whether annotations of a pod's owner reach its PodGroup.
    pub inherits_annotations: bool,
}

impl Default for PodGroupController {
    fn default() -> Self {
        PodGroupController { scheduler_names: vec!["volcano".to_owned()], inherits_annotations: true }
    }
}

impl Controller for PodGroupController {
    fn name(&self) -> &'static str {
        "pg-controller"
    }

    fn root(&self) -> Kind {
        Kind::PodGroup
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::Pod, Kind::ReplicaSet, Kind::StatefulSet, Kind::DaemonSet, Kind::Job]
    }

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        let key = |uid: &Uid| Key::new(&changed.meta.key.namespace, &format!("{PREFIX}{uid}"));
        match changed.kind {
            Kind::Pod if !self.wants_group(changed) => Vec::new(),
            Kind::Pod => vec![key(changed.meta.controller_uid().unwrap_or(&changed.meta.uid))],
            Kind::PodGroup => vec![changed.meta.key.clone()],
            // Jobs change with each of their pods, and few of them have a PodGroup.
            Kind::Job => {
                let group = key(&changed.meta.uid);
                objects.get(Kind::PodGroup, &group).map(|_| group).into_iter().collect()
            }
            _ => vec![key(&changed.meta.uid)],
        }
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        self.plan_group(snapshot)
    }
}

impl PodGroupController {
    /// Whether a pod is one of ours and has no PodGroup yet.
    fn wants_group(&self, object: &Object) -> bool {
        let has_group = object.meta.annotations.get(labels::GROUP_NAME).is_some_and(|name| !name.is_empty());
        let is_ours = |pod: &Pod| self.scheduler_names.contains(&pod.spec.scheduler_name);
        !has_group && !object.meta.is_deleting() && object.as_pod().is_some_and(is_ours)
    }

    fn plan_group(&self, snapshot: &Snapshot<'_>) -> Plan {
        let Some(owner_uid) = snapshot.key.name.strip_prefix(PREFIX) else { return Plan::nothing() };
        let all = pods_of(owner_uid, snapshot);
        let pods: Vec<&Arc<Object>> = all.iter().copied().filter(|pod| self.wants_group(pod)).collect();
        let group = snapshot.root();
        let owners = match (group, pods.first()) {
            (Some(group), _) => &group.meta.owners,
            (None, Some(pod)) => &pod.meta.owners,
            (None, None) => return Plan::nothing(),
        };
        let workloads: Vec<&Object> = owners.iter().filter_map(|owner| workload(owner, snapshot)).collect();
        let mut plan = Plan::nothing();
        if is_scaled_to_nothing(owner_uid, &workloads) {
            plan.steps.extend(group.filter(|group| !group.meta.is_deleting()).map(|group| group.deletion()));
            return plan;
        }
        let workloads = if self.inherits_annotations { workloads.as_slice() } else { &[] };
        match (group, pods.first()) {
            // A PodGroup that is on its way out is waited for.
            (Some(group), _) if group.meta.is_deleting() => return plan,
            (Some(group), _) => plan.steps.extend(build::update(group, typical(&all), workloads)),
            (None, Some(pod)) => plan.steps.extend(build::group(snapshot.key, pod, workloads)),
            (None, None) => {}
        }
        plan.steps.extend(pods.iter().map(|pod| bind(&pod.meta, snapshot.key)));
        plan
    }
}

/// The pods that belong to the PodGroup of this owner: those it controls, or the one that it is.
fn pods_of<'a>(owner_uid: &str, snapshot: &Snapshot<'a>) -> Vec<&'a Arc<Object>> {
    let objects = snapshot.objects;
    let controlled: Vec<&Arc<Object>> = objects.children(&owner_uid.into(), Kind::Pod).collect();
    if !controlled.is_empty() {
        return controlled;
    }
    let is_the_owner =
        |pod: &&Arc<Object>| *pod.meta.uid.0 == *owner_uid && pod.meta.controller_uid().is_none();
    match snapshot.root() {
        Some(group) => {
            let names = group.meta.owners.iter().filter(|owner| owner.kind == Kind::Pod.info().kind);
            let keys = names.map(|owner| Key::new(&snapshot.key.namespace, &owner.name));
            keys.filter_map(|key| objects.get(Kind::Pod, &key)).filter(is_the_owner).collect()
        }
        None => {
            objects.in_namespace(Kind::Pod, &snapshot.key.namespace).find(is_the_owner).into_iter().collect()
        }
    }
}

/// The pod by which the others are known: the newest of those that have not ended and are not on their way out.
fn typical<'a>(pods: &[&'a Arc<Object>]) -> Option<&'a Object> {
    let has_ended = |pod: &Object| pod.as_pod().is_none_or(|pod| pod.status.phase.is_finished());
    let staying = pods.iter().copied().filter(|pod| !pod.meta.is_deleting() && !has_ended(pod));
    staying.max_by_key(|pod| (pod.meta.created_at, &pod.meta.key)).map(AsRef::as_ref)
}

/// The workload that an owner reference names, if it is there and the same.
fn workload<'a>(owner: &OwnerReference, snapshot: &Snapshot<'a>) -> Option<&'a Object> {
    let kind = Kind::of_manifest(&owner.api_version, &owner.kind).filter(|kind| WORKLOADS.contains(kind))?;
    let object = snapshot.objects.get(kind, &Key::new(&snapshot.key.namespace, &owner.name))?;
    (object.meta.uid == owner.uid).then_some(object)
}

fn is_scaled_to_nothing(owner_uid: &str, workloads: &[&Object]) -> bool {
    let owner = workloads.iter().find(|workload| *workload.meta.uid.0 == *owner_uid);
    owner.is_some_and(|owner| matches!(owner.body, Body::Workload { replicas: Some(0) }))
}

fn bind(pod: &Meta, group: &Key) -> Step {
    Step::Patch {
        kind: Kind::Pod,
        key: pod.key.clone(),
        uid: pod.uid.clone(),
        revision: None,
        of_status: false,
        patch: annotation(labels::GROUP_NAME, &group.name),
    }
}

fn annotation(key: &str, value: &str) -> Value {
    json!({ "metadata": { "annotations": { key: value } } })
}

#[cfg(test)]
mod tests;
