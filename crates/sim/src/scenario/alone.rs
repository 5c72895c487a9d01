//! Somebody removes the only pod of a running job, and the policy says to restart: there is nothing left to kill, and the
//! PodGroup of the first try goes all the same.

use krafla_api::Kind;
use krafla_api::volcano::{Action, Event, JobPhase, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "alone",
    shows: "the second try of a job that has lost its only pod waits for a PodGroup of its own",
    script: || {
        let policies = vec![on(Event::PodEvicted, Action::RestartJob)];
        let running = When::JobHasBeen("alone", JobPhase::Running);
        vec![
            create_job(When::Now, "alone", JobSpec { policies, ..gang(vec![task("main", 1)]) }),
            Act { when: running, deed: Deed::Delete(Kind::Pod, "alone-main-0") },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job alone Running, retried 1, version 1: 1 running
        podgroup alone-<uid> Running, of version 1
        pod alone-main-0 Running
    ",
};
