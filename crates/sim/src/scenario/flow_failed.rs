//! A flow of which a step fails for good.

use serde_json::json;

use super::build::{create_flow, create_template, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "flow-failed",
    shows: "a step that fails fails its flow, and what waits for it is never made",
    script: || {
        vec![
            create_template("good", gang(vec![task("main", 1)])),
            create_template("bad", gang(vec![task("main", 1)])),
            create_flow(
                When::Now,
                "doomed",
                json!({ "flows": [
                    { "name": "bad" },
                    { "name": "good", "dependsOn": { "targets": ["bad"] } },
                ] }),
            ),
        ]
    },
    pod: |_| Life::fails_after(5, 3),
    end: "
        job doomed-bad Failed, retried 0, version 0: 1 failed
        pod doomed-bad-main-0 Failed
        jobflow doomed Failed: doomed-bad Failed; failed: doomed-bad
        jobtemplate bad: doomed-bad
        jobtemplate good:
    ",
};
