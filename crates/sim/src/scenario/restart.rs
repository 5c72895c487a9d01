//! A pod fails, the policy restarts the job, and the second try succeeds: one retry is charged, whatever goes wrong.

use krafla_api::volcano::{Action, Event, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "restart",
    shows: "a failed pod restarts the job once, and the second try runs to Completed",
    script: || {
        let policies = vec![on(Event::PodFailed, Action::RestartJob)];
        let tasks = vec![task("left", 2), task("right", 2)];
        vec![create_job(When::Now, "restart", JobSpec { policies, ..gang(tasks) })]
    },
    pod: |pod| match (pod.retry, pod.task, pod.index) {
        (0, "left", 1) => Life::fails_after(5, 3),
        _ => Life::succeeds_after(10),
    },
    end: "
        job restart Completed, retried 1, version 1: 4 succeeded
        pod restart-left-0 Succeeded
        pod restart-left-1 Succeeded
        pod restart-right-0 Succeeded
        pod restart-right-1 Succeeded
    ",
};
