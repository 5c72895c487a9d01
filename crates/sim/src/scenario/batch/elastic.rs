//! A user makes an Indexed Job smaller.

use serde_json::{Value, json};

use super::build::{change_job, create_job};
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-elastic",
    shows: "the pods of indexes that a Job has no more go without being counted, and the others are enough",
    script: || {
        let has_begun = |job: &Value| job.pointer("/status/active") == Some(&json!(3));
        vec![
            create_job("elastic", json!({ "completionMode": "Indexed", "completions": 3, "parallelism": 3 })),
            change_job("elastic", has_begun, json!({ "completions": 1, "parallelism": 1 })),
        ]
    },
    pod: |pod| if pod.index == 0 { Life::succeeds_after(5) } else { Life::RunsOn },
    end: "
        jobs.batch elastic SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 1 succeeded [0 completed]
        pod elastic-0-<drawn> Succeeded
    ",
};
