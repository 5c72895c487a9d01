//! A flow of which a job restarts before it completes.

use krafla_api::volcano::{Action, Event, JobSpec};
use serde_json::json;

use super::build::{create_flow, create_template, gang, on, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "flow-restarted",
    shows: "a step that restarts is waited for, and what depends on it starts once, when it has completed",
    script: || {
        let policies = vec![on(Event::PodFailed, Action::RestartJob)];
        vec![
            create_template("first", JobSpec { policies, ..gang(vec![task("main", 2)]) }),
            create_template("second", gang(vec![task("main", 1)])),
            create_flow(
                When::Now,
                "flow",
                json!({ "flows": [
                    { "name": "first" },
                    { "name": "second", "dependsOn": { "targets": ["first"] } },
                ] }),
            ),
        ]
    },
    pod: |pod| match (pod.job, pod.retry, pod.index) {
        ("flow-first", 0, 1) => Life::fails_after(5, 3),
        _ => Life::succeeds_after(10),
    },
    end: "
        job flow-first Completed, retried 1, version 1: 2 succeeded
        pod flow-first-main-0 Succeeded
        pod flow-first-main-1 Succeeded
        job flow-second Completed, retried 0, version 0: 1 succeeded
        pod flow-second-main-0 Succeeded
        jobflow flow Succeed: flow-first Completed, flow-second Completed; completed: flow-first flow-second
        jobtemplate first: flow-first
        jobtemplate second: flow-second
    ",
};
