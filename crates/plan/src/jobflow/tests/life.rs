//! How a flow goes from its first job to its end.

use std::sync::Arc;

use expect_test::expect;
use krafla_api::{Key, Kind};
use krafla_cluster::Step;
use serde_json::{Value, json};

use super::{check, fixture};
use crate::{Object, Objects, Snapshot};

#[test]
fn a_new_flow_makes_the_jobs_that_wait_for_nothing() {
    check(
        "flow\n step x\n step y after=x\n step z",
        expect![[r#"
        patch jobflow status f {"status":{"state":{"phase":"Pending"}}}
        create job f-x
        create job f-z
        note Normal Created: job f-x is made from JobTemplate x
        note Normal Created: job f-z is made from JobTemplate z
    "#]],
    );
}

#[test]
fn a_job_carries_its_origin_its_owner_and_the_templates_spec() {
    let plan = fixture::plan("flow\n step x");
    let Some(Step::Create { object, .. }) = plan.steps.first() else { panic!("no job") };
    expect![[r#"
        {
          "apiVersion": "batch.volcano.sh/v1alpha1",
          "kind": "Job",
          "metadata": {
            "annotations": {
              "volcano.sh/createdByJobFlow": "ns.f",
              "volcano.sh/createdByJobTemplate": "ns.x"
            },
            "labels": {
              "volcano.sh/createdByJobFlow": "ns.f",
              "volcano.sh/createdByJobTemplate": "ns.x"
            },
            "name": "f-x",
            "namespace": "ns",
            "ownerReferences": [
              {
                "apiVersion": "flow.volcano.sh/v1alpha1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "JobFlow",
                "name": "f",
                "uid": "f1"
              }
            ]
          },
          "spec": {
            "newer": "x",
            "queue": "fast",
            "tasks": [
              {
                "name": "server",
                "replicas": 1
              }
            ]
          }
        }
    "#]]
    .assert_eq(&format!("{object:#}\n"));
}

#[test]
fn a_job_waits_for_all_its_targets_to_complete() {
    let flow = "flow phase=Running
         step x
         step y
         step z after=x,y
         record f-x Completed
         record f-y Running
         job f-x Completed";
    check(
        &format!("{flow}\n job f-y Running"),
        expect![[r#"
        patch jobflow status f {"status":{"completedJobs":["f-x"],"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Completed"},"f-y":{"createTime":"2027-01-15T08:00:00Z","phase":"Running"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:00:01Z","state":"Completed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Completed"},{"name":"f-y","runningHistories":[{"startTimestamp":"2027-01-15T08:00:01Z","state":"Running"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Running"}],"runningJobs":["f-y"]}}
    "#]],
    );
    check(
        &format!("{flow}\n job f-y Completed"),
        expect![[r#"
        patch jobflow status f {"status":{"completedJobs":["f-x","f-y"],"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Completed"},"f-y":{"createTime":"2027-01-15T08:00:00Z","phase":"Completed"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:00:01Z","state":"Completed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Completed"},{"name":"f-y","runningHistories":[{"endTimestamp":"2027-01-15T08:01:40Z","startTimestamp":"2027-01-15T08:00:01Z","state":"Running"},{"startTimestamp":"2027-01-15T08:01:40Z","state":"Completed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Completed"}]}}
        create job f-z
        note Normal Created: job f-z is made from JobTemplate z
    "#]],
    );
}

#[test]
fn lists_histories_and_conditions_follow_the_jobs() {
    check(
        "flow phase=Running
         step a
         step b
         step c
         step d
         record f-a Running
         job f-a Restarting retries=1 ran=30s server:Failed*2
         job f-b New
         job f-c Terminating
         job f-d Completing",
        expect![[r#"
            patch jobflow status f {"status":{"completedJobs":["f-d"],"conditions":{"f-a":{"createTime":"2027-01-15T08:00:00Z","phase":"Restarting","runningDuration":"30s","taskStatusCount":{"server":{"phase":{"Failed":2}}}},"f-b":{"createTime":"2027-01-15T08:00:00Z","phase":"Pending"},"f-c":{"createTime":"2027-01-15T08:00:00Z","phase":"Terminating"},"f-d":{"createTime":"2027-01-15T08:00:00Z","phase":"Completing"}},"jobStatusList":[{"endTimestamp":"2027-01-15T08:00:30Z","name":"f-a","restartCount":1,"runningHistories":[{"endTimestamp":"2027-01-15T08:01:40Z","startTimestamp":"2027-01-15T08:00:01Z","state":"Running"},{"startTimestamp":"2027-01-15T08:01:40Z","state":"Restarting"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Restarting"},{"name":"f-b","runningHistories":[{"startTimestamp":"2027-01-15T08:01:40Z","state":"Pending"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Pending"},{"name":"f-c","runningHistories":[{"startTimestamp":"2027-01-15T08:01:40Z","state":"Terminating"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Terminating"},{"name":"f-d","runningHistories":[{"startTimestamp":"2027-01-15T08:01:40Z","state":"Completing"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Completing"}],"pendingJobs":["f-b"],"terminatedJobs":["f-c"],"unKnowJobs":["f-a"]}}
        "#]],
    );
}

#[test]
fn a_failed_or_terminated_job_fails_the_flow_and_nothing_more_is_made() {
    check(
        "flow phase=Running\n step x\n step y\n job f-x Failed",
        expect![[r#"
        patch jobflow status f {"status":{"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Failed"}},"failedJobs":["f-x"],"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:01:40Z","state":"Failed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Failed"}],"state":{"phase":"Failed"}}}
    "#]],
    );
    check(
        "flow\n step x\n step y\n job f-x Terminated",
        expect![[r#"
        patch jobflow status f {"status":{"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Terminated"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:01:40Z","state":"Terminated"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Terminated"}],"state":{"phase":"Failed"},"terminatedJobs":["f-x"]}}
    "#]],
    );
}

#[test]
fn all_jobs_completed_is_success_and_retained_jobs_stay() {
    check(
        "flow phase=Running retain=retain\n step x\n record f-x Running\n job f-x Completed",
        expect![[r#"
            patch jobflow status f {"status":{"completedJobs":["f-x"],"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Completed"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"endTimestamp":"2027-01-15T08:01:40Z","startTimestamp":"2027-01-15T08:00:01Z","state":"Running"},{"startTimestamp":"2027-01-15T08:01:40Z","state":"Completed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Completed"}],"state":{"phase":"Succeed"}}}
        "#]],
    );
}

#[test]
fn with_retain_policy_delete_the_jobs_go_once_the_success_is_on_record() {
    let jobs = "step x\n record f-x Completed\n job f-x Completed";
    check(
        &format!("flow phase=Running retain=delete\n {jobs}"),
        expect![[r#"
        patch jobflow status f {"status":{"completedJobs":["f-x"],"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Completed"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:00:01Z","state":"Completed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Completed"}],"state":{"phase":"Succeed"}}}
    "#]],
    );
    check(
        &format!("flow phase=Succeed retain=delete\n {jobs}"),
        expect![[r#"
        patch jobflow status f {"status":{"completedJobs":["f-x"],"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Completed"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:00:01Z","state":"Completed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Completed"}]}}
        delete job f-x
    "#]],
    );
    check(
        &format!("flow phase=Succeed retain=delete\n {jobs} going"),
        expect![[r#"
        patch jobflow status f {"status":{"completedJobs":["f-x"],"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Completed"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:00:01Z","state":"Completed"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Completed"}]}}
    "#]],
    );
}

#[test]
fn a_job_that_is_made_for_a_step_that_was_done_before_goes_again() {
    for phase in ["Running", "Succeed", "Failed"] {
        let with = |job: &str| {
            fixture::plan(&format!(
                "flow phase={phase}
                 step x
                 step y after=x
                 record f-x Completed from=08:00:00
                 {job}"
            ))
        };
        let (without, late) = (with(""), with("job f-x Running from=08:00:30"));
        assert_eq!(
            late.aside.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["delete job f-x"],
            "{phase}"
        );
        assert_eq!(
            (&late.status, &late.steps),
            (&without.status, &without.steps),
            "{phase}: nothing else comes of it"
        );
        assert_eq!(with("job f-x Running from=08:00:30 going").aside, [], "{phase}");
        assert_eq!(with("job f-x Completed from=08:00:00").aside, [], "{phase}: this is the one that did it");
    }
}

#[test]
fn a_suspended_job_is_waited_for() {
    check(
        "flow phase=Running\n step x\n step y after=x\n record f-x Running\n job f-x Aborted",
        expect![[r#"
            patch jobflow status f {"status":{"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Aborted"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"endTimestamp":"2027-01-15T08:01:40Z","startTimestamp":"2027-01-15T08:00:01Z","state":"Running"},{"startTimestamp":"2027-01-15T08:01:40Z","state":"Aborted"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Aborted"}],"unKnowJobs":["f-x"]}}
        "#]],
    );
}

#[test]
fn a_target_can_be_ready_before_it_completes() {
    let flow = "flow phase=Running
         step x
         step y after=x reached=server:Running
         record f-x Running";
    check(
        &format!("{flow}\n job f-x Running server:Running*1"),
        expect![[r#"
        patch jobflow status f {"status":{"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Running","taskStatusCount":{"server":{"phase":{"Running":1}}}}},"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:00:01Z","state":"Running"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Running"}],"runningJobs":["f-x"]}}
    "#]],
    );
    check(
        &format!("{flow}\n job f-x Running server:Running*2"),
        expect![[r#"
        patch jobflow status f {"status":{"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Running","taskStatusCount":{"server":{"phase":{"Running":2}}}}},"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:00:01Z","state":"Running"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Running"}],"runningJobs":["f-x"]}}
        create job f-y
        note Normal Created: job f-y is made from JobTemplate y
    "#]],
    );
}

#[test]
fn a_patch_changes_one_use_of_a_template_and_not_its_queue() {
    let plan = fixture::plan("flow\n step x patch-replicas=3");
    let Some(Step::Create { object, .. }) = plan.steps.first() else { panic!("no job") };
    assert_eq!(object["spec"]["tasks"][0]["replicas"], 3);
    assert_eq!(object["spec"]["queue"], "fast");
    assert_eq!(object["spec"]["maxRetry"], Value::Null);
}

#[test]
fn a_job_that_the_server_refused_says_so_in_the_status_and_is_tried_again() {
    check(
        "flow phase=Running
         step x
         step y
         job f-x Running
         record f-x Running
         refused",
        expect![[r#"
            patch jobflow status f {"status":{"conditions":{"f-x":{"createTime":"2027-01-15T08:00:00Z","phase":"Running"},"f-y":{"phase":"Refused"}},"jobStatusList":[{"name":"f-x","runningHistories":[{"startTimestamp":"2027-01-15T08:00:01Z","state":"Running"}],"startTimestamp":"2027-01-15T08:00:00Z","state":"Running"}],"runningJobs":["f-x"]}}
            create job f-y
            note Normal Created: job f-y is made from JobTemplate y
        "#]],
    );
}

#[test]
fn the_histories_of_many_jobs_take_no_more_room_than_those_of_few() {
    let n_histories = |n_jobs: usize| {
        let names: Vec<String> = (0..n_jobs).map(|n| format!("f-{n}")).collect();
        let n_recorded = if n_jobs > 100 { 10 } else { 120 };
        let history = json!({ "startTimestamp": "2027-01-15T08:00:00Z", "state": "Aborted" });
        let list = names
            .iter()
            .map(|name| json!({ "name": name, "state": "Aborted", "runningHistories": vec![&history; n_recorded] }));
        let flows: Vec<Value> = (0..n_jobs).map(|n| json!({ "name": n.to_string() })).collect();
        let flow = json!({ "metadata": { "namespace": "ns", "name": "f", "uid": "f1" }, "spec": { "flows": flows },
            "status": { "state": { "phase": "Running" }, "jobStatusList": list.collect::<Vec<_>>() } });
        let mut objects = Objects::default();
        objects.insert(Arc::new(Object::decode(Kind::JobFlow, flow.to_string().as_bytes())));
        let key = Key::new("ns", "f");
        let plan = crate::jobflow::plan(&Snapshot::new(Kind::JobFlow, &key, fixture::now(), &objects));
        let Some(Step::Patch { patch, .. }) = plan.status else { panic!("no status") };
        patch["status"]["jobStatusList"][0]["runningHistories"].as_array().unwrap().len()
    };
    assert_eq!([1, 50, 100, 1000, 2500].map(n_histories), [100, 100, 50, 5, 2]);
}
