//! A Job with indexes, one of which fails for good.

use serde_json::json;

use super::build::create_job;
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-indexed",
    shows: "an index that fails twice is given up, and the others run all the same",
    script: || {
        let fields = json!({
            "completionMode": "Indexed", "completions": 3, "parallelism": 2, "backoffLimitPerIndex": 1,
        });
        vec![create_job("indexed", fields)]
    },
    pod: |pod| if pod.index == 1 { Life::fails_after(5, 1) } else { Life::succeeds_after(5) },
    end: "
        jobs.batch indexed FailureTarget FailedIndexes, Failed FailedIndexes, 2 succeeded 2 failed [0,2 completed] [1 failed]
        pod indexed-0-<drawn> Succeeded
        pod indexed-1-<drawn> Failed
        pod indexed-1-<drawn> Failed
        pod indexed-2-<drawn> Succeeded
    ",
};
