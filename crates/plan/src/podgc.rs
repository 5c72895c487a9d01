//! Removes deleted pods of nodes that do not exist: no node will report that they have ended.
//!
//! A pod keeps its name until its node confirms that its processes have ended. A node that does not exist confirms nothing, so
//! without this the pod, and the job that owns it, would wait for ever.
//!
//! Before it is removed it is said to have failed: a Job that replaces a pod only once that has ended would wait for its end for
//! ever, and hold it by the finalizer with which it counts its pods.
//!
//! Mirrors a part of Kubernetes' `pkg/controller/podgc`. What that does to pods that nobody has deleted is left out: it
//! would make a Job that names a wrong node start anew every minute, where it can say instead what it waits for.

use krafla_api::{Key, Kind, Time};
use krafla_cluster::{Propagation, Step};
use serde_json::{Value, json};

use crate::object::{Pod, PodCondition, PodConditions};
use crate::{Controller, Object, Objects, Plan, Snapshot};

/// The condition by which a Job's failure policy knows a disruption from a failure.
const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// The controller that removes deleted pods of nodes that are not there.
pub struct PodGcController;

impl Controller for PodGcController {
    fn name(&self) -> &'static str {
        "pod-garbage-collector-controller"
    }

    fn root(&self) -> Kind {
        Kind::Pod
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::Node]
    }

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        match changed.kind {
            // Nodes say all the time that they are well. Only what one leaves behind when it goes is looked for.
            Kind::Node if objects.get(Kind::Node, &changed.meta.key).is_none() => {
                let left =
                    objects.all(Kind::Pod).filter(|pod| node_of_leaving(pod) == Some(&changed.meta.key.name));
                left.map(|pod| pod.meta.key.clone()).collect()
            }
            Kind::Pod if node_of_leaving(changed).is_some() => vec![changed.meta.key.clone()],
            _ => Vec::new(),
        }
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        let Some(pod) = snapshot.root() else { return Plan::nothing() };
        let is_there = |node: &str| snapshot.objects.get(Kind::Node, &Key::new("", node)).is_some();
        if node_of_leaving(pod).is_none_or(is_there) {
            return Plan::nothing();
        }
        let delete = Step::Delete {
            kind: Kind::Pod,
            key: pod.meta.key.clone(),
            uid: pod.meta.uid.clone(),
            revision: None,
            propagation: Propagation::Background,
            grace_seconds: Some(0),
        };
        let steps = failure(pod, snapshot.now).into_iter().chain([delete]).collect();
        Plan { steps, ..Plan::nothing() }
    }
}

/// The write that says of a pod that it has failed because its node is gone, if it has not ended before.
fn failure(object: &Object, now: Time) -> Option<Step> {
    let Pod { status, .. } = object.as_pod().filter(|pod| !pod.status.phase.is_finished())?;
    let because = PodCondition {
        condition_type: DISRUPTION_TARGET.to_owned(),
        status: "True".to_owned(),
        last_transition_time: Some(now),
        reason: "DeletionByPodGC".to_owned(),
        message: "PodGC: node no longer exists".to_owned(),
        ..PodCondition::default()
    };
    let conditions: Vec<Value> =
        others(&status.conditions).chain([because]).map(|condition| json!(condition)).collect();
    Some(Step::Patch {
        kind: Kind::Pod,
        key: object.meta.key.clone(),
        uid: object.meta.uid.clone(),
        revision: Some(object.meta.revision),
        of_status: true,
        patch: json!({ "status": { "phase": "Failed", "conditions": conditions } }),
    })
}

/// What a pod's conditions say already. A list is written as a whole, so it is written again; of a pod that had a node, as far
/// as it is known: whether it is so, and not why.
fn others(conditions: &PodConditions) -> impl Iterator<Item = PodCondition> {
    let PodConditions { scheduled, statuses, others, .. } = conditions;
    let known = |(condition_type, status): (&str, &str)| {
        let whole = others.iter().find(|other| other.condition_type == condition_type).cloned();
        whole.unwrap_or_else(|| PodCondition {
            condition_type: condition_type.to_owned(),
            status: status.to_owned(),
            ..PodCondition::default()
        })
    };
    let statuses = statuses.iter().filter(|(condition_type, _)| *condition_type != DISRUPTION_TARGET);
    scheduled.as_deref().cloned().into_iter().chain(statuses.map(known))
}

