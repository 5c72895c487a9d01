//! The status of a pod, as Kubernetes' API server checks it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use crate::json::At;
use crate::look::findings_of_change;
use crate::{Finding, Reason, Verdict, names};

use super::check;

const STATUSES: [&str; 3] = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];
const EPHEMERAL: &str = "ephemeralContainers";

/// Says everything that is wrong with a changed status.
pub fn validate_status(pod: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(pod, old, validate_change)
}

fn validate_change(pod: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let (status, old_status) = (pod.get("status"), old.get("status"));
    for condition in status.items("conditions") {
        validate_generation(&condition, verdict);
        // Upstream names the field as its program does, not as users write it.
        let (path, name) = (condition.path().field("Type"), condition.str("type"));
        verdict.invalid_each(&path, name, names::qualified_name(name));
    }
    validate_nomination(&status.get("nominatedNodeName"), old, verdict);
    validate_generation(&status, verdict);
    let class = status.get("qosClass");
    if class.text() != old_status.str("qosClass") {
        verdict.invalid(class.path(), class.text(), "field is immutable");
    }
    for (list, of) in STATUSES.into_iter().zip([CONTAINERS.as_slice(), &[EPHEMERAL]].concat()) {
        validate_ended_stay_ended(&pod.get("spec"), of, &old_status.get(list), &status.get(list), verdict);
    }
    validate_claims(pod, verdict);
    validate_addresses(&status.get("podIPs"), &old_status.get("podIPs"), "[]core.PodIP", verdict);
    let host_addresses = status.get("hostIPs");
    if let Some(first) = host_addresses.list().first().map(|first| first.get("ip"))
        && first.text() != status.str("hostIP")
    {
        verdict.invalid(first.path(), first.text(), "must be equal to `hostIP`");
    }
    validate_addresses(&host_addresses, &old_status.get("hostIPs"), "[]core.HostIP", verdict);
    for list in STATUSES {
        for container in status.items(list) {
            validate_user(&container.get("user").get("linux"), &pod.get("spec"), verdict);
        }
    }
    for (list, of) in STATUSES.into_iter().zip(CONTAINERS) {
        validate_allocated(&status.get(list), &pod.get("spec").get(of), verdict);
    }
    for container in status.items("ephemeralContainerStatuses") {
        let allocated = container.get("allocatedResourcesStatus");
        if !allocated.is_empty() {
            verdict.forbidden(allocated.path(), "must not be specified in container status");
        }
    }
}

fn validate_generation(of: &At<'_>, verdict: &mut Verdict) {
    let observed = of.get("observedGeneration");
    if let Some(generation) = observed.int().filter(|generation| *generation < 0) {
        verdict.invalid(observed.path(), generation, "must be a non-negative integer");
    }
}

/// A node can be nominated for a pod that has none.
fn validate_nomination(node: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    if node.is_empty() || node.text() == old.get("status").str("nominatedNodeName") {
        return;
    }
    check::name(node, names::dns_subdomain, verdict);
    if !old.get("spec").str("nodeName").is_empty() {
        verdict.forbidden(node.path(), "may not be set on pods that are already bound to a node");
    }
}

fn validate_claims(pod: &At<'_>, verdict: &mut Verdict) {
    let claims = pod.get("spec").items("resourceClaims");
    let mut names_before = BTreeSet::new();
    for status in pod.get("status").items("resourceClaimStatuses") {
        let name = status.get("name");
        if !claims.iter().any(|claim| claim.str("name") == name.text()) {
            let rule = "must match the name of an entry in `spec.resourceClaims`";
            verdict.invalid(name.path(), name.text(), rule);
        }
        if !names_before.insert(name.text()) {
            verdict.duplicate(name.path(), name.text());
        }
        let claim = status.get("resourceClaimName");
        if claim.is_set() {
            verdict.invalid_each(claim.path(), claim.text(), names::dns_subdomain(claim.text()));
        }
    }
}

/// Addresses must be valid unless they were there before, and there is at most one of each family.
fn validate_addresses(addresses: &At<'_>, old: &At<'_>, type_name: &str, verdict: &mut Verdict) {
    let all = addresses.list();
    let known = old.list();
    for address in &all {
        let ip = address.get("ip").reported_at(address.path().clone());
        if !known.iter().any(|known| known.str("ip") == ip.text()) {
            check::ip_address(&ip, verdict);
        }
    }
    if all.len() < 2 {
        return;
    }
    let parsed: Vec<Option<IpAddr>> = all.iter().map(|address| names::sloppy_ip(address.str("ip"))).collect();
    let is_any = |is_family: fn(&IpAddr) -> bool| parsed.iter().flatten().any(is_family);
    if let Some(index) = parsed.iter().position(Option::is_none) {
        let text = all.get(index).map(|address| address.str("ip")).unwrap_or_default();
        let why = format!("failed to check for dual stack with error:invalid IP: {text}");
        verdict.refuse(addresses.path(), Reason::Internal, format!("Internal error: {why}"));
    }
    let is_dual = parsed.iter().all(Option::is_some) && is_any(IpAddr::is_ipv4) && is_any(IpAddr::is_ipv6);
    if !is_dual || all.len() > 2 {
        let rule = "may specify no more than one IP for each IP family";
        verdict.invalid_object(addresses.path(), type_name, addresses.value(), rule);
    }
}

