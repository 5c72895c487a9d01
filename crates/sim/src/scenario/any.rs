//! A policy for anything that may happen meets an eviction.

use krafla_api::Kind;
use krafla_api::volcano::{Action, Event, JobPhase, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "any",
    shows: "an eviction terminates a job whose policy is for any event",
    script: || {
        let policies = vec![on(Event::Any, Action::TerminateJob)];
        let running = When::JobHasBeen("any", JobPhase::Running);
        vec![
            create_job(When::Now, "any", JobSpec { policies, ..gang(vec![task("main", 2)]) }),
            Act { when: running, deed: Deed::Delete(Kind::Pod, "any-main-1") },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job any Terminated, retried 0, version 1: no pods
    ",
};
