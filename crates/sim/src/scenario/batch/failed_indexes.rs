//! A Job that may lose no index.

use serde_json::json;

use super::build::create_job;
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-failed-indexes",
    shows: "one failed index more than allowed ends the Job, and the other indexes are not begun",
    script: || {
        let fields = json!({
            "completionMode": "Indexed", "completions": 3, "parallelism": 1, "backoffLimitPerIndex": 0,
            "maxFailedIndexes": 0,
        });
        vec![create_job("strict", fields)]
    },
    pod: |_| Life::fails_after(5, 1),
    end: "
        jobs.batch strict FailureTarget MaxFailedIndexesExceeded, Failed MaxFailedIndexesExceeded, 1 failed [0 failed]
        pod strict-0-<drawn> Failed
    ",
};
