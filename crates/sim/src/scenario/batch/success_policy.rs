//! A Job that has succeeded as soon as its leader has.

use serde_json::json;

use super::build::create_job;
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-success-policy",
    shows: "a Job completes with its leader, and the pods that still run go without being counted",
    script: || {
        let policy = json!({ "rules": [{ "succeededIndexes": "0" }] });
        let fields = json!({
            "completionMode": "Indexed", "completions": 2, "parallelism": 2, "successPolicy": policy,
        });
        vec![create_job("led", fields)]
    },
    pod: |pod| if pod.index == 0 { Life::succeeds_after(5) } else { Life::RunsOn },
    end: "
        jobs.batch led SuccessCriteriaMet SuccessPolicy, Complete SuccessPolicy, 1 succeeded [0 completed]
        pod led-0-<drawn> Succeeded
    ",
};
