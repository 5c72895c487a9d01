//! Recorded answers of a kube-apiserver, for tests.

use serde_json::Value;

/// The cases of one recorded file of a plain server.
pub(crate) fn cases(file: &str) -> Vec<Value> {
    read(&format!("apiserver/{file}"))
}

/// The cases of one Volcano kind, by its plural.
pub(crate) fn volcano_cases(plural: &str) -> Vec<Value> {
    read(&format!("crd/{plural}.json"))
}

fn read(file: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/");
    let text = std::fs::read_to_string(format!("{path}{file}")).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    document["cases"].as_array_mut().unwrap().drain(..).collect()
}

/// The steps of one case.
pub(crate) fn steps(case: &Value) -> &[Value] {
    case["steps"].as_array().unwrap()
}

/// The steps of the case of this name.
pub(crate) fn steps_of(cases: &[Value], id: &str) -> Vec<Value> {
    let case = cases.iter().find(|case| case["id"] == id).unwrap_or_else(|| panic!("no case {id}"));
    steps(case).to_vec()
}

/// A recorded object with real times in place of `<time>`.
pub(crate) fn with_times(object: &Value) -> Value {
    let text = object.to_string();
    let text =
        text.replace("<time>", "2026-01-02T03:04:05Z").replace("<microtime>", "2026-01-02T03:04:05.000006Z");
    serde_json::from_str(&text).unwrap()
}
