//! What a webhook configuration may say. The mutating and the validating kind differ in one field.

use serde_json::{Map, Value, json};

use crate::json::At;
use crate::names;
use crate::{Finding, Path, Verdict};

const POLICIES: [&str; 2] = ["Fail", "Ignore"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];
/// The versions of the question that are known. Only the first is ever sent.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// How long a webhook may take at most, and when nothing is said.
const TIMEOUT_SECONDS_MAX: i64 = 30;
const TIMEOUT_SECONDS: i64 = 10;
/// How many conditions one webhook may have.
const CONDITIONS_MAX: usize = 64;

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
        if seen.contains(&name) {
            verdict.duplicate(webhook.get("name").path(), name);
        }
        seen.push(name);
    }
    verdict.refusals
}

fn validate_webhook(webhook: &At<'_>, verdict: &mut Verdict) {
    validate_name(&webhook.get("name"), verdict);
    validate_versions(&webhook.get("admissionReviewVersions"), verdict);
    for rule in webhook.items("rules") {
        validate_rule(&rule, verdict);
    }
    validate_word(&webhook.get("failurePolicy"), &POLICIES, verdict);
    validate_word(&webhook.get("matchPolicy"), &["Equivalent", "Exact"], verdict);
    let side_effects = webhook.get("sideEffects");
    if side_effects.is_set() {
        validate_word(&side_effects, &["None", "NoneOnDryRun"], verdict);
    } else {
        verdict.required(side_effects.path(), "must specify one of None, NoneOnDryRun");
    }
    validate_word(&webhook.get("reinvocationPolicy"), &["IfNeeded", "Never"], verdict);
    let timeout = webhook.get("timeoutSeconds");
    if let Some(seconds) = timeout.int().filter(|seconds| !(1..=TIMEOUT_SECONDS_MAX).contains(seconds)) {
        let why = format!("the timeout value must be between 1 and {TIMEOUT_SECONDS_MAX} seconds");
        verdict.invalid(timeout.path(), seconds, why);
    }
    validate_client(&webhook.get("clientConfig"), verdict);
    validate_conditions(&webhook.get("matchConditions"), verdict);
}

fn validate_name(name: &At<'_>, verdict: &mut Verdict) {
    let text = name.text();
    if text.is_empty() {
        return verdict.required(name.path(), "");
    }
    verdict.invalid_each(name.path(), text, names::dns_subdomain(text));
    if text.split('.').count() < 3 {
        verdict.invalid(
            name.path(),
            text,
            "should be a domain with at least three segments separated by dots",
        );
    }
}

fn validate_versions(versions: &At<'_>, verdict: &mut Verdict) {
    let known = REVIEW_VERSIONS.join(", ");
    let given: Vec<&str> = versions.list().iter().map(At::text).collect();
    if given.is_empty() {
        verdict.required(versions.path(), &format!("must specify one of {known}"));
    } else if !given.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        let shown = format!("must include at least one of {known}");
        verdict.invalid(versions.path(), given.join(", ").as_str(), shown);
    }
}

fn validate_rule(rule: &At<'_>, verdict: &mut Verdict) {
    for list in ["operations", "apiGroups", "apiVersions", "resources"] {
        let words = rule.get(list);
        if words.is_empty() {
            verdict.required(words.path(), "");
        }
        let has_all = words.list().iter().any(|word| word.text() == "*");
        if has_all && words.list().len() > 1 && list != "resources" {
            verdict.invalid(words.path(), "*", "if '*' is present, must not specify other values");
        }
    }
    for version in rule.items("apiVersions").iter().filter(|version| version.text().is_empty()) {
        verdict.required(version.path(), "");
    }
    for resource in rule.items("resources").iter().filter(|resource| resource.text().is_empty()) {
        verdict.required(resource.path(), "");
    }
    for operation in rule.items("operations") {
        validate_word(&operation, &OPERATIONS, verdict);
    }
    validate_word(&rule.get("scope"), &SCOPES, verdict);
}

