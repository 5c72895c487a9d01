//! What makes a node one that cannot be.

use std::collections::BTreeSet;
use std::net::IpAddr;

use krafla_api::Quantity;
use krafla_schema::field::FieldError;
use krafla_schema::names;
use krafla_schema::object::{self, text_at};
use serde_json::Value;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// What is wrong with a node.
pub(super) fn check(node: &Value) -> Vec<FieldError> {
    let taints = node.pointer("/spec/taints").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut errors = check_taints(taints);
    errors.extend(check_resources(node));
    let swap = node.pointer("/status/nodeInfo/swap/capacity").and_then(Value::as_i64);
    if let Some(swap) = swap.filter(|swap| *swap <= 0) {
        // Upstream names a place that is not there.
        errors.push(FieldError::invalid(
            "metadata.nodeSwapStatus.capacity",
            swap,
            "must be greater than zero",
        ));
    }
    errors.extend(check_features(node));
    errors.extend(check_networks(node));
    errors
}

/// What is wrong with a change of a node or of its status. Upstream says much of it a second time.
pub(super) fn check_change(node: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = check_resources(node);
    errors.extend(check_features(node));
    errors.extend(check_addresses(node));
    errors.extend(check_kept(node, old));
    let taints = node.pointer("/spec/taints").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    errors.extend(check_taints(taints));
    let external = |node: &Value| node.pointer("/spec/externalID").cloned();
    if external(node) != external(old) {
        errors.push(FieldError::forbidden("spec.externalID", "may not be updated"));
    }
    errors
}

fn check_addresses(node: &Value) -> Vec<FieldError> {
    let addresses = node.pointer("/status/addresses").and_then(Value::as_array);
    let addresses = addresses.map_or(&[][..], Vec::as_slice);
    let mut errors = Vec::new();
    for (at, address) in addresses.iter().enumerate() {
        if addresses.iter().take(at).any(|other| other == address) {
            let [kind, address] = ["type", "address"].map(|field| text_at(address, field));
            let shown = format!(r#"{{"Type":"{kind}","Address":"{address}"}}"#);
            errors.push(FieldError::duplicate_as_shown(format!("status.addresses[{at}]"), shown, ""));
        }
    }
    errors
}

fn check_resources(node: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for part in ["capacity", "allocatable"] {
        let amounts = node.pointer(&format!("/status/{part}")).and_then(Value::as_object);
        for (resource, amount) in amounts.into_iter().flatten() {
            let amount = amount.as_str().unwrap_or_default();
            let Ok(quantity) = amount.parse::<Quantity>() else { continue };
            let field = format!("status.{part}.{resource}");
            if quantity.is_negative() {
                errors.push(FieldError::invalid(field.clone(), amount, "must be greater than or equal to 0"));
            }
            if is_counted(resource) && quantity.milli_value() % 1000 != 0 {
                errors.push(FieldError::invalid(field, amount, "must be an integer"));
            }
        }
    }
    errors
}

/// What is counted in whole numbers: pods, and what is no resource of Kubernetes itself.
fn is_counted(resource: &str) -> bool {
    let is_native = resource.split_once('/').is_none_or(|(domain, _)| domain.contains("kubernetes.io"));
    !is_native || INTEGER_RESOURCES.contains(&resource)
}

const INTEGER_RESOURCES: [&str; 7] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
];

fn check_features(node: &Value) -> Vec<FieldError> {
    let is_name = |name: &str| {
        let parts = name.split('/').enumerate();
        let mut parts = parts.map(|(at, part)| {
            let starts = |c: char| if at == 0 { c.is_ascii_uppercase() } else { c.is_ascii_alphabetic() };
            part.starts_with(starts) && part.chars().all(|c| c.is_ascii_alphanumeric())
        });
        parts.all(|is_good| is_good)
    };
    let names = object::strings(node.pointer("/status/declaredFeatures"));
    let mut errors = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let place = |at: usize| format!("status.declaredFeatures[{at}]");
        let wrong = if name.len() > 253 {
            Some("must be no more than 253 characters")
        } else if !is_name(name) {
            Some(
                "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature \
                 or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes",
            )
        } else {
            None
        };
        if let Some(wrong) = wrong {
            let why = format!("invalid feature name {name:?}: {wrong}");
            errors.push(FieldError::invalid(place(at), *name, why));
        }
        match names.get(at + 1) {
            Some(next) if next == name => errors.push(FieldError::duplicate(place(at + 1), *next)),
            Some(next) if next < name => {
                let why = "list must be sorted alphabetically";
                errors.push(FieldError::invalid(place(at + 1), *next, why));
            }
            _ => {}
        }
    }
    errors
}

fn check_networks(node: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, cidr) in object::strings(node.pointer("/spec/podCIDRs")).into_iter().enumerate() {
        if !is_network(cidr) {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            errors.push(FieldError::invalid(format!("spec.podCIDRs[{index}]"), cidr, why));
        }
    }
    errors
}

/// What once was set stays: pods rely on it.
fn check_kept(node: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (field, name) in [("podCIDRs", "podCIDR"), ("providerID", "providerID")] {
        let value = |node: &Value| node["spec"].get(field).cloned();
        if value(old).is_some() && value(old) != value(node) {
            let why = format!("node updates may not change {name} except from \"\" to valid");
            errors.push(FieldError::forbidden(format!("spec.{field}"), why));
        }
    }
    errors
}

/// Upstream looks for taints in the metadata, where they once were, and still says so.
fn check_taints(taints: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let at = format!("metadata.taints[{index}]");
        let [key, value, effect] = ["key", "value", "effect"].map(|field| text_at(taint, field));
        let wrong = names::qualified_name(&key).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid(format!("{at}.key"), key.as_str(), why)));
        let wrong = names::label_value(&value);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(format!("{at}.value"), value.as_str(), wrong.join(";")));
        }
        if effect.is_empty() {
            errors.push(FieldError::required(format!("{at}.effect"), ""));
        } else if !EFFECTS.contains(&&*effect) {
            errors.push(FieldError::not_supported(format!("{at}.effect"), effect.as_str(), &EFFECTS));
        }
        if !seen.insert((key.clone(), effect.clone())) {
            let added = &taint["timeAdded"];
            let shown =
                format!(r#"{{"Key":"{key}","Value":"{value}","Effect":"{effect}","TimeAdded":{added}}}"#);
            let why = "taints must be unique by key and effect pair";
            errors.push(FieldError::duplicate_as_shown(at, shown, why));
        }
    }
    errors
}

fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let (Ok(address), Ok(length)) = (address.parse::<IpAddr>(), length.parse::<u8>()) else { return false };
    length <= if address.is_ipv4() { 32 } else { 128 }
}
