//! Why a pod does not run.

use krafla_api::{Key, Kind, labels};
use krafla_node::pod::Pod;
use krafla_node::status::{ContainerStatus, Phase};
use krafla_plan::Object;

use super::{Cause, Seen, warned};

/// Words that all pods go through on their way.
const USUAL: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Why a pod waits, if it does.
pub(super) fn cause_of(seen: &Seen, pod: &Pod) -> Option<Cause> {
    if matches!(pod.status.phase, Phase::Succeeded | Phase::Failed)
        || pod.metadata.deletion_timestamp.is_some()
    {
        return None;
    }
    let of_container = || containers(pod).find_map(|container| of_container(pod, container));
    of_claims(seen, pod).or_else(|| of_placement(seen, pod)).or_else(of_container)
}

fn containers(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses)
}

fn of_claims(seen: &Seen, pod: &Pod) -> Option<Cause> {
    if pod.status.phase == Phase::Running {
        return None;
    }
    let claims = pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let key = |name: &str| Key::new(&pod.metadata.namespace, name);
    let exists = |name: &str| seen.objects.get(Kind::PersistentVolumeClaim, &key(name)).is_some();
    let missing = claims.map(|claim| &claim.claim_name).find(|name| !exists(name))?;
    Some(Cause::ClaimMissing { pod: pod.metadata.name.clone(), claim: missing.clone() })
}

/// Why no node has been found, if none has.
fn of_placement(seen: &Seen, pod: &Pod) -> Option<Cause> {
    if !pod.spec.node_name.is_empty() {
        return None;
    }
    let name = || pod.metadata.name.clone();
    let object = seen.objects.get(Kind::Pod, &Key::new(&pod.metadata.namespace, &pod.metadata.name))?;
    let scheduling = &object.as_pod()?.spec;
    if !scheduling.scheduling_gates.is_empty() {
        let gates = scheduling.scheduling_gates.iter().map(|gate| gate.name.to_string()).collect();
        return Some(Cause::Gated { pod: name(), gates });
    }
    if let Some(condition) = pod.status.condition("PodScheduled") {
        return Some(Cause::Unschedulable(format!("pod {}: {}", name(), condition.message)));
    }
    // Who warned of it knows more: a scheduler that waits for the pod's PodGroup says nothing when that is refused.
    let unseen = warned(seen, object).unwrap_or_else(|| Cause::NotScheduled {
        pod: name(),
        scheduler: scheduling.scheduler_name.to_string(),
    });
    let Some(group) = object.meta.annotations.get(labels::GROUP_NAME) else { return Some(unseen) };
    match seen.objects.get(Kind::PodGroup, &Key::new(&pod.metadata.namespace, group)) {
        None => Some(Cause::Unschedulable(format!("pod {}: podgroup {group:?} not found", name()))),
        // The pod waits for its turn; if that takes long, another one like it says why.
        Some(gang) => (!is_scheduled(gang)).then_some(unseen),
    }
}

/// Whether a gang has found its place.
fn is_scheduled(gang: &Object) -> bool {
    let conditions = gang.as_podgroup().map(|gang| &gang.status.conditions);
    conditions.into_iter().flatten().any(|it| it.condition_type == "Scheduled" && it.status == "True")
}

/// Why a container does not run, where that is not just the way of all containers.
fn of_container(pod: &Pod, container: &ContainerStatus) -> Option<Cause> {
    let waiting = container.state.waiting.as_ref()?;
    let is_usual = waiting.message.is_empty() && USUAL.contains(&waiting.reason.as_str());
    (!is_usual).then(|| Cause::Container {
        pod: pod.metadata.name.clone(),
        container: container.name.clone(),
        reason: waiting.reason.clone(),
        message: waiting.message.clone(),
    })
}

/// Why the first of these pods failed, if nothing runs any more.
pub(super) fn last_failure(pods: &[&Pod]) -> Option<Cause> {
    if !pods.iter().all(|pod| matches!(pod.status.phase, Phase::Succeeded | Phase::Failed)) {
        return None;
    }
    let failed = pods.iter().find(|pod| pod.status.phase == Phase::Failed)?;
    let ends = containers(failed).filter_map(|container| container.state.terminated.as_ref());
    let mut why = ends.filter(|end| end.exit_code != 0).map(|end| match end.message.as_str() {
        "" => format!("exit code {}", end.exit_code),
        message => message.to_owned(),
    });
    let why = why.next().unwrap_or_else(|| failed.status.message.clone());
    Some(Cause::PodFailed { pod: failed.metadata.name.clone(), why })
}
