//! A flow of which somebody deletes a job that has completed, while the next one runs.

use krafla_api::Kind;
use serde_json::{Value, json};

use super::build::{create_flow, create_template, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "flow-kept",
    shows: "a completed step never runs again, even if its job is deleted",
    script: || {
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
            Act {
                when: When::Shows(Kind::JobFlow, "flow", has_a_completed_job),
                deed: Deed::Delete(Kind::VcJob, "flow-first"),
            },
        ]
    },
    pod: |pod| Life::succeeds_after(if pod.job == "flow-second" { 60 } else { 5 }),
    end: "
        job flow-second Completed, retried 0, version 0: 1 succeeded
        pod flow-second-main-0 Succeeded
        jobflow flow Succeed: flow-first Completed, flow-second Completed; completed: flow-first flow-second
        jobtemplate first:
        jobtemplate second: flow-second
    ",
};

fn has_a_completed_job(flow: &Value) -> bool {
    flow.pointer("/status/completedJobs/0").is_some()
}
