//! A user deletes a job while it runs: nothing of it remains.

use krafla_api::Kind;
use krafla_api::volcano::JobPhase;

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "deleted",
    shows: "a job that is deleted while it runs leaves nothing behind",
    script: || {
        let running = When::JobHasBeen("deleted", JobPhase::Running);
        vec![
            create_job(When::Now, "deleted", gang(vec![task("left", 1), task("right", 2)])),
            Act { when: running, deed: Deed::Delete(Kind::VcJob, "deleted") },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "",
};
