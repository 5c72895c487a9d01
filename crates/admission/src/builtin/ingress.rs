//! Ingresses and their classes: what is refused.

use std::net::IpAddr;

use serde_json::Value;

use super::{default_to, findings};
use crate::json::At;
use crate::look::findings_of_change;
use crate::pod::check;
use crate::{Finding, Path, Verdict, names};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
const CONTROLLER_LENGTH_MAX: usize = 250;

/// What the author of a new Ingress should know.
pub fn warnings(ingress: &Value) -> Vec<String> {
    let annotations = ingress.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let is_there = annotations.is_some_and(|annotations| annotations.get(CLASS_ANNOTATION).is_some());
    let warning =
        format!("annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead");
    is_there.then_some(warning).into_iter().collect()
}

/// Says what is wrong with a new Ingress.
pub fn validate(ingress: &Value) -> Vec<Finding> {
    findings(ingress, |ingress, verdict| {
        validate_spec(&ingress.get("spec"), verdict);
        let annotated = ingress.get("metadata").get("annotations").get(CLASS_ANNOTATION);
        let class = ingress.get("spec").get("ingressClassName");
        if annotated.is_set() && class.is_set() && annotated.text() != class.text() {
            let path = Path::new("annotations").field(CLASS_ANNOTATION);
            let rule = "must match `ingressClassName` when both are specified";
            verdict.invalid(&path, annotated.text(), rule);
        }
    })
}

/// Says what is wrong with a changed Ingress.
pub fn validate_update(ingress: &Value) -> Vec<Finding> {
    findings(ingress, |ingress, verdict| validate_spec(&ingress.get("spec"), verdict))
}

/// Says what is wrong with an Ingress' status.
pub fn validate_status(ingress: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(ingress, old, |ingress, old, verdict| {
        let points = |of: &At<'_>| -> Vec<String> {
            let points = of.get("status").get("loadBalancer").items("ingress");
            points.iter().map(|point| point.str("ip").to_owned()).collect()
        };
        let known = points(old);
        for point in ingress.get("status").get("loadBalancer").items("ingress") {
            let (address, host) = (point.get("ip"), point.get("hostname"));
            if !address.text().is_empty() && !known.iter().any(|known| known == address.text()) {
                check::ip_address(&address, verdict);
            }
            check::name(&host, names::dns_subdomain, verdict);
            if host.text().parse::<IpAddr>().is_ok() {
                verdict.invalid(host.path(), host.text(), "must be a DNS name, not an IP address");
            }
        }
    })
}

fn validate_spec(spec: &At<'_>, verdict: &mut Verdict) {
    let (rules, backend) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && !backend.is_set() {
        verdict.invalid(spec.path(), rules.value(), "either `defaultBackend` or `rules` must be specified");
    }
    if backend.is_set() {
        validate_backend(&backend, verdict);
    }
    rules.list().iter().for_each(|rule| validate_rule(rule, verdict));
    for tls in spec.items("tls") {
        for host in tls.items("hosts") {
            verdict.invalid_each(host.path(), host.text(), host_name(host.text()));
        }
        check::name(&tls.get("secretName"), names::dns_subdomain, verdict);
    }
    let class = spec.get("ingressClassName");
    if class.is_set() {
        verdict.invalid_each(class.path(), class.text(), names::dns_subdomain(class.text()));
    }
}

fn validate_rule(rule: &At<'_>, verdict: &mut Verdict) {
    let host = rule.get("host");
    if !host.text().is_empty() {
        if host.text().parse::<IpAddr>().is_ok() {
            verdict.invalid(host.path(), host.text(), "must be a DNS name, not an IP address");
        }
        verdict.invalid_each(host.path(), host.text(), host_name(host.text()));
    }
    let http = rule.get("http");
    if !http.is_set() {
        return;
    }
    let paths = http.get("paths");
    check::list(&paths, verdict);
    paths.list().iter().for_each(|path| validate_path(path, verdict));
}

