//! Policies of the cluster that are written as expressions.

use super::*;

impl Cluster {
    /// Stores a policy about ConfigMaps and a binding that makes it count.
    fn enact(&self, spec: Value, binding: Value) {
        let mut policy = json!({"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"],
        }]}}});
        let mut bound =
            json!({"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
        crate::patch::merge(&mut policy["spec"], &spec);
        crate::patch::merge(&mut bound["spec"], &binding);
        for (plural, object) in
            [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", bound)]
        {
            let resource = self.0.registry().find("admissionregistration.k8s.io", "v1", plural).unwrap();
            let object = crate::codec::normalise(&resource, &object).unwrap();
            let options = WriteOptions::default();
            self.0.create(&resource, "", object, &options).now_or_never().unwrap().unwrap();
        }
    }
}

#[test]
fn a_policy_refuses_what_it_does_not_allow() {
    let cluster = Cluster::new();
    let validation = json!({
        "expression": "object.data.k.size() < variables.most",
        "messageExpression": "'k of ' + object.metadata.name + ' is too long'",
        "reason": "Forbidden",
    });
    let variable = json!({"name": "most", "expression": "1 + 1"});
    cluster.enact(json!({"validations": [validation], "variables": [variable]}), json!({}));
    cluster.create(Kind::ConfigMap, config_map("short")).unwrap();
    let mut long = config_map("long");
    long["data"]["k"] = "long".into();
    says(
        &cluster.create(Kind::ConfigMap, long).unwrap_err(),
        expect![[
            r#"403 Forbidden: configmaps "long" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: k of long is too long"#
        ]],
    );
    // What it is not about is not its business.
    cluster.create(Kind::Pod, pod("a")).unwrap();
}

#[test]
fn a_policy_compares_with_what_was_and_with_its_parameters() {
    let cluster = Cluster::new();
    let validations = json!([{"expression": "oldObject == null || object.data.k == params.data.k"}]);
    let policy = json!({"validations": validations, "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}});
    cluster.create(Kind::ConfigMap, config_map("settings")).unwrap();
    cluster.enact(policy, json!({"paramRef": {"name": "settings", "parameterNotFoundAction": "Deny"}}));
    cluster.create(Kind::ConfigMap, config_map("a")).unwrap();
    let changed =
        |to: &str| cluster.patch(Kind::ConfigMap, "a", Part::Main, json!({"data": {"k": to, "x": "y"}}));
    changed("v").unwrap();
    assert_eq!(changed("w").unwrap_err().code, 422);
}

#[test]
fn a_policy_that_cannot_tell_refuses_unless_it_may_be_ignored() {
    for (failure_policy, is_refused) in [("Fail", true), ("Ignore", false)] {
        let cluster = Cluster::new();
        let validations = json!([{"expression": "object.nope.nothing == 1"}]);
        cluster.enact(json!({"validations": validations, "failurePolicy": failure_policy}), json!({}));
        let created = cluster.create(Kind::ConfigMap, config_map("a"));
        assert_eq!(created.is_err(), is_refused, "{failure_policy}: {created:?}");
    }
}

#[test]
fn conditions_say_which_requests_a_policy_is_about() {
    let cluster = Cluster::new();
    let conditions = json!([{"name": "mine", "expression": "request.name.startsWith('my-')"}]);
    cluster
        .enact(json!({"validations": [{"expression": "false"}], "matchConditions": conditions}), json!({}));
    cluster.create(Kind::ConfigMap, config_map("yours")).unwrap();
    assert_eq!(cluster.create(Kind::ConfigMap, config_map("my-own")).unwrap_err().code, 422);
}
