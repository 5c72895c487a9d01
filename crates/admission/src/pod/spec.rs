//! The spec of a pod, part by part.

use std::collections::{BTreeMap, BTreeSet};

use crate::json::At;
use crate::{Verdict, names};

use super::{check, container, resources, scheduling, security, volume};

/// How long a pod has to end unless it says so itself.
const GRACE_PERIOD_SECONDS: i64 = 30;

/// Whose rules count, where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Volcano's webhooks check templates with every rule off that Kubernetes has relaxed since.
    Volcano,
    /// The API server has them on.
    Kubernetes,
}

/// What the containers of a pod need to know of it.
pub(super) struct Pod<'a> {
    /// The volumes whose own checks found nothing.
    pub(super) volumes: BTreeMap<&'a str, At<'a>>,
    /// The names of its resource claims.
    pub(super) claims: BTreeSet<&'a str>,
    /// How long it has to end.
    pub(super) grace_period_seconds: i64,
    /// When its containers are started again.
    pub(super) restart_policy: &'a str,
    /// The system it is for, if it says so.
    pub(super) os: At<'a>,
    /// Whether its users are the host's users.
    pub(super) has_host_users: bool,
    /// Whose rules count.
    pub(super) dialect: Dialect,
}

/// Checks the spec of a pod.
pub(super) fn validate(spec: &At<'_>, dialect: Dialect, verdict: &mut Verdict) {
    let grace = spec.get("terminationGracePeriodSeconds").int();
    let restart_policy = spec.str("restartPolicy");
    let pod = Pod {
        volumes: volume::validate(&spec.get("volumes"), verdict),
        claims: spec
            .items("resourceClaims")
            .iter()
            .map(|claim| claim.str("name"))
            .filter(|name| !name.is_empty())
            .collect(),
        grace_period_seconds: grace.unwrap_or(GRACE_PERIOD_SECONDS),
        restart_policy: if restart_policy.is_empty() { "Always" } else { restart_policy },
        os: spec.get("os"),
        has_host_users: spec.get("hostUsers").value().as_bool() != Some(false),
        dialect,
    };
    resources::validate_claims(&spec.get("resourceClaims"), verdict);
    container::validate(spec, &pod, verdict);
    resources::validate_pod_level(spec, &pod, verdict);
    validate_host_network(spec, verdict);
    check::word_or_default(&spec.get("restartPolicy"), &["Always", "OnFailure", "Never"], verdict);
    let dns_policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    check::word_or_default(&spec.get("dnsPolicy"), &dns_policies, verdict);
    check::labels(&spec.get("nodeSelector"), verdict);
    security::validate_pod(spec, verdict);
    scheduling::validate_affinity(&spec.get("affinity"), verdict);
    validate_dns_config(spec, verdict);
    for gate in spec.items("readinessGates") {
        check::label_key(&gate.get("conditionType"), verdict);
    }
    scheduling::validate_gates(&spec.get("schedulingGates"), verdict);
    scheduling::validate_topology_spread(&spec.get("topologySpreadConstraints"), dialect, verdict);
    security::validate_host_process(spec, verdict);
    security::validate_host_users(spec, &pod, verdict);
    validate_hostname_override(spec, verdict);
    validate_names(spec, verdict);
    check::range(&spec.get("activeDeadlineSeconds"), 1, i64::from(i32::MAX), verdict);
    scheduling::validate_tolerations(&spec.get("tolerations"), verdict);
    for alias in spec.items("hostAliases") {
        check::ip_address(&alias.get("ip"), verdict);
        for hostname in alias.items("hostnames") {
            verdict.invalid_each(hostname.path(), hostname.text(), names::dns_subdomain(hostname.text()));
        }
    }
    let preemption = spec.get("preemptionPolicy");
    if preemption.is_set() && check::text(&preemption, verdict) {
        check::word(&preemption, &["PreemptLowerPriority", "Never"], verdict);
    }
    resources::validate_overhead(&spec.get("overhead"), verdict);
    security::validate_os(spec, verdict);
    validate_scheduling_group(&spec.get("schedulingGroup"), verdict);
    validate_file_key_volumes(spec, verdict);
}

/// All containers of a pod, in the order in which they start.
pub(super) fn all_containers<'a>(spec: &At<'a>) -> impl Iterator<Item = At<'a>> {
    let kinds = ["initContainers", "containers", "ephemeralContainers"];
    kinds.map(|kind| spec.items(kind)).into_iter().flatten()
}

