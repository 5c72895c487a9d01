//! What is done about a failure depends on its exit code.

use krafla_api::volcano::{Action, JobSpec, LifecyclePolicy};

use super::build::{create_job, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "exit-code",
    shows: "one exit code restarts the job, the other aborts it",
    script: || {
        let on_code = |exit_code, action| LifecyclePolicy {
            exit_code: Some(exit_code),
            action,
            ..LifecyclePolicy::default()
        };
        let policies = vec![on_code(3, Action::RestartJob), on_code(4, Action::AbortJob)];
        vec![create_job(When::Now, "exit-code", JobSpec { policies, ..gang(vec![task("main", 2)]) })]
    },
    pod: |pod| match (pod.index, pod.retry) {
        (0, 0) => Life::fails_after(5, 3),
        (0, _) => Life::fails_after(5, 4),
        _ => Life::RunsOn,
    },
    end: "
        job exit-code Aborted, retried 1, version 2: 1 failed
        pod exit-code-main-0 Failed
    ",
};
