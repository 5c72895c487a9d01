//! Policies of the cluster that are written as expressions.

use super::*;

impl Cluster {
    /// Stores a mutating policy about ConfigMaps, and its binding.
    fn change_by(&self, name: &str, spec: Value, binding: Value) {
        let rule = json!({
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"],
        });
        let mut policy = json!({"metadata": {"name": name}, "spec": {
            "matchConstraints": {"resourceRules": [rule]}, "reinvocationPolicy": "Never",
        }});
        let mut bound = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
        crate::patch::merge(&mut policy["spec"], &spec);
        crate::patch::merge(&mut bound["spec"], &binding);
        for (plural, object) in
            [("mutatingadmissionpolicies", policy), ("mutatingadmissionpolicybindings", bound)]
        {
            let resource = self.0.registry().find("admissionregistration.k8s.io", "v1", plural).unwrap();
            let object = crate::codec::normalise(&resource, &object).unwrap();
            let options = WriteOptions::default();
            self.0.create(&resource, "", object, &options).now_or_never().unwrap().unwrap();
        }
    }

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

fn apply(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

#[test]
fn a_mutating_policy_changes_what_is_written() {
    let cluster = Cluster::new();
    let mutations = json!([
        apply("Object{metadata: Object.metadata{annotations: {'by': variables.who}}}"),
        patch(
            "[JSONPatch{op: 'test', path: '/data/k', value: 'v'}, \
              JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('a/b'), \
                  value: object.metadata.annotations.by}]"
        ),
        patch(
            "[JSONPatch{op: 'test', path: '/data/k', value: 'other'}, JSONPatch{op: 'remove', path: '/data'}]"
        ),
    ]);
    let variables = json!([{"name": "who", "expression": "'policy of ' + request.namespace"}]);
    let conditions = json!([{"name": "not-me", "expression": "object.metadata.name != 'me'"}]);
    let spec = json!({"mutations": mutations, "variables": variables, "matchConditions": conditions});
    cluster.change_by("p", spec, json!({}));
    let created = cluster.create(Kind::ConfigMap, config_map("a")).unwrap();
    assert_eq!(created["data"], json!({"k": "v"}));
    let annotations = json!({"by": "policy of default", "a/b": "policy of default"});
    assert_eq!(created["metadata"]["annotations"], annotations);
    let created = cluster.create(Kind::ConfigMap, config_map("me")).unwrap();
    assert_eq!(created["metadata"].get("annotations"), None);
}

#[test]
fn policies_that_ask_for_it_see_what_was_changed_after_them() {
    for (again, expected) in [("Never", None), ("IfNeeded", Some("yes"))] {
        let cluster = Cluster::new();
        let early = "has(object.data.late) ? Object{data: {'early': 'yes'}} : Object{}";
        cluster.change_by("a", json!({"mutations": [apply(early)], "reinvocationPolicy": again}), json!({}));
        cluster.change_by("b", json!({"mutations": [apply("Object{data: {'late': 'yes'}}")]}), json!({}));
        let created = cluster.create(Kind::ConfigMap, config_map("a")).unwrap();
        assert_eq!(created["data"]["late"], "yes");
        assert_eq!(created["data"].get("early").and_then(Value::as_str), expected, "{again}");
    }
}

#[test]
fn a_mutating_policy_is_asked_once_for_each_of_its_parameters() {
    let cluster = Cluster::new();
    for name in ["x", "y"] {
        let mut settings = config_map(name);
        settings["metadata"]["labels"] = json!({"settings": "yes"});
        cluster.create(Kind::ConfigMap, settings).unwrap();
    }
    let mutation = apply("Object{data: {params.metadata.name: 'seen'}}");
    let spec = json!({"mutations": [mutation], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}});
    let selected =
        json!({"selector": {"matchLabels": {"settings": "yes"}}, "parameterNotFoundAction": "Deny"});
    cluster.change_by("p", spec, json!({"paramRef": selected}));
    let created = cluster.create(Kind::ConfigMap, config_map("a")).unwrap();
    assert_eq!(created["data"], json!({"k": "v", "x": "seen", "y": "seen"}));
}

fn patch_refused(expression: &str) -> Status {
    let cluster = Cluster::new();
    cluster.change_by("p", json!({"mutations": [patch(expression)]}), json!({}));
    cluster.create(Kind::ConfigMap, config_map("a")).unwrap_err()
}

#[test]
fn all_policies_that_refuse_are_named_and_so_is_a_variable_that_fails() {
    let cluster = Cluster::new();
    let mutations = json!([apply("Object{data: {'k': variables.y}}")]);
    let variables = json!([
        {"name": "x", "expression": "object.nope"}, {"name": "y", "expression": "string(variables.x)"},
    ]);
    cluster.change_by("a", json!({"mutations": mutations, "variables": variables}), json!({}));
    cluster.change_by("b", json!({"mutations": [apply("Object{data: {'k': object.nope}}")]}), json!({}));
    let refused = cluster.create(Kind::ConfigMap, config_map("a")).unwrap_err();
    let causes: Vec<String> =
        refused.details.unwrap().causes.into_iter().map(|cause| cause.message).collect();
    expect![[r#"
        policy 'a' with binding 'a' denied request: expression 'Object{data: {'k': variables.y}}' resulted in error: composited variable "y" fails to evaluate: composited variable "x" fails to evaluate: no such key: nope
        policy 'b' with binding 'b' denied request: expression 'Object{data: {'k': object.nope}}' resulted in error: no such key: nope"#]]
    .assert_eq(&causes.join("\n"));
}

#[test]
fn a_mutation_that_fails_refuses_unless_it_may_be_ignored() {
    let refused = |expression: &str| {
        let cluster = Cluster::new();
        cluster.change_by("p", json!({"mutations": [apply(expression)]}), json!({}));
        cluster.create(Kind::ConfigMap, config_map("a")).unwrap_err()
    };
    says(
        &refused("Object{data: {'k': object.nope}}"),
        expect![[
            r#"403 Invalid: policy 'p' with binding 'p' denied request: expression 'Object{data: {'k': object.nope}}' resulted in error: no such key: nope"#
        ]],
    );
    says(
        &refused("Object{metadata: Object.spec{}}"),
        expect![[
            r#"403 Invalid: policy 'p' with binding 'p' denied request: type mismatch: unexpected type name "Object.spec", expected "Object.metadata", which matches field name path from root Object type"#
        ]],
    );
    says(
        &refused("Object{nope: 1}"),
        expect![[
            r#"403 Invalid: policy 'p' with binding 'p' denied request: error applying patch: failed to convert patch object to typed object: .nope: field not declared in schema"#
        ]],
    );
    says(
        &patch_refused("[JSONPatch{op: 'remove', path: '/data/zz'}]"),
        expect![[
            r#"403 Invalid: policy 'p' with binding 'p' denied request: JSON Patch: error in remove for path: '/data/zz': Unable to remove nonexistent key: zz: missing value"#
        ]],
    );
    let cluster = Cluster::new();
    let mutations = json!([apply("Object{data: {'k': object.nope}}")]);
    cluster.change_by("p", json!({"mutations": mutations, "failurePolicy": "Ignore"}), json!({}));
    assert_eq!(cluster.create(Kind::ConfigMap, config_map("a")).unwrap()["data"], json!({"k": "v"}));
}

#[test]
fn a_mutation_may_not_replace_a_part_of_what_is_one_value() {
    let cluster = Cluster::new();
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]});
    let mutation = apply("Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}");
    let spec = json!({"mutations": [mutation], "matchConstraints": {"resourceRules": [rule]}});
    cluster.change_by("p", spec, json!({}));
    says(
        &cluster.create(Kind::Pod, pod("a")).unwrap_err(),
        expect![[
            r#"403 Invalid: policy 'p' with binding 'p' denied request: error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.nodeSelector"#
        ]],
    );
}

#[test]
fn a_binding_may_warn_instead_of_refusing() {
    let cluster = Cluster::new();
    let validations = json!([{"expression": "false", "message": "no"}, {"expression": "1 == 2"}]);
    cluster.enact(json!({"validations": validations}), json!({"validationActions": ["Warn", "Audit"]}));
    let (maps, options) = (cluster.resource(Kind::ConfigMap), WriteOptions::default());
    cluster.0.create(&maps, "default", config_map("a"), &options).now_or_never().unwrap().unwrap();
    assert_eq!(
        options.warnings.list(),
        [
            "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no",
            "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: 1 == 2",
        ]
    );
}

#[test]
fn missing_parameters_refuse_or_let_pass_as_the_binding_says() {
    for (action, is_refused) in [("Deny", true), ("Allow", false)] {
        let cluster = Cluster::new();
        let policy = json!({
            "validations": [{"expression": "params.data.k == 'x'"}],
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        });
        cluster.enact(policy, json!({"paramRef": {"name": "none", "parameterNotFoundAction": action}}));
        let created = cluster.create(Kind::ConfigMap, config_map("a"));
        assert_eq!(created.is_err(), is_refused, "{action}: {created:?}");
    }
}
