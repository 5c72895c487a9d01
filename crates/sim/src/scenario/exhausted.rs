//! Every try fails: the retry budget is used up exactly, and what is left of the last try can be looked at.

use krafla_api::volcano::{Action, Event, JobSpec};

use super::build::{create_job, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "exhausted",
    shows: "a job whose pods always fail uses up its retries and keeps the failed pods of its last try",
    script: || {
        let policies = vec![on(Event::PodFailed, Action::RestartJob)];
        vec![create_job(When::Now, "exhausted", JobSpec { policies, ..gang(vec![task("main", 2)]) })]
    },
    // The second pod never ends by itself, so that what is left at the end does not depend on who was faster.
    pod: |pod| if pod.index == 0 { Life::fails_after(5, 1) } else { Life::RunsOn },
    end: "
        job exhausted Failed, retried 3, version 3: 1 failed
        pod exhausted-main-0 Failed
    ",
};
