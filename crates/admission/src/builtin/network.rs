//! Who may talk to whom, and where services end.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::service::{network_range, port_number};
use super::{default_to, findings, items, validate_word};
use crate::json::At;
use crate::look::findings_of_change;
use crate::pod::check;
use crate::{Finding, Verdict, names};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
/// How many addresses one endpoint may have.
const ADDRESSES_MAX: usize = 100;
const ENDPOINTS_MAX: usize = 1000;
const PORTS_MAX: usize = 20_000;
const TOPOLOGY_LABELS_MAX: usize = 16;
/// How many zones, and how many nodes, an endpoint may be best for.
const HINTS_MAX: usize = 8;

/// Fills in a NetworkPolicy. A policy that names no direction is about what comes in, and about what goes out if it has
/// rules for that.
pub fn default_policy(policy: &mut Value) {
    let Some(spec) = policy.get_mut("spec") else { return };
    for direction in ["ingress", "egress"] {
        let rules = spec.get_mut(direction).and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten() {
            items(rule, "ports").for_each(|port| default_to(port, "protocol", "TCP"));
        }
    }
    let has_egress = spec.get("egress").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    let types = if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    if let Some(spec) = spec.as_object_mut() {
        default_to(spec, "policyTypes", types);
    }
}

/// Says what is wrong with a NetworkPolicy.
pub fn validate_policy(policy: &Value) -> Vec<Finding> {
    findings(policy, |policy, verdict| validate_whole_policy(policy, &[], verdict))
}

/// Says what is wrong with a changed NetworkPolicy. Networks that it had are let be.
pub fn validate_policy_update(policy: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(policy, old, |policy, old, verdict| {
        let mut known = Vec::new();
        for (direction, peers) in DIRECTIONS {
            let rules = old.get("spec").items(direction);
            for block in rules.iter().flat_map(|rule| rule.items(peers)).map(|peer| peer.get("ipBlock")) {
                known.push(block.str("cidr"));
                known.extend(block.items("except").iter().map(At::text));
            }
        }
        validate_whole_policy(policy, &known, verdict);
    })
}

/// The directions of a policy, and what its rules call the other side.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

fn validate_whole_policy(policy: &At<'_>, known: &[&str], verdict: &mut Verdict) {
    let spec = policy.get("spec");
    check::label_selector(&spec.get("podSelector"), verdict);
    for (direction, peers) in DIRECTIONS {
        for rule in spec.items(direction) {
            rule.items("ports").iter().for_each(|port| validate_policy_port(port, verdict));
            rule.items(peers).iter().for_each(|peer| validate_peer(peer, known, verdict));
        }
    }
    let types = spec.items("policyTypes");
    if types.len() > 2 {
        let why = "may not specify more than two policyTypes";
        return verdict.invalid(spec.get("policyTypes").path(), spec.get("policyTypes").value(), why);
    }
    for direction in types {
        validate_word(&direction, &["Ingress", "Egress"], verdict);
    }
}

fn validate_policy_port(port: &At<'_>, verdict: &mut Verdict) {
    // Upstream lists these in this order, not in that of the alphabet.
    validate_word(&port.get("protocol"), &["TCP", "UDP", "SCTP"], verdict);
    let (first, last) = (port.get("port"), port.get("endPort"));
    let end = last.int();
    match (first.is_set(), first.int()) {
        (false, _) => {
            if let Some(end) = end {
                verdict.invalid(last.path(), end, "may not be specified when `port` is not specified");
            }
        }
        (true, Some(number)) => {
            port_number(&first, verdict);
            if end.is_some_and(|end| end < number) {
                verdict.invalid(last.path(), number, "must be greater than or equal to `port`");
            }
            if end.is_some() {
                port_number(&last, verdict);
            }
        }
        (true, None) => {
            if let Some(end) = end {
                verdict.invalid(last.path(), end, "may not be specified when `port` is non-numeric");
            }
            verdict.invalid_each(first.path(), first.text(), names::port_name(first.text()));
        }
    }
}

