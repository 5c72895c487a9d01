//! The properties as they read for Kubernetes' Jobs.

use krafla_api::batch::JOB_TRACKING;
use krafla_api::{Kind, Uid};
use krafla_plan::object::{Job, PodPhase};
use krafla_plan::{Object, Plan, Snapshot, Step};
use serde_json::Value;

use crate::{Property, Violation, touches_only_its_own};

/// Whether a plan for a Job may be carried out.
pub(crate) fn check(snapshot: &Snapshot<'_>, plan: &Plan) -> Result<(), Violation> {
    for step in plan.writes() {
        if !adopts(snapshot, step) {
            touches_only_its_own(snapshot, step)?;
        }
    }
    let Some((root, job)) = snapshot.root().and_then(|root| Some((root, root.as_job()?))) else {
        return Ok(());
    };
    finished_is_final(job, plan)?;
    counted_before_let_go(snapshot, root, job, plan)
}

/// A pod that nobody controls becomes the Job's own.
fn adopts(snapshot: &Snapshot<'_>, step: &Step) -> bool {
    let Step::Patch { kind: Kind::Pod, key, uid, patch, .. } = step else { return false };
    let orphan = snapshot.objects.get(Kind::Pod, key).filter(|pod| pod.meta.uid == *uid);
    let owners = patch.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let own = snapshot.root().map(|root| root.meta.uid.0.as_ref());
    let is_taken = owners
        .into_iter()
        .flatten()
        .any(|owner| owner.get("uid").and_then(Value::as_str) == own && own.is_some());
    is_taken && orphan.is_some_and(|pod| pod.meta.controller_uid().is_none())
}

/// P2: a finished Job gets no other status and no pod. It may be removed.
fn finished_is_final(job: &Job, plan: &Plan) -> Result<(), Violation> {
    let is_final = |step: &Step| matches!(step, Step::Delete { kind: Kind::Job, .. });
    match plan.writes().find(|step| !is_final(step)) {
        Some(step) if job.status.finished().is_some() => {
            Err(Violation::new(Property::P2, format!("{step}: the Job has finished")))
        }
        _ => Ok(()),
    }
}

/// P5: a pod that has ended is on record before its finalizer goes.
fn counted_before_let_go(
    snapshot: &Snapshot<'_>,
    root: &Object,
    job: &Job,
    plan: &Plan,
) -> Result<(), Violation> {
    // Indexes are their own record, and a rule may say that a failure does not count.
    let is_plain =
        job.spec.completion_mode.as_deref() != Some("Indexed") && job.spec.pod_failure_policy.is_none();
    if !is_plain || root.meta.is_deleting() {
        return Ok(());
    }
    for step in &plan.steps {
        let Step::Patch { kind: Kind::Pod, key, uid, patch, .. } = step else { continue };
        let Some(pod) = snapshot.objects.get(Kind::Pod, key) else { continue };
        let is_ended = pod
            .as_pod()
            .is_some_and(|pod| matches!(pod.status.phase, PodPhase::Succeeded | PodPhase::Failed));
        let is_own = patch.pointer("/metadata/ownerReferences").is_none();
        if is_ended && is_own && lets_go(pod, patch) && !is_on_record(job, plan, uid) {
            return Err(Violation::new(Property::P5, format!("{step}: the pod is not on record")));
        }
    }
    Ok(())
}

fn lets_go(pod: &Object, patch: &Value) -> bool {
    let kept = patch.pointer("/metadata/finalizers").and_then(Value::as_array);
    let is_held = pod.meta.finalizers.iter().any(|name| name == JOB_TRACKING);
    is_held && kept.is_some_and(|kept| !kept.contains(&JOB_TRACKING.into()))
}

