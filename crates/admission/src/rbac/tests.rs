//! Decision tables.

use krafla_api::Key;
use serde_json::{Value, json};

use super::bootstrap::{Reconciled, reconcile, standard};
use super::*;

fn user(name: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    User { name: name.into(), groups, ..User::default() }
}

/// A policy of roles (`NAMESPACE/NAME`, rules) and bindings (`NAMESPACE/NAME`, role kind, role, subjects).
fn policy(roles: &[(&str, Value)], bindings: &[(&str, &str, &str, Value)]) -> Policy {
    let mut policy = Policy::default();
    let key = |text: &str| {
        let (namespace, name) = text.split_once('/').unwrap();
        Key::new(namespace, name)
    };
    for (name, rules) in roles {
        policy.put_role(&key(name), &json!({"rules": rules}));
    }
    for (name, kind, role, subjects) in bindings {
        let binding = json!({"roleRef": {"kind": kind, "name": role}, "subjects": subjects});
        policy.put_binding(&key(name), &binding);
    }
    policy
}

/// `VERB GROUP/RESOURCE[/SUBRESOURCE] NAMESPACE NAME` or `VERB PATH`; a dash stands for nothing.
fn ask(policy: &Policy, user: &User, question: &str) -> Decision {
    let none = |word: &str| if word == "-" { "" } else { word }.to_owned();
    let words: Vec<String> = question.split(' ').map(none).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (verb, target) = match words.as_slice() {
        [verb, path] => (*verb, Target::Path(path)),
        [verb, what, namespace, name] => {
            let mut parts = what.splitn(3, '/');
            let group = parts.next().filter(|group| *group != "-").unwrap_or_default();
            let (resource, subresource) = (parts.next().unwrap(), parts.next().unwrap_or_default());
            let target = ResourceTarget { group, version: "v1", resource, subresource, namespace, name };
            (*verb, Target::Resource(target))
        }
        other => panic!("{other:?}"),
    };
    policy.decide(&Attributes { user, verb, target })
}

