//! Devices and their claims: what may be left out, and what is refused.
//!
//! Expressions that select devices are stored as they are: no scheduler here reads them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{default_to, findings};
use crate::json::At;
use crate::look::findings_of_change;
use crate::pod::{check, scheduling, volume};
use crate::{Finding, Verdict, names};

const IMMUTABLE: &str = "field is immutable";
const REQUESTS_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const CONSTRAINTS_MAX: usize = 32;
const CONFIGS_MAX: usize = 32;
const SELECTORS_MAX: usize = 32;
const RESERVED_MAX: usize = 256;
const DEVICES_MAX: usize = 128;
const EXPRESSION_BYTES_MAX: usize = 10 * 1024;
const IDENTIFIER_BYTES_MAX: usize = 32;
const POOL_NAME_BYTES_MAX: usize = 253;

/// Fills in a ResourceClaim.
pub fn default_claim(claim: &mut Value) {
    default_requests(claim.pointer_mut("/spec/devices/requests"));
}

/// Fills in a ResourceClaimTemplate.
pub fn default_template(template: &mut Value) {
    default_requests(template.pointer_mut("/spec/spec/devices/requests"));
}

fn default_requests(requests: Option<&mut Value>) {
    for request in requests.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(exactly) = request.get_mut("exactly").and_then(Value::as_object_mut) {
            default_request(exactly);
        }
        super::items(request, "firstAvailable").for_each(default_request);
    }
}

/// One device, unless more are asked for.
fn default_request(request: &mut Map<String, Value>) {
    if request.get("allocationMode").and_then(Value::as_str).unwrap_or_default().is_empty() {
        request.insert("allocationMode".to_owned(), "ExactCount".into());
    }
    let counts = request.get("allocationMode").is_some_and(|mode| mode == "ExactCount");
    if counts && request.get("count").and_then(Value::as_i64).unwrap_or(0) == 0 {
        request.insert("count".to_owned(), 1.into());
    }
}

/// Fills in a ResourceSlice. `now` is when taints begin that do not say it.
pub fn default_slice(slice: &mut Value, now: &Value) {
    let devices = slice.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten() {
        super::items(device, "taints").for_each(|taint| default_to(taint, "timeAdded", now.clone()));
    }
}

/// Says what is wrong with a DeviceClass.
pub fn validate_class(class: &Value) -> Vec<Finding> {
    findings(class, |class, verdict| {
        let spec = class.get("spec");
        validate_selectors(&spec.get("selectors"), verdict);
        for config in bounded(&spec.get("config"), CONFIGS_MAX, verdict) {
            validate_config(&config, verdict);
        }
    })
}

/// Says what is wrong with a ResourceClaim.
pub fn validate_claim(claim: &Value) -> Vec<Finding> {
    findings(claim, |claim, verdict| validate_claim_spec(&claim.get("spec"), verdict))
}

/// Says what is wrong with a ResourceClaimTemplate.
pub fn validate_template(template: &Value) -> Vec<Finding> {
    findings(template, |template, verdict| {
        let spec = template.get("spec");
        let metadata = spec.get("metadata");
        check::labels(&metadata.get("labels"), verdict);
        check::annotations(&metadata.get("annotations"), verdict);
        validate_claim_spec(&spec.get("spec"), verdict);
    })
}

/// Says what is wrong with a changed claim or template, whose spec stays. `kind` is the type of the spec in messages.
pub fn validate_spec_stays(object: &Value, old: &Value, kind: &str) -> Vec<Finding> {
    findings_of_change(object, old, |object, old, verdict| {
        let (spec, old) = (object.get("spec"), old.get("spec"));
        if spec.value() != old.value() {
            verdict.invalid_object(spec.path(), kind, spec.value(), IMMUTABLE);
        }
    })
}

/// Says what is wrong with the status of a ResourceClaim.
pub fn validate_claim_status(claim: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(claim, old, |claim, old, verdict| {
        let (status, old_status) = (claim.get("status"), old.get("status"));
        let reserved = status.get("reservedFor");
        let mut seen = Vec::new();
        for consumer in bounded(&reserved, RESERVED_MAX, verdict) {
            check::texts(&consumer, &["resource", "name", "uid"], verdict);
            if seen.contains(&consumer.str("uid")) {
                verdict.duplicate(consumer.path(), consumer.str("uid"));
            }
            seen.push(consumer.str("uid"));
        }
        let (allocation, old_allocation) = (status.get("allocation"), old_status.get("allocation"));
        if !reserved.is_empty() && !allocation.is_set() {
            verdict.forbidden(reserved.path(), "may not be specified when `allocated` is not set");
        } else if claim.get("metadata").get("deletionTimestamp").is_set() {
            let known = old_status.items("reservedFor");
            let is_new = |item: &At<'_>| known.iter().all(|known| known.value() != item.value());
            if reserved.list().iter().any(is_new) {
                let detail = "new entries may not be added while `deallocationRequested` or \
                    `deletionTimestamp` are set";
                verdict.forbidden(reserved.path(), detail);
            }
        }
        if old_allocation.is_set() && allocation.is_set() && allocation.value() != old_allocation.value() {
            let kind = "resource.AllocationResult";
            verdict.invalid_object(allocation.path(), kind, allocation.value(), IMMUTABLE);
        }
    })
}

