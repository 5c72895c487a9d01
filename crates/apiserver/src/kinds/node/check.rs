//! What makes a node one that cannot be.

use std::collections::BTreeSet;
use std::net::IpAddr;

use krafla_api::Quantity;
use serde_json::Value;

use crate::field::FieldError;
use crate::names;
use crate::object::{self, text_at};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// What is wrong with a node.
pub(super) fn check(node: &Value) -> Vec<FieldError> {
    let taints = node.pointer("/spec/taints").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut errors = check_taints(taints);
    for part in ["capacity", "allocatable"] {
        let amounts = node.pointer(&format!("/status/{part}")).and_then(Value::as_object);
        for (resource, amount) in amounts.into_iter().flatten() {
            let amount = amount.as_str().unwrap_or_default();
            if amount.parse::<Quantity>().is_ok_and(|amount| amount < Quantity::default()) {
                let field = format!("status.{part}.{resource}");
                errors.push(FieldError::invalid(field, amount, "must be greater than or equal to 0"));
            }
        }
    }
    for (index, cidr) in object::strings(node.pointer("/spec/podCIDRs")).into_iter().enumerate() {
        if !is_network(cidr) {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            errors.push(FieldError::invalid(format!("spec.podCIDRs[{index}]"), cidr, why));
        }
    }
    errors
}

/// What once was set stays: pods rely on it.
pub(super) fn check_kept(node: &Value, old: &Value) -> Vec<FieldError> {
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
        let wrong = names::label_value(&value).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid(format!("{at}.value"), value.as_str(), why)));
        if !EFFECTS.contains(&&*effect) {
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
