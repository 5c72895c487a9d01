//! Pods whose Job will never count them.

use std::sync::Arc;

use krafla_api::{Key, Kind};
use serde_json::{Value, json};

use super::super::ReleaseController;
use super::fixture::now;
use crate::{Controller, Object, Objects, Snapshot};

/// Whether a pod with the tracking finalizer is let go that somebody controls, or nobody.
fn is_let_go(controller: Option<(&str, &str, &str)>, job: Option<Value>) -> bool {
    let owner = controller.map(|(api_version, kind, uid)| {
        json!({ "apiVersion": api_version, "kind": kind, "name": "a", "uid": uid, "controller": true })
    });
    is_let_go_by(owner, job)
}

/// Whether it is let go with this owner.
fn is_let_go_by(owner: Option<Value>, job: Option<Value>) -> bool {
    let owners: Vec<Value> = owner.into_iter().collect();
    let pod = json!({ "metadata": {
        "namespace": "ns", "name": "p", "uid": "p", "ownerReferences": owners,
        "finalizers": ["batch.kubernetes.io/job-tracking", "other"],
    } });
    let mut objects = Objects::default();
    objects.insert(Arc::new(Object::decode(Kind::Pod, pod.to_string().as_bytes())));
    if let Some(mut job) = job {
        job["metadata"] = json!({ "namespace": "ns", "name": "a", "uid": "u" });
        objects.insert(Arc::new(Object::decode(Kind::Job, job.to_string().as_bytes())));
    }
    let key = Key::new("ns", "p");
    let plan =
        ReleaseController::default().plan(&Snapshot::new(Kind::Pod, &key, now(), &objects)).to_string();
    assert!(plan.is_empty() || plan == "patch pod p {\"metadata\":{\"finalizers\":[\"other\"]}}\n", "{plan}");
    !plan.is_empty()
}

#[test]
fn a_pod_is_let_go_when_nobody_will_count_it() {
    let finished = json!({ "status": { "conditions": [{ "type": "Failed", "status": "True" }] } });
    let of_job = Some(("batch/v1", "Job", "u"));
    assert!(is_let_go(None, None), "nobody controls it");
    let owner = json!({ "apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u" });
    assert!(is_let_go_by(Some(owner), Some(json!({}))), "a Job owns it and does not control it");
    assert!(is_let_go(of_job, None), "its Job is gone");
    assert!(is_let_go(Some(("batch/v1", "Job", "before")), Some(json!({}))), "its Job has a successor");
    let elsewhere = json!({ "spec": { "managedBy": "acme.io/jobs" } });
    let before = Some(("batch/v1", "Job", "before"));
    assert!(is_let_go(before, Some(elsewhere)), "its Job has a successor that another controller manages");
    assert!(is_let_go(of_job, Some(finished)), "its Job has ended");
}

#[test]
fn a_pod_is_kept_while_somebody_will_count_it() {
    let finished_elsewhere = json!({
        "spec": { "managedBy": "acme.io/jobs" },
        "status": { "conditions": [{ "type": "Failed", "status": "True" }] },
    });
    let of_job = Some(("batch/v1", "Job", "u"));
    assert!(!is_let_go(of_job, Some(json!({}))), "its Job runs");
    assert!(!is_let_go(of_job, Some(finished_elsewhere)), "another controller manages its Job");
    assert!(!is_let_go(Some(("batch/v1", "CronJob", "u")), None), "its owner is no Job");
    assert!(!is_let_go(Some(("acme.io/v1", "Job", "u")), None), "its owner is another's Job");
}
