//! A flow that is deleted while its first job runs.

use krafla_api::Kind;
use krafla_api::volcano::JobPhase;
use serde_json::json;

use super::build::{create_flow, create_template, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "flow-deleted",
    shows: "a flow that is deleted while it runs makes nothing more, and goes when its jobs have gone",
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
                when: When::JobHasBeen("flow-first", JobPhase::Running),
                deed: Deed::DeleteInForeground(Kind::JobFlow, "flow"),
            },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        jobtemplate first:
        jobtemplate second:
    ",
};
