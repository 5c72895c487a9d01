//! A flow that removes its jobs once all have completed.

use serde_json::json;

use super::build::{create_flow, create_template, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "flow-cleared",
    shows: "with retain policy delete, the jobs of a flow go once it has succeeded, and it still says how they went",
    script: || {
        vec![
            create_flow(
                When::Now,
                "cleared",
                json!({ "jobRetainPolicy": "delete", "flows": [
                    { "name": "one" },
                    { "name": "two", "dependsOn": { "targets": ["one"] } },
                ] }),
            ),
            // The templates come later than the flow.
            create_template("two", gang(vec![task("main", 1)])),
            create_template("one", gang(vec![task("main", 2)])),
        ]
    },
    pod: |_| Life::succeeds_after(5),
    end: "
        jobflow cleared Succeed: cleared-one Completed, cleared-two Completed; completed: cleared-one cleared-two
        jobtemplate one:
        jobtemplate two:
    ",
};
