//! The cases by which Kubernetes tests one sync of a CronJob (`TestControllerV2SyncCronJob`), as a table: what was there
//! before, against how late a run may be.

use std::fmt::Write;

use expect_test::expect;
use krafla_cluster::Step;
use serde_json::{Value, json};

use super::{job, listed, plan};

/// What is done about the run that was due five and a half minutes ago, in a word.
fn done(spec: &Value, status: &Value, jobs: &[Value]) -> String {
    let plan = plan(spec, status, jobs, &[]);
    let does = |is_such: fn(&Step) -> bool| plan.steps.iter().any(is_such);
    let creates = does(|step| matches!(step, Step::Create { .. }));
    match (creates, does(|step| matches!(step, Step::Delete { .. }))) {
        (true, true) => "replaces".to_owned(),
        (true, false) => "creates".to_owned(),
        (false, _) => plan.notes.last().map_or("nothing", |note| note.reason).to_owned(),
    }
}

/// What a CronJob has done before: its status and its Jobs.
fn histories() -> [(&'static str, Value, Vec<Value>); 5] {
    let at = |hour: u32| json!({ "lastScheduleTime": format!("2026-07-09T{hour:02}:00:00Z") });
    let mut runs = at(9);
    runs["active"] = listed(&["c-1"]);
    let mut succeeded = at(9);
    succeeded["lastSuccessfulTime"] = json!("2026-07-09T09:00:07Z");
    [
        ("never ran", json!({}), vec![]),
        ("ran, and is gone", at(9), vec![]),
        ("ran, and has ended", succeeded, vec![job("c-1", 9, Some("Complete"))]),
        ("ran, and still does", runs, vec![job("c-1", 9, None)]),
        ("runs already", at(10), vec![]),
    ]
}

#[test]
fn what_is_due_is_done_as_the_policy_and_the_deadline_say() {
    let mut table = String::new();
    for (history, status, jobs) in histories() {
        for policy in ["Allow", "Forbid", "Replace"] {
            let cells = [None, Some(10), Some(7200), Some(1_000_000)].map(|deadline| {
                let spec = json!({ "concurrencyPolicy": policy, "startingDeadlineSeconds": deadline });
                done(&spec, &status, &jobs)
            });
            writeln!(table, "{history}, {policy}: {}", cells.join(" | ")).unwrap();
        }
    }
    expect![[r#"
        never ran, Allow: creates | MissSchedule | creates | creates
        never ran, Forbid: creates | MissSchedule | creates | creates
        never ran, Replace: creates | MissSchedule | creates | creates
        ran, and is gone, Allow: creates | MissSchedule | creates | creates
        ran, and is gone, Forbid: creates | MissSchedule | creates | creates
        ran, and is gone, Replace: creates | MissSchedule | creates | creates
        ran, and has ended, Allow: creates | MissSchedule | creates | creates
        ran, and has ended, Forbid: creates | MissSchedule | creates | creates
        ran, and has ended, Replace: creates | MissSchedule | creates | creates
        ran, and still does, Allow: creates | MissSchedule | creates | creates
        ran, and still does, Forbid: JobAlreadyActive | MissSchedule | JobAlreadyActive | JobAlreadyActive
        ran, and still does, Replace: replaces | MissSchedule | replaces | replaces
        runs already, Allow: nothing | nothing | nothing | nothing
        runs already, Forbid: nothing | nothing | nothing | nothing
        runs already, Replace: nothing | nothing | nothing | nothing
    "#]]
    .assert_eq(&table);
}

#[test]
fn what_is_suspended_or_not_due_is_not_done() {
    for (history, status, jobs) in histories() {
        for policy in ["Allow", "Forbid", "Replace"] {
            for (field, value) in [("suspend", json!(true)), ("schedule", json!("0 12 * * *"))] {
                let mut spec = json!({ "concurrencyPolicy": policy });
                spec[field] = value;
                assert_eq!(done(&spec, &status, &jobs), "nothing", "{history}, {policy}, {field}");
            }
        }
    }
}

#[test]
fn a_clock_that_goes_back_makes_nothing_twice() {
    let later = json!({ "lastScheduleTime": "2026-07-09T11:00:00Z" });
    assert_eq!(done(&json!({}), &later, &[]), "nothing");
}

#[test]
fn jobs_without_a_start_go_last_and_the_older_name_first() {
    let waiting = |name: &str| {
        let mut job = job(name, 1, Some("Failed"));
        job["status"].as_object_mut().unwrap().remove("startTime");
        job
    };
    let jobs = [waiting("c-4"), waiting("c-3"), job("c-2", 2, Some("Failed")), job("c-1", 1, Some("Failed"))];
    let status = json!({ "lastScheduleTime": "2026-07-09T10:00:00Z" });
    let deleted: Vec<String> = plan(&json!({ "failedJobsHistoryLimit": 1 }), &status, &jobs, &[])
        .aside
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(deleted, ["delete job c-1", "delete job c-2", "delete job c-3"]);
}

#[test]
fn a_success_is_on_record_however_few_jobs_are_kept() {
    let status = json!({ "lastScheduleTime": "2026-07-09T10:00:00Z", "active": listed(&["c-1"]) });
    let jobs = [job("c-1", 10, Some("Complete"))];
    for (limit, n_deleted) in [(json!(0), 1), (json!(10), 0), (Value::Null, 0)] {
        let plan = plan(&json!({ "successfulJobsHistoryLimit": limit }), &status, &jobs, &[]);
        let Some(Step::Patch { patch, .. }) = &plan.status else { panic!("no status: {plan}") };
        assert_eq!(patch["status"]["lastSuccessfulTime"], "2026-07-09T10:00:07Z", "{limit}");
        assert_eq!(plan.aside.len(), n_deleted, "{limit}");
    }
}

#[test]
fn a_schedule_by_distance_goes_on_from_its_last_run_after_a_week() {
    let status = json!({ "lastScheduleTime": "2026-07-02T09:30:00Z" });
    let plan = plan(&json!({ "schedule": "@every 1h" }), &status, &[], &[]);
    expect![[r#"
        create job c-29726490
        wake at 2026-07-09T10:30:00Z
        note Warning TooManyMissedTimes: too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew
        note Normal SuccessfulCreate: Created job c-29726490
    "#]]
    .assert_eq(&plan.to_string());
}

#[test]
fn surplus_jobs_go_whatever_becomes_of_the_run() {
    let jobs = [job("c-1", 7, Some("Failed")), job("c-2", 8, Some("Failed"))];
    let plan = plan(&json!({}), &json!({ "lastScheduleTime": "2026-07-09T09:00:00Z" }), &jobs, &[]);
    let printed = |steps: &[Step]| steps.iter().map(ToString::to_string).collect::<Vec<String>>();
    assert_eq!(printed(&plan.steps), ["create job c-29726520"]);
    assert_eq!(printed(&plan.aside), ["delete job c-1"]);
}
