//! A Job that says what its pods' exit codes mean.

use serde_json::json;

use super::build::create_job;
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-failure-policy",
    shows: "a failure that is to be ignored is not counted, and one that is to fail the Job does so at once",
    script: || {
        let rule = |action: &str, code: i32| json!({ "action": action, "onExitCodes": { "operator": "In", "values": [code] } });
        let policy = json!({ "rules": [rule("Ignore", 3), rule("FailJob", 42)] });
        vec![create_job("judged", json!({ "podFailurePolicy": policy, "backoffLimit": 0 }))]
    },
    pod: |pod| Life::fails_after(5, if pod.n_ended == 0 { 3 } else { 42 }),
    end: "
        jobs.batch judged FailureTarget PodFailurePolicy, Failed PodFailurePolicy, 1 failed
        pod judged-<drawn> Failed
        pod judged-<drawn> Failed
    ",
};
