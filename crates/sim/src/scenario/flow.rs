//! A flow whose first job is removed as soon as it has ended.

use krafla_api::volcano::JobSpec;
use serde_json::json;

use super::build::{create_flow, create_template, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "flow",
    shows: "every step of a flow runs once and in order, also when a job is gone as soon as it has ended",
    script: || {
        let short_lived = JobSpec { ttl_seconds_after_finished: Some(0), ..gang(vec![task("main", 1)]) };
        vec![
            create_template("first", short_lived),
            create_template("second", gang(vec![task("main", 1)])),
            create_template("third", gang(vec![task("main", 1)])),
            create_flow(
                When::Now,
                "flow",
                json!({ "flows": [
                    { "name": "first" },
                    { "name": "second" },
                    { "name": "third", "dependsOn": { "targets": ["first", "second"] } },
                ] }),
            ),
        ]
    },
    pod: |pod| Life::succeeds_after(if pod.job == "flow-second" { 20 } else { 5 }),
    end: "
        job flow-second Completed, retried 0, version 0: 1 succeeded
        pod flow-second-main-0 Succeeded
        job flow-third Completed, retried 0, version 0: 1 succeeded
        pod flow-third-main-0 Succeeded
        jobflow flow Succeed: flow-first Completed, flow-second Completed, flow-third Completed; completed: flow-first flow-second flow-third
        jobtemplate first:
        jobtemplate second: flow-second
        jobtemplate third: flow-third
    ",
};
