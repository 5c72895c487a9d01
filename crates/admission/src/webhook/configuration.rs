//! What a webhook configuration may say. The mutating and the validating kind differ in one field.

use serde_json::{Map, Value, json};

use super::rules;
use crate::json::At;
use crate::names;
use crate::pod::check::label_selector;
use crate::policy::Environment;
use crate::{Finding, Path, Verdict};

const POLICIES: [&str; 2] = ["Fail", "Ignore"];
/// The versions of the question that are known. Only the first is ever sent.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// How long a webhook may take at most, and when nothing is said.
const TIMEOUT_SECONDS_MAX: i64 = 30;
const TIMEOUT_SECONDS: i64 = 10;

/// Fills in what a configuration may leave out.
pub fn default(configuration: &mut Value, is_mutating: bool) {
    let webhooks = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten().filter_map(Value::as_object_mut) {
        set(webhook, "failurePolicy", json!("Fail"));
        set(webhook, "matchPolicy", json!("Equivalent"));
        set(webhook, "namespaceSelector", json!({}));
        set(webhook, "objectSelector", json!({}));
        set(webhook, "timeoutSeconds", json!(TIMEOUT_SECONDS));
        if is_mutating {
            set(webhook, "reinvocationPolicy", json!("Never"));
        }
        let service = webhook.get_mut("clientConfig").and_then(|client| client.get_mut("service"));
        if let Some(service) = service.and_then(Value::as_object_mut) {
            set(service, "port", json!(443));
        }
        let rules = webhook.get_mut("rules").and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
            set(rule, "scope", json!("*"));
        }
    }
}

fn set(fields: &mut Map<String, Value>, name: &str, value: Value) {
    let slot = fields.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = value;
    }
}

/// Says everything that is wrong with a configuration, apart from its metadata.
pub fn validate(configuration: &Value) -> Vec<Finding> {
    let mut verdict = Verdict::default();
    let configuration = At::new(configuration, Path::default());
    let mut seen = Vec::new();
    for webhook in configuration.items("webhooks") {
        let name = webhook.str("name");
        validate_webhook(&webhook, &mut verdict);
        validate_versions(&webhook.get("admissionReviewVersions"), &mut verdict);
        if !name.is_empty() && seen.contains(&name) {
            verdict.duplicate(webhook.get("name").path(), name);
        }
        seen.push(name);
    }
    verdict.refusals
}

/// Says what is wrong with the webhook that converts custom resources: where it listens, and which questions it reads.
pub fn validate_conversion(client: &Value, versions: &Value) -> Vec<Finding> {
    let mut verdict = Verdict::default();
    let conversion = Path::new("spec.conversion");
    if !client.is_null() {
        let at = At::new(client, conversion.field("webhookClientConfig"));
        validate_client(&at, &mut verdict);
    }
    let at = At::new(versions, conversion.field("conversionReviewVersions"));
    if at.is_empty() {
        verdict.required(at.path(), "");
    } else {
        validate_versions(&at, &mut verdict);
    }
    verdict.refusals
}

fn validate_webhook(webhook: &At<'_>, verdict: &mut Verdict) {
    validate_name(&webhook.get("name"), verdict);
    for rule in webhook.items("rules") {
        rules::validate(&rule, verdict);
    }
    rules::validate_word(&webhook.get("failurePolicy"), &POLICIES, verdict);
    rules::validate_word(&webhook.get("matchPolicy"), &["Equivalent", "Exact"], verdict);
    let side_effects = webhook.get("sideEffects");
    if side_effects.is_set() {
        rules::validate_word(&side_effects, &["None", "NoneOnDryRun"], verdict);
    } else {
        verdict.required(side_effects.path(), "must specify one of None, NoneOnDryRun");
    }
    let timeout = webhook.get("timeoutSeconds");
    if let Some(seconds) = timeout.int().filter(|seconds| !(1..=TIMEOUT_SECONDS_MAX).contains(seconds)) {
        let why = format!("the timeout value must be between 1 and {TIMEOUT_SECONDS_MAX} seconds");
        verdict.invalid(timeout.path(), seconds, why);
    }
    for selector in ["namespaceSelector", "objectSelector"] {
        label_selector(&webhook.get(selector), verdict);
    }
    rules::validate_word(&webhook.get("reinvocationPolicy"), &["IfNeeded", "Never"], verdict);
    validate_client(&webhook.get("clientConfig"), verdict);
    rules::validate_conditions(&webhook.get("matchConditions"), &Environment::of_webhooks(), verdict);
}

