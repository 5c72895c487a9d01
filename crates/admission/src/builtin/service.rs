//! Services: what may be left out, and what is refused.
//!
//! Which address a service gets is not decided here: by the time of these checks it has one, or has said what it wants.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::{default_to, findings, items};
use crate::json::At;
use crate::look::findings_of_change;
use crate::pod::{self, check};
use crate::{Finding, Path, Verdict, names};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
const CHANGED: &str = "may not change once set";
/// Longest time for which a client keeps its pod: a day.
const AFFINITY_SECONDS_MAX: i64 = 86_400;
const AFFINITY_SECONDS_DEFAULT: i64 = 10_800;
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// Fills in what a service may leave out.
pub fn default(service: &mut Value) {
    let Some(fields) = service.as_object_mut() else { return };
    default_to(fields, "spec", json!({}));
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else { return };
    default_to(spec, "sessionAffinity", "None");
    default_to(spec, "type", "ClusterIP");
    match spec.get("sessionAffinity").and_then(Value::as_str) {
        Some("ClientIP") => default_affinity(spec),
        Some("None") => {
            spec.remove("sessionAffinityConfig");
        }
        _ => {}
    }
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if ["ClusterIP", "NodePort", "LoadBalancer"].contains(&kind.as_str()) {
        default_to(spec, "internalTrafficPolicy", "Cluster");
    }
    let has_external_address =
        spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    if is_reached_from_outside(&kind, has_external_address) {
        default_to(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default_to(spec, "allocateLoadBalancerNodePorts", true);
    }
    let Some(spec) = service.get_mut("spec") else { return };
    for port in items(spec, "ports") {
        default_to(port, "protocol", "TCP");
        let is_unset = |target: Option<&Value>| target.is_none_or(|target| target == 0 || target == "");
        if is_unset(port.get("targetPort"))
            && let Some(number) = port.get("port").cloned()
        {
            port.insert("targetPort".into(), number);
        }
    }
    if kind == "LoadBalancer"
        && let Some(balancer) = service.pointer_mut("/status/loadBalancer")
    {
        for ingress in items(balancer, "ingress").filter(|ingress| ingress.contains_key("ip")) {
            default_to(ingress, "ipMode", "VIP");
        }
    }
}

fn default_affinity(spec: &mut Map<String, Value>) {
    let is_set = |spec: &Map<String, Value>| {
        spec.get("sessionAffinityConfig")
            .and_then(|config| config.pointer("/clientIP/timeoutSeconds"))
            .is_some()
    };
    if !is_set(spec) {
        let config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS_DEFAULT}});
        spec.insert("sessionAffinityConfig".into(), config);
    }
}

fn is_reached_from_outside(kind: &str, has_external_address: bool) -> bool {
    match kind {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => has_external_address,
        _ => false,
    }
}

