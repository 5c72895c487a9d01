//! Policies that stop a job: abort, terminate, complete. Failed pods stay as a record, running ones go.

use krafla_api::volcano::{Action, Event, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Act, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "stopped",
    shows: "a failed pod aborts one job, terminates another, and completes a third",
    script: || {
        vec![
            job("aborted", Action::AbortJob),
            job("completed", Action::CompleteJob),
            job("terminated", Action::TerminateJob),
        ]
    },
    pod: |pod| if pod.index == 0 { Life::fails_after(5, 1) } else { Life::RunsOn },
    end: "
        job aborted Aborted, retried 0, version 1: 1 failed
        pod aborted-main-0 Failed
        job completed Completed, retried 0, version 1: 1 failed
        pod completed-main-0 Failed
        job terminated Terminated, retried 0, version 1: 1 failed
        pod terminated-main-0 Failed
    ",
};

fn job(name: &str, action: Action) -> Act {
    let policies = vec![on(Event::PodFailed, action)];
    create_job(When::Now, name, JobSpec { policies, ..gang(vec![task("main", 2)]) })
}
