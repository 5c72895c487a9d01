//! Which Jobs a changed object concerns.

use std::sync::Arc;

use krafla_api::Kind;
use serde_json::{Value, json};

use crate::k8sjob::JobController;
use crate::{Controller, Object, Objects};

fn object(kind: Kind, json: &Value) -> Object {
    Object::decode(kind, json.to_string().as_bytes())
}

/// A world of three Jobs, of which two in one namespace pick pods by labels.
fn jobs() -> Objects {
    let mut objects = Objects::default();
    for (namespace, name, label) in [("ns", "a", "one"), ("ns", "b", "two"), ("elsewhere", "c", "one")] {
        let job = json!({
            "metadata": { "namespace": namespace, "name": name, "uid": name },
            "spec": { "selector": { "matchLabels": { "app": label } } },
        });
        objects.insert(Arc::new(object(Kind::Job, &job)));
    }
    objects
}

/// The Jobs that a pod in `ns` with these labels and this owner concerns.
fn concerned(labels: &Value, owners: &Value) -> Vec<String> {
    let pod = json!({ "metadata": {
        "namespace": "ns", "name": "p", "uid": "p", "labels": labels, "ownerReferences": owners,
    } });
    let keys = JobController::default().keys(&object(Kind::Pod, &pod), &jobs());
    keys.iter().map(|key| key.name.to_string()).collect()
}

#[test]
fn a_pod_concerns_the_job_that_controls_it_and_an_orphan_all_that_pick_it() {
    let owner = |api_version: &str, kind: &str, is_controller: bool| json!([{ "apiVersion": api_version, "kind": kind, "name": "b", "uid": "b", "controller": is_controller }]);
    let one = json!({ "app": "one" });
    assert_eq!(concerned(&one, &owner("batch/v1", "Job", true)), ["b"]);
    assert_eq!(concerned(&one, &json!([])), ["a"], "in its own namespace");
    assert_eq!(concerned(&one, &owner("batch/v1", "Job", false)), ["a"], "nobody controls it");
    for (labels, owners) in [
        (json!({ "app": "three" }), json!([])),
        (json!({}), json!([])),
        (one.clone(), owner("batch.volcano.sh/v1alpha1", "Job", true)),
        (one.clone(), owner("apps/v1", "ReplicaSet", true)),
    ] {
        assert!(concerned(&labels, &owners).is_empty(), "{labels} {owners}");
    }
}

#[test]
fn a_job_concerns_itself() {
    let objects = jobs();
    for job in objects.all(Kind::Job) {
        assert_eq!(JobController::default().keys(job, &objects), vec![job.meta.key.clone()]);
    }
}
