//! A Job that has succeeded before there was room for all of its pods.

use serde_json::json;

use super::build::create_job;
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-unschedulable",
    shows: "a Job that completes with its leader has not ended before the pods that wait for a node are gone",
    script: || {
        let policy = json!({ "rules": [{ "succeededIndexes": "0" }] });
        // More than half of a node.
        let container =
            json!({ "name": "main", "image": "busybox", "resources": { "requests": { "cpu": "10" } } });
        let template = json!({ "spec": { "containers": [container], "restartPolicy": "Never" } });
        let fields = json!({
            "completionMode": "Indexed", "completions": 3, "parallelism": 3, "successPolicy": policy,
            "template": template,
        });
        vec![create_job("crowded", fields)]
    },
    pod: |pod| if pod.index == 0 { Life::succeeds_after(5) } else { Life::RunsOn },
    end: "
        jobs.batch crowded SuccessCriteriaMet SuccessPolicy, Complete SuccessPolicy, 1 succeeded [0 completed]
        pod crowded-0-<drawn> Succeeded
    ",
};
