//! A user makes a job smaller of which just those pods have succeeded that it then no longer wants.

use krafla_api::Kind;
use krafla_api::volcano::JobSpec;
use serde_json::{Value, json};

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "trimmed",
    shows: "pods that a job no longer wants do not complete it, although they succeeded",
    script: || {
        let job = JobSpec { min_available: 2, ..gang(vec![task("main", 4)]) };
        let has_succeeded = |job: &Value| job.pointer("/status/succeeded") == Some(&2.into());
        let fewer = json!({ "spec": { "tasks": [task("main", 2)] } });
        vec![
            create_job(When::Now, "trimmed", job),
            Act {
                when: When::Shows(Kind::VcJob, "trimmed", has_succeeded),
                deed: Deed::Patch(Kind::VcJob, "trimmed", fewer),
            },
        ]
    },
    pod: |pod| Life::succeeds_after(if pod.index < 2 { 3000 } else { 10 }),
    end: "
        job trimmed Completed, retried 0, version 0: 2 succeeded
        pod trimmed-main-0 Succeeded
        pod trimmed-main-1 Succeeded
    ",
};
