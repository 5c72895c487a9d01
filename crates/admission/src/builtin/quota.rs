//! Resource quotas: what objects cost, and whether there is enough left.

use std::collections::BTreeMap;

use krafla_api::Quantity;
use serde_json::Value;

use super::{amounts, findings, pod_amounts};
use crate::{Finding, names};

/// Amounts by name, as a quota lists them.
pub type Amounts = BTreeMap<String, Quantity>;

/// Kinds that could be counted before all kinds could.
const COUNTED: [&str; 7] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];
/// What every container must say when a quota limits it, since it could take anything otherwise.
const MUST_BE_SAID: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];
const SCOPES: [&str; 6] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
];

/// What an object of a resource, by plural and group, costs.
pub fn usage(plural: &str, group: &str, object: &Value) -> Amounts {
    let mut used = Amounts::new();
    let one = Quantity::from_units(1);
    let counted =
        if group.is_empty() { format!("count/{plural}") } else { format!("count/{plural}.{group}") };
    used.insert(counted, one);
    if !group.is_empty() {
        return used;
    }
    if COUNTED.contains(&plural) && (plural != "pods" || !is_over(object)) {
        used.insert(plural.to_owned(), one);
    }
    match plural {
        "pods" if !is_over(object) => used.extend(pod_usage(object)),
        "persistentvolumeclaims" => {
            let storage = amounts(object.pointer("/spec/resources/requests")).remove("storage");
            used.extend(storage.map(|storage| ("requests.storage".to_owned(), storage)));
        }
        "services" => used.extend(service_usage(object)),
        _ => {}
    }
    used
}

