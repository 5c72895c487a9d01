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

/// A container that has ended does not run again, unless the pod's restart policy, its own, or its own rules say so.
fn validate_ended_stay_ended(pod: &At<'_>, old: &At<'_>, new: &At<'_>, verdict: &mut Verdict) {
    let spec = pod.get("spec");
    let restart_policy = spec.str("restartPolicy");
    if restart_policy == "Always" {
        return;
    }
    let containers = [spec.items("containers"), spec.items("initContainers")].concat();
    for (index, was) in old.list().iter().enumerate() {
        let ended = was.get("state").get("terminated");
        let container = containers.iter().find(|container| container.str("name") == was.str("name"));
        let own_policy = container.map_or("", |container| container.str("restartPolicy"));
        let exit_code = ended.get("exitCode").int().unwrap_or(0);
        let is_retried = match if own_policy.is_empty() { restart_policy } else { own_policy } {
            "Always" => true,
            "OnFailure" => exit_code != 0,
            _ => container.is_some_and(|container| restarts_after(container, exit_code)),
        };
        if !ended.is_set() || is_retried {
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

/// Whether one of a container's own rules is about this exit code. All that a rule can say is that something starts again.
fn restarts_after(container: &At<'_>, exit_code: i64) -> bool {
    container.items("restartPolicyRules").iter().any(|rule| {
        let codes = rule.get("exitCodes");
        let is_listed = codes.items("values").iter().any(|code| code.int() == Some(exit_code));
        is_listed == (codes.str("operator") == "In")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Whether a container of a pod that never restarts may run again after exit code 42.
    fn may_run_again(container: Value) -> bool {
        let mut pod = json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "c" }] } });
        pod["spec"]["containers"][0].as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
        let with = |state: Value| {
            let mut pod = pod.clone();
            pod["status"] = json!({ "containerStatuses": [{ "name": "c", "state": state }] });
            pod
        };
        let [ended, runs] = [json!({ "terminated": { "exitCode": 42 } }), json!({ "running": {} })].map(with);
        validate_status(&runs, &ended).is_empty()
    }

    #[test]
    fn a_container_that_has_ended_runs_again_if_its_own_policy_or_rules_say_so() {
        assert!(!may_run_again(json!({})));
        for (policy, may) in [("Never", false), ("OnFailure", true), ("Always", true)] {
            assert_eq!(may_run_again(json!({ "restartPolicy": policy })), may, "{policy}");
        }
        for (operator, code, may) in
            [("In", 42, true), ("In", 1, false), ("NotIn", 42, false), ("NotIn", 1, true)]
        {
            let rule =
                json!({ "action": "Restart", "exitCodes": { "operator": operator, "values": [code] } });
            let container = json!({ "restartPolicy": "Never", "restartPolicyRules": [rule] });
            assert_eq!(may_run_again(container), may, "{operator} {code}");
        }
    }
}
