//! Somebody removes a pod of a running job, and the policy says to restart that pod: it is made again at the price of one
//! retry, also if nobody was there to see it go.

use krafla_api::Kind;
use krafla_api::volcano::{Action, Event, JobPhase, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "vacated",
    shows: "an evicted pod is made again for one retry, and the others run on",
    script: || {
        let policies = vec![on(Event::PodEvicted, Action::RestartPod)];
        let running = When::JobHasBeen("vacated", JobPhase::Running);
        vec![
            create_job(When::Now, "vacated", JobSpec { policies, ..gang(vec![task("main", 2)]) }),
            Act { when: running, deed: Deed::Delete(Kind::Pod, "vacated-main-1") },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job vacated Running, retried 1, version 0: 2 running
        podgroup vacated-<uid> Running
        pod vacated-main-0 Running
        pod vacated-main-1 Running
    ",
};
