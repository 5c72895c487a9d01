//! A flow of which a job is aborted, and goes on later.

use krafla_api::volcano::{Action, JobPhase};
use serde_json::json;

use super::build::{create_flow, create_template, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "flow-aborted",
    shows: "a step that is aborted neither fails its flow nor lets it go on; once it is resumed and has completed, the next starts",
    script: || {
        let command = |phase: JobPhase, action: Action| Act {
            when: When::JobHasBeen("flow-first", phase),
            deed: Deed::Command("flow-first", action),
        };
        vec![
            create_template("first", gang(vec![task("main", 1)])),
            create_template("second", gang(vec![task("main", 1)])),
            create_flow(
                When::Now,
                "flow",
                json!({ "flows": [
                    { "name": "first" },
                    { "name": "second", "dependsOn": { "targets": ["first"] } },
                ] }),
            ),
            command(JobPhase::Running, Action::AbortJob),
            command(JobPhase::Aborted, Action::ResumeJob),
        ]
    },
    pod: |pod| {
        if pod.job == "flow-first" && pod.version == 0 { Life::RunsOn } else { Life::succeeds_after(5) }
    },
    end: "
        job flow-first Completed, retried 0, version 2: 1 succeeded
        pod flow-first-main-0 Succeeded
        job flow-second Completed, retried 0, version 0: 1 succeeded
        pod flow-second-main-0 Succeeded
        jobflow flow Succeed: flow-first Completed, flow-second Completed; completed: flow-first flow-second
        jobtemplate first: flow-first
        jobtemplate second: flow-second
    ",
};
