//! Commands for a job that has ended.

use krafla_api::volcano::{Action, JobPhase};

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "terminal",
    shows: "neither resuming nor restarting wakes a job that was terminated",
    script: || {
        let running = When::JobHasBeen("terminal", JobPhase::Running);
        let terminated = || When::JobHasBeen("terminal", JobPhase::Terminated);
        vec![
            create_job(When::Now, "terminal", gang(vec![task("main", 2)])),
            Act { when: running, deed: Deed::Command("terminal", Action::TerminateJob) },
            Act { when: terminated(), deed: Deed::Command("terminal", Action::ResumeJob) },
            Act { when: terminated(), deed: Deed::Command("terminal", Action::RestartJob) },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job terminal Terminated, retried 0, version 1: no pods
    ",
};
