//! Each task waits for the one before it.

use krafla_api::volcano::{DependsOn, JobSpec, TaskSpec};

use super::build::{create_job, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "chain",
    shows: "three tasks start one after the other, and the job runs to Completed",
    script: || {
        let after = |name: &str, before: &str| TaskSpec {
            depends_on: Some(DependsOn { name: vec![before.to_owned()], ..DependsOn::default() }),
            ..task(name, 1)
        };
        let tasks = vec![task("first", 1), after("second", "first"), after("third", "second")];
        vec![create_job(When::Now, "chain", JobSpec { min_available: 1, ..gang(tasks) })]
    },
    pod: |_| Life::succeeds_after(10),
    end: "
        job chain Completed, retried 0, version 0: 3 succeeded
        pod chain-first-0 Succeeded
        pod chain-second-0 Succeeded
        pod chain-third-0 Succeeded
    ",
};
