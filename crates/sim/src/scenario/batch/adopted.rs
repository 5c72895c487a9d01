//! A pod that nobody controls matches a Job's selector, and later does not any more.

use krafla_api::Kind;
use krafla_api::batch::{COMPLETION_INDEX, JOB_NAME};
use serde_json::{Value, json};

use super::build::{create_job, pod_spec};
use crate::scenario::{Act, Deed, Life, NAMESPACE, Scenario, When};

pub(in crate::scenario) static SCENARIO: Scenario = Scenario {
    name: "batch-adopted",
    shows: "a pod without a controller is adopted; once it does not match it is released and replaced",
    script: || {
        let labels = json!({ "of": "adopter" });
        let stray = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "stray", "namespace": NAMESPACE, "labels": labels,
                // By this it is told from the pods that the Job makes.
                "annotations": { COMPLETION_INDEX: "7" },
            },
            "spec": pod_spec(),
        });
        let of_pods = json!({ "labels": { "of": "adopter", JOB_NAME: "adopter" } });
        let template = json!({ "metadata": of_pods, "spec": pod_spec() });
        let fields =
            json!({ "manualSelector": true, "selector": { "matchLabels": labels }, "template": template });
        let is_taken_in = |pod: &Value| pod.pointer("/metadata/ownerReferences/0").is_some();
        vec![
            Act { when: When::Now, deed: Deed::Create(Kind::Pod, stray) },
            create_job("adopter", fields),
            Act {
                when: When::Shows(Kind::Pod, "stray", is_taken_in),
                deed: Deed::Patch(
                    Kind::Pod,
                    "stray",
                    json!({ "metadata": { "labels": { "of": "nobody" } } }),
                ),
            },
        ]
    },
    pod: |pod| if pod.index == 7 { Life::RunsOn } else { Life::succeeds_after(5) },
    end: "
        jobs.batch adopter SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, 1 succeeded
        pod adopter-<drawn> Succeeded
        pod stray Running
    ",
};
