//! A Job whose pods all fail.

use serde_json::json;

use super::build::create_job;
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-spent",
    shows: "a Job that may fail once is tried once more, and fails with its second pod",
    script: || vec![create_job("spent", json!({ "backoffLimit": 1 }))],
    pod: |_| Life::fails_after(5, 1),
    end: "
        jobs.batch spent FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded, 2 failed
        pod spent-<drawn> Failed
        pod spent-<drawn> Failed
    ",
};
