//! A user changes the number of pods while the job runs: up, then down to less than before.

use std::time::Duration;

use krafla_api::Kind;
use krafla_api::volcano::{JobPhase, JobSpec};
use serde_json::json;

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "scaled",
    shows: "a running job grows from two pods to four, then shrinks to one, and goes on running",
    script: || {
        let job = JobSpec { min_available: 1, ..gang(vec![task("main", 2)]) };
        vec![
            create_job(When::Now, "scaled", job),
            scale(When::JobHasBeen("scaled", JobPhase::Running), 4),
            scale(When::At(Duration::from_secs(60)), 1),
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job scaled Running, retried 0, version 0: 1 running
        podgroup scaled-<uid> Running
        pod scaled-main-0 Running
    ",
};

fn scale(when: When, replicas: i32) -> Act {
    let patch = json!({ "spec": { "tasks": [task("main", replicas)] } });
    Act { when, deed: Deed::Patch(Kind::VcJob, "scaled", patch) }
}
