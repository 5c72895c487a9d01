//! Somebody removes a pod of a running job, and the policy says to restart: once, whatever goes wrong, and also if nobody
//! was there to see it.

use krafla_api::Kind;
use krafla_api::volcano::{Action, Event, JobPhase, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "evicted",
    shows: "an evicted pod restarts the job once, and the second try runs to Completed",
    script: || {
        let policies = vec![on(Event::PodEvicted, Action::RestartJob)];
        let running = When::JobHasBeen("evicted", JobPhase::Running);
        vec![
            create_job(When::Now, "evicted", JobSpec { policies, ..gang(vec![task("main", 2)]) }),
            Act { when: running, deed: Deed::Delete(Kind::Pod, "evicted-main-1") },
        ]
    },
    pod: |pod| if pod.retry == 0 { Life::RunsOn } else { Life::succeeds_after(10) },
    end: "
        job evicted Completed, retried 1, version 1: 2 succeeded
        pod evicted-main-0 Succeeded
        pod evicted-main-1 Succeeded
    ",
};
