//! A user suspends a job and resumes it: two Commands, each carried out once, and no retry is charged.

use krafla_api::volcano::{Action, JobPhase};

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "suspended",
    shows: "a job that a user aborts and then resumes runs to Completed without a charged retry",
    script: || {
        let running = When::JobHasBeen("suspended", JobPhase::Running);
        let aborted = When::JobHasBeen("suspended", JobPhase::Aborted);
        vec![
            create_job(When::Now, "suspended", gang(vec![task("main", 2)])),
            Act { when: running, deed: Deed::Command("suspended", Action::AbortJob) },
            Act { when: aborted, deed: Deed::Command("suspended", Action::ResumeJob) },
        ]
    },
    pod: |pod| if pod.version == 0 { Life::RunsOn } else { Life::succeeds_after(10) },
    end: "
        job suspended Completed, retried 0, version 2: 2 succeeded
        pod suspended-main-0 Succeeded
        pod suspended-main-1 Succeeded
    ",
};
