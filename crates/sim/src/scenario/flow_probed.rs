//! A flow whose second step starts as soon as the first one serves.

use serde_json::json;

use super::build::{create_flow, create_template, gang, task};
use super::{Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "flow-probed",
    shows: "a step that asks its target's pods starts once all of them answer, and the target runs on",
    script: || {
        let probe = json!({
            "taskStatusList": [{ "taskName": "main", "phase": "Running" }],
            "tcpSocketList": [{ "taskName": "main", "port": 6379 }],
            "httpGetList": [{ "path": "/healthz", "port": 8080 }],
        });
        vec![
            create_template("server", gang(vec![task("main", 2)])),
            create_template("client", gang(vec![task("main", 1)])),
            create_flow(
                When::Now,
                "flow",
                json!({ "flows": [
                    { "name": "server" },
                    { "name": "client", "dependsOn": { "targets": ["server"], "probe": probe } },
                ] }),
            ),
        ]
    },
    pod: |pod| match pod.job {
        "flow-server" => Life::listens_after(if pod.index == 0 { 3 } else { 20 }),
        _ => Life::succeeds_after(5),
    },
    end: "
        job flow-client Completed, retried 0, version 0: 1 succeeded
        job flow-server Running, retried 0, version 0: 2 running
        podgroup flow-server-<uid> Running
        pod flow-client-main-0 Succeeded
        pod flow-server-main-0 Running
        pod flow-server-main-1 Running
        jobflow flow Running: flow-client Completed, flow-server Running; running: flow-server; completed: flow-client
        jobtemplate client: flow-client
        jobtemplate server: flow-server
    ",
};
