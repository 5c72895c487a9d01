//! A user aborts a job while it restarts.

use krafla_api::volcano::{Action, Event, JobPhase, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "interrupted",
    shows: "a restarting job can be aborted",
    script: || {
        let policies = vec![on(Event::PodFailed, Action::RestartJob)];
        let restarting = When::JobHasBeen("interrupted", JobPhase::Restarting);
        vec![
            create_job(When::Now, "interrupted", JobSpec { policies, ..gang(vec![task("main", 2)]) }),
            Act { when: restarting, deed: Deed::Command("interrupted", Action::AbortJob) },
        ]
    },
    pod: |pod| match (pod.index, pod.retry) {
        (0, 0) => Life::fails_after(5, 1),
        _ => Life::RunsOn,
    },
    end: "
        job interrupted Aborted, retried 1, version 2: no pods
    ",
};