/// What the author of a service should know.
pub fn warnings(service: &Value) -> Vec<String> {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let service = At::new(service, Path::default());
    let (annotations, spec) = (service.get("metadata").get("annotations"), service.get("spec"));
    let kind = spec.str("type");
    let mut warnings = Vec::new();
    if annotations.get(HINTS).is_set() {
        let newer = "service.kubernetes.io/topology-mode";
        warnings.push(format!("annotation {HINTS} is deprecated, please use {newer} instead"));
    }
    if !matches!(spec.str("clusterIP"), "" | "None") {
        warnings.extend(spec.items("clusterIPs").iter().filter_map(pod::addresses));
    }
    let is_headless = kind == "ClusterIP" && spec.str("clusterIP") == "None";
    let has_external = !spec.get("externalIPs").is_empty();
    say(
        &mut warnings,
        is_headless && !spec.str("loadBalancerIP").is_empty(),
        "spec.loadBalancerIP is ignored for headless services",
    );
    say(&mut warnings, is_headless && has_external, "spec.externalIPs is ignored for headless services");
    say(
        &mut warnings,
        is_headless && spec.str("sessionAffinity") != "None",
        "spec.SessionAffinity is ignored for headless services",
    );
    warnings.extend(spec.items("externalIPs").iter().filter_map(pod::addresses));
    say(
        &mut warnings,
        has_external && !is_headless && kind != "ExternalName",
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    warnings.extend(
        Some(spec.get("loadBalancerIP")).filter(|ip| !ip.is_empty()).and_then(|ip| pod::addresses(&ip)),
    );
    say(
        &mut warnings,
        kind == "ExternalName" && has_external,
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    say(
        &mut warnings,
        kind != "ExternalName" && !spec.str("externalName").is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    say(
        &mut warnings,
        spec.str("trafficDistribution") == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    warnings
}

fn say(warnings: &mut Vec<String>, is_said: bool, text: &str) {
    if is_said {
        warnings.push(text.to_owned());
    }
}

/// Says what is wrong with a service.
pub fn validate(service: &Value) -> Vec<Finding> {
    findings(service, |service, verdict| validate_whole(service, None, verdict))
}

/// Says what is wrong with a changed service. It keeps its address as long as it is of a kind that has one.
pub fn validate_update(service: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(service, old, |service, old, verdict| {
        let (spec, old_spec) = (service.get("spec"), old.get("spec"));
        let is_name = [&spec, &old_spec].iter().any(|spec| spec.str("type") == "ExternalName");
        if !is_name {
            validate_addresses_kept(&spec, &old_spec, verdict);
            validate_families_kept(&spec, &old_spec, verdict);
        }
        validate_class_kept(&spec, &old_spec, verdict);
        let port = "healthCheckNodePort";
        if needs_health_check(&spec)
            && needs_health_check(&old_spec)
            && spec.get(port).int() != old_spec.get(port).int()
        {
            verdict.forbidden(spec.get(port).path(), "field is immutable");
        }
        validate_whole(service, Some(old), verdict);
    })
}

/// Says what is wrong with a service's status.
pub fn validate_status(service: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(service, old, |service, old, verdict| {
        let [ingress, was] =
            [service, old].map(|service| service.get("status").get("loadBalancer").get("ingress"));
        if service.get("spec").str("type") != "LoadBalancer" && !ingress.is_empty() {
            return verdict.forbidden(ingress.path(), "may only be used when `spec.type` is 'LoadBalancer'");
        }
        let known: Vec<&str> = was.list().iter().map(|ingress| ingress.str("ip")).collect();
        ingress.list().iter().for_each(|ingress| validate_ingress(ingress, &known, verdict));
    })
}

fn validate_ingress(ingress: &At<'_>, known: &[&str], verdict: &mut Verdict) {
    let (ip, mode, host) = (ingress.get("ip"), ingress.get("ipMode"), ingress.get("hostname"));
    if !ip.text().is_empty() && !known.contains(&ip.text()) {
        check::ip_address(&ip, verdict);
    }
    match (mode.is_set(), ip.text().is_empty()) {
        (false, false) => verdict.required(mode.path(), "must be specified when `ip` is set"),
        (true, true) => verdict.forbidden(mode.path(), "may not be specified when `ip` is not set"),
        (true, false) => check::word(&mode, &["Proxy", "VIP"], verdict),
        (false, true) => {}
    }
    check::name(&host, names::dns_subdomain, verdict);
    if host.text().parse::<IpAddr>().is_ok() {
        verdict.invalid(host.path(), host.text(), "must be a DNS name, not an IP address");
    }
}

fn validate_whole(service: &At<'_>, old: Option<&At<'_>>, verdict: &mut Verdict) {
    let spec = service.get("spec");
    let kind = spec.str("type");
    validate_topology(&service.get("metadata").get("annotations"), verdict);
    if spec.get("ports").is_empty() && !is_headless(&spec) && kind != "ExternalName" {
        verdict.required(spec.get("ports").path(), "");
    }
    validate_type_and_address(&spec, verdict);
    validate_ports(&spec, verdict);
    check::labels(&spec.get("selector"), verdict);
    validate_affinity(&spec, verdict);
    if kind != "ExternalName" {
        validate_addresses(&spec, old, verdict);
    }
    validate_external_addresses(&spec, old, verdict);
    if kind.is_empty() {
        verdict.required(spec.get("type").path(), "");
    } else {
        check::word(&spec.get("type"), &TYPES, verdict);
    }
    validate_port_numbers(&spec, verdict);
    validate_source_ranges(service, old, verdict);
    let allocated = spec.get("allocateLoadBalancerNodePorts");
    if kind != "LoadBalancer" && allocated.is_set() {
        verdict.forbidden(allocated.path(), ONLY_BALANCED);
    }
    validate_class(&spec, verdict);
    validate_external_policy(&spec, verdict);
    validate_internal_policy(&spec, verdict);
    // Upstream lists these in this order, not in that of the alphabet.
    check::word(
        &spec.get("trafficDistribution"),
        &["PreferClose", "PreferSameZone", "PreferSameNode"],
        verdict,
    );
}

fn is_headless(spec: &At<'_>) -> bool {
    let addresses = spec.items("clusterIPs");
    matches!(addresses.as_slice(), [only] if only.text() == "None")
}

fn validate_topology(annotations: &At<'_>, verdict: &mut Verdict) {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    const MODE: &str = "service.kubernetes.io/topology-mode";
    let (hints, mode) = (annotations.get(HINTS), annotations.get(MODE));
    if hints.is_set() && mode.is_set() && hints.text() != mode.text() {
        let rule = format!("must match annotations[{HINTS}] when both are specified");
        verdict.invalid(&annotations.path().key(MODE), mode.text(), rule);
    }
}

fn validate_type_and_address(spec: &At<'_>, verdict: &mut Verdict) {
    match spec.str("type") {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(spec) => {
            let rule = format!("may not be set to 'None' for {kind} services");
            verdict.invalid(&spec.get("clusterIPs").path().index(0), "None", rule);
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !spec.get(field).is_empty() {
                    verdict.forbidden(spec.get(field).path(), "may not be set for ExternalName services");
                }
            }
            let name = spec.get("externalName");
            // A name may end in a dot, to say that it is complete.
            let plain = name.text().strip_suffix('.').unwrap_or(name.text());
            if plain.is_empty() {
                verdict.required(name.path(), "");
            } else {
                verdict.invalid_each(name.path(), plain, names::dns_subdomain(plain));
            }
        }
        _ => {}
    }
}

fn validate_ports(spec: &At<'_>, verdict: &mut Verdict) {
    let ports = spec.items("ports");
    let mut seen = BTreeSet::new();
    for port in &ports {
        let name = port.get("name");
        if !name.text().is_empty() {
            check::name(&name, names::dns_label, verdict);
            if !seen.insert(name.text()) {
                verdict.duplicate(name.path(), name.text());
            }
        } else if ports.len() > 1 {
            verdict.required(name.path(), "");
        }
        port_number(&port.get("port"), verdict);
        protocol(&port.get("protocol"), verdict);
        port_number_or_name(&port.get("targetPort"), verdict);
        let application = port.get("appProtocol");
        if application.is_set() {
            verdict.invalid_each(
                application.path(),
                application.text(),
                names::qualified_name(application.text()),
            );
        }
    }
}

/// The number of a port, which must be there.
pub(super) fn port_number(at: &At<'_>, verdict: &mut Verdict) {
    let number = at.int().unwrap_or(0);
    if !(1..=65_535).contains(&number) {
        verdict.invalid(at.path(), number, "must be between 1 and 65535, inclusive");
    }
}

/// A port by its number or by its name.
pub(super) fn port_number_or_name(at: &At<'_>, verdict: &mut Verdict) {
    match at.value() {
        Value::String(name) => verdict.invalid_each(at.path(), name, names::port_name(name)),
        _ => port_number(at, verdict),
    }
}

fn protocol(at: &At<'_>, verdict: &mut Verdict) {
    if check::text(at, verdict) {
        check::word(at, &PROTOCOLS, verdict);
    }
}

fn validate_affinity(spec: &At<'_>, verdict: &mut Verdict) {
    let (affinity, config) = (spec.get("sessionAffinity"), spec.get("sessionAffinityConfig"));
    if check::text(&affinity, verdict) {
        check::word(&affinity, &["ClientIP", "None"], verdict);
    }
    match affinity.text() {
        "ClientIP" => {
            let client = config.get("clientIP");
            let timeout = client.get("timeoutSeconds");
            if let Some(missing) = [&config, &client, &timeout].into_iter().find(|at| !at.is_set()) {
                return verdict.required(missing.path(), "when session affinity type is ClientIP");
            }
            if let Some(seconds) =
                timeout.int().filter(|seconds| !(1..=AFFINITY_SECONDS_MAX).contains(seconds))
            {
                let rule = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
                verdict.invalid(timeout.path(), seconds, rule);
            }
        }
        "None" if config.is_set() => {
            verdict.forbidden(config.path(), "must not be set when session affinity is None");
        }
        _ => {}
    }
}

/// The addresses in the cluster, and of which family they are.
fn validate_addresses(spec: &At<'_>, old: Option<&At<'_>>, verdict: &mut Verdict) {
    let (first, all, families) = (spec.get("clusterIP"), spec.get("clusterIPs"), spec.get("ipFamilies"));
    let addresses = all.list();
    match (first.text(), addresses.first()) {
        ("", None) => {}
        ("", Some(_)) => {
            verdict.invalid(all.path(), all.value(), "must be empty when `clusterIP` is not specified");
        }
        (_, None) => verdict.required(all.path(), ""),
        (address, Some(other)) if other.text() != address => {
            verdict.invalid(all.path(), all.value(), "first value must match `clusterIP`");
        }
        (_, Some(_)) => {}
    }
    let mut seen = BTreeSet::new();
    for family in families.list() {
        check::word(&family, &FAMILIES, verdict);
        if !seen.insert(family.text()) {
            verdict.duplicate(family.path(), family.text());
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    check::word(&spec.get("ipFamilyPolicy"), &policies, verdict);
    let known = old.map(|old| old.get("spec").items("clusterIPs")).unwrap_or_default();
    let n_before = verdict.refusals.len();
    for (index, address) in addresses.iter().enumerate() {
        if index == 0 && address.text() == "None" {
            if addresses.len() > 1 {
                verdict.invalid(all.path(), all.value(), "'None' must be the first and only value");
            }
        } else if !known.iter().any(|known| known.text() == address.text()) {
            check::ip_address(address, verdict);
        }
    }
    let has_wrong = verdict.refusals.len() > n_before;
    if addresses.len() > 2 {
        verdict.invalid(all.path(), all.value(), "may only hold up to 2 values");
    }
    if has_wrong {
        return;
    }
    let is_v6 = |address: &At<'_>| address.text().contains(':');
    if addresses.len() > 1 {
        let n_v6 = addresses.iter().filter(|address| is_v6(address)).count();
        if n_v6 == 0 || n_v6 == addresses.len() {
            verdict.invalid(all.path(), all.value(), "may specify no more than one IP for each IP family");
        }
    }
    if is_headless(spec) {
        return;
    }
    for (index, (address, family)) in addresses.iter().zip(families.list()).enumerate() {
        let wanted = family.text();
        if (wanted == "IPv4" && is_v6(address)) || (wanted == "IPv6" && !is_v6(address)) {
            let rule = format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`");
            verdict.invalid(address.path(), address.text(), rule);
        }
    }
}

fn validate_external_addresses(spec: &At<'_>, old: Option<&At<'_>>, verdict: &mut Verdict) {
    let known = old.map(|old| old.get("spec").items("externalIPs")).unwrap_or_default();
    for address in spec.items("externalIPs") {
        let is_known = known.iter().any(|known| known.text() == address.text());
        match address.text().parse::<IpAddr>() {
            Err(_) if !is_known => check::ip_address(&address, verdict),
            Err(_) => {}
            Ok(parsed) => super::network::endpoint_address(parsed, &address, verdict),
        }
    }
}

fn validate_port_numbers(spec: &At<'_>, verdict: &mut Verdict) {
    let ports = spec.items("ports");
    if spec.str("type") == "ClusterIP" {
        for port in &ports {
            let node_port = port.get("nodePort");
            if node_port.int().is_some_and(|number| number != 0) {
                verdict.forbidden(node_port.path(), "may not be used when `type` is 'ClusterIP'");
            }
        }
    }
    let mut node_ports = BTreeSet::new();
    for port in &ports {
        let node_port = port.get("nodePort");
        let Some(number) = node_port.int().filter(|number| *number != 0) else { continue };
        if !node_ports.insert((port.str("protocol"), number)) {
            verdict.duplicate(node_port.path(), number);
        }
    }
    let mut numbers = BTreeSet::new();
    for port in &ports {
        let (protocol, number) = (port.str("protocol"), port.get("port").int().unwrap_or(0));
        if !numbers.insert((protocol, number)) {
            let key = json!({"protocol": protocol, "port": number});
            verdict.duplicate_object(port.path(), "core.ServicePort", &key, "");
        }
    }
}

/// Networks that a balancer lets in, as a field or, from before there was one, as an annotation.
fn validate_source_ranges(service: &At<'_>, old: Option<&At<'_>>, verdict: &mut Verdict) {
    let spec = service.get("spec");
    let is_balanced = spec.str("type") == "LoadBalancer";
    let ranges = spec.items("loadBalancerSourceRanges");
    if !ranges.is_empty() {
        let path = spec.path().field("LoadBalancerSourceRanges");
        if !is_balanced {
            verdict.forbidden(&path, ONLY_BALANCED);
        }
        let known = old.map(|old| old.get("spec").items("loadBalancerSourceRanges")).unwrap_or_default();
        for (index, range) in ranges.iter().enumerate() {
            let text = range.text().trim();
            if !known.iter().any(|known| known.text().trim() == text) {
                network_range(&path.index(index), text, verdict);
            }
        }
        return;
    }
    let annotation = service.get("metadata").get("annotations").get(SOURCE_RANGES);
    if !annotation.is_set() {
        return;
    }
    let path = Path::new("metadata").field("annotations").key(SOURCE_RANGES);
    if !is_balanced {
        verdict.forbidden(&path, ONLY_BALANCED);
    }
    let was = old.map(|old| old.get("metadata").get("annotations").get(SOURCE_RANGES));
    if was.is_none_or(|was| was.value() != annotation.value()) {
        let ranges = annotation.text().trim().split(',').map(str::trim);
        ranges.filter(|range| !range.is_empty()).for_each(|range| network_range(&path, range, verdict));
    }
}

/// A range of addresses, such as `10.9.8.0/24`.
pub(super) fn network_range(path: &Path, text: &str, verdict: &mut Verdict) {
    if !is_network(text) {
        let rule = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        verdict.invalid(path, text, rule);
    }
}

/// Whether this is a range of addresses.
pub fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let (Ok(address), Ok(length)) = (address.parse::<IpAddr>(), length.parse::<u8>()) else { return false };
    length <= if address.is_ipv4() { 32 } else { 128 }
}

fn validate_class(spec: &At<'_>, verdict: &mut Verdict) {
    let class = spec.get("loadBalancerClass");
    if !class.is_set() {
        return;
    }
    if spec.str("type") == "LoadBalancer" {
        verdict.invalid_each(class.path(), class.text(), names::qualified_name(class.text()));
    } else {
        verdict.forbidden(class.path(), ONLY_BALANCED);
    }
}

fn validate_class_kept(spec: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    let class = spec.get("loadBalancerClass");
    let stays_balanced = [spec, old].iter().all(|spec| spec.str("type") == "LoadBalancer");
    if stays_balanced && class.value() != old.get("loadBalancerClass").value() {
        verdict.invalid(class.path(), class.value(), CHANGED);
    }
    validate_class(spec, verdict);
}

fn needs_health_check(spec: &At<'_>) -> bool {
    spec.str("type") == "LoadBalancer" && spec.str("externalTrafficPolicy") == "Local"
}

fn validate_external_policy(spec: &At<'_>, verdict: &mut Verdict) {
    let policy = spec.get("externalTrafficPolicy");
    if is_reached_from_outside(spec.str("type"), !spec.get("externalIPs").is_empty()) {
        if check::text(&policy, verdict) {
            check::word(&policy, &["Cluster", "Local"], verdict);
        }
    } else if !policy.text().is_empty() {
        verdict.invalid(policy.path(), policy.text(), "may only be set for externally-accessible services");
    }
    let port = spec.get("healthCheckNodePort");
    let number = port.int().unwrap_or(0);
    if !needs_health_check(spec) {
        if number != 0 {
            let rule = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            verdict.invalid(port.path(), number, rule);
        }
    } else if number == 0 {
        verdict.required(port.path(), "");
    } else {
        port_number(&port, verdict);
    }
}

fn validate_internal_policy(spec: &At<'_>, verdict: &mut Verdict) {
    let policy = spec.get("internalTrafficPolicy");
    if !policy.is_set() && ["ClusterIP", "LoadBalancer", "NodePort"].contains(&spec.str("type")) {
        verdict.required(policy.path(), "");
    }
    check::word(&policy, &["Cluster", "Local"], verdict);
}

fn validate_addresses_kept(spec: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    if is_headless(spec) && is_headless(old) {
        return;
    }
    let (all, new, was) = (spec.get("clusterIPs"), spec.items("clusterIPs"), old.items("clusterIPs"));
    let is_changed = |index: usize| {
        let [new, was] = [&new, &was].map(|list| list.get(index).map(At::text));
        was.is_some() && new.is_some() && new != was
    };
    if new.is_empty() && !was.is_empty() {
        verdict.invalid(&all.path().index(0), all.value(), "primary clusterIP can not be unset");
    }
    let n_compared = if new.len() == was.len() { new.len() } else { 1 };
    for index in (0..n_compared).filter(|index| is_changed(*index)) {
        verdict.invalid(&all.path().index(index), all.value(), CHANGED);
    }
    validate_released(spec, (was.len(), new.len()), "clusterIP", verdict);
}

fn validate_families_kept(spec: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    if is_headless(spec) || is_headless(old) {
        return;
    }
    let (all, new, was) = (spec.get("ipFamilies"), spec.items("ipFamilies"), old.items("ipFamilies"));
    if new.is_empty() && !was.is_empty() && spec.get("clusterIPs").is_empty() {
        verdict.invalid(&all.path().index(0), all.value(), "primary ipFamily can not be unset");
    }
    let n_compared = if new.len() == was.len() { new.len() } else { 1 };
    // Where a family comes or goes, upstream quotes the addresses.
    let quoted = if new.len() == was.len() { all.value() } else { spec.get("clusterIPs").value() };
    for (new, was) in new.iter().zip(&was).take(n_compared) {
        if new.text() != was.text() {
            verdict.invalid(&all.path().index(0), quoted, CHANGED);
        }
    }
    validate_released(spec, (was.len(), new.len()), "ipFamily", verdict);
}

/// The second address, or family, goes only together with the wish for two.
fn validate_released(spec: &At<'_>, (n_old, n_new): (usize, usize), what: &str, verdict: &mut Verdict) {
    let policy = spec.get("ipFamilyPolicy");
    if n_old > n_new && n_new == 1 && policy.text() != "SingleStack" {
        let rule = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        verdict.invalid(policy.path(), policy.value(), rule);
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::said;
    use super::*;

    fn check(spec: Value, expected: Expect) {
        let mut service = json!({"spec": spec});
        default(&mut service);
        expected.assert_eq(&said(&validate(&service)));
    }

    fn check_update(old: Value, new: Value, expected: Expect) {
        let [old, new] = [old, new].map(|spec| {
            let mut service = json!({"spec": spec});
            default(&mut service);
            service
        });
        expected.assert_eq(&said(&validate_update(&new, &old)));
    }

    #[test]
    fn ports_are_told_apart() {
        check(
            json!({"ports": [{"port": 80}, {"name": "a", "port": 80, "targetPort": "No"}, {"name": "a", "port": 0}]}),
            expect![[r#"
                spec.ports[0].name: Required value
                spec.ports[1].targetPort: Invalid value: "No": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)
                spec.ports[2].name: Duplicate value: "a"
                spec.ports[2].port: Invalid value: 0: must be between 1 and 65535, inclusive
                spec.ports[2].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive
                spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}"#]],
        );
    }

    #[test]
    fn what_belongs_to_another_type_is_refused() {
        check(
            json!({"ports": [{"port": 80, "nodePort": 30000}], "externalTrafficPolicy": "Local", "loadBalancerClass": "a/b",
                "allocateLoadBalancerNodePorts": true, "healthCheckNodePort": 3, "loadBalancerSourceRanges": ["x"]}),
            expect![[r#"
                spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'
                spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'
                spec.LoadBalancerSourceRanges[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
                spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'
                spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'
                spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services
                spec.healthCheckNodePort: Invalid value: 3: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"#]],
        );
    }

    #[test]
    fn addresses_agree_with_each_other() {
        check(
            json!({"ports": [{"port": 80}], "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "10.0.0.2", "x"],
                "ipFamilies": ["IPv6", "IPv6", "v4"], "ipFamilyPolicy": "Some"}),
            expect![[r#"
                spec.ipFamilies[1]: Duplicate value: "IPv6"
                spec.ipFamilies[2]: Unsupported value: "v4": supported values: "IPv4", "IPv6"
                spec.ipFamilyPolicy: Unsupported value: "Some": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"
                spec.clusterIPs[2]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
                spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.2","x"]: may only hold up to 2 values"#]],
        );
        check(
            json!({"ports": [{"port": 80}], "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv6"]}),
            expect![[
                r#"spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by `ipFamilies[0]`"#
            ]],
        );
    }

    #[test]
    fn a_service_by_name_has_no_address() {
        check(
            json!({"type": "ExternalName", "clusterIPs": ["None"], "externalName": "A_b."}),
            expect![[r#"
            spec.clusterIPs: Forbidden: may not be set for ExternalName services
            spec.externalName: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]],
        );
        check(
            json!({"type": "NodePort", "clusterIP": "None", "clusterIPs": ["None"]}),
            expect![[
                r#"spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services"#
            ]],
        );
    }

    #[test]
    fn clients_stay_for_a_day_at_most() {
        let config = |seconds: i64| {
            json!({"ports": [{"port": 1}], "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}}})
        };
        check(config(86_400), expect![""]);
        check(
            config(86_401),
            expect![
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than 86400"
            ],
        );
        check(json!({"ports": [{"port": 1}], "sessionAffinity": "ClientIP"}), expect![""]);
    }

    #[test]
    fn an_address_stays() {
        let at = |address: &str| json!({"ports": [{"port": 1}], "clusterIP": address, "clusterIPs": [address], "ipFamilies": ["IPv4"]});
        check_update(
            at("10.0.0.1"),
            at("10.0.0.2"),
            expect![[r#"spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set"#]],
        );
        check_update(
            at("None"),
            at("10.0.0.2"),
            expect![[r#"spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set"#]],
        );
        check_update(
            at("10.0.0.1"),
            json!({"ports": [{"port": 1}]}),
            expect![[r#"
            spec.clusterIPs[0]: Invalid value: null: primary clusterIP can not be unset
            spec.ipFamilies[0]: Invalid value: null: primary ipFamily can not be unset"#]],
        );
    }
}