fn is_over(pod: &Value) -> bool {
    matches!(pod.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"))
}

fn pod_usage(pod: &Value) -> Amounts {
    let mut used = Amounts::new();
    for (resource, amount) in pod_amounts(pod, "requests") {
        if matches!(resource.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            used.insert(resource.clone(), amount);
        }
        used.insert(format!("requests.{resource}"), amount);
    }
    let limits = pod_amounts(pod, "limits");
    used.extend(limits.into_iter().map(|(resource, amount)| (format!("limits.{resource}"), amount)));
    used
}

fn service_usage(service: &Value) -> Amounts {
    let kind = service.pointer("/spec/type").and_then(Value::as_str).unwrap_or_default();
    let n_ports = service.pointer("/spec/ports").and_then(Value::as_array).map_or(0, Vec::len);
    let n_ports = Quantity::from_units(i64::try_from(n_ports).unwrap_or(i64::MAX));
    let one = Quantity::from_units(1);
    let used: &[(&str, Quantity)] = match kind {
        "NodePort" => &[("services.nodeports", n_ports)],
        "LoadBalancer" => &[("services.nodeports", n_ports), ("services.loadbalancers", one)],
        _ => &[],
    };
    used.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect()
}

/// Whether a quota's limit of this name counts objects of a resource at all.
pub fn concerns(limited: &str, plural: &str, group: &str) -> bool {
    if let Some(counted) = limited.strip_prefix("count/") {
        return if group.is_empty() { counted == plural } else { counted == format!("{plural}.{group}") };
    }
    group.is_empty()
        && match limited {
            "requests.storage" => plural == "persistentvolumeclaims",
            "services.nodeports" | "services.loadbalancers" => plural == "services",
            name if COUNTED.contains(&name) => plural == name,
            _ => plural == "pods",
        }
}

/// Whether an object is of the sort that a quota is about. Only pods can be told apart.
pub fn selects(quota: &Value, plural: &str, object: &Value) -> bool {
    let spec = quota.get("spec").unwrap_or(&Value::Null);
    let plain = spec.get("scopes").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut plain = plain.map(|scope| (scope, "Exists", Vec::new()));
    let demands = spec.pointer("/scopeSelector/matchExpressions").and_then(Value::as_array);
    let mut demands = demands.into_iter().flatten().map(|demand| {
        let text = |name: &str| demand.get(name).and_then(Value::as_str).unwrap_or_default();
        let values = demand.get("values").and_then(Value::as_array).into_iter().flatten();
        (text("scopeName"), text("operator"), values.filter_map(Value::as_str).collect())
    });
    let is_in = |(scope, operator, values): (&str, &str, Vec<&str>)| {
        plural == "pods" && in_scope(object, scope, operator, &values)
    };
    plain.all(is_in) && demands.all(is_in)
}

fn in_scope(pod: &Value, scope: &str, operator: &str, values: &[&str]) -> bool {
    let has_deadline = pod.pointer("/spec/activeDeadlineSeconds").is_some_and(|seconds| !seconds.is_null());
    let asks_nothing = pod_amounts(pod, "requests").is_empty() && pod_amounts(pod, "limits").is_empty();
    match scope {
        "Terminating" => has_deadline,
        "NotTerminating" => !has_deadline,
        "BestEffort" => asks_nothing,
        "NotBestEffort" => !asks_nothing,
        "PriorityClass" => {
            let class = pod.pointer("/spec/priorityClassName").and_then(Value::as_str).unwrap_or_default();
            match operator {
                "In" => values.contains(&class),
                "NotIn" => !values.contains(&class),
                "DoesNotExist" => class.is_empty(),
                _ => !class.is_empty(),
            }
        }
        _ => false,
    }
}

/// What a quota would be used to with one more object, or with what a changed one costs more than before; or why there is
/// not enough left. `None` if the object is none of the quota's business. What costs less is given back when the quota is
/// counted anew.
pub fn charge(
    quota: &Value,
    plural: &str,
    group: &str,
    object: &Value,
    before: Option<&Value>,
) -> Option<Result<Amounts, String>> {
    let name = quota.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let hard = amounts(quota.pointer("/status/hard"));
    let used = amounts(quota.pointer("/status/used"));
    if !selects(quota, plural, object) {
        return None;
    }
    let limited: Vec<&String> = hard.keys().filter(|limited| concerns(limited, plural, group)).collect();
    if plural == "pods" && group.is_empty() && before.is_none() {
        let unsaid = unsaid(&limited, object);
        if !unsaid.is_empty() {
            return Some(Err(format!("failed quota: {name}: must specify {unsaid}")));
        }
    }
    let mut cost = usage(plural, group, object);
    for (resource, paid) in before.map(|before| usage(plural, group, before)).unwrap_or_default() {
        if let Some(amount) = cost.get_mut(&resource) {
            *amount -= paid;
        }
    }
    cost.retain(|resource, amount| limited.contains(&resource) && *amount > Quantity::ZERO);
    if cost.is_empty() {
        return None;
    }
    let unknown: Vec<&str> = cost.keys().filter(|key| !used.contains_key(*key)).map(String::as_str).collect();
    if !unknown.is_empty() {
        return Some(Err(format!("status unknown for quota: {name}, resources: {}", unknown.join(","))));
    }
    let mut after = used.clone();
    for (resource, amount) in &cost {
        *after.entry(resource.clone()).or_default() += *amount;
    }
    let exceeded = |key: &&String| after.get(*key) > hard.get(*key);
    let exceeded: Vec<&String> = cost.keys().filter(exceeded).collect();
    if exceeded.is_empty() {
        return Some(Ok(after));
    }
    let list = |of: &Amounts| {
        let amounts = exceeded.iter().filter_map(|key| Some(format!("{key}={}", of.get(*key)?)));
        amounts.collect::<Vec<_>>().join(",")
    };
    let (requested, used, limited) = (list(&cost), list(&used), list(&hard));
    Some(Err(format!("exceeded quota: {name}, requested: {requested}, used: {used}, limited: {limited}")))
}

/// What the containers of a pod leave unsaid although it is limited, each with the containers that do.
fn unsaid(limited: &[&String], pod: &Value) -> String {
    let mut missing = Vec::new();
    for resource in
        MUST_BE_SAID.into_iter().filter(|resource| limited.iter().any(|limited| limited == resource))
    {
        let (list, name) = resource.split_once('.').unwrap_or(("requests", resource));
        let containers = ["containers", "initContainers"].into_iter();
        let containers =
            containers.filter_map(|list| pod.pointer(&format!("/spec/{list}"))?.as_array()).flatten();
        let silent =
            containers.filter(|container| container.pointer(&format!("/resources/{list}/{name}")).is_none());
        let silent: Vec<&str> = silent.filter_map(|container| container.get("name")?.as_str()).collect();
        if !silent.is_empty() {
            missing.push(format!("{resource} for: {}", silent.join(",")));
        }
    }
    missing.join("; ")
}

/// Says what is wrong with a quota.
pub fn validate(quota: &Value) -> Vec<Finding> {
    findings(quota, |quota, verdict| {
        for (resource, amount) in quota.get("spec").get("hard").entries() {
            let path = amount.path();
            let wrong = names::qualified_name(resource);
            let is_known = is_standard(resource);
            if wrong.is_empty() && !is_known && !resource.contains('/') {
                verdict.invalid(path, resource, "must be a standard resource type or fully qualified");
            }
            verdict.invalid_each(path, resource, wrong);
            if !is_known && !resource.contains('/') {
                verdict.invalid(path, resource, "must be a standard resource for quota");
            }
            let Some(amount) = amount.quantity() else { continue };
            if amount < Quantity::ZERO {
                verdict.invalid(path, amount.to_string().as_str(), "must be greater than or equal to 0");
            }
            let is_count = COUNTED.contains(&resource)
                || resource.contains("services.")
                || resource.starts_with("count/");
            if is_count && amount.milli_value() % 1000 != 0 {
                verdict.invalid(path, amount.to_string().as_str(), "must be an integer");
            }
        }
        let scopes = quota.get("spec").get("scopes");
        if scopes.list().iter().any(|scope| !SCOPES.contains(&scope.text())) {
            verdict.invalid(scopes.path(), scopes.value(), "unsupported scope");
        }
    })
}

fn is_standard(resource: &str) -> bool {
    COUNTED.contains(&resource)
        || MUST_BE_SAID.contains(&resource)
        || resource.starts_with("requests.")
        || matches!(
            resource,
            "ephemeral-storage"
                | "limits.ephemeral-storage"
                | "services.loadbalancers"
                | "services.nodeports"
        )
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn pod(cpu: &str) -> Value {
        json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
    }

    fn check(status: Value, pod: &Value, expected: Expect) {
        let quota = json!({"metadata": {"name": "q"}, "status": status});
        let shown = match charge(&quota, "pods", "", pod, None) {
            None => "nothing".to_owned(),
            Some(Err(why)) => why,
            Some(Ok(used)) => {
                used.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(" ")
            }
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn a_pod_is_charged_or_refused() {
        let status = |used: &str| json!({"hard": {"pods": "2", "requests.cpu": "1"}, "used": {"pods": "1", "requests.cpu": used}});
        check(status("200m"), &pod("600m"), expect!["pods=2 requests.cpu=800m"]);
        check(
            status("600m"),
            &pod("600m"),
            expect![
                "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
            ],
        );
        let silent = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
        check(status("0"), &silent, expect!["failed quota: q: must specify requests.cpu for: a,b"]);
        check(
            json!({"hard": {"pods": "1"}}),
            &pod("1"),
            expect!["status unknown for quota: q, resources: pods"],
        );
        check(json!({"hard": {"count/jobs.batch": "0"}}), &pod("1"), expect!["nothing"]);
    }

    #[test]
    fn a_pod_that_is_over_costs_its_place_in_the_count_only() {
        let mut pod = pod("1");
        pod["status"] = json!({"phase": "Succeeded"});
        assert_eq!(usage("pods", "", &pod).into_keys().collect::<Vec<_>>(), ["count/pods"]);
    }

    #[test]
    fn scopes_tell_pods_apart() {
        let quota = |scopes: Value| json!({"spec": {"scopes": scopes}});
        assert!(selects(&quota(json!(["NotBestEffort", "NotTerminating"])), "pods", &pod("1")));
        assert!(!selects(&quota(json!(["BestEffort"])), "pods", &pod("1")));
        let demand = json!({"scopeName": "PriorityClass", "operator": "In", "values": ["high"]});
        let quota = json!({"spec": {"scopeSelector": {"matchExpressions": [demand]}}});
        assert!(selects(&quota, "pods", &json!({"spec": {"priorityClassName": "high"}})));
        assert!(!selects(&quota, "pods", &pod("1")));
        assert!(!selects(&quota, "services", &json!({})));
    }

    #[test]
    fn services_cost_ports() {
        let service = json!({"spec": {"type": "LoadBalancer", "ports": [{}, {}]}});
        let used: Vec<String> =
            usage("services", "", &service).iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        assert_eq!(
            used,
            ["count/services=1", "services=1", "services.loadbalancers=1", "services.nodeports=2"]
        );
    }
}