fn validate_name(name: &At<'_>, verdict: &mut Verdict) {
    let text = name.text();
    let wrong = names::dns_subdomain(text);
    if text.is_empty() {
        verdict.required(name.path(), "");
    } else if !wrong.is_empty() {
        verdict.invalid(name.path(), text, wrong.join(","));
    } else if text.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        verdict.invalid(name.path(), text, why);
    }
}

fn validate_versions(versions: &At<'_>, verdict: &mut Verdict) {
    let known = REVIEW_VERSIONS.join(", ");
    let given = versions.list();
    if given.is_empty() {
        return verdict.required(versions.path(), &format!("must specify one of {known}"));
    }
    let mut seen = Vec::new();
    for version in &given {
        let text = version.text();
        if seen.contains(&text) {
            verdict.invalid(version.path(), text, "duplicate version");
        } else {
            verdict.invalid_each(version.path(), text, names::dns_1035_label(text));
        }
        seen.push(text);
    }
    if !seen.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        verdict.invalid(versions.path(), versions.value(), format!("must include at least one of {known}"));
    }
}

/// Says what is wrong with the place where a webhook is to be called: `url` or `service`, and not both.
pub(crate) fn validate_client(client: &At<'_>, verdict: &mut Verdict) {
    let (url, service) = (client.get("url"), client.get("service"));
    if url.is_set() == service.is_set() {
        return verdict.required(client.path(), "exactly one of url or service is required");
    }
    if url.is_set() { validate_url(&url, verdict) } else { validate_service(&service, verdict) }
}

fn validate_service(service: &At<'_>, verdict: &mut Verdict) {
    // Upstream takes the two for each other, so the message about the one is given when the other is missing.
    for (field, named) in [("namespace", "name"), ("name", "namespace")] {
        if service.str(field).is_empty() {
            verdict.required(service.get(named).path(), "");
        }
    }
    let port = service.get("port");
    if let Some(number) = port.int().filter(|number| !(1..=65_535).contains(number)) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        verdict.invalid(port.path(), number, why);
    }
    validate_path(&service.get("path"), verdict);
}

fn validate_path(path: &At<'_>, verdict: &mut Verdict) {
    let text = path.text();
    match text {
        "" | "/" => return,
        "//" => return verdict.invalid(path.path(), text, "segment[0] may not be empty"),
        _ => {}
    }
    if !text.starts_with('/') {
        verdict.invalid(path.path(), text, "must start with a '/'");
    }
    let mut steps = text.chars();
    steps.next();
    let steps = steps.as_str();
    for (at, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            verdict.invalid(path.path(), text, format!("segment[{at}] may not be empty"));
            continue;
        }
        for wrong in names::dns_subdomain(step) {
            verdict.invalid(path.path(), text, format!("segment[{at}]: {wrong}"));
        }
    }
}