fn validate_peer(peer: &At<'_>, known: &[&str], verdict: &mut Verdict) {
    let selectors = ["podSelector", "namespaceSelector"].map(|name| peer.get(name));
    selectors.iter().for_each(|selector| check::label_selector(selector, verdict));
    let block = peer.get("ipBlock");
    if block.is_set() {
        validate_block(&block, known, verdict);
    }
    let has_selector = selectors.iter().any(At::is_set);
    if !has_selector && !block.is_set() {
        verdict.required(peer.path(), "must specify a peer");
    } else if has_selector && block.is_set() {
        verdict.forbidden(peer.path(), "may not specify both ipBlock and another peer");
    }
}

fn validate_block(block: &At<'_>, known: &[&str], verdict: &mut Verdict) {
    let range = block.get("cidr");
    if !check::text(&range, verdict) {
        return;
    }
    if !known.contains(&range.text()) {
        network_range(range.path(), range.text(), verdict);
    }
    let Some(whole) = Network::parse(range.text()) else { return };
    for except in block.items("except") {
        if !known.contains(&except.text()) {
            network_range(except.path(), except.text(), verdict);
        }
        let is_outside = |part: Network| !whole.has(part.address) || whole.n_bits >= part.n_bits;
        if Network::parse(except.text()).is_some_and(is_outside) {
            verdict.invalid(except.path(), except.text(), "must be a strict subset of `cidr`");
        }
    }
}

/// A range of addresses.
#[derive(Clone, Copy)]
struct Network {
    address: IpAddr,
    n_bits: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Network> {
        let (address, n_bits) = text.split_once('/')?;
        super::service::is_network(text).then_some(())?;
        Some(Network { address: address.parse().ok()?, n_bits: n_bits.parse().ok()? })
    }

    fn has(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let n_free = 32 - self.n_bits;
                u64::from(own.to_bits()) >> n_free == u64::from(other.to_bits()) >> n_free
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let is_same = |n_free: u32| own.to_bits() >> n_free == other.to_bits() >> n_free;
                self.n_bits == 0 || is_same(128 - self.n_bits)
            }
            _ => false,
        }
    }
}

/// An address at which pods may be reached: not one that means something else on every machine.
pub(super) fn endpoint_address(address: IpAddr, at: &At<'_>, verdict: &mut Verdict) {
    let (is_local, is_local_multicast) = match address {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.to_bits() >> 112 & 0xff0f == 0xff02),
    };
    if address.is_unspecified() {
        verdict.invalid(at.path(), at.text(), format_args!("may not be unspecified ({})", at.text()));
    }
    if address.is_loopback() {
        let rule = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        verdict.invalid(at.path(), at.text(), rule);
    }
    if is_local {
        let rule = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        verdict.invalid(at.path(), at.text(), rule);
    }
    if is_local_multicast {
        let rule = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        verdict.invalid(at.path(), at.text(), rule);
    }
}

/// Fills in an EndpointSlice.
pub fn default_slice(slice: &mut Value) {
    for port in items(slice, "ports") {
        default_to(port, "name", "");
        default_to(port, "protocol", "TCP");
    }
}

/// Fills in Endpoints.
pub fn default_endpoints(endpoints: &mut Value) {
    let subsets = endpoints.get_mut("subsets").and_then(Value::as_array_mut);
    for subset in subsets.into_iter().flatten() {
        items(subset, "ports").for_each(|port| default_to(port, "protocol", "TCP"));
    }
}

/// Says what is wrong with Endpoints.
pub fn validate_endpoints(endpoints: &Value) -> Vec<Finding> {
    findings(endpoints, |endpoints, verdict| {
        for subset in endpoints.items("subsets") {
            let lists = ["addresses", "notReadyAddresses"];
            if lists.iter().all(|list| subset.get(list).is_empty()) {
                verdict.required(subset.path(), "must specify `addresses` or `notReadyAddresses`");
            }
            for address in lists.iter().flat_map(|list| subset.items(list)) {
                validate_endpoint(&address, verdict);
            }
            let ports = subset.items("ports");
            ports.iter().for_each(|port| validate_endpoint_port(port, ports.len() > 1, verdict));
        }
    })
}

/// Says what is wrong with changed Endpoints. What has not changed is let be.
pub fn validate_endpoints_update(endpoints: &Value, old: &Value) -> Vec<Finding> {
    if endpoints.get("subsets") == old.get("subsets") { Vec::new() } else { validate_endpoints(endpoints) }
}

