//! Somebody else holds the pods of a Job that fails.

use serde_json::json;

use super::build::{create_job, pod_spec};
use crate::scenario::{Life, Scenario};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-held",
    shows: "a Job ends when its pods have ended, although a foreign finalizer keeps them",
    script: || {
        let of_pods = json!({ "finalizers": ["example.com/reads-the-logs"] });
        let template = json!({ "metadata": of_pods, "spec": pod_spec() });
        let fields = json!({
            "completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimit": 0, "template": template,
        });
        vec![create_job("held", fields)]
    },
    // It fails long after the other has started, whatever goes wrong.
    pod: |pod| if pod.index == 0 { Life::fails_after(700, 1) } else { Life::RunsOn },
    end: "
        jobs.batch held FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded, 2 failed
        pod held-0-<drawn> Failed
        pod held-1-<drawn> Failed, deleting
    ",
};

/// The pod says that it ended well, and the Job counts it as what it was when the Job ended.
pub(in crate::scenario) const END_IF_IT_YIELDS: &str = "
    jobs.batch held FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded, 2 failed
    pod held-0-<drawn> Failed
    pod held-1-<drawn> Succeeded, deleting
";
