//! Who may talk to whom, and where services end.

use serde_json::{Value, json};

use super::{default_to, findings, items, validate_word};
use crate::json::At;
use crate::{Finding, Verdict, names};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
/// How many addresses one endpoint may have.
const ADDRESSES_MAX: usize = 100;

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
    findings(policy, |policy, verdict| {
        let spec = policy.get("spec");
        for direction in ["ingress", "egress"] {
            for rule in spec.items(direction) {
                for port in rule.items("ports") {
                    validate_word(&port.get("protocol"), &PROTOCOLS, verdict);
                    validate_port(&port.get("port"), verdict);
                }
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
    })
}

/// A port by number or name, if one is given.
fn validate_port(port: &At<'_>, verdict: &mut Verdict) {
    match port.int() {
        Some(number) if !(1..=65_535).contains(&number) => {
            verdict.invalid(port.path(), number, "must be between 1 and 65535, inclusive");
        }
        None if port.is_set() => {
            verdict.invalid_each(port.path(), port.text(), names::port_name(port.text()));
        }
        _ => {}
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

/// Says what is wrong with an EndpointSlice.
pub fn validate_slice(slice: &Value) -> Vec<Finding> {
    findings(slice, |slice, verdict| {
        let kind = slice.get("addressType");
        if kind.text().is_empty() {
            verdict.required(kind.path(), "");
        } else {
            validate_word(&kind, &["FQDN", "IPv4", "IPv6"], verdict);
        }
        for endpoint in slice.items("endpoints") {
            let addresses = endpoint.get("addresses");
            match addresses.list().len() {
                0 => verdict.required(addresses.path(), "must contain at least 1 address"),
                many if many > ADDRESSES_MAX => verdict.too_many(addresses.path(), many, ADDRESSES_MAX),
                _ => {}
            }
            for address in addresses.list() {
                validate_address(&address, kind.text(), verdict);
            }
        }
        for port in slice.items("ports") {
            validate_word(&port.get("protocol"), &PROTOCOLS, verdict);
        }
    })
}

fn validate_address(address: &At<'_>, kind: &str, verdict: &mut Verdict) {
    let text = address.text();
    match (kind, text.parse::<std::net::IpAddr>()) {
        ("FQDN", _) => verdict.invalid_each(address.path(), text, names::dns_subdomain(text)),
        ("IPv4", Ok(ip)) if !ip.is_ipv4() => {
            verdict.invalid(address.path(), text, "must be an IPv4 address");
        }
        ("IPv6", Ok(ip)) if !ip.is_ipv6() => {
            verdict.invalid(address.path(), text, "must be an IPv6 address");
        }
        ("IPv4" | "IPv6", Err(_)) => {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            verdict.invalid(address.path(), text, why);
        }
        _ => {}
    }
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
            endpoints[0].addresses[0]: Invalid value: "::1": must be an IPv4 address
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
