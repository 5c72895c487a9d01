//! Somebody removes a pod that has succeeded, and then one that runs.

use std::time::Duration;

use krafla_api::Kind;
use krafla_api::volcano::JobSpec;
use serde_json::Value;

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "collected",
    shows: "what succeeded stays done when its pod is removed, and what had not is run again",
    script: || {
        let job = JobSpec { min_available: 1, ..gang(vec![task("main", 3)]) };
        let has_succeeded = |job: &Value| job.pointer("/status/succeeded") == Some(&1.into());
        vec![
            create_job(When::Now, "collected", job),
            Act {
                when: When::Shows(Kind::VcJob, "collected", has_succeeded),
                deed: Deed::Delete(Kind::Pod, "collected-main-2"),
            },
            Act {
                when: When::At(Duration::from_secs(200)),
                deed: Deed::Delete(Kind::Pod, "collected-main-0"),
            },
        ]
    },
    pod: |pod| Life::succeeds_after(if pod.index < 2 { 600 } else { 10 }),
    end: "
        job collected Completed, retried 0, version 0: 3 succeeded
        pod collected-main-0 Succeeded
        pod collected-main-1 Succeeded
    ",
};
