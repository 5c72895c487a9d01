//! Order in which active pods are deleted: the one that loses the least work first.

use std::cmp::{Ordering, Reverse};

use super::pods::JobPod;
use crate::object::{ContainerStatus, PodPhase};

/// The pod that goes first is the lesser one.
pub(super) fn compare(one: &JobPod<'_>, other: &JobPod<'_>) -> Ordering {
    let is_placed = |pod: &JobPod<'_>| !pod.pod.spec.node_name.is_empty();
    let phase = |pod: &JobPod<'_>| match pod.pod.status.phase {
        PodPhase::Pending => 0,
        PodPhase::Unknown => 1,
        PodPhase::Running | PodPhase::Succeeded | PodPhase::Failed => 2,
    };
    // The longer it has been ready, the more would be lost; one that does not say since when is taken to be new.
    let ready = |pod: &JobPod<'_>| {
        pod.ready_since().map(|since| since.map_or((0, None), |at| (1, Some(Reverse(at)))))
    };
    let created = |pod: &JobPod<'_>| pod.meta().created_at.map_or((0, None), |at| (1, Some(Reverse(at))));
    is_placed(one)
        .cmp(&is_placed(other))
        .then_with(|| phase(one).cmp(&phase(other)))
        .then_with(|| ready(one).cmp(&ready(other)))
        .then_with(|| restarts(other).cmp(&restarts(one)))
        .then_with(|| created(one).cmp(&created(other)))
        .then_with(|| one.meta().key.cmp(&other.meta().key))
}

/// The most restarts of a container, and of a sidecar.
fn restarts(pod: &JobPod<'_>) -> [i32; 2] {
    let most = |statuses: &[ContainerStatus]| statuses.iter().map(|it| it.restart_count).max().unwrap_or(0);
    let sidecars: Vec<ContainerStatus> = pod
        .pod
        .status
        .init_container_statuses
        .iter()
        .filter(|it| {
            pod.pod.spec.init_containers.iter().any(|of| of.name == it.name && of.restart_policy == "Always")
        })
        .cloned()
        .collect();
    [most(&pod.pod.status.container_statuses), most(&sidecars)]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use krafla_api::batch::{JobSpec, JobStatus};
    use krafla_api::{Kind, Time};
    use serde_json::{Value, json};

    use super::super::Job;
    use super::*;
    use crate::Object;

    /// Which of two pods goes first. Each is one that runs on a node and is ready, with other values in some places.
    fn first(one: &[(&str, Value)], other: &[(&str, Value)]) -> &'static str {
        let object = |name: &str, changes: &[(&str, Value)]| {
            let ready =
                json!({ "type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T08:00:20Z" });
            let mut pod = json!({
                "metadata": { "name": name, "uid": name, "creationTimestamp": "2027-01-15T08:00:10Z" },
                "spec": { "nodeName": "n", "initContainers": [{ "name": "side", "restartPolicy": "Always" }] },
                "status": {
                    "phase": "Running", "conditions": [ready],
                    "containerStatuses": [{ "name": "c", "restartCount": 1 }, { "name": "d", "restartCount": 0 }],
                    "initContainerStatuses": [{ "name": "side", "restartCount": 1 }, { "name": "setup", "restartCount": 9 }],
                },
            });
            for (place, value) in changes {
                *pod.pointer_mut(place).unwrap() = value.clone();
            }
            Arc::new(Object::decode(Kind::Pod, pod.to_string().as_bytes()))
        };
        let (one, other) = (object("one", one), object("other", other));
        let (spec, status) = (JobSpec::default(), JobStatus::default());
        let job = Job { meta: &one.meta, spec: &spec, status: &status, now: Time::from_seconds(0) };
        let [a, b] = [&one, &other].map(|pod| JobPod::observe(&job, pod).unwrap());
        assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
        match compare(&a, &b) {
            Ordering::Less => "one",
            Ordering::Equal => "neither",
            Ordering::Greater => "other",
        }
    }

    #[test]
    fn the_pod_of_which_less_is_lost_goes_first() {
        const NODE: &str = "/spec/nodeName";
        const PHASE: &str = "/status/phase";
        const READY: &str = "/status/conditions/0/status";
        const READY_AT: &str = "/status/conditions/0/lastTransitionTime";
        const RESTARTS: &str = "/status/containerStatuses/1/restartCount";
        const SIDECAR: &str = "/status/initContainerStatuses/0/restartCount";
        const SETUP: &str = "/status/initContainerStatuses/1/restartCount";
        const CREATED: &str = "/metadata/creationTimestamp";
        let (later, earlier) = (json!("2027-01-15T08:00:50Z"), json!("2027-01-15T08:00:05Z"));
        // Each row is stronger than those after it: the other pod has all that would speak against it there.
        let rows: [(&str, Value, (&str, Value)); 8] = [
            (NODE, json!(""), (PHASE, json!("Pending"))),
            (PHASE, json!("Pending"), (PHASE, json!("Unknown"))),
            (PHASE, json!("Unknown"), (READY, json!("False"))),
            (READY, json!("False"), (READY_AT, later.clone())),
            (READY_AT, later.clone(), (RESTARTS, json!(7))),
            (RESTARTS, json!(2), (SIDECAR, json!(7))),
            (SIDECAR, json!(2), (CREATED, later.clone())),
            (CREATED, later, (CREATED, earlier)),
        ];
        for (place, value, other) in &rows {
            assert_eq!(
                first(&[(*place, value.clone())], std::slice::from_ref(other)),
                "one",
                "{place} {value}"
            );
        }
        assert_eq!(first(&[(READY_AT, json!(null))], &[]), "one", "nobody knows since when it is ready");
        assert_eq!(first(&[(CREATED, json!(null))], &[]), "one", "nobody knows since when it is there");
        assert_eq!(
            first(&[(SETUP, json!(0))], &[]),
            "one",
            "what ran before it does not count: the name decides"
        );
    }
}
