//! A user takes pods away from a job that does not stand evictions.

use krafla_api::Kind;
use krafla_api::volcano::{Action, Event, JobPhase, JobSpec};
use serde_json::json;

use super::build::{create_job, gang, on, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "shrunk",
    shows: "pods that go because the job shrinks are not evicted",
    script: || {
        let policies = vec![on(Event::PodEvicted, Action::TerminateJob)];
        let job = JobSpec { min_available: 1, policies, ..gang(vec![task("main", 3)]) };
        let running = When::JobHasBeen("shrunk", JobPhase::Running);
        let fewer = json!({ "spec": { "tasks": [task("main", 1)] } });
        vec![
            create_job(When::Now, "shrunk", job),
            Act { when: running, deed: Deed::Patch(Kind::VcJob, "shrunk", fewer) },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job shrunk Running, retried 0, version 0: 1 running
        podgroup shrunk-<uid> Running
        pod shrunk-main-0 Running
    ",
};
