//! A user deletes a job and creates another one of the same name, while pods of the first are still going. The second does
//! not stand evictions, and those are none of its own.

use krafla_api::Kind;
use krafla_api::volcano::{Action, Event, JobPhase, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "again",
    shows: "a job that is created again under its old name is another job, and runs to Completed",
    script: || {
        let policies = || vec![on(Event::PodEvicted, Action::TerminateJob)];
        let job = || JobSpec { policies: policies(), ..gang(vec![task("main", 2)]) };
        let running = When::JobHasBeen("again", JobPhase::Running);
        vec![
            create_job(When::Now, "again", job()),
            Act { when: running, deed: Deed::Delete(Kind::VcJob, "again") },
            create_job(When::JobIsGone("again"), "again", job()),
        ]
    },
    pod: |_| Life::succeeds_after(10),
    end: "
        job again Completed, retried 0, version 0: 2 succeeded
        pod again-main-0 Succeeded
        pod again-main-1 Succeeded
    ",
};
