//! All pods fail, and no policy says what to do.

use super::build::{create_job, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "failed",
    shows: "a job without policies fails when too few of its pods succeed, and keeps them",
    script: || vec![create_job(When::Now, "failed", gang(vec![task("main", 2)]))],
    pod: |_| Life::fails_after(5, 1),
    end: "
        job failed Failed, retried 0, version 0: 2 failed
        pod failed-main-0 Failed
        pod failed-main-1 Failed
    ",
};