fn validate_endpoint(endpoint: &At<'_>, verdict: &mut Verdict) {
    let address = endpoint.get("ip");
    let parsed = address.text().parse::<IpAddr>();
    check::ip_address(&address, verdict);
    check::name(&endpoint.get("hostname"), names::dns_label, verdict);
    let node = endpoint.get("nodeName");
    if node.is_set() {
        verdict.invalid_each(node.path(), node.text(), names::dns_subdomain(node.text()));
    }
    match parsed {
        Ok(parsed) => endpoint_address(parsed, &address, verdict),
        Err(_) => verdict.invalid(address.path(), address.text(), "must be a valid IP address"),
    }
}

fn validate_endpoint_port(port: &At<'_>, needs_name: bool, verdict: &mut Verdict) {
    let name = port.get("name");
    if needs_name {
        check::text(&name, verdict);
    }
    check::name(&name, names::dns_label, verdict);
    port_number(&port.get("port"), verdict);
    if check::text(&port.get("protocol"), verdict) {
        validate_word(&port.get("protocol"), &PROTOCOLS, verdict);
    }
    validate_application(port, verdict);
}

fn validate_application(port: &At<'_>, verdict: &mut Verdict) {
    let protocol = port.get("appProtocol");
    if protocol.is_set() {
        verdict.invalid_each(protocol.path(), protocol.text(), names::qualified_name(protocol.text()));
    }
}

/// Says what is wrong with an EndpointSlice.
pub fn validate_slice(slice: &Value) -> Vec<Finding> {
    findings(slice, |slice, verdict| {
        validate_slice_head(slice, verdict);
        validate_slice_endpoints(slice, verdict);
    })
}

/// Says what is wrong with a changed EndpointSlice. Endpoints that have not changed are let be.
pub fn validate_slice_update(slice: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(slice, old, |slice, old, verdict| {
        validate_slice_head(slice, verdict);
        if slice.get("endpoints").value() != old.get("endpoints").value() {
            validate_slice_endpoints(slice, verdict);
        }
        let kind = slice.get("addressType");
        if kind.value() != old.get("addressType").value() {
            verdict.invalid(kind.path(), kind.value(), "field is immutable");
        }
    })
}

fn validate_slice_head(slice: &At<'_>, verdict: &mut Verdict) {
    let kind = slice.get("addressType");
    if check::text(&kind, verdict) {
        validate_word(&kind, &["FQDN", "IPv4", "IPv6"], verdict);
    }
    let ports = slice.items("ports");
    if ports.len() > PORTS_MAX {
        return verdict.too_many(slice.get("ports").path(), ports.len(), PORTS_MAX);
    }
    let mut seen = BTreeSet::new();
    for port in ports {
        let name = port.get("name");
        check::name(&name, names::dns_label, verdict);
        if !seen.insert(name.text()) {
            verdict.duplicate(name.path(), name.text());
        }
        validate_word(&port.get("protocol"), &PROTOCOLS, verdict);
        validate_application(&port, verdict);
    }
}

fn validate_slice_endpoints(slice: &At<'_>, verdict: &mut Verdict) {
    let endpoints = slice.items("endpoints");
    if endpoints.len() > ENDPOINTS_MAX {
        return verdict.too_many(slice.get("endpoints").path(), endpoints.len(), ENDPOINTS_MAX);
    }
    for endpoint in endpoints {
        let addresses = endpoint.get("addresses");
        match addresses.list().len() {
            0 => verdict.required(addresses.path(), "must contain at least 1 address"),
            many if many > ADDRESSES_MAX => verdict.too_many(addresses.path(), many, ADDRESSES_MAX),
            _ => {}
        }
        for address in addresses.list() {
            validate_address(&addresses, &address, slice.str("addressType"), verdict);
        }
        let node = endpoint.get("nodeName");
        if node.is_set() {
            verdict.invalid_each(node.path(), node.text(), names::dns_subdomain(node.text()));
        }
        let topology = endpoint.get("deprecatedTopology");
        if topology.entries().len() > TOPOLOGY_LABELS_MAX {
            verdict.too_many(topology.path(), topology.entries().len(), TOPOLOGY_LABELS_MAX);
        }
        check::labels(&topology, verdict);
        let host = endpoint.get("hostname");
        if host.is_set() {
            verdict.invalid_each(host.path(), host.text(), names::dns_label(host.text()));
        }
        validate_hints(&endpoint.get("hints"), verdict);
    }
}

