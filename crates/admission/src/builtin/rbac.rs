//! Roles, and who has them.

use serde_json::{Value, json};

use super::{default_to, findings, items, validate_word};
use crate::json::At;
use crate::{Finding, Reason, Verdict};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Says what is wrong with a Role or, cluster-wide, a ClusterRole.
pub fn validate_role(role: &Value, is_namespaced: bool) -> Vec<Finding> {
    findings(role, |role, verdict| {
        for rule in role.items("rules") {
            validate_rule(&rule, is_namespaced, verdict);
        }
    })
}

fn validate_rule(rule: &At<'_>, is_namespaced: bool, verdict: &mut Verdict) {
    if rule.get("verbs").is_empty() {
        verdict.required(rule.get("verbs").path(), "verbs must contain at least one value");
    }
    let urls = rule.get("nonResourceURLs");
    let (groups, resources) = (rule.get("apiGroups"), rule.get("resources"));
    if !urls.is_empty() {
        if is_namespaced {
            verdict.invalid(urls.path(), urls.value(), "namespaced rules cannot apply to non-resource URLs");
        }
        if !(groups.is_empty() && resources.is_empty() && rule.get("resourceNames").is_empty()) {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            verdict.invalid(urls.path(), urls.value(), why);
        }
        return;
    }
    if groups.is_empty() {
        verdict.required(groups.path(), "resource rules must supply at least one api group");
    }
    if resources.is_empty() {
        verdict.required(resources.path(), "resource rules must supply at least one resource");
    }
}

/// Fills in a binding.
pub fn default_binding(binding: &mut Value) {
    for subject in items(binding, "subjects") {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            default_to(subject, "apiGroup", GROUP);
        }
    }
    if let Some(role) = binding.get_mut("roleRef").and_then(Value::as_object_mut) {
        default_to(role, "apiGroup", GROUP);
    }
}

/// Says what is wrong with a RoleBinding or, cluster-wide, a ClusterRoleBinding.
pub fn validate_binding(binding: &Value, is_namespaced: bool) -> Vec<Finding> {
    findings(binding, |binding, verdict| {
        let role = binding.get("roleRef");
        validate_word(&role.get("apiGroup"), &[GROUP], verdict);
        let kinds: &[&str] = if is_namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
        let kind = role.get("kind");
        if !kinds.contains(&kind.text()) {
            verdict.unsupported(kind.path(), kind.text(), kinds);
        }
        if role.str("name").is_empty() {
            verdict.required(role.get("name").path(), "");
        }
        for subject in binding.items("subjects") {
            validate_subject(&subject, verdict);
        }
    })
}

fn validate_subject(subject: &At<'_>, verdict: &mut Verdict) {
    let required = |field: &str, verdict: &mut Verdict| {
        if subject.str(field).is_empty() {
            verdict.required(subject.get(field).path(), "");
        }
    };
    required("name", verdict);
    let (group, kind) = (subject.get("apiGroup"), subject.get("kind"));
    match kind.text() {
        "ServiceAccount" => {
            if !group.text().is_empty() {
                verdict.unsupported(group.path(), group.text(), &[""]);
            }
            required("namespace", verdict);
        }
        "User" | "Group" => validate_word(&group, &[GROUP], verdict),
        other => verdict.unsupported(kind.path(), other, &["ServiceAccount", "User", "Group"]),
    }
}

/// Says what is wrong with a changed binding: whoever was given one role is not silently given another.
pub fn validate_binding_update(binding: &Value, old: &Value, is_namespaced: bool) -> Vec<Finding> {
    let mut found = validate_binding(binding, is_namespaced);
    let role = binding.get("roleRef").unwrap_or(&Value::Null);
    if Some(role) != old.get("roleRef") {
        let text = |field: &str| role.get(field).and_then(Value::as_str).unwrap_or_default();
        let shown = json!({"APIGroup": text("apiGroup"), "Kind": text("kind"), "Name": text("name")});
        let message = format!("Invalid value: {shown}: cannot change roleRef");
        found.push(Finding { field: "roleRef".into(), reason: Reason::Invalid, message });
    }
    found
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::said;
    use super::*;

    #[test]
    fn a_rule_is_about_resources_or_about_addresses() {
        let rules = json!([
            {"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]},
            {"apiGroups": [""]},
        ]);
        expect![[r#"
            rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs
            rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs
            rules[1].verbs: Required value: verbs must contain at least one value
            rules[1].resources: Required value: resource rules must supply at least one resource"#]]
        .assert_eq(&said(&validate_role(&json!({"rules": rules}), true)));
    }

    #[test]
    fn a_binding_names_a_role_and_whom_it_is_for() {
        let mut binding = json!({
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}, {"kind": "Cat"}],
        });
        default_binding(&mut binding);
        expect![[r#"
            roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"
            subjects[1].namespace: Required value
            subjects[2].name: Required value
            subjects[2].kind: Unsupported value: "Cat": supported values: "ServiceAccount", "User", "Group""#]]
        .assert_eq(&said(&validate_binding(&binding, false)));
    }
}
