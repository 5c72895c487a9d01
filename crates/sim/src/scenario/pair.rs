//! Two jobs at once: one restarts, the other is none the wiser.

use krafla_api::volcano::{Action, Event, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "pair",
    shows: "two jobs run side by side, and the restart of one does not touch the other",
    script: || {
        let policies = vec![on(Event::PodFailed, Action::RestartJob)];
        vec![
            create_job(When::Now, "calm", gang(vec![task("main", 2)])),
            create_job(When::Now, "troubled", JobSpec { policies, ..gang(vec![task("main", 2)]) }),
        ]
    },
    pod: |pod| match (pod.job, pod.index, pod.retry) {
        ("troubled", 0, 0) => Life::fails_after(5, 1),
        _ => Life::succeeds_after(10),
    },
    end: "
        job calm Completed, retried 0, version 0: 2 succeeded
        pod calm-main-0 Succeeded
        pod calm-main-1 Succeeded
        job troubled Completed, retried 1, version 1: 2 succeeded
        pod troubled-main-0 Succeeded
        pod troubled-main-1 Succeeded
    ",
};
