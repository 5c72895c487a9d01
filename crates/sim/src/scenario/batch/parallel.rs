//! A Job of three pods, two of which run at once.

use serde_json::json;

use super::build::create_job;
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-parallel",
    shows: "each of three pods, two at once, is counted exactly once",
    script: || vec![create_job("parallel", json!({ "parallelism": 2, "completions": 3 }))],
    pod: |pod| Life::succeeds_after(if pod.n_ended == 0 { 5 } else { 8 }),
    end: "
        jobs.batch parallel SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 3 succeeded
        pod parallel-<drawn> Succeeded
        pod parallel-<drawn> Succeeded
        pod parallel-<drawn> Succeeded
    ",
};
