//! A user suspends a Job and resumes it.

use serde_json::{Value, json};

use super::build::{change_job, create_job, n_ready};
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-suspended",
    shows: "the pods of a suspended Job go without being counted, and new ones come when it is resumed",
    script: || {
        let has_stopped = |job: &Value| {
            let status = |field: &str| job.pointer(&format!("/status/{field}"));
            status("conditions/0/status") == Some(&json!("True")) && status("terminating") == Some(&json!(0))
        };
        vec![
            create_job("paused", json!({ "parallelism": 2, "completions": 2 })),
            change_job("paused", |job| n_ready(job) == 2, json!({ "suspend": true })),
            change_job("paused", has_stopped, json!({ "suspend": false })),
        ]
    },
    pod: |pod| if pod.n_ended == 0 { Life::RunsOn } else { Life::succeeds_after(5) },
    end: "
        jobs.batch paused not Suspended JobResumed, SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 2 succeeded
        pod paused-<drawn> Succeeded
        pod paused-<drawn> Succeeded
    ",
};
