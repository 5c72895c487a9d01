//! A user deletes a Job and lets its pods live on.

use krafla_api::Kind;
use serde_json::json;

use super::build::{create_job, n_ready};
use crate::scenario::{Act, Deed, Life, Scenario, When};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-orphaned",
    shows: "the pods of a Job that is deleted without them keep running, without its finalizer",
    script: || {
        let running = When::Shows(Kind::Job, "orphaned", |job| n_ready(job) == 1);
        vec![
            create_job("orphaned", json!({})),
            Act { when: running, deed: Deed::Orphan(Kind::Job, "orphaned") },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "
        pod orphaned-<drawn> Running
    ",
};
