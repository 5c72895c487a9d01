//! Which of two active pods is missed less: the one of which less would be lost.

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
