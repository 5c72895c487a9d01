//! Where the rules for jobs go beyond those of Volcano, because a job that passes would only wait for ever.

use expect_test::{Expect, expect};
use krafla_admission::{Operation, Request, Settings, validate};
use krafla_api::Kind;
use serde_json::{Value, json};

use crate::records::{Environment, recorded};

/// A job with one task, changed as the test wants it, and what is said of it.
fn check(change: impl FnOnce(&mut Value), expected: &Expect) {
    let mut job = json!({
        "metadata": { "name": "a", "namespace": "default" },
        "spec": {
            "queue": "default",
            "minAvailable": 1,
            "tasks": [{ "name": "w", "replicas": 1, "template": { "spec": { "containers": [{ "name": "c", "image": "i" }] } } }],
        },
    });
    change(&mut job);
    let file = recorded("jobs-validate.json");
    let request = Request {
        kind: Kind::VcJob,
        operation: Operation::Create,
        name: "a",
        object: &job,
        old: &Value::Null,
    };
    let verdict =
        validate(request, &Settings::default(), &Environment::of(&file, &json!({ "environment": "base" })));
    let refusals = verdict.refusals.iter().map(|finding| format!("refused: {finding}\n"));
    let warnings = verdict.warnings.iter().map(|finding| format!("warning: {finding}\n"));
    expected.assert_eq(&refusals.chain(warnings).collect::<String>());
}

#[test]
fn volcano_b35_the_pod_with_the_longest_name_must_fit() {
    let name = "j".repeat(59);
    check(|job| job["metadata"]["name"] = name.as_str().into(), &expect![[r#""#]]);
    check(
        |job| {
            job["metadata"]["name"] = name.as_str().into();
            job["spec"]["tasks"][0]["replicas"] = 11.into();
        },
        &expect![[r#"
            refused: spec.tasks[0].name: create pod with name jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj-w-10 validate failed [name part must be no more than 63 bytes]
        "#]],
    );
}

#[test]
fn volcano_b35_a_plugin_that_makes_a_service_needs_a_name_for_it() {
    check(|job| job["metadata"]["name"] = "a.b".into(), &expect![[r#""#]]);
    for (name, expected) in [
        (
            "a.b",
            expect![[r#"
        refused: metadata.name: Invalid value: "a.b": the plugins make a Service of the job's name: must not contain dots
    "#]],
        ),
        (
            "1a",
            expect![[r#"
        warning: metadata.name: the plugins make a Service of the job's name, and before Kubernetes 1.36 such a name must start with a letter
    "#]],
        ),
    ] {
        check(
            |job| {
                job["metadata"]["name"] = name.into();
                job["spec"]["plugins"] = json!({ "svc": [] });
            },
            &expected,
        );
    }
}

#[test]
fn volcano_b36_policies_that_cannot_act_are_pointed_out() {
    check(
        |job| {
            job["spec"]["policies"] = json!([
                { "event": "PodPending", "action": "AbortJob" },
                { "event": "Unknown", "action": "RestartPod" },
                { "exitCode": 3, "action": "SyncJob" },
            ]);
        },
        &expect![[r#"
            refused: spec.policies[2].action: Invalid value: "SyncJob": invalid policy action; use one of AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition, TerminateJob, CompleteJob, ResumeJob
            warning: spec.policies[0]: a PodPending policy without a timeout never acts: every pod is pending at first
            warning: spec.policies[1].action: RestartPod has nothing to restart when the whole job is concerned
        "#]],
    );
}

#[test]
fn volcano_b36_an_event_of_a_task_has_something_to_restart() {
    for action in ["RestartTask", "RestartPod", "RestartPartition"] {
        check(
            |job| {
                let events = ["TaskFailed", "TaskCompleted"];
                job["spec"]["policies"] =
                    events.iter().map(|event| json!({ "event": event, "action": action })).collect();
            },
            &expect![[r#""#]],
        );
    }
}

#[test]
fn everything_is_said_at_once() {
    check(
        |job| {
            job["spec"]["queue"] = "nobody".into();
            job["spec"]["minAvailable"] = 7.into();
            job["spec"]["plugins"] = json!({ "bogus": [] });
            job["spec"]["volumes"] = json!([{ "mountPath": "/a" }, { "mountPath": "/a", "volumeClaim": {} }]);
            job["spec"]["tasks"][0]["dependsOn"] = json!({ "name": ["w"] });
            job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = "".into();
        },
        &expect![[r#"
            refused: spec.tasks[0].template.spec.containers[0].image: Required value
            refused: spec.minAvailable: job 'minAvailable' should not be greater than total replicas in tasks
            refused: spec.plugins.bogus: unable to find job plugin: bogus
            refused: spec.volumes[0]: either VolumeClaim or VolumeClaimName must be specified
            refused: spec.volumes[1].mountPath: duplicated mountPath: /a
            refused: spec.queue: unable to find job queue: queue.scheduling.volcano.sh "nobody" not found
            refused: spec.tasks: job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG): tasks wait for each other in a ring: w -> w
        "#]],
    );
}

#[test]
fn what_cannot_be_read_is_refused() {
    check(
        |job| job["spec"]["tasks"] = "none".into(),
        &expect![[r#"
            refused: spec.tasks: cannot be read: invalid type: string "none", expected a sequence
        "#]],
    );
}
