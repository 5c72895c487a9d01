//! A user deletes a Job and creates another one of the same name, while the pod of the first is still going.

use krafla_api::Kind;
use serde_json::json;

use super::build::{create_job, n_ready};
use crate::scenario::{Act, Deed, Life, Scenario, When};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-again",
    shows: "a Job that is created again under its old name is another Job, and inherits neither pods nor failures",
    script: || {
        let job = || create_job("again", json!({ "backoffLimit": 0 }));
        let running = When::Shows(Kind::Job, "again", |job| n_ready(job) == 1);
        vec![job(), Act { when: running, deed: Deed::Delete(Kind::Job, "again") }, job()]
    },
    // Long after the first has been deleted, whatever goes wrong.
    pod: |_| Life::succeeds_after(700),
    end: "
        jobs.batch again SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 1 succeeded
        pod again-<drawn> Succeeded
    ",
};
