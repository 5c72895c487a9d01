//! The properties as they read for Kubernetes' Jobs.

use std::collections::BTreeSet;
use std::sync::Arc;

use krafla_api::batch::{COMPLETION_INDEX, JOB_TRACKING};
use krafla_api::{Kind, Uid};
use krafla_cluster::Step;
use krafla_plan::object::{Job, PodPhase};
use krafla_plan::{Object, Plan, Snapshot};
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
    pods_may_be_created(snapshot, root, job, plan)?;
    counted_before_let_go(snapshot, root, job, plan)
}

fn pods_may_be_created(
    snapshot: &Snapshot<'_>,
    root: &Object,
    job: &Job,
    plan: &Plan,
) -> Result<(), Violation> {
    let pod = |step| match step {
        &Step::Create { kind: Kind::Pod, ref object } => Some(object),
        _ => None,
    };
    let created: Vec<&Value> = plan.steps.iter().filter_map(pod).collect();
    if created.is_empty() {
        return Ok(());
    }
    no_pod_comes_late(root, job)?;
    every_pod_has_a_place(snapshot, job, &created)
}

/// P7: no pod for a Job that is suspended, on its way out, or decided.
fn no_pod_comes_late(root: &Object, job: &Job) -> Result<(), Violation> {
    let mut decisions = ["FailureTarget", "SuccessCriteriaMet"].into_iter();
    let why = match decisions.find(|decision| job.status.condition(decision).is_some()) {
        _ if root.meta.is_deleting() => "is being deleted".to_owned(),
        _ if job.spec.suspend == Some(true) => "is suspended".to_owned(),
        Some(decided) => format!("has {decided}"),
        None => return Ok(()),
    };
    Err(Violation::new(Property::P7, format!("a pod is created although the Job {why}")))
}

/// P1: no pod beside another of its index, and none beyond those that may run at once.
fn every_pod_has_a_place(snapshot: &Snapshot<'_>, job: &Job, created: &[&Value]) -> Result<(), Violation> {
    let is_active = |pod: &&Arc<Object>| {
        let has_ended = pod.as_pod().is_none_or(|pod| pod.status.phase.is_finished());
        !has_ended && !pod.meta.is_deleting()
    };
    let active: Vec<&Arc<Object>> = snapshot.children(Kind::Pod).filter(is_active).collect();
    let allowed = usize::try_from(job.spec.parallelism.unwrap_or(1)).unwrap_or(0);
    if active.len() + created.len() > allowed {
        let message = format!("{} pods are created beside {}, of {allowed}", created.len(), active.len());
        return Err(Violation::new(Property::P1, message));
    }
    if job.spec.completion_mode.as_deref() != Some("Indexed") {
        return Ok(());
    }
    let mut taken: BTreeSet<&str> =
        active.iter().filter_map(|pod| pod.meta.annotations.get(COMPLETION_INDEX)).collect();
    for pod in created {
        let annotations = pod.pointer("/metadata/annotations");
        let index = annotations.and_then(|it| it.get(COMPLETION_INDEX)).and_then(Value::as_str);
        if !index.is_some_and(|index| taken.insert(index)) {
            let index = index.unwrap_or("none");
            return Err(Violation::new(
                Property::P1,
                format!("a pod is created beside one of index {index}"),
            ));
        }
    }
    Ok(())
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
    use krafla_api::{Key, Time};
    use krafla_cluster::Propagation;
    use krafla_plan::Objects;
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

    /// What is wrong with creating pods of these indexes for an Indexed Job of two pods at once, the first of which runs.
    fn created(indexes: &[&str], spec: &Value, status: &Value, is_deleting: bool) -> Result<(), String> {
        let owner =
            json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u", "controller": true }]);
        let mut all = json!({ "completionMode": "Indexed", "parallelism": 2, "completions": 3 });
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let mut job = json!({ "metadata": { "namespace": "n", "name": "a", "uid": "u" }, "spec": all, "status": status });
        if is_deleting {
            job["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
        }
        let pod = |name: &str, index: &str| {
            let annotations = json!({ COMPLETION_INDEX: index });
            json!({ "metadata": {
                "namespace": "n", "name": name, "uid": name, "ownerReferences": owner, "annotations": annotations,
            } })
        };
        let mut objects = Objects::default();
        for (kind, object) in [(Kind::Job, job), (Kind::Pod, pod("first", "0"))] {
            objects.insert(Arc::new(Object::decode(kind, object.to_string().as_bytes())));
        }
        let steps = indexes.iter().map(|index| Step::Create { kind: Kind::Pod, object: pod("new", index) });
        let plan = Plan { steps: steps.collect(), ..Plan::default() };
        let key = Key::new("n", "a");
        let snapshot = Snapshot::new(Kind::Job, &key, Time::from_seconds(0), &objects);
        crate::check(&snapshot, &plan).map_err(|violation| violation.to_string())
    }

    #[test]
    fn p1_one_pod_for_each_index_and_no_more_than_may_run_at_once() {
        let nothing = json!({});
        let create = |indexes: &[&str], spec: Value| created(indexes, &spec, &nothing, false);
        assert_eq!(create(&["1"], json!({})), Ok(()));
        assert_eq!(create(&["0"], json!({})).unwrap_err(), "P1: a pod is created beside one of index 0");
        let three = json!({ "parallelism": 3 });
        assert_eq!(create(&["1", "2"], three.clone()), Ok(()));
        assert_eq!(create(&["1", "1"], three).unwrap_err(), "P1: a pod is created beside one of index 1");
        assert_eq!(create(&["1", "2"], json!({})).unwrap_err(), "P1: 2 pods are created beside 1, of 2");
    }

    #[test]
    fn p7_no_pod_for_a_job_that_is_suspended_decided_or_on_its_way_out() {
        let nothing = json!({});
        let suspended = created(&["1"], &json!({ "suspend": true }), &nothing, false);
        assert_eq!(suspended.unwrap_err(), "P7: a pod is created although the Job is suspended");
        for decided in ["FailureTarget", "SuccessCriteriaMet"] {
            let status = json!({ "conditions": [{ "type": decided, "status": "True" }] });
            let why = format!("P7: a pod is created although the Job has {decided}");
            assert_eq!(created(&["1"], &nothing, &status, false).unwrap_err(), why);
        }
        let deleting = created(&["1"], &nothing, &nothing, true);
        assert_eq!(deleting.unwrap_err(), "P7: a pod is created although the Job is being deleted");
    }
}
