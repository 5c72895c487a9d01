//! Removes pods that were deleted and whose node is not there: nobody else will say that they have ended.
//!
//! A pod keeps its name until its node confirms that its processes have ended. A node that does not exist confirms nothing, so
//! without this the pod, and the job that owns it, would wait for ever.
//!
//! Mirrors a part of Kubernetes' `pkg/controller/podgc`. What that does to pods that nobody has deleted is left out: it
//! would make a Job that names a wrong node start anew every minute, where it can say instead what it waits for.

use krafla_api::{Key, Kind};

use crate::{Controller, Object, Objects, Plan, Propagation, Snapshot, Step};

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
        Plan { steps: vec![delete], ..Plan::nothing() }
    }
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
            let steps: Vec<bool> = steps
                .iter()
                .map(|step| matches!(step, Step::Delete { grace_seconds: Some(0), .. }))
                .collect();
            assert_eq!(steps, if is_removed { vec![true] } else { vec![] }, "{node_name} {deleted_at}");
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
