//! Whoever loses an object to another owner, or to nobody, looks again.

use krafla_api::{Kind, Time};
use krafla_cluster::{Event, EventType, Listed};
use krafla_runtime::Engine;
use serde_json::{Value, json};

/// A running pod of a Job, or of nobody.
fn pod(revision: u64, owners: &Value, labels: &Value) -> bytes::Bytes {
    let pod = json!({
        "metadata": {
            "namespace": "n", "name": "p", "uid": "p", "resourceVersion": revision.to_string(), "labels": labels,
            "ownerReferences": owners, "finalizers": ["batch.kubernetes.io/job-tracking"],
        },
        "spec": { "nodeName": "node" }, "status": { "phase": "Running" },
    });
    pod.to_string().into()
}

#[test]
fn a_job_that_loses_a_pod_makes_another() {
    let now = Time::from_seconds(1_800_000_000);
    let mut engine = Engine::new(vec![Box::new(krafla_plan::k8sjob::JobController::default())]);
    let job = json!({
        "metadata": { "namespace": "n", "name": "a", "uid": "u", "resourceVersion": "1" },
        "spec": { "selector": { "matchLabels": { "of": "a" } }, "template": {} },
        "status": { "active": 1, "startTime": now, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {} },
    });
    let listed = |object: bytes::Bytes| Listed { revision: 1, items: vec![object] };
    engine.listed(Kind::Job, &listed(job.to_string().into()), now).unwrap();
    let owner =
        json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u", "controller": true }]);
    engine.listed(Kind::Pod, &listed(pod(1, &owner, &json!({ "of": "a" }))), now).unwrap();
    assert!(engine.next(now).is_none(), "it has the pod that it needs");

    let object = pod(2, &json!([]), &json!({ "of": "nobody" }));
    engine.observed(Kind::Pod, &Event::new(EventType::Modified, 2, object), now);
    let work = engine.next(now).expect("it looks again");
    assert!(work.plan.steps.iter().all(krafla_cluster::Step::creates), "{}", work.plan);
    assert_eq!(work.plan.steps.len(), 1);
}
