//! What makes a service one that cannot be reached.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::names;
use crate::object::text_at;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

/// What is wrong with a service.
pub(super) fn check(service: &Value) -> Vec<FieldError> {
    let kind = text_at(service, "spec.type");
    let ports = service.pointer("/spec/ports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut errors = Vec::new();
    if kind == "ExternalName" {
        errors.extend(check_external_name(&text_at(service, "spec.externalName")));
    } else if ports.is_empty() && text_at(service, "spec.clusterIP") != "None" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    errors.extend(check_ports(ports));
    if !TYPES.contains(&&*kind) {
        errors.push(FieldError::not_supported("spec.type", kind, &TYPES));
    }
    errors
}

/// A service that has an address, or is without one on purpose, stays so as long as it is of a kind that has one.
pub(super) fn check_address_kept(service: &Value, old: &Value) -> Vec<FieldError> {
    let is_external = |service: &Value| text_at(service, "spec.type") == "ExternalName";
    let [new, old_address] = [service, old].map(|service| text_at(service, "spec.clusterIP"));
    if is_external(service) || is_external(old) || old_address.is_empty() || new == old_address {
        return Vec::new();
    }
    vec![FieldError::invalid("spec.clusterIPs[0]", json!([new]), "may not change once set")]
}

fn check_external_name(name: &str) -> Vec<FieldError> {
    const FIELD: &str = "spec.externalName";
    // A name may end in a dot, to say that it is complete.
    match name.trim_end_matches('.') {
        "" => vec![FieldError::required(FIELD, "")],
        name => {
            names::dns_subdomain(name).into_iter().map(|why| FieldError::invalid(FIELD, name, why)).collect()
        }
    }
}

fn check_ports(ports: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (mut seen_names, mut seen_ports) = (BTreeSet::new(), BTreeSet::new());
    for (index, port) in ports.iter().enumerate() {
        let at = format!("spec.ports[{index}]");
        let name = text_at(port, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(format!("{at}.name"), ""));
            }
        } else {
            let wrong = names::dns_label(&name).into_iter();
            errors.extend(wrong.map(|why| FieldError::invalid(format!("{at}.name"), name.as_str(), why)));
            if !seen_names.insert(name.clone()) {
                errors.push(FieldError::duplicate(format!("{at}.name"), name));
            }
        }
        errors.extend(check_port(&at, port));
        let (number, protocol) = (port["port"].as_i64().unwrap_or(0), text_at(port, "protocol"));
        if !seen_ports.insert((number, protocol.clone())) {
            let shown = format!(
                r#"{{"Name":"","Protocol":"{protocol}","AppProtocol":null,"Port":{number},"TargetPort":0,"NodePort":0}}"#
            );
            errors.push(FieldError::duplicate_as_shown(at, shown, ""));
        }
    }
    errors
}

fn check_port(at: &str, port: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_port = |number: i64| (1..=65_535).contains(&number);
    let number = port["port"].as_i64().unwrap_or(0);
    if !is_port(number) {
        errors.push(FieldError::invalid(format!("{at}.port"), number, PORT_RANGE));
    }
    let protocol = text_at(port, "protocol");
    if !PROTOCOLS.contains(&&*protocol) {
        errors.push(FieldError::not_supported(format!("{at}.protocol"), protocol, &PROTOCOLS));
    }
    match &port["targetPort"] {
        Value::String(name) => {
            let wrong = krafla_admission::names::port_name(name).into_iter();
            errors
                .extend(wrong.map(|why| FieldError::invalid(format!("{at}.targetPort"), name.as_str(), why)));
        }
        target => {
            let target = target.as_i64().unwrap_or(0);
            if !is_port(target) {
                errors.push(FieldError::invalid(format!("{at}.targetPort"), target, PORT_RANGE));
            }
        }
    }
    errors
}
