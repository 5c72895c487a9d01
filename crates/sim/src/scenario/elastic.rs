//! A job that needs only some of its pods.

use krafla_api::volcano::JobSpec;

use super::build::{create_job, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "elastic",
    shows: "a job of which enough pods succeed is Completed, although one failed",
    script: || {
        vec![create_job(When::Now, "elastic", JobSpec { min_available: 2, ..gang(vec![task("main", 3)]) })]
    },
    pod: |pod| if pod.index == 0 { Life::fails_after(5, 1) } else { Life::succeeds_after(10) },
    end: "
        job elastic Completed, retried 0, version 0: 2 succeeded, 1 failed
        pod elastic-main-0 Failed
        pod elastic-main-1 Succeeded
        pod elastic-main-2 Succeeded
    ",
};
