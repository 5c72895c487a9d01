//! A flow in whose way somebody else's job is.

use std::time::Duration;

use krafla_api::Kind;
use serde_json::json;

use super::build::{create_flow, create_job, create_template, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "flow-foreign",
    shows: "a foreign job with the name of a step's job is not changed, and the step runs once it is gone",
    script: || {
        vec![
            create_job(When::Now, "flow-first", gang(vec![task("other", 1)])),
            create_template("first", gang(vec![task("main", 1)])),
            create_flow(When::Now, "flow", json!({ "flows": [{ "name": "first" }] })),
            Act { when: When::At(Duration::from_secs(3600)), deed: Deed::Delete(Kind::VcJob, "flow-first") },
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
