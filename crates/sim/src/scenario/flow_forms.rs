//! A flow with every form of `dependsOn` that needs no questions, and a patch.

use serde_json::json;

use super::build::{create_flow, create_template, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "flow-forms",
    shows: "an empty dependsOn waits for nothing, a phase of a task is enough to start, and one use of a template can differ",
    script: || {
        let started = json!({ "taskStatusList": [{ "taskName": "main", "phase": "Running" }] });
        let larger = json!({ "jobSpec": { "tasks": [{ "name": "main", "replicas": 2 }] } });
        vec![
            create_template("free", gang(vec![task("main", 1)])),
            create_template("empty", gang(vec![task("main", 1)])),
            create_template("beside", gang(vec![task("main", 1)])),
            create_flow(
                When::Now,
                "flow",
                json!({ "jobRetainPolicy": "retain", "flows": [
                    { "name": "free", "dependsOn": {} },
                    { "name": "empty", "dependsOn": { "targets": [] } },
                    { "name": "beside", "dependsOn": { "targets": ["free", "empty"], "probe": started }, "patch": larger },
                ] }),
            ),
        ]
    },
    pod: |pod| if pod.job == "flow-free" { Life::RunsOn } else { Life::succeeds_after(5) },
    end: "
        job flow-beside Completed, retried 0, version 0: 2 succeeded
        job flow-empty Completed, retried 0, version 0: 1 succeeded
        job flow-free Running, retried 0, version 0: 1 running
        podgroup flow-free-<uid> Running
        pod flow-beside-main-0 Succeeded
        pod flow-beside-main-1 Succeeded
        pod flow-empty-main-0 Succeeded
        pod flow-free-main-0 Running
        jobflow flow Running: flow-beside Completed, flow-empty Completed, flow-free Running; running: flow-free; completed: flow-beside flow-empty
        jobtemplate beside: flow-beside
        jobtemplate empty: flow-empty
        jobtemplate free: flow-free
    ",
};
