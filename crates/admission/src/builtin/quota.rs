//! Resource quotas: what objects cost, and whether there is enough left.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::Quantity;
use serde_json::Value;

use super::{amounts, findings, pod_amounts};
use crate::json::At;
use crate::{Finding, Reason, Verdict, pod};

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
/// The scopes whose operator can only be `Exists`.
const PLAIN_SCOPES: [&str; 5] =
    ["BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "Terminating"];
/// Scopes of which an object is in one or in the other.
const OPPOSITES: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
/// What limits of claims by their storage class have between the class and what is limited.
const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const CLAIM_LIMITS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

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
            let storage = storage_of(object);
            used.extend(storage.map(|storage| ("requests.storage".to_owned(), storage)));
            let class = storage_class(object);
            if !class.is_empty() {
                let of_class = |limited: &str| format!("{class}{STORAGE_CLASS}{limited}");
                used.insert(of_class("persistentvolumeclaims"), one);
                used.extend(storage.map(|storage| (of_class("requests.storage"), storage)));
            }
        }
        "services" => used.extend(service_usage(object)),
        _ => {}
    }
    used
}

/// What a claim asks for, or what it was given if that is more, in whole bytes.
fn storage_of(claim: &Value) -> Option<Quantity> {
    let asked = amounts(claim.pointer("/spec/resources/requests")).remove("storage")?;
    let given = amounts(claim.pointer("/status/allocatedResources")).remove("storage");
    let storage = given.filter(|given| *given > asked).unwrap_or(asked);
    Some(if storage.milli_value() % 1000 == 0 { storage } else { Quantity::from_units(storage.value()) })
}

fn storage_class(claim: &Value) -> &str {
    let named = claim.pointer("/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    let named = named.or_else(|| claim.pointer("/spec/storageClassName"));
    named.and_then(Value::as_str).unwrap_or_default()
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
            name if is_of_storage_class(name) => plural == "persistentvolumeclaims",
            name if COUNTED.contains(&name) => plural == name,
            _ => plural == "pods",
        }
}

fn is_of_storage_class(limited: &str) -> bool {
    CLAIM_LIMITS.iter().any(|suffix| limited.ends_with(&format!("{STORAGE_CLASS}{suffix}")))
}

/// Whether an object is of the sort that a quota is about. Only pods and claims can be told apart.
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
    let is_in = |(scope, operator, values): (&str, &str, Vec<&str>)| match plural {
        "pods" => in_scope(object, scope, operator, &values),
        "persistentvolumeclaims" if scope == "VolumeAttributesClass" => {
            is_selected(&attribute_classes(object), operator, &values)
        }
        _ => false,
    };
    plain.all(is_in) && demands.all(is_in)
}

fn in_scope(pod: &Value, scope: &str, operator: &str, values: &[&str]) -> bool {
    match scope {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
        "PriorityClass" => {
            let class = pod.pointer("/spec/priorityClassName").and_then(Value::as_str);
            let classes: Vec<&str> = class.into_iter().filter(|class| !class.is_empty()).collect();
            is_selected(&classes, operator, values)
        }
        _ => false,
    }
}

/// Whether a pod is one that ends by itself. A change of a pod may make it one.
pub fn is_terminating(pod: &Value) -> bool {
    let seconds = pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    seconds.is_some_and(|seconds| seconds >= 0)
}

/// Whether no container says how much of the processor or of memory it needs.
fn is_best_effort(pod: &Value) -> bool {
    let is_said = |list: &str| {
        let amounts = pod_amounts(pod, list);
        ["cpu", "memory"].iter().any(|name| amounts.get(*name).is_some_and(|amount| *amount > Quantity::ZERO))
    };
    !is_said("requests") && !is_said("limits")
}

/// Whether a pod wants to be near pods of other namespaces, or far from them.
fn reaches_other_namespaces(pod: &Value) -> bool {
    let terms = |kind: &str, when: &str| {
        let pointer = format!("/spec/affinity/{kind}/{when}DuringSchedulingIgnoredDuringExecution");
        pod.pointer(&pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
    };
    let reaches = |term: &Value| {
        let names = term.get("namespaces").and_then(Value::as_array);
        names.is_some_and(|names| !names.is_empty())
            || term.get("namespaceSelector").is_some_and(|selector| !selector.is_null())
    };
    ["podAffinity", "podAntiAffinity"].into_iter().any(|kind| {
        terms(kind, "required").iter().any(reaches)
            || terms(kind, "preferred").iter().any(|term| term.get("podAffinityTerm").is_some_and(reaches))
    })
}

/// The classes whose attributes a claim has, wants or is being given.
fn attribute_classes(claim: &Value) -> Vec<&str> {
    let places = [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ];
    let classes = places.iter().filter_map(|place| claim.pointer(place)?.as_str());
    classes.filter(|class| !class.is_empty()).collect()
}

/// Whether an object with these classes, which may be none, is selected.
fn is_selected(classes: &[&str], operator: &str, values: &[&str]) -> bool {
    match operator {
        "In" => classes.iter().any(|class| values.contains(class)),
        "NotIn" => classes.is_empty() || classes.iter().any(|class| !values.contains(class)),
        "DoesNotExist" => classes.is_empty(),
        _ => !classes.is_empty(),
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
    // What the quota was not about before its change was not charged to it.
    let before = before.filter(|before| selects(quota, plural, before));
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
        validate_amounts(&quota.get("spec").get("hard"), verdict);
        validate_scopes(&quota.get("spec"), verdict);
        validate_selector(&quota.get("spec"), verdict);
    })
}

