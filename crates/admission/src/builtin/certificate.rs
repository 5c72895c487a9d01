//! Requests for certificates: what is refused.
//!
//! The request itself is checked for its form alone; a signer reads it anyway.

use serde_json::Value;

use super::findings;
use crate::json::At;
use crate::look::findings_of_change;
use crate::{Finding, Verdict, names};

const SECONDS_MIN: i64 = 600;
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const SIGNER_PARTS_MAX: usize = 571;
/// How "-----BEGIN CERTIFICATE REQUEST-----" begins in base64.
const PEM_BEGIN: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS";
/// Usages of keys, in the order of messages.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Fills in a request: none of its fields has a default but its usages, which an older version of the API had.
pub fn default_request(request: &mut Value) {
    let conditions = request.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        super::default_to(condition, "status", "True");
    }
}

/// Says what is wrong with a request.
pub fn validate_request(request: &Value) -> Vec<Finding> {
    findings(request, |request, verdict| validate_whole(request, true, verdict))
}

/// Says what is wrong with a changed request. `part` is the subresource through which it changes.
pub fn validate_change(request: &Value, old: &Value, part: Option<&str>) -> Vec<Finding> {
    findings_of_change(request, old, |request, old, verdict| {
        let is_excluding = !has_both(&old.get("status").get("conditions"));
        validate_whole(request, is_excluding, verdict);
        let (status, old_status) = (request.get("status"), old.get("status"));
        let conditions = status.get("conditions");
        let of = |status: &At<'_>, kind: &str| -> Vec<Value> {
            let all = status.items("conditions");
            all.iter().filter(|one| one.str("type") == kind).map(|one| one.value().clone()).collect()
        };
        for kind in ["Approved", "Denied", "Failed"] {
            let (new, old) = (of(&status, kind), of(&old_status, kind));
            let detail = if new.len() < old.len() {
                format!("updates may not remove a condition of type {kind:?}")
            } else if part == Some("approval") || kind == "Failed" {
                continue;
            } else if new.len() > old.len() {
                format!("updates may not add a condition of type {kind:?}")
            } else if new != old {
                format!("updates may not modify a condition of type {kind:?}")
            } else {
                continue;
            };
            verdict.forbidden(conditions.path(), &detail);
        }
        let (issued, old_issued) = (status.get("certificate"), old_status.get("certificate"));
        if issued.text() != old_issued.text() {
            if part != Some("status") {
                verdict.forbidden(issued.path(), "updates may not set certificate content");
            } else if !old_issued.is_empty() {
                verdict.forbidden(issued.path(), "updates may not modify existing certificate content");
            }
        }
    })
}

fn has_both(conditions: &At<'_>) -> bool {
    let has = |kind: &str| conditions.list().iter().any(|one| one.str("type") == kind);
    has("Approved") && has("Denied")
}

fn validate_whole(request: &At<'_>, is_excluding: bool, verdict: &mut Verdict) {
    let spec = request.get("spec");
    let form = spec.get("request");
    if !is_request(form.text()) {
        let detail = "PEM block type must be CERTIFICATE REQUEST";
        verdict.invalid(form.path(), form.text(), detail);
    }
    let usages = spec.get("usages");
    if usages.is_empty() {
        verdict.required(usages.path(), "");
    }
    for usage in usages.list() {
        if !USAGES.contains(&usage.text()) {
            verdict.unsupported(usage.path(), usage.text(), &USAGES);
        }
    }
    let mut seen = Vec::new();
    for usage in usages.list() {
        if seen.contains(&usage.text()) {
            verdict.duplicate(usage.path(), usage.text());
        }
        seen.push(usage.text());
    }
    validate_signer(&spec.get("signerName"), verdict);
    let seconds = spec.get("expirationSeconds");
    if let Some(number) = seconds.int().filter(|seconds| *seconds < SECONDS_MIN) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        verdict.invalid(seconds.path(), number, detail);
    }
    validate_conditions(&request.get("status").get("conditions"), is_excluding, verdict);
}

