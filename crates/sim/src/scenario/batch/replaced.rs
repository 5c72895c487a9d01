//! A user deletes a pod of a Job that replaces only what has ended.

use krafla_api::Kind;
use serde_json::json;

use super::build::{create_job, n_ready};
use crate::scenario::{Act, Deed, Life, Scenario, When};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-replaced",
    shows: "a pod that is deleted is counted as failed once it has ended, and only then replaced",
    script: || {
        let running = When::Shows(Kind::Job, "replaced", |job| n_ready(job) == 1);
        vec![
            create_job("replaced", json!({ "podReplacementPolicy": "Failed" })),
            Act { when: running, deed: Deed::DeletePodOf("replaced") },
        ]
    },
    pod: |pod| if pod.n_ended == 0 { Life::RunsOn } else { Life::succeeds_after(5) },
    end: "
        jobs.batch replaced SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 1 succeeded 1 failed
        pod replaced-<drawn> Succeeded
    ",
};

/// Kubernetes: a pod that ends well has succeeded, also if it was asked to go.
pub(in crate::scenario) const END_IF_IT_YIELDS: &str = "
    jobs.batch replaced SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 1 succeeded
";
