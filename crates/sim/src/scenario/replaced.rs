//! Somebody removes a pod of a running job, and no policy says anything about it: the pod is made again.

use krafla_api::Kind;
use krafla_api::volcano::JobPhase;

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "replaced",
    shows: "a deleted pod is created again, and the job keeps running",
    script: || {
        let running = When::JobHasBeen("replaced", JobPhase::Running);
        vec![
            create_job(When::Now, "replaced", gang(vec![task("main", 2)])),
            Act { when: running, deed: Deed::Delete(Kind::Pod, "replaced-main-1") },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job replaced Running, retried 0, version 0: 2 running
        podgroup replaced-<uid> Running
        pod replaced-main-0 Running
        pod replaced-main-1 Running
    ",
};
