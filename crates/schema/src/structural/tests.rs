use serde_json::{Value, json};

use super::*;
use crate::json::Node;
use crate::{decode, golden};

/// What the server does with a custom object: the object as stored, and the findings, in recorded order.
fn admit(schema: &Structural, object: &Value) -> (Value, Vec<String>, Vec<String>) {
    let mut object = decode::decode_custom(&Node::from(object)).unwrap().object;
    let dropped = schema.prune(&mut object);
    schema.fill_defaults(&mut object);
    let mut findings: Vec<String> = schema.validate(&object, "").iter().map(ToString::to_string).collect();
    findings.sort();
    (object, dropped, findings)
}

/// Plays the cases of one kind: a CRD, then objects of it. CEL rules are not the schema's affair.
#[test]
fn recorded_values_are_judged_as_recorded() {
    let mut n_compared = 0;
    for case in golden::cases("08-crds.json") {
        let id = case["id"].as_str().unwrap();
        let is_value =
            ["crds/value-", "crds/many-errors", "crds/defaulting", "crds/pruning", "crds/preserve"];
        if !is_value.iter().any(|prefix| id.starts_with(prefix))
            || id.contains("cel")
            || id.contains("on-read")
        {
            continue;
        }
        let mut schema = Structural::default();
        for step in golden::steps(&case) {
            let body = &step["body"];
            if let Some(crd) = body.pointer("/spec/versions/0/schema/openAPIV3Schema") {
                schema = Structural::compile(crd);
                continue;
            }
            if step["method"] != "POST" {
                continue;
            }
            let (stored, dropped, findings) = admit(&schema, body);
            let answer = &step["expect"]["body"];
            if step["expect"]["code"] == 201 {
                assert_eq!(findings, Vec::<String>::new(), "{id}");
                let expected = answer.get("/spec").or(answer.get("spec")).cloned().unwrap_or_default();
                assert_eq!(stored["spec"], expected, "{id}");
                let warnings = step["expect"]["headers"]["Warning"].to_string();
                for path in &dropped {
                    assert!(warnings.contains(path), "{id} {path}");
                }
            } else {
                let message =
                    answer.get("/message").or(answer.get("message")).and_then(Value::as_str).unwrap();
                let (_, told) = message.split_once(" is invalid: ").unwrap();
                let told = told.trim_start_matches('[').trim_end_matches(']');
                assert_eq!(findings.join(", "), told, "{id}");
            }
            n_compared += 1;
        }
    }
    assert!(n_compared > 50, "{n_compared} compared");
}

#[test]
fn a_part_of_an_object_is_told_by_its_place_in_the_object() {
    let schema = json!({"type": "object", "properties": {"pending": {"type": "integer", "minimum": 0}}});
    let findings = Structural::compile(&schema).validate(&json!({"pending": -1}), "status");
    let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["status.pending: Invalid value: -1: pending in body should be greater than or equal to 0"]
    );
}

#[test]
fn an_embedded_object_must_say_what_it_is() {
    let schema = json!({"type": "object", "properties": {"t": {
        "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
    }}});
    let schema = Structural::compile(&schema);
    let mut object = json!({"t": {"kind": "Pod", "metadata": {"name": "x", "wrong": 1}, "spec": {}}});
    assert_eq!(schema.prune(&mut object), ["t.metadata.wrong"]);
    let told: Vec<String> = schema.validate(&object, "").iter().map(ToString::to_string).collect();
    assert_eq!(told, ["t.apiVersion: Required value"]);
}

#[test]
fn a_pod_template_is_judged_as_in_volcanos_crds() {
    let schema = Structural::compile(&of_type_named("io.k8s.api.core.v1.PodTemplateSpec").unwrap());
    let judge = |template: Value| admit(&schema, &json!(template)).2.join("\n");
    let pod = |container: Value| json!({"spec": {"containers": [container]}});
    assert_eq!(judge(pod(json!({"name": "c", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}))), "");
    assert_eq!(judge(json!({"spec": {}})), "spec.containers: Required value");
    let ports = json!({"name": "c", "ports": [{"containerPort": 80}, {"containerPort": 80}]});
    let twice = "spec.containers[0].ports[1]: Duplicate value: {\"containerPort\":80,\"protocol\":\"TCP\"}";
    assert_eq!(judge(pod(ports)), twice);
    let quantity = json!({"name": "c", "resources": {"limits": {"cpu": "much"}}});
    assert!(
        judge(pod(quantity))
            .contains("spec.containers[0].resources.limits.cpu in body should match '^(\\+|-)?")
    );
    let template = of_type_named("io.k8s.api.core.v1.PodTemplateSpec").unwrap();
    let holder = Structural::compile(&json!({"type": "object", "properties": {"template": template}}));
    let mut object =
        json!({"template": {"metadata": {"labels": {"a": "b"}, "uid": "u"}, "spec": {"new": 1}}});
    assert_eq!(holder.prune(&mut object), ["template.metadata.uid", "template.spec.new"]);
}

