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
    let plan = plan(owner, "Succeeded", job);
    assert!(plan.is_empty() || plan == "patch pod p {\"metadata\":{\"finalizers\":[\"other\"]}}\n", "{plan}");
    !plan.is_empty()
}

/// What is done about a pod with the tracking finalizer.
fn plan(owner: Option<Value>, phase: &str, job: Option<Value>) -> String {
    let owners: Vec<Value> = owner.into_iter().collect();
    let metadata = json!({
        "namespace": "ns", "name": "p", "uid": "p", "ownerReferences": owners,
        "finalizers": ["batch.kubernetes.io/job-tracking", "other"],
    });
    let pod = json!({ "metadata": metadata, "status": { "phase": phase } });
    let mut objects = Objects::default();
    objects.insert(Arc::new(Object::decode(Kind::Pod, pod.to_string().as_bytes())));
    if let Some(mut job) = job {
        job["metadata"] = json!({ "namespace": "ns", "name": "a", "uid": "u" });
        objects.insert(Arc::new(Object::decode(Kind::Job, job.to_string().as_bytes())));
    }
    let key = Key::new("ns", "p");
    ReleaseController::default().plan(&Snapshot::new(Kind::Pod, &key, now(), &objects)).to_string()
}

#[test]
fn a_pod_that_was_made_after_its_job_had_ended_is_removed() {
    let owner =
        json!({ "apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u", "controller": true });
    let finished = json!({ "status": { "conditions": [{ "type": "Complete", "status": "True" }] } });
    for phase in ["Pending", "Running"] {
        assert_eq!(plan(Some(owner.clone()), phase, Some(finished.clone())), "delete pod p\n");
        assert_eq!(plan(Some(owner.clone()), phase, Some(json!({}))), "", "its Job runs");
        assert!(
            plan(Some(owner.clone()), phase, None).starts_with("patch"),
            "the garbage collector removes it"
        );
    }
    assert!(plan(Some(owner), "Failed", Some(finished)).starts_with("patch"));
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

#[test]
fn a_job_that_has_ended_or_is_gone_concerns_the_pods_that_it_holds() {
    let job = |uid: &str, status: Value| {
        let job = json!({ "metadata": { "namespace": "ns", "name": "a", "uid": uid }, "status": status });
        Arc::new(Object::decode(Kind::Job, job.to_string().as_bytes()))
    };
    let concerned = |changed: &Object, stored: Option<&Arc<Object>>| {
        let mut objects = Objects::default();
        stored.into_iter().for_each(|job| drop(objects.insert(job.clone())));
        for (name, uid, finalizers) in [
            ("held", "u", json!(["batch.kubernetes.io/job-tracking"])),
            ("counted", "u", json!([])),
            ("other", "v", json!(["batch.kubernetes.io/job-tracking"])),
        ] {
            let owner = json!({ "apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": uid, "controller": true });
            let metadata = json!({
                "namespace": "ns", "name": name, "uid": name, "ownerReferences": [owner], "finalizers": finalizers,
            });
            let pod = json!({ "metadata": metadata });
            objects.insert(Arc::new(Object::decode(Kind::Pod, pod.to_string().as_bytes())));
        }
        let keys = ReleaseController::default().keys(changed, &objects);
        keys.iter().map(|key| key.name.to_string()).collect::<Vec<_>>()
    };
    let running = job("u", json!({}));
    let ended = job("u", json!({ "conditions": [{ "type": "Complete", "status": "True" }] }));
    let successor = job("w", json!({}));
    assert!(concerned(&running, Some(&running)).is_empty(), "it lets go of its pods itself");
    assert_eq!(concerned(&ended, Some(&ended)), ["held"]);
    assert_eq!(concerned(&running, None), ["held"], "it is gone");
    assert_eq!(concerned(&running, Some(&successor)), ["held"], "another has its name");
}