fn validate_word(at: &At<'_>, words: &[&str], verdict: &mut Verdict) {
    if at.is_set() && !words.contains(&at.text()) {
        verdict.unsupported(at.path(), at.text(), words);
    }
}

fn validate_client(client: &At<'_>, verdict: &mut Verdict) {
    let (url, service) = (client.get("url"), client.get("service"));
    if url.is_set() == service.is_set() {
        return verdict.required(client.path(), "exactly one of url or service is required");
    }
    if url.is_set() {
        return validate_url(&url, verdict);
    }
    for field in ["name", "namespace"] {
        if service.str(field).is_empty() {
            verdict.required(service.get(field).path(), "");
        }
    }
    let port = service.get("port");
    if let Some(number) = port.int().filter(|number| !(1..=65_535).contains(number)) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        verdict.invalid(port.path(), number, why);
    }
    let path = service.get("path");
    if path.is_set() && !path.text().starts_with('/') {
        verdict.invalid(path.path(), path.text(), "must start with a '/'");
    }
}

fn validate_url(url: &At<'_>, verdict: &mut Verdict) {
    const FORM: &str = "; desired format: https://host[/path]";
    let text = url.text();
    let Some((scheme, rest)) = text.split_once("://") else {
        return verdict.required(url.path(), "url must be a valid URL with a scheme and a host");
    };
    if scheme != "https" {
        verdict.invalid(url.path(), scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() {
        verdict.invalid(url.path(), host, format!("host must be specified{FORM}"));
    }
    for (sign, what) in [('@', "user information is"), ('#', "fragments are"), ('?', "query parameters are")]
    {
        if rest.contains(sign) {
            verdict.invalid(url.path(), text, format!("{what} not permitted in the URL"));
        }
    }
}

fn validate_conditions(conditions: &At<'_>, verdict: &mut Verdict) {
    let list = conditions.list();
    if list.len() > CONDITIONS_MAX {
        verdict.too_many(conditions.path(), list.len(), CONDITIONS_MAX);
    }
    let mut seen = Vec::new();
    for condition in list {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        if name.text().is_empty() {
            verdict.required(name.path(), "");
        } else {
            verdict.invalid_each(name.path(), name.text(), names::qualified_name(name.text()));
        }
        if seen.contains(&name.text()) {
            verdict.duplicate(name.path(), name.text());
        }
        seen.push(name.text());
        if expression.text().trim().is_empty() {
            verdict.required(expression.path(), "");
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
                webhooks[0].clientConfig.service.namespace: Required value
                webhooks[0].clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive
                webhooks[0].clientConfig.service.path: Invalid value: "x": must start with a '/'"#]],
        );
    }

    #[test]
    fn addresses_are_https_and_nothing_more() {
        check(
            json!({"clientConfig": {"url": "https://user@host/x?y#z"}}),
            expect![[r#"
                webhooks[0].clientConfig.url: Invalid value: "https://user@host/x?y#z": user information is not permitted in the URL
                webhooks[0].clientConfig.url: Invalid value: "https://user@host/x?y#z": fragments are not permitted in the URL
                webhooks[0].clientConfig.url: Invalid value: "https://user@host/x?y#z": query parameters are not permitted in the URL"#]],
        );
        check(
            json!({"clientConfig": {"url": "http:///x"}}),
            expect![[r#"
                webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]
                webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]"#]],
        );
    }

    #[test]
    fn conditions_have_names_of_their_own() {
        let conditions = json!([{"name": "a", "expression": "true"}, {"name": "a", "expression": " "}, {}]);
        check(
            json!({"matchConditions": conditions}),
            expect![[r#"
                webhooks[0].matchConditions[1].name: Duplicate value: "a"
                webhooks[0].matchConditions[1].expression: Required value
                webhooks[0].matchConditions[2].name: Required value
                webhooks[0].matchConditions[2].expression: Required value"#]],
        );
    }
}