fn validate_url(url: &At<'_>, verdict: &mut Verdict) {
    const FORM: &str = "; desired format: https://host[/path]";
    let text = url.text();
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let (scheme, rest) = text.split_once(':').unwrap_or(("", text));
    let authority = rest.strip_prefix("//").unwrap_or_default().split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if scheme != "https" {
        verdict.invalid(url.path(), scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        verdict.invalid(url.path(), host, format!("host must be specified{FORM}"));
    }
    for (part, what) in
        [(user, "user information is"), (fragment, "fragments are"), (query, "query parameters are")]
    {
        if !part.is_empty() {
            verdict.invalid(url.path(), part, format!("{what} not permitted in the URL"));
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Checks a configuration whose one webhook is right but for what `change` says.
    fn check(change: Value, expected: Expect) {
        let mut webhook = json!({
            "name": "check.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/check"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        });
        if let (Some(webhook), Value::Object(change)) = (webhook.as_object_mut(), change) {
            webhook.extend(change);
        }
        let mut configuration = json!({"webhooks": [webhook]});
        default(&mut configuration, false);
        let findings: Vec<String> = validate(&configuration).iter().map(ToString::to_string).collect();
        expected.assert_eq(&findings.join("\n"));
    }

    #[test]
    fn a_plain_webhook_is_right() {
        check(json!({}), expect![""]);
    }

    #[test]
    fn all_that_is_wrong_is_said() {
        let service = json!({"service": {"name": "a", "namespace": "", "port": 0, "path": "x"}});
        check(
            json!({"name": "short", "clientConfig": service, "timeoutSeconds": 31, "sideEffects": null}),
            expect![[r#"
                webhooks[0].name: Invalid value: "short": should be a domain with at least three segments separated by dots
                webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun
                webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds
                webhooks[0].clientConfig.service.name: Required value
                webhooks[0].clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive
                webhooks[0].clientConfig.service.path: Invalid value: "x": must start with a '/'
                webhooks[0].clientConfig.service.path: Invalid value: "x": segment[0] may not be empty"#]],
        );
    }

    #[test]
    fn addresses_are_https_and_nothing_more() {
        check(
            json!({"clientConfig": {"url": "https://user@host/x?y#z"}}),
            expect![[r#"
                webhooks[0].clientConfig.url: Invalid value: "user": user information is not permitted in the URL
                webhooks[0].clientConfig.url: Invalid value: "z": fragments are not permitted in the URL
                webhooks[0].clientConfig.url: Invalid value: "y": query parameters are not permitted in the URL"#]],
        );
        check(
            json!({"clientConfig": {"url": "http:///x"}}),
            expect![[r#"
                webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]
                webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]"#]],
        );
    }

    #[test]
    fn an_empty_path_of_a_service_is_its_root() {
        let service = |path: &str| json!({"service": {"name": "a", "namespace": "b", "path": path}});
        check(json!({"clientConfig": service("")}), expect![""]);
        check(json!({"clientConfig": service("/")}), expect![""]);
        check(json!({"clientConfig": service("/a/b-c/")}), expect![""]);
        check(
            json!({"clientConfig": service("/a//B")}),
            expect![[r#"
                webhooks[0].clientConfig.service.path: Invalid value: "/a//B": segment[1] may not be empty
                webhooks[0].clientConfig.service.path: Invalid value: "/a//B": segment[2]: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]],
        );
    }

    #[test]
    fn a_wildcard_stands_alone() {
        let rule = json!({
            "apiGroups": ["*", "apps"], "apiVersions": ["v1", "*"], "operations": ["*", "CREATE"],
            "resources": ["*/*", "pods", "pods/*", "pods/status", "*/status"],
        });
        check(
            json!({"rules": [rule]}),
            expect![[r#"
                webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations
                webhooks[0].rules[0].apiGroups: Invalid value: ["*","apps"]: if '*' is present, must not specify other API groups
                webhooks[0].rules[0].apiVersions: Invalid value: ["v1","*"]: if '*' is present, must not specify other API versions
                webhooks[0].rules[0].resources[2]: Invalid value: "pods/*": if '*/*' is present, must not specify pods/*
                webhooks[0].rules[0].resources[3]: Invalid value: "pods/status": if 'pods/*' is present, must not specify pods/status
                webhooks[0].rules[0].resources[4]: Invalid value: "*/status": if '*/*' is present, must not specify */status
                webhooks[0].rules[0].resources: Invalid value: ["*/*","pods","pods/*","pods/status","*/status"]: if '*/*' is present, must not specify other resources"#]],
        );
    }

    #[test]
    fn conditions_have_names_of_their_own() {
        let conditions = json!([{"name": "a", "expression": "true"}, {"name": "a", "expression": " "}, {}]);
        check(
            json!({"matchConditions": conditions}),
            expect![[r#"
                webhooks[0].matchConditions[1].expression: Required value
                webhooks[0].matchConditions[1].name: Duplicate value: "a"
                webhooks[0].matchConditions[2].expression: Required value
                webhooks[0].matchConditions[2].name: Required value"#]],
        );
    }
}
