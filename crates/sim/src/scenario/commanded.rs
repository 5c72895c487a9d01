//! Users end jobs by Commands: one is terminated, one is completed, one starts anew.

use krafla_api::volcano::{Action, JobPhase};

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "commanded",
    shows: "a Command terminates one job, completes another, and restarts a third, each once",
    script: || {
        vec![
            create_job(When::Now, "ended", gang(vec![task("main", 2)])),
            create_job(When::Now, "done", gang(vec![task("main", 2)])),
            create_job(When::Now, "anew", gang(vec![task("main", 1)])),
            command("ended", Action::TerminateJob),
            command("done", Action::CompleteJob),
            command("anew", Action::RestartJob),
        ]
    },
    pod: |pod| match (pod.job, pod.retry) {
        ("anew", 1) => Life::succeeds_after(10),
        _ => Life::RunsOn,
    },
    end: "
        job anew Completed, retried 1, version 1: 1 succeeded
        pod anew-main-0 Succeeded
        job done Completed, retried 0, version 1: no pods
        job ended Terminated, retried 0, version 1: no pods
    ",
};

fn command(job: &'static str, action: Action) -> Act {
    Act { when: When::JobHasBeen(job, JobPhase::Running), deed: Deed::Command(job, action) }
}
