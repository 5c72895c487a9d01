//! A Job whose pods share a queue of work: it does not say how many must succeed.

use serde_json::json;

use super::build::create_job;
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-work-queue",
    shows: "the first success means that the work is done: running pods may end, and no others start",
    script: || vec![create_job("shared", json!({ "parallelism": 2 }))],
    // Both have started long before one ends, whatever goes wrong. A third would fail.
    pod: |pod| if pod.n_ended == 0 { Life::succeeds_after(700) } else { Life::fails_after(5, 1) },
    end: "
        jobs.batch shared SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 2 succeeded
        pod shared-<drawn> Succeeded
        pod shared-<drawn> Succeeded
    ",
};
