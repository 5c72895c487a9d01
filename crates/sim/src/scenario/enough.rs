//! Two of three successes are enough: the job completes and the third pod is stopped.

use krafla_api::volcano::JobSpec;

use super::build::{create_job, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "enough",
    shows: "a job completes as soon as minSuccess pods have succeeded, and stops the rest",
    script: || {
        let job = JobSpec { min_success: Some(2), ..gang(vec![task("main", 3)]) };
        vec![create_job(When::Now, "enough", job)]
    },
    pod: |pod| if pod.index < 2 { Life::succeeds_after(10) } else { Life::RunsOn },
    end: "
        job enough Completed, retried 0, version 0: 2 succeeded
        pod enough-main-0 Succeeded
        pod enough-main-1 Succeeded
    ",
};
