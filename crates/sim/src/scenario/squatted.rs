//! A pod of somebody else has the name of a pod that the job needs.

use std::time::Duration;

use krafla_api::Kind;
use serde_json::json;

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, NAMESPACE, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "squatted",
    shows: "a job waits until the name of its pod is free, and leaves what has it alone",
    script: || {
        let squatter = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "squatted-main-0", "namespace": NAMESPACE },
            "spec": { "containers": [{ "name": "main", "image": "busybox" }] },
        });
        let later = When::At(Duration::from_secs(120));
        vec![
            Act { when: When::Now, deed: Deed::Create(Kind::Pod, squatter) },
            create_job(When::Now, "squatted", gang(vec![task("main", 2)])),
            Act { when: later, deed: Deed::Delete(Kind::Pod, "squatted-main-0") },
        ]
    },
    pod: |_| Life::succeeds_after(10),
    end: "
        job squatted Completed, retried 0, version 0: 2 succeeded
        pod squatted-main-0 Succeeded
        pod squatted-main-1 Succeeded
    ",
};
