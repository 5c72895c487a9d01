//! A flow whose spec is changed while its first job runs.

use krafla_api::Kind;
use krafla_api::volcano::JobPhase;
use serde_json::json;

use super::build::{create_flow, create_template, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "flow-changed",
    shows: "a step that is added to a running flow runs, and one that is taken out is neither made nor waited for",
    script: || {
        let flows = json!([{ "name": "first" }, { "name": "added", "dependsOn": { "targets": ["first"] } }]);
        vec![
            create_template("first", gang(vec![task("main", 1)])),
            create_template("added", gang(vec![task("main", 1)])),
            create_template("dropped", gang(vec![task("main", 1)])),
            create_flow(
                When::Now,
                "flow",
                json!({ "flows": [
                    { "name": "first" },
                    { "name": "dropped", "dependsOn": { "targets": ["first"] } },
                ] }),
            ),
            Act {
                when: When::JobHasBeen("flow-first", JobPhase::Running),
                deed: Deed::Patch(Kind::JobFlow, "flow", json!({ "spec": { "flows": flows } })),
            },
        ]
    },
    // Long enough for the change to be seen before it ends, whatever goes wrong.
    pod: |pod| Life::succeeds_after(if pod.job == "flow-first" { 3600 } else { 5 }),
    end: "
        job flow-added Completed, retried 0, version 0: 1 succeeded
        pod flow-added-main-0 Succeeded
        job flow-first Completed, retried 0, version 0: 1 succeeded
        pod flow-first-main-0 Succeeded
        jobflow flow Succeed: flow-added Completed, flow-first Completed; completed: flow-added flow-first
        jobtemplate added: flow-added
        jobtemplate dropped:
        jobtemplate first: flow-first
    ",
};
