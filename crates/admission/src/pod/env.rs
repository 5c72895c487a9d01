//! Environment variables and where their values come from.

use krafla_api::Quantity;

use crate::json::At;
use crate::{Verdict, names};

use super::check;
use super::spec::Dialect;

/// Checks the variables of a container.
pub(super) fn validate(container: &At<'_>, dialect: Dialect, verdict: &mut Verdict) {
    let name_rule = match dialect {
        Dialect::Kubernetes => names::relaxed_environment_variable,
        Dialect::Volcano => names::environment_variable,
    };
    for variable in container.items("env") {
        check::required_name(&variable.get("name"), name_rule, verdict);
        let from = variable.get("valueFrom");
        if from.is_set() {
            validate_source(&from, dialect, !variable.str("value").is_empty(), verdict);
        }
    }
    let env_from = container.get("envFrom");
    for source in env_from.list() {
        check::name(&source.get("prefix"), name_rule, verdict);
        let references = ["configMapRef", "secretRef"].map(|name| source.get(name));
        let references: Vec<At<'_>> = references.into_iter().filter(At::is_set).collect();
        for reference in &references {
            check::required_name(&reference.get("name"), names::dns_subdomain, verdict);
        }
        match references.len() {
            0 => verdict.invalid(env_from.path(), "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => verdict.invalid(env_from.path(), "", "may not have more than one field specified at a time"),
        }
    }
}

fn validate_source(from: &At<'_>, dialect: Dialect, has_value: bool, verdict: &mut Verdict) {
    type Check = fn(&At<'_>, &mut Verdict);
    let checks: [(&str, Check); 5] = [
        ("fieldRef", |at, verdict| field(at, &ENV_FIELDS, verdict)),
        ("resourceFieldRef", |at, verdict| resource_field(at, false, verdict)),
        ("configMapKeyRef", config_key),
        ("secretKeyRef", config_key),
        ("fileKeyRef", file_key),
    ];
    let mut n_sources = 0;
    for (name, check) in checks {
        let source = from.get(name);
        if source.is_set() {
            n_sources += 1;
            check(&source, verdict);
        }
    }
    let rule = match n_sources {
        0 if dialect == Dialect::Volcano => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        }
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if has_value => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    verdict.invalid(from.path(), "", rule);
}

fn config_key(selector: &At<'_>, verdict: &mut Verdict) {
    let name = selector.get("name");
    verdict.invalid_each(name.path(), name.text(), names::dns_subdomain(name.text()));
    check::required_name(&selector.get("key"), names::config_key, verdict);
}

fn file_key(selector: &At<'_>, verdict: &mut Verdict) {
    check::required_name(&selector.get("key"), names::relaxed_environment_variable, verdict);
    check::required_name(&selector.get("volumeName"), names::dns_label, verdict);
    if check::text(&selector.get("path"), verdict) {
        check::no_backsteps(&selector.get("path"), verdict);
    }
}

const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// The fields that a volume can show.
pub(super) const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// The fields that have a name at all.
const KNOWN_FIELDS: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "spec.host",
];

/// A field of the pod itself, as a value.
pub(super) fn field(selector: &At<'_>, supported: &[&str], verdict: &mut Verdict) {
    let (version, field) = (selector.str("apiVersion"), selector.get("fieldPath"));
    let path = field.text();
    if path.is_empty() {
        verdict.required(field.path(), "");
        return;
    }
    let unknown = |detail: String| format!("error converting fieldPath: {detail}");
    if !version.is_empty() && version != "v1" {
        verdict.invalid(field.path(), path, unknown(format!("unsupported pod version: {version}")));
        return;
    }
    match subscript(path) {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            verdict.invalid_each(selector.path(), &key, names::qualified_name(&key));
        }
        Some(("metadata.labels", key)) => {
            verdict.invalid_each(selector.path(), key, names::qualified_name(key))
        }
        Some(_) => {
            verdict.invalid(
                field.path(),
                path,
                unknown(format!("field label does not support subscript: {path}")),
            );
        }
        None if !KNOWN_FIELDS.contains(&path) => {
            verdict.invalid(field.path(), path, unknown(format!("field label not supported: {path}")));
        }
        None => {
            let path = if path == "spec.host" { "spec.nodeName" } else { path };
            if !supported.contains(&path) {
                verdict.unsupported(field.path(), path, supported);
            }
        }
    }
}

/// `metadata.labels['key']` as its two parts.
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(field, _)| !field.is_empty())
}

const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// What a container asks for, as a value.
pub(super) fn resource_field(selector: &At<'_>, in_volume: bool, verdict: &mut Verdict) {
    let (container, resource) = (selector.get("containerName"), selector.get("resource"));
    let name = resource.text();
    let is_huge_page = name.starts_with("requests.hugepages-") || name.starts_with("limits.hugepages-");
    if in_volume && container.text().is_empty() {
        verdict.required(container.path(), "");
    } else if name.is_empty() {
        verdict.required(resource.path(), "");
    } else if !RESOURCES.contains(&name) && !is_huge_page {
        verdict.unsupported(resource.path(), name, &RESOURCES);
    }
    validate_divisor(&selector.get("divisor"), name, is_huge_page, verdict);
}

fn validate_divisor(divisor: &At<'_>, resource: &str, is_huge_page: bool, verdict: &mut Verdict) {
    const SIZES: [&str; 13] =
        ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let Some(amount) = divisor.quantity().filter(|amount| *amount != Quantity::ZERO) else { return };
    let (allowed, what): (&[&str], &str) = match resource {
        "limits.cpu" | "requests.cpu" => (&["1m", "1"], "1m and 1 are supported with the cpu resource"),
        "limits.memory" | "requests.memory" => (&SIZES, "are supported with the memory resource"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => {
            (&SIZES, "are supported with the local ephemeral storage resource")
        }
        _ if is_huge_page => (&SIZES, "are supported with the hugepages resource"),
        _ => return,
    };
    if !allowed.contains(&amount.to_string().as_str()) {
        let values = if what.starts_with("1m") { String::new() } else { format!("{} ", allowed.join(", ")) };
        verdict.invalid(divisor.path(), resource, format_args!("only divisor's values {values}{what}"));
    }
}
