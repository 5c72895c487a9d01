//! A flow whose template comes an hour later than the flow.

use std::time::Duration;

use serde_json::json;

use super::build::{create_flow, create_template, gang, task};
use super::{Act, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "flow-late",
    shows: "a flow waits for a template that does not exist yet, and goes on as soon as it does",
    script: || {
        let template = create_template("first", gang(vec![task("main", 1)]));
        vec![
            create_flow(When::Now, "flow", json!({ "flows": [{ "name": "first" }] })),
            Act { when: When::At(Duration::from_secs(3600)), ..template },
        ]
    },
    pod: |_| Life::succeeds_after(10),
    end: "
        job flow-first Completed, retried 0, version 0: 1 succeeded
        pod flow-first-main-0 Succeeded
        jobflow flow Succeed: flow-first Completed; completed: flow-first
        jobtemplate first: flow-first
    ",
};
