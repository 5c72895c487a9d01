//! The job is done when its lead is.

use krafla_api::volcano::{Action, Event, TaskSpec};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "led",
    shows: "a completed task completes the job, and the other task is stopped",
    script: || {
        let lead =
            TaskSpec { policies: vec![on(Event::TaskCompleted, Action::CompleteJob)], ..task("lead", 1) };
        vec![create_job(When::Now, "led", gang(vec![lead, task("work", 2)]))]
    },
    pod: |pod| if pod.task == "lead" { Life::succeeds_after(20) } else { Life::RunsOn },
    end: "
        job led Completed, retried 0, version 1: 1 succeeded
        pod led-lead-0 Succeeded
    ",
};
