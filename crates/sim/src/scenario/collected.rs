//! Somebody removes a pod that has succeeded, and then one that runs.

use krafla_api::Kind;
use krafla_api::volcano::JobSpec;
use serde_json::Value;

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "collected",
    shows: "what succeeded stays done when its pod is removed, and what had not is run again",
    script: || {
        let job = JobSpec { min_available: 1, ..gang(vec![task("main", 2)]) };
        let has_succeeded = |job: &Value| job.pointer("/status/succeeded") == Some(&1.into());
        let is_on_record = |job: &Value| job.pointer("/status/controlledResources/completed-main").is_some();
        let removed = |when: fn(&Value) -> bool, pod: &'static str| Act {
            when: When::Shows(Kind::VcJob, "collected", when),
            deed: Deed::Delete(Kind::Pod, pod),
        };
        vec![
            create_job(When::Now, "collected", job),
            removed(has_succeeded, "collected-main-1"),
            removed(is_on_record, "collected-main-0"),
        ]
    },
    pod: |pod| if pod.index == 0 && pod.n_ended == 0 { Life::RunsOn } else { Life::succeeds_after(10) },
    end: "
        job collected Completed, retried 0, version 0: 2 succeeded
        pod collected-main-0 Succeeded
    ",
};
