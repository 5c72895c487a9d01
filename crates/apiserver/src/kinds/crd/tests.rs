//! Definitions that a kube-apiserver refused, with what it said, and the ones that this program brings along.

use krafla_api::{Time, crd};
use krafla_schema::object;
use serde_json::Value;

use super::CustomResourceDefinition;
use crate::kinds::Rules;
use crate::status::{Qualified, Status};

/// What a client is told that creates a definition; nothing if all is well.
fn refusal(mut definition: Value) -> String {
    let rules = CustomResourceDefinition;
    rules.default(&mut definition);
    rules.on_create(&mut definition, Time(jiff::Timestamp::UNIX_EPOCH));
    let errors = rules.validate(&definition);
    let kind = Qualified { group: "apiextensions.k8s.io", what: "CustomResourceDefinition" };
    let status = Status::invalid(&kind, object::name(&definition), &errors);
    if errors.is_empty() { String::new() } else { status.message }
}

#[test]
fn definitions_are_refused_in_upstreams_words() {
    let mut n_cases = 0;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/apiserver/08-crds.json");
    let recorded: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    for case in recorded["cases"].as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        if !id.starts_with("crds/refused-") {
            continue;
        }
        let step = case["steps"][0].to_string().replace("{{u}}", "random");
        let step: Value = serde_json::from_str(&step).unwrap();
        let expected = step["expect"]["body"]["/message"].as_str().unwrap_or_default();
        assert_eq!(refusal(step["body"].clone()), expected, "{id}");
        n_cases += 1;
    }
    assert!(n_cases > 33, "only {n_cases} cases were found");
}

#[test]
fn our_own_definitions_are_accepted() {
    for definition in crd::crds() {
        assert_eq!(refusal(definition.clone()), "", "{}", object::name(&definition));
    }
}
