//! A pod fails, is to be restarted alone, and there is no retry left to pay for it.

use krafla_api::volcano::{Action, Event, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "spent",
    shows: "a partial restart beyond the limit fails the job and keeps the failed pod",
    script: || {
        let policies = vec![on(Event::PodFailed, Action::RestartPod)];
        let job = JobSpec { policies, max_retry: 2, ..gang(vec![task("main", 2)]) };
        vec![create_job(When::Now, "spent", job)]
    },
    pod: |pod| if pod.index == 0 { Life::fails_after(5, 1) } else { Life::RunsOn },
    end: "
        job spent Failed, retried 2, version 0: 1 failed
        pod spent-main-0 Failed
    ",
};