/// Says what is wrong with a changed status of a quota.
pub fn validate_status(quota: &Value) -> Vec<Finding> {
    findings(quota, |quota, verdict| {
        for list in ["hard", "used"] {
            validate_amounts(&quota.get("status").get(list), verdict);
        }
    })
}

fn validate_amounts(amounts: &At<'_>, verdict: &mut Verdict) {
    for (resource, amount) in amounts.entries() {
        let path = amount.path();
        pod::resource(resource, path, verdict);
        if !is_standard(resource) && !resource.contains('/') {
            verdict.invalid(path, resource, "must be a standard resource for quota");
        }
        let Some(amount) = amount.quantity() else { continue };
        if amount < Quantity::ZERO {
            verdict.invalid(path, amount.to_string().as_str(), "must be greater than or equal to 0");
        }
        if pod::is_counted(resource) && amount.milli_value() % 1000 != 0 {
            verdict.invalid(path, amount.to_string().as_str(), "must be an integer");
        }
    }
}

/// Says what is wrong with a changed quota. What it is about stays.
pub fn validate_update(quota: &Value, old: &Value) -> Vec<Finding> {
    let scopes = |quota: &Value| -> BTreeSet<String> {
        let scopes = quota.pointer("/spec/scopes").and_then(Value::as_array).into_iter().flatten();
        scopes.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut found = validate(quota);
    if scopes(quota) != scopes(old) {
        found.extend(findings(quota, |quota, verdict| {
            let scopes = quota.get("spec").get("scopes");
            verdict.invalid(scopes.path(), scopes.value(), "field is immutable");
        }));
    }
    found
}

fn validate_scopes(spec: &At<'_>, verdict: &mut Verdict) {
    let scopes = spec.get("scopes");
    let list = scopes.list();
    for scope in &list {
        if !is_scope(scope.text()) {
            verdict.invalid(scopes.path(), scopes.value(), "unsupported scope");
        }
        for _ in 0..n_other_limits(spec, scope.text()) {
            verdict.invalid(scopes.path(), scopes.value(), "unsupported scope applied to resource");
        }
    }
    let has = |name: &str| list.iter().any(|scope| scope.text() == name);
    if OPPOSITES.iter().any(|pair| pair.iter().all(|scope| has(scope))) {
        verdict.invalid(scopes.path(), scopes.value(), "conflicting scopes");
    }
}

fn validate_selector(spec: &At<'_>, verdict: &mut Verdict) {
    let selector = spec.get("scopeSelector");
    let expressions = selector.get("matchExpressions");
    let mut seen = Vec::new();
    for demand in expressions.list() {
        // Upstream does not say which of them it means.
        let place = |field: &str| expressions.get(field);
        let scope = demand.str("scopeName");
        if !is_scope(scope) {
            verdict.invalid(place("scopeName").path(), scope, "unsupported scope");
        }
        for _ in 0..n_other_limits(spec, scope) {
            let shown = shown_selector(&selector);
            let why = format!("Invalid value: {shown}: unsupported scope applied to resource");
            verdict.refuse(expressions.path(), Reason::Invalid, why);
        }
        let (operator, values) = (demand.str("operator"), demand.get("values"));
        if PLAIN_SCOPES.contains(&scope) && operator != "Exists" {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                       ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                       ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            verdict.invalid(place("operator").path(), operator, why);
        }
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                verdict.required(place("values").path(), why);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                verdict.invalid(place("values").path(), values.value(), why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => verdict.invalid(place("operator").path(), other, "not a valid selector operator"),
        }
        seen.push(scope);
    }
    if OPPOSITES.iter().any(|pair| pair.iter().all(|scope| seen.contains(scope))) {
        // Upstream quotes the scopes of the other field here.
        verdict.invalid(expressions.path(), spec.get("scopes").value(), "conflicting scopes");
    }
}

/// A selector as upstream quotes it: Go's names, in the order of its struct.
fn shown_selector(selector: &At<'_>) -> String {
    let demand = |demand: At<'_>| {
        let (scope, operator) = (demand.str("scopeName"), demand.str("operator"));
        let values = demand.get("values").value();
        format!(r#"{{"ScopeName":{scope:?},"Operator":{operator:?},"Values":{values}}}"#)
    };
    let demands: Vec<String> = selector.items("matchExpressions").into_iter().map(demand).collect();
    format!(r#"{{"MatchExpressions":[{}]}}"#, demands.join(","))
}

fn is_scope(scope: &str) -> bool {
    PLAIN_SCOPES.contains(&scope) || matches!(scope, "PriorityClass" | "VolumeAttributesClass")
}

/// How many things a quota limits that objects of a scope do not have.
fn n_other_limits(spec: &At<'_>, scope: &str) -> usize {
    let is_of_scope = |resource: &str| match scope {
        _ if !is_scope(scope) => true,
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => CLAIM_LIMITS.contains(&resource),
        _ => resource == "pods" || MUST_BE_SAID.contains(&resource),
    };
    let hard = spec.get("hard").entries();
    hard.iter().filter(|(resource, _)| is_standard(resource) && !is_of_scope(resource)).count()
}

fn is_standard(resource: &str) -> bool {
    COUNTED.contains(&resource)
        || MUST_BE_SAID.contains(&resource)
        || resource.starts_with("hugepages-")
        || resource.starts_with("requests.hugepages-")
        || matches!(
            resource,
            "ephemeral-storage"
                | "limits.ephemeral-storage"
                | "requests.ephemeral-storage"
                | "requests.storage"
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
    fn claims_are_told_apart_by_the_classes_of_their_attributes() {
        let quota = |operator: &str, values: Value| {
            let demand =
                json!({"scopeName": "VolumeAttributesClass", "operator": operator, "values": values});
            json!({"spec": {"scopeSelector": {"matchExpressions": [demand]}}})
        };
        let plain = json!({"spec": {}});
        let changing = json!({
            "spec": {"volumeAttributesClassName": "fast"}, "status": {"currentVolumeAttributesClassName": "slow"},
        });
        let cases = [
            ("In", json!(["fast"]), false, true),
            ("In", json!(["slow"]), false, true),
            ("In", json!(["other"]), false, false),
            ("NotIn", json!(["fast"]), true, true),
            ("NotIn", json!(["fast", "slow"]), true, false),
            ("Exists", json!(null), false, true),
            ("DoesNotExist", json!(null), true, false),
        ];
        for (operator, values, of_plain, of_changing) in cases {
            let quota = quota(operator, values);
            assert_eq!(selects(&quota, "persistentvolumeclaims", &plain), of_plain, "{quota}");
            assert_eq!(selects(&quota, "persistentvolumeclaims", &changing), of_changing, "{quota}");
            assert!(!selects(&quota, "pods", &pod("1")));
        }
    }

    #[test]
    fn pods_that_reach_other_namespaces_are_a_scope() {
        let quota = json!({"spec": {"scopes": ["CrossNamespacePodAffinity"]}});
        let near = |kind: &str, when: &str, terms: Value| {
            let when = format!("{when}DuringSchedulingIgnoredDuringExecution");
            json!({"spec": {"affinity": {kind: {when: terms}}}})
        };
        let cases = [
            (near("podAffinity", "required", json!([{"namespaces": ["a"]}])), true),
            (near("podAntiAffinity", "required", json!([{}, {"namespaceSelector": {}}])), true),
            (near("podAntiAffinity", "preferred", json!([{"podAffinityTerm": {"namespaces": ["a"]}}])), true),
            (near("podAffinity", "preferred", json!([{"podAffinityTerm": {"namespaces": []}}])), false),
            (near("podAffinity", "required", json!([{"topologyKey": "a"}])), false),
        ];
        for (pod, expected) in cases {
            assert_eq!(selects(&quota, "pods", &pod), expected, "{pod}");
        }
    }

    #[test]
    fn a_claim_costs_its_storage_class_too() {
        let claim = json!({
            "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}},
            "status": {"allocatedResources": {"storage": "2Gi"}},
        });
        let used: Vec<String> = usage("persistentvolumeclaims", "", &claim)
            .iter()
            .map(|(name, amount)| format!("{name}={amount}"))
            .collect();
        assert_eq!(
            used,
            [
                "count/persistentvolumeclaims=1",
                "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1",
                "gold.storageclass.storage.k8s.io/requests.storage=2Gi",
                "persistentvolumeclaims=1",
                "requests.storage=2Gi",
            ]
        );
        assert!(concerns("gold.storageclass.storage.k8s.io/requests.storage", "persistentvolumeclaims", ""));
        assert!(!concerns("gold.storageclass.storage.k8s.io/requests.storage", "pods", ""));
    }

    #[test]
    fn a_pod_that_moves_into_a_scope_is_charged_as_a_whole() {
        let quota = json!({
            "metadata": {"name": "q"}, "spec": {"scopes": ["Terminating"]},
            "status": {"hard": {"pods": "1", "requests.cpu": "1"}, "used": {"pods": "0", "requests.cpu": "0"}},
        });
        let (before, mut after) = (pod("500m"), pod("500m"));
        after["spec"]["activeDeadlineSeconds"] = json!(10);
        let charged = charge(&quota, "pods", "", &after, Some(&before)).unwrap().unwrap();
        let charged: Vec<String> = charged.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        assert_eq!(charged, ["pods=1", "requests.cpu=500m"]);
        assert!(charge(&quota, "pods", "", &after, Some(&after)).is_none());
        assert!(charge(&quota, "pods", "", &before, Some(&after)).is_none());
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
