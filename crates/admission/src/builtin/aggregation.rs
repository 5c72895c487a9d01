//! APIServices: which server answers for a group and version.

use serde_json::Value;

use super::findings;
use crate::json::At;
use crate::look::findings_of_change;
use crate::pod::check;
use crate::{Finding, Verdict, names};

const GROUP_PRIORITY_MAX: i64 = 20_000;
const VERSION_PRIORITY_MAX: i64 = 1_000;
const PORT: i64 = 443;

/// The condition of an APIService whose group this server answers for itself: reason and message.
pub const LOCAL: (&str, &str) = ("Local", "Local APIServices are always available");

/// Fills in an APIService.
pub fn default_service(service: &mut Value) {
    if let Some(reference) = service.pointer_mut("/spec/service").and_then(Value::as_object_mut) {
        super::default_to(reference, "port", PORT);
    }
}

/// Says what is wrong with an APIService.
pub fn validate_service(service: &Value) -> Vec<Finding> {
    findings(service, validate_whole)
}

/// Says what is wrong with the status of an APIService.
pub fn validate_status(service: &Value) -> Vec<Finding> {
    findings(service, |service, verdict| {
        for condition in service.get("status").items("conditions") {
            let status = condition.get("status");
            if !["True", "False", "Unknown"].contains(&status.text()) {
                verdict.unsupported(status.path(), status.text(), &["True", "False", "Unknown"]);
            }
        }
    })
}

/// Says what is wrong with a changed APIService.
pub fn validate_update(service: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(service, old, |service, _, verdict| validate_whole(service, verdict))
}

fn validate_whole(service: &At<'_>, verdict: &mut Verdict) {
    let spec = service.get("spec");
    let (group, version) = (spec.get("group"), spec.get("version"));
    let name = service.get("metadata").get("name");
    let expected = format!("{}.{}", version.text(), group.text());
    if names::path_segment(name.text()).is_empty() && !name.is_empty() && name.text() != expected {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {expected:?}");
        verdict.invalid(name.path(), name.text(), detail);
    }
    if group.is_empty() && version.text() != "v1" {
        verdict.required(group.path(), "only v1 may have an empty group and it better be legacy kube");
    }
    check::name(&group, names::dns_subdomain, verdict);
    verdict.invalid_each(version.path(), version.text(), names::dns_1035_label(version.text()));
    validate_priority(&spec.get("groupPriorityMinimum"), GROUP_PRIORITY_MAX, verdict);
    validate_priority(&spec.get("versionPriority"), VERSION_PRIORITY_MAX, verdict);
    validate_server(&spec, verdict);
}

fn validate_priority(at: &At<'_>, max: i64, verdict: &mut Verdict) {
    let priority = at.int().unwrap_or(0);
    if !(1..=max).contains(&priority) {
        verdict.invalid(at.path(), priority, format!("must be positive and less than {max}"));
    }
}

/// Where the server is, and how it proves who it is.
fn validate_server(spec: &At<'_>, verdict: &mut Verdict) {
    let (reference, bundle) = (spec.get("service"), spec.get("caBundle"));
    let skips = spec.get("insecureSkipTLSVerify");
    if !reference.is_set() {
        if !bundle.is_empty() {
            let size = format!("{} bytes", decoded_size(bundle.text()));
            verdict.invalid(bundle.path(), size, "local APIServices may not have a caBundle");
        }
        if skips.is_true() {
            verdict.invalid(skips.path(), true, "local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    }
    check::texts(&reference, &["namespace", "name"], verdict);
    let port = reference.get("port");
    let number = port.int().unwrap_or(0);
    if !(1..=65_535).contains(&number) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        verdict.invalid(port.path(), number, detail);
    }
    if skips.is_true() && !bundle.is_empty() {
        verdict.invalid(skips.path(), true, "may not be true if caBundle is present");
    }
}

/// The bytes that a text in base64 stands for.
fn decoded_size(text: &str) -> usize {
    let n_padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(n_padding)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::said;
    use super::*;

    #[test]
    fn the_name_says_version_and_group() {
        let service = |name: &str, spec: Value| {
            let object = json!({"metadata": {"name": name}, "spec": spec});
            said(&validate_service(&object))
        };
        let spec = json!({
            "group": "a.example", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"name": "s", "namespace": "n", "port": 443},
        });
        assert_eq!(service("v1.a.example", spec.clone()), "");
        assert_eq!(
            service("v1.b.example", spec),
            "metadata.name: Invalid value: \"v1.b.example\": must be `spec.version+\".\"+spec.group`: \"v1.a.example\""
        );
    }

    #[test]
    fn a_local_service_needs_no_proof() {
        let object = json!({
            "metadata": {"name": "v1.a.example"},
            "spec": {
                "group": "a.example", "version": "v1", "groupPriorityMinimum": 0, "versionPriority": 1001,
                "caBundle": "YWJjZA==", "insecureSkipTLSVerify": true,
            },
        });
        assert_eq!(
            said(&validate_service(&object)),
            "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000\n\
             spec.versionPriority: Invalid value: 1001: must be positive and less than 1000\n\
             spec.caBundle: Invalid value: \"4 bytes\": local APIServices may not have a caBundle\n\
             spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have insecureSkipTLSVerify"
        );
    }
}
