//! A task's policy goes before the job's.

use krafla_api::volcano::{Action, Event, JobSpec, TaskSpec};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "outvoted",
    shows: "the policy of the task completes the job that its own would abort",
    script: || {
        let lead = TaskSpec { policies: vec![on(Event::PodFailed, Action::CompleteJob)], ..task("lead", 1) };
        let policies = vec![on(Event::PodFailed, Action::AbortJob)];
        vec![create_job(When::Now, "outvoted", JobSpec { policies, ..gang(vec![lead, task("work", 1)]) })]
    },
    pod: |pod| if pod.task == "lead" { Life::fails_after(5, 1) } else { Life::RunsOn },
    end: "
        job outvoted Completed, retried 0, version 1: 1 failed
        pod outvoted-lead-0 Failed
    ",
};