/// The name of a host, which may stand for all below a domain.
fn host_name(host: &str) -> Vec<String> {
    if host.contains('*') { names::wildcard_subdomain(host) } else { names::dns_subdomain(host) }
}

fn validate_path(at: &At<'_>, verdict: &mut Verdict) {
    let (kind, path) = (at.get("pathType"), at.get("path"));
    if !kind.is_set() {
        return verdict.required(kind.path(), "pathType must be specified");
    }
    let text = path.text();
    match kind.text() {
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                verdict.invalid(path.path(), text, "must be an absolute path");
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|part| text.contains(**part)) {
                verdict.invalid(path.path(), text, format_args!("must not contain '{part}'"));
            }
            for end in ["/..", "/."].iter().filter(|end| text.ends_with(**end)) {
                verdict.invalid(path.path(), text, format_args!("cannot end with '{end}'"));
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                verdict.invalid(path.path(), text, "must be an absolute path");
            }
        }
        other => verdict.unsupported(kind.path(), other, &PATH_TYPES),
    }
    validate_backend(&at.get("backend"), verdict);
}

fn validate_backend(backend: &At<'_>, verdict: &mut Verdict) {
    let (resource, service) = (backend.get("resource"), backend.get("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => verdict.invalid(backend.path(), "", "cannot set both resource and service backends"),
        (true, false) => validate_reference(&resource, verdict),
        (false, true) => validate_service(backend, &service, verdict),
        (false, false) => verdict.invalid(backend.path(), "", "resource or service backend is required"),
    }
}

fn validate_service(backend: &At<'_>, service: &At<'_>, verdict: &mut Verdict) {
    check::required_name(&service.get("name"), names::dns_label, verdict);
    let port = service.get("port");
    let (name, number) = (port.get("name"), port.get("number"));
    let has_number = number.int().is_some_and(|number| number != 0);
    match (name.text().is_empty(), has_number) {
        (false, true) => verdict.invalid(backend.path(), "", "cannot set both port name & port number"),
        (false, false) => verdict.invalid_each(name.path(), name.text(), names::port_name(name.text())),
        (true, true) => super::service::port_number(&number, verdict),
        (true, false) => verdict.required(backend.path(), "port name or number is required"),
    }
}

/// An object of some kind, by its name.
fn validate_reference(reference: &At<'_>, verdict: &mut Verdict) {
    let group = reference.get("apiGroup");
    if group.is_set() {
        verdict.invalid_each(group.path(), group.text(), names::dns_subdomain(group.text()));
    }
    for field in ["kind", "name"].map(|name| reference.get(name)) {
        if check::text(&field, verdict) {
            verdict.invalid_each(field.path(), field.text(), names::path_segment(field.text()));
        }
    }
}

/// Fills in an IngressClass.
pub fn default_class(class: &mut Value) {
    let parameters = class.pointer_mut("/spec/parameters").and_then(Value::as_object_mut);
    if let Some(parameters) = parameters {
        default_to(parameters, "scope", "Cluster");
    }
}

/// Says what is wrong with an IngressClass.
pub fn validate_class(class: &Value) -> Vec<Finding> {
    findings(class, validate_whole_class)
}

/// Says what is wrong with a changed IngressClass. Who takes care of it stays.
pub fn validate_class_update(class: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(class, old, |class, old, verdict| {
        let controller = class.get("spec").get("controller");
        if controller.text() != old.get("spec").str("controller") {
            verdict.invalid(controller.path(), controller.text(), "field is immutable");
        }
        validate_whole_class(class, verdict);
    })
}

fn validate_whole_class(class: &At<'_>, verdict: &mut Verdict) {
    let spec = class.get("spec");
    let controller = spec.get("controller");
    if controller.text().len() > CONTROLLER_LENGTH_MAX {
        verdict.too_long(controller.path(), CONTROLLER_LENGTH_MAX);
    }
    check::domain_prefixed_path(&controller, verdict);
    let parameters = spec.get("parameters");
    if !parameters.is_set() {
        return;
    }
    validate_reference(&parameters, verdict);
    let (scope, namespace) = (parameters.get("scope"), parameters.get("namespace"));
    if !scope.is_set() {
        return verdict.required(scope.path(), "");
    }
    match scope.text() {
        "Namespace" if !namespace.is_set() => {
            verdict.required(namespace.path(), "`parameters.scope` is set to 'Namespace'");
        }
        "Namespace" => {
            verdict.invalid_each(namespace.path(), namespace.text(), names::dns_label(namespace.text()));
        }
        "Cluster" if namespace.is_set() => {
            verdict.forbidden(namespace.path(), "`parameters.scope` is set to 'Cluster'");
        }
        "Cluster" => {}
        other => verdict.unsupported(scope.path(), other, &["Cluster", "Namespace"]),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::super::said;
    use super::*;

    fn check(spec: Value, expected: Expect) {
        expected.assert_eq(&said(&validate(&json!({"spec": spec}))));
    }

    #[test]
    fn an_ingress_leads_somewhere() {
        check(
            json!({}),
            expect!["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
        );
        check(
            json!({"defaultBackend": {}}),
            expect![[r#"spec.defaultBackend: Invalid value: "": resource or service backend is required"#]],
        );
        let both = json!({"service": {"name": "A", "port": {"name": "x", "number": 1}}});
        check(
            json!({"defaultBackend": both}),
            expect![[r#"
            spec.defaultBackend.service.name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            spec.defaultBackend: Invalid value: "": cannot set both port name & port number"#]],
        );
    }

    #[test]
    fn paths_are_plain() {
        let backend = json!({"service": {"name": "a", "port": {"number": 70_000}}});
        let path = |kind: &str, path: &str| json!({"pathType": kind, "path": path, "backend": backend});
        let paths = [path("Exact", "a//b/.."), path("Some", "/"), path("ImplementationSpecific", "")];
        check(
            json!({"rules": [{"host": "*.a_b", "http": {"paths": paths}}, {"host": "1.2.3.4"}]}),
            expect![[r#"
                spec.rules[0].host: Invalid value: "*.a_b": a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
                spec.rules[0].http.paths[0].path: Invalid value: "a//b/..": must be an absolute path
                spec.rules[0].http.paths[0].path: Invalid value: "a//b/..": must not contain '//'
                spec.rules[0].http.paths[0].path: Invalid value: "a//b/..": cannot end with '/..'
                spec.rules[0].http.paths[0].backend.service.port.number: Invalid value: 70000: must be between 1 and 65535, inclusive
                spec.rules[0].http.paths[1].pathType: Unsupported value: "Some": supported values: "Exact", "ImplementationSpecific", "Prefix"
                spec.rules[0].http.paths[1].backend.service.port.number: Invalid value: 70000: must be between 1 and 65535, inclusive
                spec.rules[0].http.paths[2].backend.service.port.number: Invalid value: 70000: must be between 1 and 65535, inclusive
                spec.rules[1].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address"#]],
        );
    }

    #[test]
    fn parameters_of_a_class_are_where_its_scope_says() {
        let class = |parameters: Value| json!({"spec": {"controller": "a", "parameters": parameters}});
        expect![[r#"
            spec.controller: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")
            spec.parameters.name: Invalid value: "a/b": may not contain '/'
            spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"#]]
        .assert_eq(&said(&validate_class(&class(json!({"kind": "K", "name": "a/b", "scope": "Namespace"})))));
        expect![[r#"
            spec.controller: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")
            spec.parameters.scope: Unsupported value: "X": supported values: "Cluster", "Namespace""#]]
        .assert_eq(&said(&validate_class(&class(json!({"kind": "K", "name": "n", "scope": "X"})))));
    }
}