fn validate_claim_spec(spec: &At<'_>, verdict: &mut Verdict) {
    let devices = spec.get("devices");
    let requests = devices.get("requests");
    let known = request_names(&requests);
    let mut seen = Vec::new();
    for request in bounded(&requests, REQUESTS_MAX, verdict) {
        validate_request(&request, verdict);
        note_name(&request, &mut seen, verdict);
    }
    for constraint in bounded(&devices.get("constraints"), CONSTRAINTS_MAX, verdict) {
        validate_references(&constraint.get("requests"), &known, verdict);
        let (same, distinct) = (constraint.get("matchAttribute"), constraint.get("distinctAttribute"));
        if same.is_set() {
            validate_attribute_name(&same, verdict);
        } else if distinct.is_set() {
            validate_attribute_name(&distinct, verdict);
        } else {
            verdict.required(same.path(), "");
        }
    }
    for config in bounded(&devices.get("config"), CONFIGS_MAX, verdict) {
        validate_references(&config.get("requests"), &known, verdict);
        validate_config(&config, verdict);
    }
}

/// The names of requests, each with those of its alternatives.
fn request_names<'a>(requests: &At<'a>) -> BTreeMap<&'a str, Vec<&'a str>> {
    let names = |request: &At<'a>| {
        let alternatives = request.items("firstAvailable");
        (request.str("name"), alternatives.iter().map(|alternative| alternative.str("name")).collect())
    };
    requests.list().iter().map(names).collect()
}

fn validate_request(request: &At<'_>, verdict: &mut Verdict) {
    label(&request.get("name"), verdict);
    let (exactly, alternatives) = (request.get("exactly"), request.get("firstAvailable"));
    match (exactly.is_set(), !alternatives.is_empty()) {
        (false, false) => {
            verdict.required(request.path(), "exactly one of `exactly` or `firstAvailable` is required");
        }
        (true, true) => {
            let detail =
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            verdict.invalid(request.path(), &Value::Null, detail);
        }
        (true, false) => validate_wish(&exactly, verdict),
        (false, true) => {
            let mut seen = Vec::new();
            for alternative in bounded(&alternatives, ALTERNATIVES_MAX, verdict) {
                label(&alternative.get("name"), verdict);
                validate_wish(&alternative, verdict);
                note_name(&alternative, &mut seen, verdict);
            }
        }
    }
}

/// What kind of device is asked for, and how many.
fn validate_wish(wish: &At<'_>, verdict: &mut Verdict) {
    check::required_name(&wish.get("deviceClassName"), names::dns_subdomain, verdict);
    validate_selectors(&wish.get("selectors"), verdict);
    let (mode, count) = (wish.get("allocationMode"), wish.get("count"));
    let number = count.int().unwrap_or(0);
    match mode.text() {
        "All" if number != 0 => {
            verdict.invalid(count.path(), number, "must not be specified when allocationMode is 'All'");
        }
        "ExactCount" if number <= 0 => verdict.invalid(count.path(), number, "must be greater than zero"),
        "All" | "ExactCount" => {}
        other => verdict.unsupported(mode.path(), other, &["All", "ExactCount"]),
    }
    wish.items("tolerations").iter().for_each(|toleration| validate_toleration(toleration, verdict));
}

fn validate_toleration(toleration: &At<'_>, verdict: &mut Verdict) {
    check::name(&toleration.get("key"), names::qualified_name, verdict);
    let (operator, value, effect) =
        (toleration.get("operator"), toleration.get("value"), toleration.get("effect"));
    match operator.text() {
        "Exists" if !value.is_empty() => {
            verdict.invalid(value.path(), value.text(), "must be empty for operator `Exists`");
        }
        "Exists" => {}
        "Equal" => verdict.invalid_each(value.path(), value.text(), names::label_value(value.text())),
        "" => verdict.required(operator.path(), ""),
        other => verdict.unsupported(operator.path(), other, &["Equal", "Exists"]),
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect.text()) {
        verdict.unsupported(effect.path(), effect.text(), &EFFECTS);
    }
}

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

