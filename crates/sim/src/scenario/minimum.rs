//! One task misses its own minimum.

use krafla_api::volcano::TaskSpec;

use super::build::{create_job, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "minimum",
    shows: "a job fails when one of its tasks has too few successes",
    script: || {
        let lead = TaskSpec { min_available: Some(1), ..task("lead", 1) };
        let work = TaskSpec { min_available: Some(2), ..task("work", 2) };
        vec![create_job(When::Now, "minimum", gang(vec![lead, work]))]
    },
    pod: |pod| if pod.index == 1 { Life::fails_after(5, 1) } else { Life::succeeds_after(10) },
    end: "
        job minimum Failed, retried 0, version 0: 2 succeeded, 1 failed
        pod minimum-lead-0 Succeeded
        pod minimum-work-0 Succeeded
        pod minimum-work-1 Failed
    ",
};