#[test]
fn a_rule_allows_what_it_names() {
    let cases = [
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), "get -/pods a x", true),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), "list -/pods a -", false),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), "get -/pods/log a x", false),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), "get apps/pods a x", false),
        (json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), "use g/things/part a x", true),
        (json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), "get /healthz", false),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}), "get -/pods/log a x", true),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}), "get -/pods a x", false),
        (
            json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/scale"]}),
            "get apps/sets/scale a x",
            true,
        ),
        (json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/scale"]}), "get apps/sets a x", false),
        (
            json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/scale"]}),
            "get apps/sets/upscale a x",
            false,
        ),
        (
            json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/*"]}),
            "get apps/sets/scale a x",
            false,
        ),
        (
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]}),
            "get -/pods a x",
            true,
        ),
        (
            json!({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]}),
            "list -/pods a -",
            false,
        ),
        (json!({"verbs": ["get"], "nonResourceURLs": ["/healthz"]}), "get /healthz", true),
        (json!({"verbs": ["get"], "nonResourceURLs": ["/healthz"]}), "get /healthz/etcd", false),
        (json!({"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]}), "get /healthz/etcd", true),
        (json!({"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]}), "get /healthz", false),
        (json!({"verbs": ["*"], "nonResourceURLs": ["*"]}), "post /x", true),
        (json!({"verbs": ["*"], "nonResourceURLs": ["*"]}), "get -/pods a x", false),
        (json!({"verbs": ["get"]}), "get -/pods a x", false),
    ];
    for (rule, question, allowed) in cases {
        let subject = json!([{"kind": "User", "name": "u"}]);
        let policy = policy(&[("/r", json!([rule]))], &[("/b", "ClusterRole", "r", subject)]);
        assert_eq!(ask(&policy, &user("u", &[]), question).allowed, allowed, "{rule} {question}");
    }
}

#[test]
fn a_binding_concerns_its_subjects_in_its_namespace() {
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let roles = [("a/r", rules.clone()), ("/r", rules)];
    let subjects = json!([
        {"kind": "Group", "name": "team"}, {"kind": "ServiceAccount", "name": "s"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "b"}, {"kind": "User", "name": "u"},
    ]);
    let policy = policy(
        &roles,
        &[
            ("a/local", "Role", "r", subjects.clone()),
            ("c/wide", "ClusterRole", "r", subjects),
            ("/gone", "ClusterRole", "none", json!([{"kind": "User", "name": "u"}])),
        ],
    );
    let by = |binding: &str| format!("RBAC: allowed by RoleBinding {binding}");
    let missing = r#"RBAC: clusterrole.rbac.authorization.k8s.io "none" not found"#;
    let account = "system:serviceaccount:";
    let cases = [
        (user("u", &[]), "get -/pods a x", true, by(r#""local/a" of Role "r" to User "u""#)),
        (user("u", &["team"]), "get -/pods a x", true, by(r#""local/a" of Role "r" to Group "team""#)),
        (user("u", &[]), "get -/pods c x", true, by(r#""wide/c" of ClusterRole "r" to User "u""#)),
        (user("u", &[]), "get -/pods d x", false, missing.to_owned()),
        (user("u", &[]), "get -/pods - x", false, missing.to_owned()),
        (user("v", &[]), "get -/pods a x", false, String::new()),
        (
            user(&format!("{account}a:s"), &[]),
            "get -/pods a x",
            true,
            by(r#""local/a" of Role "r" to ServiceAccount "s/a""#),
        ),
        (
            user(&format!("{account}b:s"), &[]),
            "get -/pods a x",
            true,
            by(r#""local/a" of Role "r" to ServiceAccount "s/b""#),
        ),
        (user(&format!("{account}c:s"), &[]), "get -/pods a x", false, String::new()),
    ];
    for (user, question, allowed, reason) in cases {
        let decision = ask(&policy, &user, question);
        assert_eq!((decision.allowed, decision.reason), (allowed, reason), "{user:?} {question}");
    }
}

#[test]
fn changes_are_followed_one_by_one() {
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let mut policy =
        policy(&[("/r", rules)], &[("/b", "ClusterRole", "r", json!([{"kind": "User", "name": "u"}]))]);
    let may = |policy: &Policy, name: &str| ask(policy, &user(name, &["g"]), "get -/pods a x").allowed;
    assert!(may(&policy, "u") && !may(&policy, "v"));
    let group = json!({"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "Group", "name": "g"}]});
    policy.put_binding(&Key::new("", "b"), &group);
    assert!(may(&policy, "u") && may(&policy, "v"));
    policy.put_role(&Key::new("", "r"), &json!({"rules": []}));
    assert!(!may(&policy, "u"));
    policy.remove_role(&Key::new("", "r"));
    let reason = r#"RBAC: clusterrole.rbac.authorization.k8s.io "r" not found"#;
    assert_eq!(ask(&policy, &user("u", &["g"]), "get -/pods a x").reason, reason);
    policy.remove_binding(&Key::new("", "b"));
    assert_eq!(ask(&policy, &user("u", &["g"]), "get -/pods a x"), Decision::default());
}

#[test]
fn nobody_grants_what_they_do_not_hold() {
    let rule = |verbs: &[&str], resource: &str, names: &[&str]| Rule {
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        api_groups: vec![String::new()],
        resources: vec![resource.to_owned()],
        resource_names: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Rule::default()
    };
    let (pods, log) = (rule(&["get", "list"], "pods", &[]), rule(&["get"], "*/log", &[]));
    let held = [&pods, &log];
    let uncovered = |wanted: Rule| escalation::uncovered(&held, &[wanted]).len();
    assert_eq!(uncovered(rule(&["get"], "pods", &[])), 0);
    assert_eq!(uncovered(rule(&["get"], "pods", &["a"])), 0);
    assert_eq!(uncovered(rule(&["get"], "pods/log", &[])), 0);
    assert_eq!(uncovered(rule(&["*"], "pods", &[])), 1);
    assert_eq!(uncovered(rule(&["get", "create", "delete"], "pods", &[])), 2);
    let one = rule(&["get"], "secrets", &["a"]);
    assert_eq!(escalation::uncovered(&[&one], &[rule(&["get"], "secrets", &[])]).len(), 1);
    let wanted = [rule(&["get", "create"], "pods", &[]), rule(&["get"], "secrets", &["a"])];
    let refused = escalation::confirm(&user("u", &["g", "h"]), &held, &wanted, None).unwrap_err();
    assert_eq!(
        refused,
        "user \"u\" (groups=[\"g\" \"h\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"create\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"a\"], Verbs:[\"get\"]}"
    );
}

#[test]
fn an_aggregated_role_has_the_rules_of_others_once() {
    let role = |name: &str, label: &str, rules: Value| json!({"metadata": {"name": name, "labels": {label: "true"}}, "rules": rules});
    let (first, second) = (json!({"verbs": ["a"]}), json!({"verbs": ["b"]}));
    let mut sum = role("all", "x", json!(null));
    sum["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"x": "true"}}]});
    let roles = [
        sum.clone(),
        role("p", "x", json!([first, second])),
        role("q", "x", json!([second])),
        role("r", "y", json!([{}])),
    ];
    let matches = |selector: &Value, role: &Value| {
        selector["matchLabels"]
            .as_object()
            .unwrap()
            .iter()
            .all(|(key, value)| role["metadata"]["labels"][key] == *value)
    };
    assert_eq!(aggregation::rules(&sum, roles.iter(), matches), [first, second]);
}

#[test]
fn what_is_missing_comes_back_and_what_was_added_stays() {
    let expected = standard().into_iter().find(|of| of.object["metadata"]["name"] == "system:basic-user");
    let expected = expected.filter(|of| of.resource == "clusterroles").unwrap().object;
    assert_eq!(reconcile(&expected, &expected), Reconciled::Kept);
    let mut stored = expected.clone();
    let own = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
    stored["rules"] = json!([own, expected["rules"][0]]);
    stored["metadata"]["labels"] = json!({"mine": "1"});
    let Reconciled::Updated(updated) = reconcile(&stored, &expected) else { panic!("nothing is missing") };
    assert_eq!(updated["rules"], json!([own, expected["rules"][0], expected["rules"][1]]));
    let labels = json!({"mine": "1", "kubernetes.io/bootstrapping": "rbac-defaults"});
    assert_eq!(updated["metadata"]["labels"], labels);
    stored["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = json!("false");
    assert_eq!(reconcile(&stored, &expected), Reconciled::Kept);
}

#[test]
fn a_binding_whose_role_was_changed_is_made_anew() {
    let expected = standard().into_iter().find(|of| of.resource == "clusterrolebindings").unwrap().object;
    let mut stored = expected.clone();
    stored["subjects"] = json!([{"kind": "User", "name": "mine"}]);
    let Reconciled::Updated(updated) = reconcile(&stored, &expected) else { panic!("nothing is missing") };
    assert_eq!(updated["subjects"], json!([{"kind": "User", "name": "mine"}, expected["subjects"][0]]));
    stored["roleRef"]["name"] = json!("view");
    assert_eq!(reconcile(&stored, &expected), Reconciled::Replaced(expected));
}
