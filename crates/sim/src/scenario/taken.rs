//! A Service of somebody else has the name that a plugin needs.

use std::collections::BTreeMap;
use std::time::Duration;

use krafla_api::Kind;
use krafla_api::volcano::JobSpec;
use serde_json::json;

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, NAMESPACE, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "taken",
    shows: "a job waits until the name that its plugin needs is free, and leaves what has it alone",
    script: || {
        let plugins = BTreeMap::from([("svc".to_owned(), Vec::new())]);
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "taken", "namespace": NAMESPACE },
            "spec": { "ports": [{ "port": 80 }] },
        });
        let later = When::At(Duration::from_secs(120));
        vec![
            Act { when: When::Now, deed: Deed::Create(Kind::Service, service) },
            create_job(When::Now, "taken", JobSpec { plugins, ..gang(vec![task("main", 1)]) }),
            Act { when: later, deed: Deed::Delete(Kind::Service, "taken") },
        ]
    },
    pod: |_| Life::succeeds_after(10),
    end: "
        job taken Completed, retried 0, version 0: 1 succeeded
        pod taken-main-0 Succeeded
    ",
};