fn validate_selectors(selectors: &At<'_>, verdict: &mut Verdict) {
    for selector in bounded(selectors, SELECTORS_MAX, verdict) {
        let expression = selector.get("cel");
        if !expression.is_set() {
            verdict.required(expression.path(), "");
        } else if expression.str("expression").len() > EXPRESSION_BYTES_MAX {
            verdict.too_long(expression.get("expression").path(), EXPRESSION_BYTES_MAX);
        }
    }
}

fn validate_config(config: &At<'_>, verdict: &mut Verdict) {
    let opaque = config.get("opaque");
    if !opaque.is_set() {
        verdict.required(opaque.path(), "");
        return;
    }
    volume::driver_name(&opaque.get("driver"), verdict);
    if !opaque.get("parameters").is_set() {
        verdict.required(opaque.get("parameters").path(), "");
    }
}

/// Names of requests, or of a request and one of its alternatives.
fn validate_references(references: &At<'_>, known: &BTreeMap<&str, Vec<&str>>, verdict: &mut Verdict) {
    let detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
    let mut seen = Vec::new();
    for reference in bounded(references, REQUESTS_MAX, verdict) {
        let parts: Vec<&str> = reference.text().split('/').collect();
        if parts.len() <= 2 {
            for part in &parts {
                verdict.invalid_each(reference.path(), part, names::dns_label(part));
            }
        }
        let is_known = match parts.as_slice() {
            [request] => known.contains_key(request),
            [request, alternative] => known.get(request).is_some_and(|names| names.contains(alternative)),
            _ => false,
        };
        if !is_known {
            verdict.invalid(reference.path(), reference.text(), detail);
        }
        if seen.contains(&reference.text()) {
            verdict.duplicate(reference.path(), reference.text());
        }
        seen.push(reference.text());
    }
}

fn validate_attribute_name(at: &At<'_>, verdict: &mut Verdict) {
    let name = at.text();
    validate_qualified(at, name, verdict);
    if !name.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        verdict.invalid(at.path(), name, detail);
    }
}

/// The name of an attribute or a capacity, perhaps with the domain of its driver.
fn validate_qualified(at: &At<'_>, name: &str, verdict: &mut Verdict) {
    let (domain, identifier) = match name.split_once('/') {
        Some((domain, identifier)) => (Some(domain), identifier),
        None => (None, name),
    };
    match domain {
        Some("") => verdict.invalid(at.path(), "", "the domain must not be empty"),
        Some(domain) => verdict.invalid_each(at.path(), domain, names::dns_subdomain(domain)),
        None => {}
    }
    if identifier.is_empty() && domain.is_some() {
        verdict.invalid(at.path(), "", "the name must not be empty");
        return;
    }
    if identifier.len() > IDENTIFIER_BYTES_MAX {
        verdict.too_long(at.path(), IDENTIFIER_BYTES_MAX);
    }
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_identifier =
        identifier.starts_with(is_letter) && identifier.chars().all(|c| is_letter(c) || c.is_ascii_digit());
    if !is_identifier {
        let detail = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
            alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation \
            is '[A-Za-z_][A-Za-z0-9_]*')";
        verdict.invalid(at.path(), identifier, detail);
    }
}

/// Says what is wrong with a ResourceSlice.
pub fn validate_slice(slice: &Value) -> Vec<Finding> {
    findings(slice, |slice, verdict| validate_slice_spec(&slice.get("spec"), None, verdict))
}

/// Says what is wrong with a changed ResourceSlice. Its driver, pool and node stay.
pub fn validate_slice_update(slice: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(slice, old, |slice, old, verdict| {
        validate_slice_spec(&slice.get("spec"), Some(&old.get("spec")), verdict);
    })
}

fn validate_slice_spec(spec: &At<'_>, old: Option<&At<'_>>, verdict: &mut Verdict) {
    volume::driver_name(&spec.get("driver"), verdict);
    validate_pool(&spec.get("pool"), verdict);
    if let Some(old) = old {
        let pairs = [
            (spec.get("pool").get("name"), old.get("pool").get("name")),
            (spec.get("driver"), old.get("driver")),
            (spec.get("nodeName"), old.get("nodeName")),
        ];
        for (new, old) in pairs {
            if new.value() != old.value() {
                verdict.invalid(new.path(), new.value(), IMMUTABLE);
            }
        }
    }
    validate_nodes(spec, verdict);
    let mut seen = Vec::new();
    for device in bounded(&spec.get("devices"), DEVICES_MAX, verdict) {
        label(&device.get("name"), verdict);
        for field in ["attributes", "capacity"] {
            for (name, at) in device.get(field).entries() {
                validate_qualified(&at, name, verdict);
            }
        }
        note_name(&device, &mut seen, verdict);
    }
}

