//! What containers ask for, and what the pod as a whole asks for.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::Quantity;
use serde_json::Value;

use crate::json::At;
use crate::{Path, Reason, Verdict, names};

use super::check;
use super::spec::Pod;

/// A rule for the name of a resource.
type NameRule = fn(&str, &Path, &mut Verdict);

/// Checks what a container asks for.
pub(super) fn validate_container(resources: &At<'_>, claims: &BTreeSet<&str>, verdict: &mut Verdict) {
    validate_amounts(
        &resources.get("limits"),
        &resources.get("requests"),
        resources.path(),
        container_resource,
        verdict,
    );
    validate_claim_names(&resources.get("claims"), claims, verdict);
}

/// Checks what a pod needs besides its containers. Kubernetes reads it as limits.
pub(super) fn validate_overhead(overhead: &At<'_>, verdict: &mut Verdict) {
    let limits = overhead.clone().reported_at(overhead.path().field("limits"));
    validate_amounts(&limits, &overhead.nothing(), overhead.path(), container_resource, verdict);
}

/// Fills in what a pod as a whole asks for, from what it is limited to and from its containers.
pub fn default_pod_level(spec: &mut Value) {
    let at = At::new(spec, Path::default());
    let resources = at.get("resources");
    let [mut limits, mut requests] =
        ["limits", "requests"].map(|list| resources.get(list).fields().cloned().unwrap_or_default());
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    for (name, amount) in containers_need(&at, "limits").into_iter().filter(|(name, _)| is_huge_page(name)) {
        if !requests.contains_key(&name) {
            limits.entry(name).or_insert_with(|| amount.to_string().into());
        }
    }
    if !limits.is_empty() {
        let needed = containers_need(&at, "requests").into_iter();
        for (name, amount) in needed.filter(|(name, _)| is_pod_level(name) && !is_huge_page(name)) {
            requests.entry(name).or_insert_with(|| amount.to_string().into());
        }
        for (name, limit) in limits.iter().filter(|(name, _)| is_pod_level(name)) {
            requests.entry(name.clone()).or_insert_with(|| limit.clone());
        }
    }
    let Some(resources) = spec.get_mut("resources").and_then(Value::as_object_mut) else { return };
    for (name, amounts) in [("limits", limits), ("requests", requests)] {
        if !amounts.is_empty() {
            resources.insert(name.into(), amounts.into());
        }
    }
}

/// Checks what a pod as a whole asks for, and that its containers fit in.
pub(super) fn validate_pod_level(spec: &At<'_>, pod: &Pod<'_>, verdict: &mut Verdict) {
    let resources = spec.get("resources");
    if !resources.is_set() {
        return;
    }
    if pod.os.str("name") == "windows" {
        verdict.forbidden(resources.path(), "may not be set for a windows pod");
        return;
    }
    if resources.get("claims").is_set() {
        verdict.forbidden(resources.get("claims").path(), "claims may not be set for Resources at pod-level");
    }
    validate_amounts(
        &resources.get("limits"),
        &resources.get("requests"),
        resources.path(),
        pod_resource,
        verdict,
    );
    validate_claim_names(&resources.get("claims"), &pod.claims, verdict);
    for (kind, is_checked) in [("requests", any_resource as fn(&str) -> bool), ("limits", is_huge_page)] {
        let own = resources.get(kind);
        for (name, needed) in containers_need(spec, kind) {
            let Some(amount) = amount_at(&own.get(&name)).filter(|_| is_checked(&name)) else { continue };
            if needed > amount {
                let rule = format!("must be greater than or equal to aggregate container {kind} of {needed}");
                verdict.invalid(&own.path().key(&name), amount.to_string(), rule);
            }
        }
    }
    let limits = resources.get("limits");
    for (index, container) in spec.items("containers").iter().enumerate() {
        for (name, limit) in container.get("resources").get("limits").entries() {
            let pod_limit = amount_at(&limits.get(name));
            if let (Some(limit), Some(pod_limit)) = (amount_at(&limit), pod_limit)
                && limit > pod_limit
            {
                let path = resources.path().field("containers").index(index).key(name).field("limits");
                let rule = format!("must be less than or equal to pod limits of {pod_limit}");
                verdict.invalid(&path, limit.to_string(), rule);
            }
        }
    }
}

fn any_resource(_: &str) -> bool {
    true
}

