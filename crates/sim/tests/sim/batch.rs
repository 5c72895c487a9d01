//! Faults planted in the controllers of Kubernetes' Jobs and CronJobs: the simulator must find each within a minute.

use krafla_api::Kind;
use krafla_api::batch::{COMPLETION_INDEX, JOB_TRACKING};
use krafla_cluster::Step;
use krafla_plan::{Object, Plan, Snapshot};
use serde_json::{Value, json};

use crate::mutants::{is_deletion, rule_broken_by, status, tampered, without};

/// The Job that a plan is about.
fn job<'a>(snapshot: &Snapshot<'a>) -> Option<&'a Object> {
    snapshot.root().map(AsRef::as_ref).filter(|root: &&Object| root.kind == Kind::Job)
}

/// A plan whose status does not say one thing.
fn silent_about(field: &str, mut plan: Plan) -> Plan {
    if let Some(Value::Object(status)) = status(&mut plan) {
        status.remove(field);
    }
    plan
}

/// Whether a write lets a pod go that has been counted.
fn lets_go(step: &Step) -> bool {
    matches!(step, Step::Patch { kind: Kind::Pod, patch, .. } if patch.pointer("/metadata/finalizers").is_some())
}

#[test]
fn a_pod_that_is_let_go_before_it_is_on_record_is_found() {
    let controllers = || tampered(|_, plan| silent_about("uncountedTerminatedPods", plan));
    assert_eq!(rule_broken_by("batch-plain", controllers), "guard");
}

#[test]
fn an_index_that_is_let_go_before_it_is_on_record_is_found() {
    let controllers = || tampered(|_, plan| silent_about("completedIndexes", plan));
    assert_eq!(rule_broken_by("batch-indexed", controllers), "P5");
}

#[test]
fn a_pod_that_is_counted_twice_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let count = status(&mut plan).and_then(|status| status.get_mut("succeeded"));
            if let (Some(count), Some(_)) = (count, job(snapshot)) {
                *count = json!(count.as_i64().unwrap_or(0) + 1);
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("batch-plain", controllers), "P5");
}

#[test]
fn a_pod_that_is_never_let_go_is_found() {
    let controllers = || tampered(|_, plan| without(lets_go, plan));
    assert_ne!(rule_broken_by("batch-plain", controllers), "nothing");
}

#[test]
fn a_pod_of_a_suspended_job_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let suspended = job(snapshot).filter(|job| {
                job.as_job().is_some_and(|job| {
                    job.spec.suspend == Some(true) && job.status.condition("Suspended").is_some()
                })
            });
            if let Some(job) = suspended.filter(|_| plan.is_quiet()) {
                let owner = json!({
                    "apiVersion": "batch/v1", "kind": "Job", "name": job.meta.key.name, "uid": job.meta.uid,
                    "controller": true,
                });
                let metadata = json!({
                    "name": "early", "namespace": "default", "ownerReferences": [owner], "finalizers": [JOB_TRACKING],
                    "annotations": { COMPLETION_INDEX: "0" },
                });
                let containers = json!([{ "name": "main", "image": "busybox" }]);
                let object = json!({ "metadata": metadata, "spec": { "containers": containers } });
                plan.steps.push(Step::Create { kind: Kind::Pod, object });
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("batch-suspended", controllers), "guard");
}

#[test]
fn a_second_pod_of_an_index_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            for step in &mut plan.steps {
                if let Step::Create { kind: Kind::Pod, object } = step {
                    object["metadata"]["annotations"][COMPLETION_INDEX] = "0".into();
                }
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("batch-indexed", controllers), "guard");
}

#[test]
fn more_pods_than_may_run_at_once_are_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            let pod = plan.steps.iter().find(|step| step.creates() && step.kind() == Kind::Pod).cloned();
            if let Some(Step::Create { kind, mut object }) = pod {
                object["metadata"]["name"] = "one-more".into();
                plan.steps.push(Step::Create { kind, object });
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("batch-parallel", controllers), "guard");
}

#[test]
fn a_job_that_leaves_its_pods_behind_is_found() {
    let controllers = || tampered(|_, plan| without(|step| is_deletion(step, Kind::Pod), plan));
    assert_ne!(rule_broken_by("batch-success-policy", controllers), "nothing");
}

#[test]
fn a_job_that_ends_before_it_is_decided_is_found() {
    let controllers = || {
        tampered(|snapshot, mut plan| {
            let conditions = status(&mut plan).and_then(|status| status.get_mut("conditions"));
            if let (Some(Value::Array(conditions)), Some(_)) = (conditions, job(snapshot)) {
                conditions.retain(|condition| condition["type"] != "SuccessCriteriaMet");
            }
            plan
        })
    };
    assert_ne!(rule_broken_by("batch-plain", controllers), "nothing");
}

#[test]
fn a_run_that_is_made_twice_is_found() {
    let controllers = || {
        tampered(|_, mut plan| {
            let is_run = |step: &&Step| matches!(step, Step::Create { kind: Kind::Job, .. });
            if let Some(Step::Create { kind, object }) = plan.steps.iter().find(is_run).cloned() {
                let mut twin = object;
                twin["metadata"]["name"] = "twin".into();
                plan.steps.push(Step::Create { kind, object: twin });
            }
            plan
        })
    };
    assert_eq!(rule_broken_by("batch-cron-forbid", controllers), "P9");
}

#[test]
fn a_run_that_is_replaced_without_being_ended_is_found() {
    let controllers = || tampered(|_, plan| without(|step| is_deletion(step, Kind::Job), plan));
    assert_ne!(rule_broken_by("batch-cron-replace", controllers), "nothing");
}