fn validate_pool(pool: &At<'_>, verdict: &mut Verdict) {
    let name = pool.get("name");
    if check::text(&name, verdict) {
        if name.text().len() > POOL_NAME_BYTES_MAX {
            verdict.too_long(name.path(), POOL_NAME_BYTES_MAX);
        }
        for part in name.text().split('/') {
            verdict.invalid_each(name.path(), part, names::dns_subdomain(part));
        }
    }
    let (count, generation) = (pool.get("resourceSliceCount"), pool.get("generation"));
    if count.int().unwrap_or(0) <= 0 {
        verdict.invalid(count.path(), count.int().unwrap_or(0), "must be greater than zero");
    }
    if let Some(number) = generation.int().filter(|number| *number < 0) {
        verdict.invalid(generation.path(), number, "must be greater than or equal to zero");
    }
}

/// The slice says in exactly one way where its devices are.
fn validate_nodes(spec: &At<'_>, verdict: &mut Verdict) {
    const ONE: &str =
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let mut given = Vec::new();
    let (name, selector) = (spec.get("nodeName"), spec.get("nodeSelector"));
    if name.is_set() {
        if name.is_empty() {
            let detail = "must be either unset or set to a non-empty string";
            verdict.invalid(name.path(), "", detail);
        } else {
            given.push("`nodeName`");
            verdict.invalid_each(name.path(), name.text(), names::dns_subdomain(name.text()));
        }
    }
    if selector.is_set() {
        given.push("`nodeSelector`");
        scheduling::node_selector(&selector, verdict);
        let terms = selector.get("nodeSelectorTerms");
        if terms.list().len() != 1 {
            verdict.invalid(terms.path(), terms.value(), "must have exactly one node selector term");
        }
    }
    for (field, shown) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")]
    {
        let at = spec.get(field);
        if at.is_true() {
            given.push(shown);
        } else if at.is_set() {
            verdict.invalid(at.path(), false, "must be either unset or set to true");
        }
    }
    match given.len() {
        0 => verdict.required(spec.path(), ONE),
        1 => {}
        _ => {
            let shown = format!("{{{}}}", given.join(", "));
            verdict.invalid(spec.path(), shown, format!("{ONE}, but multiple fields are set"));
        }
    }
}

/// A name that is a label; the empty one is not.
fn label(at: &At<'_>, verdict: &mut Verdict) {
    verdict.invalid_each(at.path(), at.text(), names::dns_label(at.text()));
}

/// The items of a list, unless there are too many to look at.
fn bounded<'a>(list: &At<'a>, n_max: usize, verdict: &mut Verdict) -> Vec<At<'a>> {
    let items = list.list();
    if items.len() > n_max {
        verdict.too_many(list.path(), items.len(), n_max);
        return Vec::new();
    }
    items
}

/// Names of one list differ.
fn note_name<'a>(item: &At<'a>, seen: &mut Vec<&'a str>, verdict: &mut Verdict) {
    if seen.contains(&item.str("name")) {
        verdict.duplicate(item.path(), item.str("name"));
    }
    seen.push(item.str("name"));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::said;
    use super::*;

    #[test]
    fn a_claim_asks_for_devices_of_a_class() {
        let mut claim = json!({"spec": {"devices": {
            "requests": [{"name": "a", "exactly": {"deviceClassName": "gpu"}}],
            "constraints": [{"requests": ["a"], "matchAttribute": "example.com/numa"}],
        }}});
        default_claim(&mut claim);
        assert_eq!(
            claim["spec"]["devices"]["requests"][0]["exactly"],
            json!({"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1})
        );
        assert_eq!(said(&validate_claim(&claim)), "");
        claim["spec"]["devices"]["constraints"][0]["requests"] = json!(["b"]);
        claim["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] = json!("All");
        assert_eq!(
            said(&validate_claim(&claim)),
            "spec.devices.requests[0].exactly.count: Invalid value: 1: must not be specified when allocationMode is \
             'All'\n\
             spec.devices.constraints[0].requests[0]: Invalid value: \"b\": must be the name of a request in the claim \
             or the name of a request and a subrequest separated by '/'"
        );
    }

    #[test]
    fn a_slice_says_where_its_devices_are() {
        let slice = |more: Value| {
            let mut spec = json!({
                "driver": "gpu.example.com", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 0},
                "devices": [{"name": "d"}],
            });
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            said(&validate_slice(&json!({"spec": spec})))
        };
        assert_eq!(slice(json!({"nodeName": "n"})), "");
        assert!(slice(json!({})).starts_with("spec: Required value: exactly one of"));
        assert!(slice(json!({"nodeName": "n", "allNodes": true})).ends_with("but multiple fields are set"));
    }

    #[test]
    fn a_reserved_claim_is_allocated() {
        let old = json!({"status": {}});
        let claim = json!({"status": {"reservedFor": [{"resource": "pods", "name": "a", "uid": "1"}]}});
        assert_eq!(
            said(&validate_claim_status(&claim, &old)),
            "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"
        );
    }
}
