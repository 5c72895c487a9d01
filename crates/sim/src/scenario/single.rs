//! A pod fails and is started again alone.

use krafla_api::volcano::{Action, Event, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "single",
    shows: "a failed pod is restarted alone, at the price of one retry, and the job runs to Completed",
    script: || {
        let policies = vec![on(Event::PodFailed, Action::RestartPod)];
        vec![create_job(When::Now, "single", JobSpec { policies, ..gang(vec![task("main", 2)]) })]
    },
    // The second pod would fail for ever if it were restarted too.
    pod: |pod| match (pod.index, pod.retry) {
        (0, 0) => Life::fails_after(5, 3),
        (0, _) | (_, 0) => Life::succeeds_after(20),
        _ => Life::fails_after(1, 1),
    },
    end: "
        job single Completed, retried 1, version 0: 2 succeeded
        pod single-main-0 Succeeded
        pod single-main-1 Succeeded
    ",
};
