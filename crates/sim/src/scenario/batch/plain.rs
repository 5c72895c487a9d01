//! A Job whose first pod fails: another takes its place after a while.

use serde_json::json;

use super::build::create_job;
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-plain",
    shows: "a Job whose pod fails once is tried again after a while, and completes",
    script: || vec![create_job("plain", json!({}))],
    pod: |pod| if pod.n_ended == 0 { Life::fails_after(5, 1) } else { Life::succeeds_after(5) },
    end: "
        jobs.batch plain SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 1 succeeded 1 failed
        pod plain-<drawn> Failed
        pod plain-<drawn> Succeeded
    ",
};
