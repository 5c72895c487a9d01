//! The status of a pod, as Kubernetes' API server checks it.

use serde_json::Value;

use crate::json::At;
use crate::look::findings_of_change;
use crate::{Finding, Verdict, names};

use super::check;

/// Says everything that is wrong with a changed status.
pub fn validate_status(pod: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(pod, old, validate_change)
}

fn validate_change(pod: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let status = pod.get("status");
    check::name(&status.get("nominatedNodeName"), names::dns_subdomain, verdict);
    let observed = status.get("observedGeneration");
    if let Some(generation) = observed.int().filter(|generation| *generation < 0) {
        verdict.invalid(observed.path(), generation, "must be a non-negative integer");
    }
    for list in ["containerStatuses", "initContainerStatuses"] {
        validate_ended_stay_ended(pod, &old.get("status").get(list), &status.get(list), verdict);
    }
    for list in ["podIPs", "hostIPs"] {
        for address in status.items(list) {
            let ip = address.get("ip").reported_at(address.path().clone());
            check::ip_address(&ip, verdict);
        }
    }
    for condition in status.items("conditions") {
        // Upstream names the field as its program does, not as users write it.
        let (path, name) = (condition.path().field("Type"), condition.str("type"));
        verdict.invalid_each(&path, name, names::qualified_name(name));
    }
}

/// A container that has ended does not run again, unless the pod's restart policy, or its own as a sidecar, says so.
fn validate_ended_stay_ended(pod: &At<'_>, old: &At<'_>, new: &At<'_>, verdict: &mut Verdict) {
    let spec = pod.get("spec");
    let restart_policy = spec.str("restartPolicy");
    if restart_policy == "Always" {
        return;
    }
    let sidecars = spec.items("initContainers");
    let is_sidecar = |name: &str| {
        let mut named = sidecars.iter().filter(|container| container.str("name") == name);
        named.any(|container| container.str("restartPolicy") == "Always")
    };
    for (index, was) in old.list().iter().enumerate() {
        let ended = was.get("state").get("terminated");
        let is_retried = ended.get("exitCode").int() != Some(0) && restart_policy == "OnFailure";
        if !ended.is_set() || is_retried || is_sidecar(was.str("name")) {
            continue;
        }
        let statuses = new.list();
        let mut namesakes = statuses.iter().filter(|status| status.str("name") == was.str("name"));
        if namesakes.any(|status| !status.get("state").get("terminated").is_set()) {
            let path = new.path().index(index).field("state");
            verdict.forbidden(&path, "may not be transitioned to non-terminated state");
        }
    }
}