/// The user of a container, as its node says.
fn validate_user(user: &At<'_>, spec: &At<'_>, verdict: &mut Verdict) {
    match spec.get("os").str("name") {
        _ if !user.is_set() => {}
        "windows" => verdict.forbidden(user.path(), "cannot be set for a windows pod"),
        "linux" | "" => {
            check::id(&user.get("uid"), verdict);
            check::id(&user.get("gid"), verdict);
            user.items("supplementalGroups").iter().for_each(|group| check::id(group, verdict));
        }
        _ => {}
    }
}

/// What containers got of devices: something that they asked for, each device once.
fn validate_allocated(statuses: &At<'_>, containers: &At<'_>, verdict: &mut Verdict) {
    for status in statuses.list() {
        let container = containers.list().into_iter().find(|it| it.str("name") == status.str("name"));
        for allocated in status.items("allocatedResourcesStatus") {
            if let Some(container) = &container {
                validate_is_requested(&allocated.get("name"), &container.get("resources"), verdict);
            }
            let mut ids = BTreeSet::new();
            for device in allocated.items("resources") {
                let health = device.get("health");
                let words = ["Healthy", "Unhealthy", "Unknown"];
                if !words.contains(&health.text()) {
                    verdict.unsupported(health.path(), health.text(), &words);
                }
                let id = device.get("resourceID");
                if !ids.insert(id.text()) {
                    verdict.duplicate(id.path(), id.text());
                }
            }
        }
    }
}

fn validate_is_requested(name: &At<'_>, resources: &At<'_>, verdict: &mut Verdict) {
    let (is_requested, rule) = if let Some(claim) = name.text().strip_prefix("claim:") {
        let is_it = |asked: &At<'_>| match asked.str("request") {
            "" => asked.str("name") == claim,
            request => claim.split_once('/') == Some((asked.str("name"), request)),
        };
        let rule = "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or \
                    'claim:<claimName>' if request is empty";
        (resources.items("claims").iter().any(is_it), rule)
    } else {
        let is_requested = resources.get("requests").get(name.text()).is_set();
        (is_requested, "must match one of the container's resource requests")
    };
    if !is_requested {
        verdict.invalid(name.path(), name.text(), rule);
    }
}

/// A container that has ended does not run again, unless the pod's restart policy, its own, or its own rules say so.
fn validate_ended_stay_ended(spec: &At<'_>, of: &str, old: &At<'_>, new: &At<'_>, verdict: &mut Verdict) {
    if of != EPHEMERAL && CONTAINERS.into_iter().flat_map(|list| spec.items(list)).any(|it| restarts_all(&it))
    {
        return;
    }
    let containers = if of == EPHEMERAL { Vec::new() } else { spec.items(of) };
    for (index, was) in old.list().iter().enumerate() {
        let ended = was.get("state").get("terminated");
        let container = containers.iter().find(|container| container.str("name") == was.str("name"));
        let exit_code = ended.get("exitCode").int().unwrap_or(0);
        let is_retried = container
            .is_some_and(|container| restarts_after(container, spec.str("restartPolicy"), exit_code));
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

/// Whether a container runs again after this exit code: by its own rules, its own policy, or that of the pod.
fn restarts_after(container: &At<'_>, pod_policy: &str, exit_code: i64) -> bool {
    let own_policy = container.str("restartPolicy");
    let policy = if own_policy.is_empty() { pod_policy } else { own_policy };
    !own_policy.is_empty() && has_rule_for(container, exit_code)
        || match policy {
            "OnFailure" => exit_code != 0,
            "Never" => false,
            _ => true,
        }
}

/// Whether one of the container's rules starts the whole pod again, whatever has ended.
fn restarts_all(container: &At<'_>) -> bool {
    container.items("restartPolicyRules").iter().any(|rule| rule.str("action") == "RestartAllContainers")
}

/// Whether one of a container's own rules is about this exit code. All that a rule can say is that something starts again.
fn has_rule_for(container: &At<'_>, exit_code: i64) -> bool {
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