/// Volcano's kinds of which nothing was recorded.
const WITHOUT_RECORDS: [&str; 3] = ["colocationconfigurations", "nodeshards", "numatopologies"];

/// What the rules of a schema say, wherever they stand in it.
fn collect_rule_messages(schema: &Value, messages: &mut Vec<String>) {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    let said = rules.into_iter().flatten().filter_map(|rule| rule["message"].as_str());
    messages.extend(said.map(str::to_owned));
    match schema {
        Value::Object(fields) => fields.values().for_each(|value| collect_rule_messages(value, messages)),
        Value::Array(items) => items.iter().for_each(|value| collect_rule_messages(value, messages)),
        _ => {}
    }
}

/// The cases of one Volcano kind: what is stored of a new object, or what is wrong with it.
#[test]
fn volcanos_objects_are_judged_as_recorded() {
    let crds = krafla_api::crd::crds_with(&of_type_named);
    let mut n_compared = 0;
    for crd in &crds {
        let schema = Structural::compile(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
        // Rules have their own test; what they say does not come from the types.
        let mut messages = vec!["some validation rules were not checked".to_owned()];
        collect_rule_messages(crd, &mut messages);
        let plural = crd["spec"]["names"]["plural"].as_str().unwrap();
        if WITHOUT_RECORDS.contains(&plural) {
            continue;
        }
        for case in golden::volcano_cases(plural) {
            let name = case["name"].as_str().unwrap();
            let object = &case["object"];
            let group = crd["spec"]["group"].as_str().unwrap();
            let is_of_kind = object["apiVersion"].as_str().is_some_and(|version| version.starts_with(group));
            // Templates have their own test; what is said of metadata and status does not come from the schema.
            let is_about_spec = !name.starts_with("template") && object.get("status").is_none();
            if case["operation"] != "create" || !is_of_kind || !is_about_spec {
                continue;
            }
            let (stored, _, findings) = admit(&schema, object);
            let causes = case["response"]["error"]["causes"].as_array();
            let told = causes.into_iter().flatten().map(|cause| {
                format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap())
            });
            let is_of_rule = |told: &String| messages.iter().any(|message| told.contains(message));
            let mut told: Vec<String> = told.filter(|told| !is_of_rule(told)).collect();
            told.sort();
            if told.iter().any(|told| told.starts_with("metadata") || told.starts_with("kind")) {
                continue;
            }
            assert_eq!(findings, told, "{name}");
            if !case["response"]["object"].is_null() {
                assert_eq!(stored["spec"], case["response"]["object"]["spec"], "{name}");
            }
            n_compared += 1;
        }
    }
    assert!(n_compared > 150, "{n_compared} compared");
}

#[test]
fn a_large_pattern_does_not_look_through_much_text() {
    let pattern = "^[a-z]{0,1000}[a-c]*[d-f]{0,1000}$";
    let schema =
        Structural::compile(&json!({"type": "array", "items": {"type": "string", "pattern": pattern}}));
    assert_eq!(schema.validate(&json!(["a".repeat(30_000)]), ""), []);
    assert_eq!(schema.validate(&json!(["a".repeat(30_000)]), ""), [], "each object has a budget of its own");
    assert_eq!(schema.validate(&json!(["a".repeat(1 << 20)]), "").len(), 1);
    assert_eq!(schema.validate(&json!(vec!["a".repeat(1000); 1000]), "").len(), 935);
    let small = Structural::compile(&json!({"type": "string", "pattern": "^[a-z]*$"}));
    assert_eq!(small.validate(&json!("a".repeat(1 << 20)), ""), []);
}

#[test]
fn as_many_findings_as_elements_are_found_in_no_time() {
    let schema = Structural::compile(&json!({"type": "array", "items": {"type": "string"}}));
    assert_eq!(schema.validate(&json!(vec![1; 50_000]), "").len(), 50_000);
}

#[test]
fn a_short_object_does_not_become_gigabytes_by_defaults() {
    let text = "d".repeat(10_000);
    let item = json!({"type": "object", "properties": {"x": {"type": "string", "default": text}}});
    let crd = json!({"type": "object", "properties": {
        "list": {"type": "array", "items": item},
        "map": {"type": "object", "additionalProperties": {"type": "string", "default": text}},
    }});
    let schema = Structural::compile(&crd);
    for mut object in [
        json!({"list": vec![json!({}); 20_000]}),
        json!({"map": (0..20_000).map(|key| (key.to_string(), Value::Null)).collect::<serde_json::Map<_, _>>()}),
    ] {
        schema.fill_defaults(&mut object);
        let n_bytes = object.to_string().len();
        assert!(
            (2 << 20..3 << 20).contains(&n_bytes),
            "{n_bytes}: too large to be stored, and not larger than that"
        );
    }
    let mut small = json!({"list": [{}, {}]});
    schema.fill_defaults(&mut small);
    assert_eq!(small["list"][1]["x"].as_str(), Some(text.as_str()));
}