fn validate_signer(at: &At<'_>, verdict: &mut Verdict) {
    let name = at.text();
    if name == LEGACY_SIGNER {
        verdict.invalid(at.path(), name, "the legacy signerName is not allowed via this API version");
    } else if name.is_empty() {
        verdict.required(at.path(), "");
    } else if let Some((domain, path)) = name.split_once('/').filter(|(_, path)| !path.contains('/')) {
        if name.len() > SIGNER_PARTS_MAX {
            verdict.too_long(at.path(), SIGNER_PARTS_MAX);
        }
        verdict.invalid_each(at.path(), domain, names::dns_subdomain(domain));
        for detail in names::dns_subdomain(path) {
            verdict.invalid(at.path(), path, format!("validating label {path:?}: {detail}"));
        }
        if !domain.contains('.') {
            let detail = "should be a domain with at least two segments separated by dots";
            verdict.invalid(at.path(), domain, detail);
        }
    } else {
        verdict.invalid(
            at.path(),
            name,
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        );
    }
}

fn validate_conditions(conditions: &At<'_>, is_excluding: bool, verdict: &mut Verdict) {
    let mut seen: Vec<&str> = Vec::new();
    for condition in conditions.list() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        if kind.is_empty() {
            verdict.required(kind.path(), "");
        }
        let is_final = ["Approved", "Denied", "Failed"].contains(&kind.text());
        let allowed: &[&str] = if is_final { &["True"] } else { &["False", "True", "Unknown"] };
        if status.is_empty() {
            verdict.required(status.path(), "");
        } else if !allowed.contains(&status.text()) {
            verdict.unsupported(status.path(), status.text(), allowed);
        }
        let other = match kind.text() {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if is_excluding && !other.is_empty() && seen.contains(&other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            verdict.invalid(conditions.path(), kind.text(), detail);
        }
        if seen.contains(&kind.text()) {
            verdict.duplicate(kind.path(), kind.text());
        }
        seen.push(kind.text());
    }
}

/// Whether a text in base64 is a request in PEM.
fn is_request(text: &str) -> bool {
    text.starts_with(PEM_BEGIN)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::said;
    use super::*;

    fn request() -> Value {
        // "-----BEGIN CERTIFICATE REQUEST-----"
        let text = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0=";
        json!({"spec": {"request": text, "signerName": "example.com/a", "usages": ["client auth"]}})
    }

    #[test]
    fn a_request_names_a_signer_and_usages() {
        assert_eq!(said(&validate_request(&request())), "");
        let mut wrong = request();
        wrong["spec"] = json!({"request": "", "signerName": "a", "usages": [], "expirationSeconds": 1});
        assert_eq!(
            said(&validate_request(&wrong)),
            "spec.request: Invalid value: \"\": PEM block type must be CERTIFICATE REQUEST\n\
             spec.usages: Required value\n\
             spec.signerName: Invalid value: \"a\": must be a fully qualified domain and path of the form \
             'example.com/signer-name'\n\
             spec.expirationSeconds: Invalid value: 1: may not specify a duration less than 600 seconds (10 minutes)"
        );
    }

    #[test]
    fn a_request_is_approved_through_its_subresource_alone() {
        let mut approved = request();
        approved["status"] = json!({"conditions": [{"type": "Approved", "status": "True"}]});
        let change = |part| said(&validate_change(&approved, &request(), part));
        assert_eq!(change(Some("approval")), "");
        assert_eq!(
            change(Some("status")),
            "status.conditions: Forbidden: updates may not add a condition of type \"Approved\""
        );
        assert_eq!(
            said(&validate_change(&request(), &approved, Some("approval"))),
            "status.conditions: Forbidden: updates may not remove a condition of type \"Approved\""
        );
    }
}
