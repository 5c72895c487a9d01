//! A user deletes a Job while it runs.

use krafla_api::Kind;
use serde_json::json;

use super::build::{create_job, n_ready};
use crate::scenario::{Act, Deed, Life, Scenario, When};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-deleted",
    shows: "a Job that is deleted while it runs leaves nothing behind, no held pod either",
    script: || {
        let running = When::Shows(Kind::Job, "deleted", |job| n_ready(job) == 2);
        vec![
            create_job("deleted", json!({ "parallelism": 2, "completions": 2 })),
            Act { when: running, deed: Deed::Delete(Kind::Job, "deleted") },
        ]
    },
    pod: |_| Life::RunsOn,
    end: "",
};
