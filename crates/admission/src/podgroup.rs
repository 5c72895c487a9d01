//! PodGroups: their queue and how close in the network their pods must be.

use krafla_api::labels::WANTED_QUEUE;
use krafla_api::volcano::{NetworkTopologySpec, PodGroup, QueueState};
use serde_json::Value;

use crate::{Cluster, Operation, Path, Reason, Request, Verdict, read};

/// A gang in the queue `default` goes to the queue of its namespace, if that names one.
pub fn default(podgroup: &mut Value, cluster: &dyn Cluster) {
    if podgroup.pointer("/spec/queue") != Some(&"default".into()) {
        return;
    }
    let namespace = podgroup.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    if let Some(name) = cluster.namespace_annotation(namespace, WANTED_QUEUE)
        && let Some(queue) = podgroup.pointer_mut("/spec/queue")
    {
        *queue = name.into();
    }
}

/// Everything that is wrong with a new gang.
pub fn validate(request: Request<'_>, cluster: &dyn Cluster) -> Verdict {
    let mut verdict = Verdict::default();
    if request.operation != Operation::Create {
        return verdict;
    }
    let Some(podgroup) = read::<PodGroup>(request.object, &mut verdict) else { return verdict };
    let (spec, path) = (&podgroup.spec, Path::new("spec"));
    if !spec.queue.is_empty() {
        validate_queue(&spec.queue, &path.field("queue"), cluster, &mut verdict);
    }
    validate_tiers(spec.network_topology.as_ref(), "", &path, &mut verdict);
    for (index, policy) in spec.sub_group_policy.iter().enumerate() {
        let place = format!("in subGroupPolicy '{}': ", policy.name);
        let path = path.field("subGroupPolicy").index(index);
        validate_tiers(policy.network_topology.as_ref(), &place, &path, &mut verdict);
    }
    verdict
}

fn validate_queue(name: &str, path: &Path, cluster: &dyn Cluster, verdict: &mut Verdict) {
    match cluster.queue(name) {
        None => {
            let message = format!("unable to find queue: queue.scheduling.volcano.sh {name:?} not found");
            verdict.refuse(path, Reason::NotFound, message);
        }
        Some(queue) if queue.status.state != QueueState::Open => {
            let state = &queue.status.state;
            let message = format!(
                "can only submit PodGroup to queue with state `Open`, queue `{name}` status is `{state}`"
            );
            verdict.refuse(path, Reason::Invalid, message);
        }
        Some(_) => {}
    }
}

/// The two ways to name a tier exclude each other.
pub(crate) fn validate_tiers(
    topology: Option<&NetworkTopologySpec>,
    place: &str,
    path: &Path,
    verdict: &mut Verdict,
) {
    let is_twofold = |topology: &NetworkTopologySpec| {
        topology.highest_tier_allowed.is_some() && !topology.highest_tier_name.is_empty()
    };
    if topology.is_some_and(is_twofold) {
        let rule =
            "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously";
        verdict.refuse(&path.field("networkTopology"), Reason::Forbidden, format!("{place}{rule}"));
    }
}
