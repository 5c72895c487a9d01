//! A policy that waits a while before it acts, across every crash.

use krafla_api::GoDuration;
use krafla_api::volcano::{Action, Event, JobSpec, LifecyclePolicy};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "patient",
    shows: "a failed pod aborts the job after the time that its policy says",
    script: || {
        let timeout = Some(GoDuration::from_seconds(90));
        let policies = vec![LifecyclePolicy { timeout, ..on(Event::PodFailed, Action::AbortJob) }];
        vec![create_job(When::Now, "patient", JobSpec { policies, ..gang(vec![task("main", 2)]) })]
    },
    pod: |pod| if pod.index == 0 { Life::fails_after(5, 1) } else { Life::RunsOn },
    end: "
        job patient Aborted, retried 0, version 1: 1 failed
        pod patient-main-0 Failed
    ",
};