/// The node that has to end a pod, if it was deleted.
fn node_of_leaving(pod: &Object) -> Option<&str> {
    let node = &*pod.as_pod()?.spec.node_name;
    Some(node).filter(|node| !node.is_empty() && pod.meta.is_deleting())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use krafla_api::Time;
    use serde_json::{Value, json};

    use super::*;

    fn object(kind: Kind, json: &Value) -> Arc<Object> {
        Arc::new(Object::decode(kind, json.to_string().as_bytes()))
    }

    #[test]
    fn only_deleted_pods_of_missing_nodes_are_removed() {
        let node = object(Kind::Node, &json!({ "metadata": { "name": "here" } }));
        for (node_name, deleted_at, is_removed) in [
            ("elsewhere", json!("2027-01-15T08:00:00Z"), true),
            ("here", json!("2027-01-15T08:00:00Z"), false),
            ("", json!("2027-01-15T08:00:00Z"), false),
            ("elsewhere", Value::Null, false),
        ] {
            let metadata =
                json!({ "namespace": "ns", "name": "p", "uid": "1", "deletionTimestamp": deleted_at });
            let pod = object(Kind::Pod, &json!({ "metadata": metadata, "spec": { "nodeName": node_name } }));
            let mut objects = Objects::default();
            objects.insert(node.clone());
            objects.insert(pod.clone());
            let snapshot = Snapshot::new(Kind::Pod, &pod.meta.key, Time::from_seconds(0), &objects);
            let steps = PodGcController.plan(&snapshot).steps;
            let last = steps.last().map(|step| matches!(step, Step::Delete { grace_seconds: Some(0), .. }));
            assert_eq!(last, is_removed.then_some(true), "{node_name} {deleted_at}");
        }
    }

    #[test]
    fn a_pod_that_has_not_ended_fails_with_its_node() {
        let because = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists", "lastTransitionTime": "2027-01-15T08:00:30Z",
        });
        let scheduled =
            json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": "2027-01-15T07:00:00Z" });
        let ready = json!({ "type": "Ready", "status": "False" });
        let evicted =
            json!({ "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI" });
        for (phase, conditions, expected) in [
            ("Running", json!([scheduled, ready, evicted]), Some(json!([scheduled, ready, because]))),
            ("Pending", json!([]), Some(json!([because]))),
            ("Failed", json!([scheduled]), None),
            ("Succeeded", json!([scheduled]), None),
        ] {
            let pod = object(
                Kind::Pod,
                &json!({
                    "metadata": {
                        "namespace": "ns", "name": "p", "uid": "1", "resourceVersion": "7",
                        "deletionTimestamp": "2027-01-15T08:00:00Z",
                    },
                    "spec": { "nodeName": "gone" },
                    "status": { "phase": phase, "conditions": conditions },
                }),
            );
            let mut objects = Objects::default();
            objects.insert(pod.clone());
            let snapshot =
                Snapshot::new(Kind::Pod, &pod.meta.key, Time::from_seconds(1_800_000_030), &objects);
            let steps = PodGcController.plan(&snapshot).steps;
            let patch = steps.iter().find_map(|step| match step {
                Step::Patch { patch, of_status: true, revision: Some(_), .. } => Some(patch.clone()),
                _ => None,
            });
            let expected = expected
                .map(|conditions| json!({ "status": { "phase": "Failed", "conditions": conditions } }));
            assert_eq!(patch, expected, "{phase}");
            assert_eq!(steps.len(), 1 + usize::from(expected.is_some()), "{phase}");
        }
    }

    #[test]
    fn a_node_that_goes_leaves_pods_to_remove() {
        let metadata = json!({ "namespace": "ns", "name": "p", "uid": "1", "deletionTimestamp": "2027-01-15T08:00:00Z" });
        let pod = object(Kind::Pod, &json!({ "metadata": metadata, "spec": { "nodeName": "here" } }));
        let node = object(Kind::Node, &json!({ "metadata": { "name": "here" } }));
        let mut objects = Objects::default();
        objects.insert(pod.clone());
        assert_eq!(PodGcController.keys(&node, &objects), std::slice::from_ref(&pod.meta.key));
        objects.insert(node.clone());
        assert_eq!(PodGcController.keys(&node, &objects), []);
        assert_eq!(PodGcController.keys(&pod, &objects), std::slice::from_ref(&pod.meta.key));
    }
}