fn validate_names(spec: &At<'_>, verdict: &mut Verdict) {
    type Rule = fn(&str) -> Vec<String>;
    let rules: [(&str, Rule); 5] = [
        ("serviceAccountName", names::dns_subdomain),
        ("nodeName", names::dns_subdomain),
        ("hostname", names::dns_label),
        ("subdomain", names::dns_label),
        ("priorityClassName", names::dns_subdomain),
    ];
    for (field, rule) in rules {
        check::name(&spec.get(field), rule, verdict);
    }
    let runtime_class = spec.get("runtimeClassName");
    if runtime_class.is_set() {
        let name = runtime_class.text();
        verdict.invalid_each(runtime_class.path(), name, names::dns_subdomain(name));
    }
}

/// In the host's network, a port of the container is a port of the host.
fn validate_host_network(spec: &At<'_>, verdict: &mut Verdict) {
    if !spec.get("hostNetwork").is_true() {
        return;
    }
    for port in spec.items("containers").iter().flat_map(|container| container.items("ports")) {
        let (host, own) = (port.get("hostPort"), port.get("containerPort").int());
        if let Some(number) = host.int().filter(|number| *number != 0 && Some(*number) != own) {
            verdict.invalid(host.path(), number, "must match `containerPort` when `hostNetwork` is true");
        }
    }
}

fn validate_dns_config(spec: &At<'_>, verdict: &mut Verdict) {
    let config = spec.get("dnsConfig");
    let servers = config.get("nameservers");
    if spec.str("dnsPolicy") == "None" {
        if !config.is_set() {
            verdict.required(config.path(), "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if servers.is_empty() {
            verdict.required(
                servers.path(),
                "must provide at least one DNS nameserver when `dnsPolicy` is None",
            );
            return;
        }
    }
    if servers.list().len() > 3 {
        verdict.invalid(servers.path(), servers.value(), "must not have more than 3 nameservers");
    }
    servers.list().iter().for_each(|server| check::ip_address(server, verdict));
    validate_dns_searches(&config.get("searches"), verdict);
    for option in config.items("options") {
        if option.str("name").is_empty() {
            verdict.required(option.path(), "must not be empty");
        }
    }
}

fn validate_dns_searches(searches: &At<'_>, verdict: &mut Verdict) {
    let list = searches.list();
    if list.len() > 32 {
        verdict.invalid(searches.path(), searches.value(), "must not have more than 32 search paths");
    }
    let n_characters = list.iter().map(|search| search.text().len() + 1).sum::<usize>().saturating_sub(1);
    if n_characters > 2048 {
        let rule = "must not have more than 2048 characters (including spaces) in the search list";
        verdict.invalid(searches.path(), searches.value(), rule);
    }
    for search in list.iter().filter(|search| search.text() != ".") {
        let name = search.text().strip_suffix('.').unwrap_or(search.text());
        verdict.invalid_each(search.path(), name, names::relaxed_dns_subdomain(name));
    }
}

fn validate_hostname_override(spec: &At<'_>, verdict: &mut Verdict) {
    let hostname = spec.get("hostnameOverride");
    if !hostname.is_set() {
        return;
    }
    if spec.get("setHostnameAsFQDN").is_true() {
        verdict.forbidden(hostname.path(), "may not be specified when setHostnameAsFQDN is true");
    }
    if spec.get("hostNetwork").is_true() {
        verdict.forbidden(hostname.path(), "may not be specified when hostNetwork is true");
    }
    if hostname.text().len() > 64 {
        verdict.too_long(hostname.path(), 64);
    }
    verdict.invalid_each(hostname.path(), hostname.text(), names::dns_subdomain(hostname.text()));
}

fn validate_scheduling_group(group: &At<'_>, verdict: &mut Verdict) {
    if !group.is_set() {
        return;
    }
    let name = group.get("podGroupName");
    if name.is_set() {
        verdict.invalid_each(name.path(), name.text(), names::dns_subdomain(name.text()));
    } else {
        verdict.invalid(name.path(), name.value(), "must specify one of: `podGroupName`");
    }
}

/// A file of variables must be in a volume that the pod itself fills.
fn validate_file_key_volumes(spec: &At<'_>, verdict: &mut Verdict) {
    let volumes = spec.items("volumes");
    for variable in all_containers(spec).flat_map(|container| container.items("env")) {
        let file = variable.get("valueFrom").get("fileKeyRef");
        if !file.is_set() {
            continue;
        }
        let name = file.get("volumeName");
        match volumes.iter().find(|volume| volume.str("name") == name.text()) {
            None => verdict.not_found(name.path(), name.text()),
            Some(volume) if !volume.get("emptyDir").is_set() => {
                verdict.invalid(name.path(), name.text(), "referenced volume must be of type emptyDir");
            }
            Some(_) => {}
        }
    }
}