/// For whom an endpoint is best: names of zones and of nodes, each once.
fn validate_hints(hints: &At<'_>, verdict: &mut Verdict) {
    type Rule = fn(&str) -> Vec<String>;
    let lists: [(&str, Rule); 2] = [("forZones", names::label_value), ("forNodes", names::dns_subdomain)];
    for (list, rule) in lists {
        let given = hints.items(list);
        if given.len() > HINTS_MAX {
            return verdict.too_many(hints.get(list).path(), given.len(), HINTS_MAX);
        }
        let mut seen = BTreeSet::new();
        for name in given.iter().map(|hint| hint.get("name")) {
            if !seen.insert(name.text()) {
                verdict.duplicate(name.path(), name.text());
            }
            verdict.invalid_each(name.path(), name.text(), rule(name.text()));
        }
    }
}

fn validate_address(all: &At<'_>, address: &At<'_>, kind: &str, verdict: &mut Verdict) {
    let text = address.text();
    match (kind, text.parse::<IpAddr>()) {
        ("FQDN", _) => domain_name(address, verdict),
        ("IPv4" | "IPv6", Err(_)) => check::ip_address(address, verdict),
        ("IPv4" | "IPv6", Ok(ip)) => {
            if ip.is_ipv4() != (kind == "IPv4") {
                verdict.invalid(all.path(), text, format_args!("must be an {kind} address"));
            }
            endpoint_address(ip, address, verdict);
        }
        _ => {}
    }
}

/// A complete name in DNS.
fn domain_name(at: &At<'_>, verdict: &mut Verdict) {
    if !check::text(at, verdict) {
        return;
    }
    let name = at.text().strip_suffix('.').unwrap_or(at.text());
    let wrong = names::dns_subdomain(name);
    if !wrong.is_empty() {
        verdict.invalid(at.path(), name, wrong.join(","));
    } else if !name.contains('.') {
        let rule = "should be a domain with at least two segments separated by dots";
        verdict.invalid(at.path(), name, rule);
    } else if let Some(label) = name.split('.').find(|label| !names::dns_label(label).is_empty()) {
        verdict.invalid(at.path(), label, names::dns_label(label).join(","));
    }
}

/// What the author of a slice should know.
pub fn warnings_of_slice(slice: &Value) -> Vec<String> {
    let is_named = slice.get("addressType").is_some_and(|kind| kind == "FQDN");
    let warning = "spec.addressType: FQDN endpoints are deprecated".to_owned();
    is_named.then_some(warning).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::said;
    use super::*;

    #[test]
    fn a_policy_is_about_what_comes_in_and_goes_out_as_its_rules_say() {
        let types = |spec: Value| {
            let mut policy = json!({"spec": spec});
            default_policy(&mut policy);
            policy["spec"]["policyTypes"].clone()
        };
        assert_eq!(types(json!({})), json!(["Ingress"]));
        assert_eq!(types(json!({"egress": [{}]})), json!(["Ingress", "Egress"]));
        assert_eq!(types(json!({"egress": [{}], "policyTypes": ["Egress"]})), json!(["Egress"]));
    }

    #[test]
    fn addresses_are_of_the_slices_type() {
        let slice =
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["::1", "x", "10.0.0.1"]}, {}]});
        expect![[r#"
            endpoints[0].addresses: Invalid value: "::1": must be an IPv4 address
            endpoints[0].addresses[0]: Invalid value: "::1": may not be in the loopback range (127.0.0.0/8, ::1/128)
            endpoints[0].addresses[1]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
            endpoints[1].addresses: Required value: must contain at least 1 address"#]]
        .assert_eq(&said(&validate_slice(&slice)));
    }

    #[test]
    fn ports_have_numbers_or_names() {
        let ports = json!([{"port": 70_000}, {"port": "Not_a_name"}, {"port": 80, "protocol": "X"}, {"port": "http"}]);
        let policy = json!({"spec": {"ingress": [{"ports": ports}]}});
        assert_eq!(validate_policy(&policy).len(), 3, "{}", said(&validate_policy(&policy)));
    }
}
