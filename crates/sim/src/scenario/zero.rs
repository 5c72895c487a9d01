//! A user scales a job to nothing and back.

use std::time::Duration;

use krafla_api::Kind;
use krafla_api::volcano::{JobPhase, TaskSpec};
use serde_json::json;

use super::build::{create_job, gang, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "zero",
    shows: "a running job without pods goes on when it gets some again",
    script: || {
        vec![
            create_job(When::Now, "zero", gang(vec![task("main", 2)])),
            scale(When::JobHasBeen("zero", JobPhase::Running), 0),
            scale(When::At(Duration::from_secs(900)), 1),
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job zero Running, retried 0, version 0: 1 running
        podgroup zero-<uid> Running
        pod zero-main-0 Running
    ",
};

fn scale(when: When, replicas: i32) -> Act {
    let main = TaskSpec { min_available: Some(replicas), ..task("main", replicas) };
    let spec = json!({ "minAvailable": replicas, "tasks": [main] });
    Act { when, deed: Deed::Patch(Kind::VcJob, "zero", json!({ "spec": spec })) }
}