/// What all containers need at once: those that run together, or one init container beside the sidecars before it,
/// whichever is more.
fn containers_need(spec: &At<'_>, kind: &str) -> BTreeMap<String, Quantity> {
    let amounts = |container: &At<'_>| -> BTreeMap<String, Quantity> {
        let entries = container.get("resources").get(kind).entries();
        entries
            .into_iter()
            .filter_map(|(name, amount)| Some((name.to_owned(), amount_at(&amount)?)))
            .collect()
    };
    let add = |total: &mut BTreeMap<String, Quantity>, more: &BTreeMap<String, Quantity>| {
        for (name, amount) in more {
            *total.entry(name.clone()).or_default() += *amount;
        }
    };
    let (mut sidecars, mut peak) = (BTreeMap::new(), BTreeMap::<String, Quantity>::new());
    for container in spec.items("initContainers") {
        let mut at_once = amounts(&container);
        if container.str("restartPolicy") == "Always" {
            add(&mut sidecars, &at_once);
            at_once = sidecars.clone();
        } else {
            add(&mut at_once, &sidecars);
        }
        raise(&mut peak, at_once);
    }
    let mut together = sidecars;
    for container in spec.items("containers") {
        add(&mut together, &amounts(&container));
    }
    raise(&mut peak, together);
    peak
}

/// Raises each amount to that of `other`, where it is higher.
fn raise(peak: &mut BTreeMap<String, Quantity>, other: BTreeMap<String, Quantity>) {
    for (name, amount) in other {
        let highest = peak.entry(name).or_insert(amount);
        *highest = (*highest).max(amount);
    }
}

/// Checks requests and limits against each other.
fn validate_amounts(
    limits: &At<'_>,
    requests: &At<'_>,
    path: &Path,
    name_rule: NameRule,
    verdict: &mut Verdict,
) {
    for (name, limit) in limits.entries() {
        name_rule(name, limit.path(), verdict);
        validate_amount(name, &limit, verdict);
    }
    for (name, request) in requests.entries() {
        name_rule(name, request.path(), verdict);
        validate_amount(name, &request, verdict);
        if let Some(amount) = amount_at(&request) {
            validate_request(name, amount, limits, requests, verdict);
        }
    }
    let names: BTreeSet<&str> =
        limits.entries().iter().chain(&requests.entries()).map(|(name, _)| *name).collect();
    let has_base = names.contains("cpu") || names.contains("memory");
    if !has_base && names.iter().any(|name| is_huge_page(name)) {
        verdict.forbidden(path, "HugePages require cpu or memory");
    }
}

/// A request fits within its limit; what cannot be shared must be limited, to just that.
fn validate_request(name: &str, amount: Quantity, limits: &At<'_>, requests: &At<'_>, verdict: &mut Verdict) {
    let may_exceed = is_native(name) && !is_huge_page(name);
    match amount_at(&limits.get(name)) {
        Some(limit) if amount != limit && !may_exceed => {
            let rule = format!("must be equal to {name} limit of {limit}");
            verdict.invalid(requests.path(), amount.to_string(), rule);
        }
        Some(limit) if amount > limit => {
            let rule = format!("must be less than or equal to {name} limit of {limit}");
            verdict.invalid(requests.path(), amount.to_string(), rule);
        }
        None if !may_exceed => {
            verdict.required(limits.path(), "Limit must be set for non overcommitable resources");
        }
        Some(_) | None => {}
    }
}

/// An amount of a resource; nobody gets less than a thousandth.
fn amount_at(at: &At<'_>) -> Option<Quantity> {
    let amount = at.quantity()?;
    let rounded = Quantity::from_milli(amount.milli_value());
    Some(if rounded == amount { amount } else { rounded })
}

fn validate_amount(name: &str, at: &At<'_>, verdict: &mut Verdict) {
    let Some(amount) = amount_at(at) else {
        if at.is_set() {
            verdict.invalid(at.path(), at.value(), "must be a quantity such as 500m, 2 or 1Gi");
        }
        return;
    };
    if amount.is_negative() {
        verdict.invalid(at.path(), amount.to_string(), "must be greater than or equal to 0");
    }
    if is_counted(name) && amount.milli_value() % 1000 != 0 {
        verdict.invalid(at.path(), amount.to_string(), "must be an integer");
    }
    let Some(page) = name.strip_prefix(HUGE_PAGES) else { return };
    let page = page.parse::<Quantity>().ok().map(Quantity::value).filter(|size| *size > 0);
    if page.is_none_or(|size| amount.value() % size != 0) {
        let rule = format!("{amount} is not positive integer multiple of {name}");
        verdict.invalid(at.path(), amount.to_string(), rule);
    }
}

