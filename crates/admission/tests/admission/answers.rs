//! What Volcano's webhook manager answered over HTTP (`http.json`), as a server that asks it reads it. How to ask, and what a
//! connection that is cut means, is that server's business.

use expect_test::expect;
use krafla_admission::webhook::read;
use serde_json::Value;

/// What an answer comes to.
fn meaning(answer: &Value, uid: &str) -> String {
    match read(answer, uid) {
        Ok(answer) => {
            answer.refusal.map_or("allowed".to_owned(), |why| format!("refused: {}", why["message"]))
        }
        Err(unreadable) => format!("says nothing: {}", unreadable.0),
    }
}

#[test]
fn the_answers_of_volcano_s_webhook_manager_are_understood() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/admission/http.json");
    let recorded: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("the record")).expect("JSON");
    let mut report = String::new();
    for case in recorded["cases"].as_array().expect("cases") {
        let Some(answer) = case["response"].get("json") else { continue };
        let uid = answer["response"]["uid"].as_str().expect("a UID");
        report += &format!("{}: {}\n", case["name"].as_str().expect("a name"), meaning(answer, uid));
        assert!(meaning(answer, "another question").starts_with("says nothing: "), "{answer}");
    }
    expect![[r#"
        good request: allowed
        GET with a body: allowed
        PUT: allowed
        review without kind: allowed
        request without uid: allowed
        request without operation: refused: "expect operation to be 'CREATE'"
        unknown field in the review: allowed
        YAML body declared as JSON: allowed
    "#]]
    .assert_eq(&report);
}