fn is_on_record(job: &Job, plan: &Plan, uid: &Uid) -> bool {
    let stored = job.status.uncounted_terminated_pods.as_ref();
    let is_stored = stored.is_some_and(|it| it.succeeded.contains(uid) || it.failed.contains(uid));
    let Some(Step::Patch { patch, .. }) = &plan.status else { return is_stored };
    let listed = |list: &str| patch.pointer(&format!("/status/uncountedTerminatedPods/{list}"));
    let is_listed = |list: &str| {
        let uids = listed(list).and_then(Value::as_array).into_iter().flatten();
        uids.filter_map(Value::as_str).any(|listed| *listed == *uid.0)
    };
    is_stored || is_listed("succeeded") || is_listed("failed")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use krafla_api::{Key, Time};
    use krafla_plan::{Objects, Propagation};
    use serde_json::json;

    use super::*;

    /// A Job with one pod of its own that has succeeded, and one that nobody controls.
    fn objects(status: &Value) -> Objects {
        let mut objects = Objects::default();
        let owner =
            json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u", "controller": true }]);
        for (kind, object) in [
            (
                Kind::Job,
                json!({ "metadata": { "namespace": "n", "name": "a", "uid": "u" }, "status": status }),
            ),
            (
                Kind::Pod,
                json!({
                    "metadata": {
                        "namespace": "n", "name": "p", "uid": "p", "ownerReferences": owner, "finalizers": [JOB_TRACKING],
                    },
                    "status": { "phase": "Succeeded" },
                }),
            ),
            (Kind::Pod, json!({ "metadata": { "namespace": "n", "name": "orphan", "uid": "o" } })),
        ] {
            objects.insert(Arc::new(Object::decode(kind, object.to_string().as_bytes())));
        }
        objects
    }

    fn patch(kind: Kind, name: &str, uid: &str, patch: Value) -> Step {
        let of_status = kind == Kind::Job;
        Step::Patch { kind, key: Key::new("n", name), uid: uid.into(), revision: None, of_status, patch }
    }

    fn verdict(status: &Value, plan: &Plan) -> Result<(), Property> {
        let (key, objects) = (Key::new("n", "a"), objects(status));
        let snapshot = Snapshot::new(Kind::Job, &key, Time::from_seconds(0), &objects);
        crate::check(&snapshot, plan).map_err(|violation| violation.property)
    }

    #[test]
    fn p5_a_pod_is_let_go_only_when_it_is_on_record() {
        let let_go = patch(Kind::Pod, "p", "p", json!({ "metadata": { "finalizers": [] } }));
        let record = patch(
            Kind::Job,
            "a",
            "u",
            json!({ "status": { "uncountedTerminatedPods": { "succeeded": ["p"] } } }),
        );
        let bare = Plan { steps: vec![let_go], ..Plan::default() };
        assert_eq!(verdict(&json!({}), &bare), Err(Property::P5));
        assert_eq!(verdict(&json!({ "uncountedTerminatedPods": { "succeeded": ["p"] } }), &bare), Ok(()));
        assert_eq!(verdict(&json!({}), &Plan { status: Some(record), ..bare }), Ok(()));
    }

    #[test]
    fn p2_a_finished_job_may_only_be_removed() {
        let finished = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
        let write = patch(Kind::Job, "a", "u", json!({ "status": { "active": 1 } }));
        assert_eq!(verdict(&finished, &Plan { status: Some(write), ..Plan::default() }), Err(Property::P2));
        let remove = Step::Delete {
            kind: Kind::Job,
            key: Key::new("n", "a"),
            uid: "u".into(),
            revision: None,
            propagation: Propagation::Foreground,
            grace_seconds: None,
        };
        assert_eq!(verdict(&finished, &Plan { steps: vec![remove], ..Plan::default() }), Ok(()));
    }

    #[test]
    fn p6_a_pod_that_nobody_controls_may_be_taken_in_and_nothing_else_done_to_it() {
        let owners = json!({ "metadata": { "ownerReferences": [{ "uid": "u", "controller": true }] } });
        let steps =
            |patched| Plan { steps: vec![patch(Kind::Pod, "orphan", "o", patched)], ..Plan::default() };
        assert_eq!(verdict(&json!({}), &steps(owners)), Ok(()));
        assert_eq!(verdict(&json!({}), &steps(json!({ "metadata": { "labels": {} } }))), Err(Property::P6));
    }
}