const HUGE_PAGES: &str = "hugepages-";
/// Names without a domain that have a meaning somewhere in Kubernetes.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// Whether a resource is Kubernetes' own.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a resource is somebody else's.
fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether a resource comes in whole pieces.
pub(crate) fn is_counted(name: &str) -> bool {
    const OBJECTS: [&str; 9] = [
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    ];
    OBJECTS.contains(&name) || is_extended(name)
}

/// Says whether a name is one of a resource at all.
pub(crate) fn resource(name: &str, path: &Path, verdict: &mut Verdict) -> bool {
    let wrong = names::qualified_name(name);
    let is_standard =
        STANDARD.contains(&name) || is_huge_page(name) || name.starts_with("requests.hugepages-");
    let n_before = verdict.refusals.len();
    if !wrong.is_empty() {
        verdict.invalid_each(path, name, wrong);
    } else if !name.contains('/') && !is_standard {
        verdict.invalid(path, name, "must be a standard resource type or fully qualified");
    }
    verdict.refusals.len() == n_before
}

/// A name of something that a container can ask for.
pub(crate) fn container_resource(name: &str, path: &Path, verdict: &mut Verdict) {
    resource(name, path, verdict);
    let is_standard = ["cpu", "memory", "ephemeral-storage"].contains(&name) || is_huge_page(name);
    if !name.contains('/') {
        if !is_standard {
            verdict.invalid(path, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        verdict.invalid(path, name, "doesn't follow extended resource name standard");
    }
}

fn is_pod_level(name: &str) -> bool {
    ["cpu", "memory"].contains(&name) || is_huge_page(name)
}

fn pod_resource(name: &str, path: &Path, verdict: &mut Verdict) {
    if resource(name, path, verdict) && !is_pod_level(name) {
        verdict.unsupported(path, name, &["cpu", HUGE_PAGES, "memory"]);
    }
}

/// Claims of devices, by the pod.
pub(super) fn validate_claims(claims: &At<'_>, verdict: &mut Verdict) {
    let mut seen = BTreeSet::new();
    for claim in claims.list() {
        let name = claim.get("name");
        if name.text().is_empty() {
            verdict.required(name.path(), "");
        } else if !seen.insert(name.text()) {
            verdict.duplicate(name.path(), name.text());
        } else {
            check::name(&name, names::dns_label, verdict);
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"].map(|field| claim.get(field));
        let rule = match sources.iter().filter(|source| source.is_set()).count() {
            0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            1 => "",
            _ => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        };
        if !rule.is_empty() {
            verdict.invalid_object(claim.path(), "core.PodResourceClaim", claim.value(), rule);
        }
        for source in sources.iter().filter(|source| source.is_set()) {
            verdict.invalid_each(source.path(), source.text(), names::dns_subdomain(source.text()));
        }
    }
}

/// Claims of devices, by a container: each must be one of the pod's.
fn validate_claim_names(claims: &At<'_>, known: &BTreeSet<&str>, verdict: &mut Verdict) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for claim in claims.list() {
        let (name, request) = (claim.str("name"), claim.get("request"));
        if name.is_empty() {
            verdict.required(claim.path(), "");
            continue;
        }
        let part = format!("{name}/{}", request.text());
        let key = if request.text().is_empty() { name } else { &part };
        let is_whole_taken = seen.contains(name);
        let is_part_taken = request.text().is_empty() && seen.iter().any(|key| key.starts_with(&part));
        if is_whole_taken || is_part_taken {
            verdict.duplicate(claim.path(), name);
        } else {
            check::name(&request, names::dns_label, verdict);
            if seen.contains(key) {
                verdict.duplicate(claim.path(), key);
            }
        }
        seen.insert(key.to_owned());
        if !known.contains(name) {
            let all: Vec<&str> = known.iter().copied().collect();
            let detail =
                if all.is_empty() { " which is empty".to_owned() } else { format!(": {}", all.join(", ")) };
            let message =
                format!("Not found: {name:?}: must be one of the names in pod.spec.resourceClaims{detail}");
            verdict.refuse(claim.path(), Reason::NotFound, message);
        }
    }
}
