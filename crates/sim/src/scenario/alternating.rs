//! A user suspends a job and resumes it, again and again.

use std::time::Duration;

use krafla_api::volcano::{Action, JobSpec};

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "alternating",
    shows: "a job that is suspended and resumed more often than it may retry runs to Completed",
    script: || {
        let mut script = vec![create_job(
            When::Now,
            "alternating",
            JobSpec { max_retry: 1, ..gang(vec![task("main", 1)]) },
        )];
        let actions = [Action::AbortJob, Action::ResumeJob, Action::AbortJob, Action::ResumeJob];
        for (minutes, action) in (10..).step_by(10).zip(actions) {
            let when = When::At(Duration::from_secs(60 * minutes));
            script.push(Act { when, deed: Deed::Command("alternating", action) });
        }
        script
    },
    pod: |pod| if pod.version < 4 { Life::RunsOn } else { Life::succeeds_after(10) },
    end: "
        job alternating Completed, retried 0, version 4: 1 succeeded
        pod alternating-main-0 Succeeded
    ",
};
