//! A Job that runs out of time.

use serde_json::json;

use super::build::{change_job, create_job, n_ready};
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-deadline",
    shows: "a Job that runs for too long fails, and so does the pod that still runs",
    script: || {
        // Set once the pod runs, so that a fault before that does not use up the time.
        let soon = json!({ "activeDeadlineSeconds": 20 });
        vec![create_job("late", json!({})), change_job("late", |job| n_ready(job) == 1, soon)]
    },
    pod: |_| Life::RunsOn,
    end: "
        jobs.batch late FailureTarget DeadlineExceeded, Failed DeadlineExceeded, 1 failed
    ",
};
