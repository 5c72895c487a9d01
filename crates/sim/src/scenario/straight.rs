//! Nothing special: two tasks of two pods run to their end.

use super::build::{create_job, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "straight",
    shows: "a job of two tasks with two pods each runs to Completed",
    script: || vec![create_job(When::Now, "straight", gang(vec![task("left", 2), task("right", 2)]))],
    pod: |pod| Life::succeeds_after(if pod.task == "left" { 10 } else { 20 }),
    end: "
        job straight Completed, retried 0, version 0: 4 succeeded
        pod straight-left-0 Succeeded
        pod straight-left-1 Succeeded
        pod straight-right-0 Succeeded
        pod straight-right-1 Succeeded
    ",
};
