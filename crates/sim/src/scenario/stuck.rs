//! A pod that finds no node for too long.

use krafla_api::GoDuration;
use krafla_api::volcano::{Action, Event, JobSpec, LifecyclePolicy};

use super::build::{create_job, gang, needing, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "stuck",
    shows: "a pod that stays pending terminates the job after the time that its policy says",
    script: || {
        let timeout = Some(GoDuration::from_seconds(60));
        let policies = vec![LifecyclePolicy { timeout, ..on(Event::PodPending, Action::TerminateJob) }];
        let tasks = vec![task("fits", 1), needing("1000", task("huge", 1))];
        vec![create_job(When::Now, "stuck", JobSpec { policies, min_available: 1, ..gang(tasks) })]
    },
    pod: |_| Life::RunsOn,
    end: "
        job stuck Terminated, retried 0, version 1: no pods
    ",
};
