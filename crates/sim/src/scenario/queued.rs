//! A user aborts a job that still waits for its turn: what its plugins made goes with its PodGroup.

use std::collections::BTreeMap;

use krafla_api::volcano::{Action, JobPhase, JobSpec};

use super::build::{create_job, gang, needing, task};
use super::{Act, Deed, Life, Scenario, When};

pub(super) static SCENARIO: Scenario = Scenario {
    name: "queued",
    shows: "a job that is aborted while it waits leaves nothing behind",
    script: || {
        let plugins = BTreeMap::from([("svc".to_owned(), Vec::new())]);
        let job = JobSpec { plugins, ..gang(vec![needing("1000", task("main", 2))]) };
        let pending = When::JobHasBeen("queued", JobPhase::Pending);
        vec![
            create_job(When::Now, "queued", job),
            Act { when: pending, deed: Deed::Command("queued", Action::AbortJob) },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        job queued Aborted, retried 0, version 1: no pods
    ",
};
