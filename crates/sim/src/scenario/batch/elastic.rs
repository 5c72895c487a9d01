//! A user makes an Indexed Job smaller, and then larger again.

use serde_json::{Value, json};

use super::build::{change_job, create_job, n_ready};
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-elastic",
    shows: "the pods of indexes that a Job has no more go without being counted, and run anew when it has them again",
    script: || {
        let is_small = |job: &Value| {
            let status = |field: &str| job.pointer(&format!("/status/{field}"));
            (status("active"), status("terminating")) == (Some(&json!(1)), Some(&json!(0)))
        };
        let of_size = |size: u32| json!({ "completions": size, "parallelism": size });
        vec![
            create_job("elastic", json!({ "completionMode": "Indexed", "completions": 3, "parallelism": 3 })),
            change_job("elastic", |job| n_ready(job) == 3, of_size(1)),
            change_job("elastic", is_small, of_size(2)),
        ]
    },
    pod: |pod| match (pod.index, pod.n_ended) {
        // It ends long after the Job has its last size, whatever goes wrong.
        (0, _) => Life::succeeds_after(700),
        (_, 0) => Life::RunsOn,
        _ => Life::succeeds_after(5),
    },
    end: "
        jobs.batch elastic SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 2 succeeded [0,1 completed]
        pod elastic-0-<drawn> Succeeded
        pod elastic-1-<drawn> Succeeded
    ",
};
