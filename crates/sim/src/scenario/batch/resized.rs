//! A user lets fewer pods of a Job run at once, and then more again.

use serde_json::{Value, json};

use super::build::{change_job, create_job, n_ready};
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-resized",
    shows: "pods that are too many go without being counted, even where no failure is allowed, and come back",
    script: || {
        let is_small = |job: &Value| {
            let status = |field: &str| job.pointer(&format!("/status/{field}"));
            (status("active"), status("terminating")) == (Some(&json!(1)), Some(&json!(0)))
        };
        vec![
            create_job("resized", json!({ "parallelism": 3, "backoffLimit": 0 })),
            change_job("resized", |job| n_ready(job) == 3, json!({ "parallelism": 1 })),
            change_job("resized", is_small, json!({ "parallelism": 2 })),
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        jobs.batch resized 2 active
        pod resized-<drawn> Running
        pod resized-<drawn> Running
    ",
};
