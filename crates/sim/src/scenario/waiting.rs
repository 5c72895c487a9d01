//! A job that asks for more than the cluster has waits, without pods, and without a write.

use super::build::{create_job, gang, needing, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "waiting",
    shows: "a job whose PodGroup is never admitted stays Pending and gets no pods",
    script: || {
        let huge = needing("1000", task("main", 2));
        vec![create_job(When::Now, "waiting", gang(vec![huge]))]
    },
    pod: |_| Life::RunsOn,
    end: "
        job waiting Pending, retried 0, version 0: no pods
        podgroup waiting-<uid> Pending
    ",
};
