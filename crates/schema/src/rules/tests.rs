//! Rules about objects, as tables.

use serde_json::{Value, json};

use super::RuleTree;
use crate::golden;

/// The schema of an object whose `spec.x` is this.
fn about_x(x: Value) -> RuleTree {
    let schema =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": x}}}});
    RuleTree::compile(&schema).unwrap()
}

/// What rules say when `spec.x` becomes `new`.
fn told(rules: &RuleTree, new: Value, old: Option<Value>) -> Vec<String> {
    let object = |x: Value| json!({"spec": {"x": x}});
    let old = old.map(object);
    rules.validate(&object(new), old.as_ref()).iter().map(ToString::to_string).collect()
}

/// Plays the recorded cases: a definition, then objects of it.
#[test]
fn recorded_values_are_judged_as_recorded() {
    let mut n_compared = 0;
    for case in golden::cases("08-crds.json") {
        let id = case["id"].as_str().unwrap();
        if !id.starts_with("crds/value-cel") || id.ends_with("type-error") {
            continue;
        }
        let mut rules = None;
        for step in golden::steps(&case) {
            let body = &step["body"];
            if let Some(schema) = body.pointer("/spec/versions/0/schema/openAPIV3Schema") {
                rules = RuleTree::compile(schema);
            } else if step["method"] == "POST" {
                let mut told: Vec<String> =
                    rules.as_ref().unwrap().validate(body, None).iter().map(ToString::to_string).collect();
                told.sort();
                let message = step["expect"]["body"]["/message"].as_str().unwrap_or_default();
                let expected = message.split_once(" is invalid: ").map_or("", |(_, told)| told);
                let expected = expected.strip_prefix('[').unwrap_or(expected).trim_end_matches(']');
                assert_eq!(told.join(", ").trim_end_matches(']'), expected, "{id}");
                n_compared += 1;
            }
        }
    }
    assert!(n_compared > 10, "only {n_compared} values were compared");
}

#[test]
fn rules_about_changes_are_asked_when_something_changes() {
    let rules = about_x(json!({"type": "integer", "x-kubernetes-validations": [
        {"rule": "self >= oldSelf", "message": "cannot fall"},
    ]}));
    assert!(told(&rules, json!(1), None).is_empty());
    assert!(told(&rules, json!(2), Some(json!(1))).is_empty());
    assert_eq!(told(&rules, json!(1), Some(json!(2))), ["spec.x: Invalid value: 1: cannot fall"]);
}

#[test]
fn a_rule_may_ask_whether_there_was_anything_before() {
    let rules = about_x(json!({"type": "string", "x-kubernetes-validations": [
        {"rule": "oldSelf.hasValue() || self == 'first'", "optionalOldSelf": true, "reason": "FieldValueForbidden"},
    ]}));
    assert!(told(&rules, json!("first"), None).is_empty());
    assert!(told(&rules, json!("later"), Some(json!("first"))).is_empty());
    let refused = told(&rules, json!("later"), None);
    assert_eq!(refused, ["spec.x: Forbidden: failed rule: oldSelf.hasValue() || self == 'first'"]);
}

#[test]
fn a_value_from_before_the_rule_may_stay() {
    let rules = about_x(json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 3"}]}));
    assert!(told(&rules, json!(1), Some(json!(1))).is_empty());
    assert_eq!(told(&rules, json!(2), Some(json!(1))), ["spec.x: Invalid value: 2: failed rule: self > 3"]);
}

#[test]
fn elements_are_known_again_by_their_keys() {
    let element = json!({
        "type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.n == oldSelf.n", "message": "fixed", "fieldPath": ".n"}],
    });
    let rules = about_x(json!({
        "type": "array", "items": element,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    }));
    let old = json!([{"name": "a", "n": 1}, {"name": "b", "n": 2}]);
    let new = json!([{"name": "b", "n": 3}, {"name": "c", "n": 4}, {"name": "a", "n": 1}]);
    assert_eq!(told(&rules, new, Some(old)), ["spec.x[0].n: Invalid value: fixed"]);
}

#[test]
fn an_object_that_costs_too_much_is_refused_in_time() {
    let rules = about_x(json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [
        {"rule": "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))"},
    ]}));
    let told = told(&rules, json!((0..300).collect::<Vec<u32>>()), None);
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("call cost exceeds limit for rule"), "{told:?}");
}

#[test]
fn fields_of_unknown_type_show_their_type_when_asked() {
    let rules = about_x(json!({"x-kubernetes-int-or-string": true, "x-kubernetes-validations": [
        {"rule": "type(self) == int ? self < 100 : self.endsWith('%')"},
        {"rule": "self > 0"},
    ]}));
    assert!(told(&rules, json!(5), None).is_empty());
    let text = told(&rules, json!("5%"), None);
    assert!(text[0].contains("call arguments did not match a supported operator"), "{text:?}");
}
