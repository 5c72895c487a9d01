//! Decision tables: a CronJob and its Jobs, and what follows.
//!
//! `now` is 10:05:30 on a Thursday; the CronJob was made at 08:30.

mod upstream;

use std::sync::Arc;

use expect_test::{Expect, expect};
use krafla_api::{Key, Kind, Time};
use serde_json::{Value, json};

use crate::{Departed, Object, Objects, Plan, Snapshot};

const MADE: &str = "2026-07-09T08:30:00Z";
const NOW: &str = "2026-07-09T10:05:30Z";

fn time(text: &str) -> Time {
    Time(text.parse().unwrap())
}

/// A CronJob with these fields of its spec and its status.
fn cron_job(spec: &Value, status: &Value) -> Value {
    let mut all = json!({ "schedule": "0 * * * *", "concurrencyPolicy": "Allow", "jobTemplate": {
        "metadata": { "labels": { "a": "b" } }, "spec": { "template": { "spec": { "restartPolicy": "Never" } } },
    } });
    for (field, value) in spec.as_object().unwrap() {
        all[field] = value.clone();
    }
    json!({
        "metadata": { "namespace": "ns", "name": "c", "uid": "u", "resourceVersion": "9", "creationTimestamp": MADE },
        "spec": all, "status": status,
    })
}

/// A Job of the CronJob for a run at an hour, running or ended.
fn job(name: &str, hour: u32, end: Option<&str>) -> Value {
    let at = format!("2026-07-09T{hour:02}:00:00Z");
    let mut status = json!({ "startTime": at });
    if let Some(end) = end {
        status["conditions"] = json!([{ "type": end, "status": "True" }]);
        if end == "Complete" {
            status["completionTime"] = json!(format!("2026-07-09T{hour:02}:00:07Z"));
        }
    }
    json!({
        "metadata": {
            "namespace": "ns", "name": name, "uid": name, "resourceVersion": "5",
            "annotations": { "batch.kubernetes.io/cronjob-scheduled-timestamp": at },
            "ownerReferences": [{ "apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "u", "controller": true }],
        },
        "status": status,
    })
}

fn listed(names: &[&str]) -> Value {
    names.iter().map(|name| json!({ "name": name, "uid": name })).collect()
}

fn check(spec: &Value, status: &Value, jobs: &[Value], expected: &Expect) {
    check_with_departed(spec, status, jobs, &[], expected);
}

fn check_with_departed(spec: &Value, status: &Value, jobs: &[Value], gone: &[Value], expected: &Expect) {
    expected.assert_eq(&plan(spec, status, jobs, gone).to_string());
}

fn plan(spec: &Value, status: &Value, jobs: &[Value], gone: &[Value]) -> Plan {
    let decode = |kind, json: &Value| Arc::new(Object::decode(kind, json.to_string().as_bytes()));
    let mut objects = Objects::default();
    objects.insert(decode(Kind::CronJob, &cron_job(spec, status)));
    jobs.iter().for_each(|job| drop(objects.insert(decode(Kind::Job, job))));
    let departed: Vec<Departed> =
        gone.iter().map(|job| Departed { object: decode(Kind::Job, job), at: time(NOW) }).collect();
    let key = Key::new("ns", "c");
    let snapshot = Snapshot::new(Kind::CronJob, &key, time(NOW), &objects);
    super::plan(&Snapshot { departed: &departed, ..snapshot })
}

#[test]
fn the_last_run_is_made_and_the_next_awaited() {
    check(
        &json!({}),
        &json!({}),
        &[],
        &expect![[r#"
        create job c-29726520
        wake at 2026-07-09T11:00:00Z
        note Normal SuccessfulCreate: Created job c-29726520
    "#]],
    );
    check(
        &json!({}),
        &json!({ "lastScheduleTime": "2026-07-09T10:00:00Z" }),
        &[],
        &expect![[r#"
        wake at 2026-07-09T11:00:00Z
    "#]],
    );
    check(
        &json!({ "schedule": "0 12 * * *" }),
        &json!({}),
        &[],
        &expect![[r#"
        wake at 2026-07-09T12:00:00Z
    "#]],
    );
    check(
        &json!({ "schedule": "@every 10m" }),
        &json!({}),
        &[],
        &expect![[r#"
        create job c-29726520
        wake at 2026-07-09T10:10:00Z
        note Normal SuccessfulCreate: Created job c-29726520
    "#]],
    );
}

#[test]
fn a_changed_schedule_counts_from_the_last_run() {
    // It was hourly until a moment ago.
    check(
        &json!({ "schedule": "*/5 * * * *" }),
        &json!({ "lastScheduleTime": "2026-07-09T10:00:00Z" }),
        &[],
        &expect![[r#"
            create job c-29726525
            wake at 2026-07-09T10:10:00Z
            note Normal SuccessfulCreate: Created job c-29726525
        "#]],
    );
}

#[test]
fn what_was_made_is_read_off_the_jobs() {
    check(
        &json!({}),
        &json!({}),
        &[job("c-1", 10, None)],
        &expect![[r#"
        patch cronjob status c {"status":{"active":[{"apiVersion":"batch/v1","kind":"Job","name":"c-1","namespace":"ns","resourceVersion":"5","uid":"c-1"}],"lastScheduleTime":"2026-07-09T10:00:00Z"}}
        wake at 2026-07-09T11:00:00Z
    "#]],
    );
    check(
        &json!({}),
        &json!({ "active": listed(&["c-1", "c-2", "c-3"]), "lastScheduleTime": "2026-07-09T10:00:00Z" }),
        &[job("c-1", 8, Some("Complete")), job("c-2", 9, Some("Failed"))],
        &expect![[r#"
            patch cronjob status c {"status":{"active":null,"lastSuccessfulTime":"2026-07-09T08:00:07Z"}}
            wake at 2026-07-09T11:00:00Z
            note Normal SawCompletedJob: Saw completed job: c-1, condition: Complete
            note Normal SawCompletedJob: Saw completed job: c-2, condition: Failed
            note Normal MissingJob: Active job went missing: c-3
        "#]],
    );
}

#[test]
fn a_job_that_is_gone_before_it_was_seen_is_not_made_again() {
    check_with_departed(
        &json!({}),
        &json!({}),
        &[],
        &[job("c-1", 10, Some("Complete"))],
        &expect![[r#"
        patch cronjob status c {"status":{"lastScheduleTime":"2026-07-09T10:00:00Z"}}
        wake at 2026-07-09T11:00:00Z
    "#]],
    );
}

#[test]
fn a_run_is_not_made_while_another_runs_if_that_is_forbidden() {
    let status = json!({ "active": listed(&["c-1"]), "lastScheduleTime": "2026-07-09T09:00:00Z" });
    let running = [job("c-1", 9, None)];
    check(
        &json!({ "concurrencyPolicy": "Forbid" }),
        &status,
        &running,
        &expect![[r#"
        wake at 2026-07-09T11:00:00Z
        note Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid
    "#]],
    );
    check(
        &json!({ "concurrencyPolicy": "Replace" }),
        &status,
        &running,
        &expect![[r#"
        delete job c-1
        create job c-29726520
        wake at 2026-07-09T11:00:00Z
        note Normal SuccessfulDelete: Deleted job c-1
        note Normal SuccessfulCreate: Created job c-29726520
    "#]],
    );
    check(
        &json!({ "concurrencyPolicy": "Allow" }),
        &status,
        &running,
        &expect![[r#"
        create job c-29726520
        wake at 2026-07-09T11:00:00Z
        note Normal SuccessfulCreate: Created job c-29726520
    "#]],
    );
}

#[test]
fn a_run_that_is_on_its_way_out_runs_until_it_is_gone() {
    let status = json!({ "active": listed(&["c-1"]), "lastScheduleTime": "2026-07-09T09:00:00Z" });
    let mut going = job("c-1", 9, None);
    going["metadata"]["deletionTimestamp"] = json!(NOW);
    going["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
    check(
        &json!({ "concurrencyPolicy": "Forbid" }),
        &status,
        &[going.clone()],
        &expect![[r#"
            wake at 2026-07-09T11:00:00Z
            note Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid
        "#]],
    );
    check(
        &json!({ "concurrencyPolicy": "Replace" }),
        &status,
        &[going],
        &expect![[r#"
            create job c-29726520
            wake at 2026-07-09T11:00:00Z
            note Normal SuccessfulCreate: Created job c-29726520
        "#]],
    );
}

#[test]
fn a_job_that_somebody_made_from_the_template_is_no_run() {
    let mut by_hand = job("by-hand", 9, None);
    by_hand["metadata"]["annotations"] = json!({ "cronjob.kubernetes.io/instantiate": "manual" });
    for policy in ["Forbid", "Replace"] {
        check(
            &json!({ "concurrencyPolicy": policy }),
            &json!({ "lastScheduleTime": "2026-07-09T09:00:00Z" }),
            &[by_hand.clone()],
            &expect![[r#"
                create job c-29726520
                wake at 2026-07-09T11:00:00Z
                note Warning UnexpectedJob: Saw a job that the controller did not create or forgot: by-hand
                note Normal SuccessfulCreate: Created job c-29726520
            "#]],
        );
    }
    // One that is on record is a run: not every release of Kubernetes marks them.
    check(
        &json!({ "concurrencyPolicy": "Forbid" }),
        &json!({ "active": listed(&["by-hand"]), "lastScheduleTime": "2026-07-09T09:00:00Z" }),
        &[by_hand],
        &expect![[r#"
            wake at 2026-07-09T11:00:00Z
            note Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid
        "#]],
    );
}

#[test]
fn a_run_that_is_too_late_is_missed() {
    check(
        &json!({ "startingDeadlineSeconds": 60 }),
        &json!({}),
        &[],
        &expect![[r#"
        wake at 2026-07-09T11:00:00Z
        note Warning MissSchedule: Missed scheduled time to start a job: 2026-07-09T10:00:00Z
    "#]],
    );
    check(
        &json!({ "startingDeadlineSeconds": 330 }),
        &json!({}),
        &[],
        &expect![[r#"
        create job c-29726520
        wake at 2026-07-09T11:00:00Z
        note Normal SuccessfulCreate: Created job c-29726520
    "#]],
    );
}

#[test]
fn a_suspended_cron_job_makes_nothing() {
    check(&json!({ "suspend": true }), &json!({}), &[], &expect![""]);
}

#[test]
fn a_schedule_or_a_zone_that_makes_no_sense_is_named() {
    check(
        &json!({ "schedule": "every day" }),
        &json!({}),
        &[],
        &expect![[r#"
        note Warning UnparseableSchedule: unparseable schedule: "every day" : expected exactly 5 fields, found 2: [every day]
    "#]],
    );
    check(
        &json!({ "timeZone": "Mars/Base" }),
        &json!({}),
        &[],
        &expect![[r#"
        note Warning UnknownTimeZone: invalid timeZone: "Mars/Base"; use a name such as Europe/Berlin
    "#]],
    );
    check(
        &json!({ "schedule": "0 0 31 2 *" }),
        &json!({}),
        &[],
        &expect![[r#"
        note Warning InvalidSchedule: "0 0 31 2 *" is never due; change spec.schedule
    "#]],
    );
}

#[test]
fn very_many_missed_runs_are_worth_a_warning_and_one_job() {
    let status = json!({ "lastScheduleTime": "2026-06-01T10:00:00Z" });
    check(
        &json!({}),
        &status,
        &[],
        &expect![[r#"
        create job c-29726520
        wake at 2026-07-09T11:00:00Z
        note Warning TooManyMissedTimes: too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew
        note Normal SuccessfulCreate: Created job c-29726520
    "#]],
    );
}

#[test]
fn runs_from_before_the_deadline_are_forgiven() {
    let status = json!({ "lastScheduleTime": "2026-06-01T10:00:00Z" });
    let warned = |deadline: u32| {
        let plan = plan(&json!({ "startingDeadlineSeconds": deadline }), &status, &[], &[]);
        plan.notes.iter().any(|note| note.reason == "TooManyMissedTimes")
    };
    let hour = 60 * 60;
    assert!(!warned(99 * hour), "a hundred runs at most");
    assert!(warned(102 * hour));
}

#[test]
fn a_zone_inside_a_schedule_is_kept_and_warned_of() {
    check(
        &json!({ "schedule": "TZ=Asia/Tokyo 0 18 * * *" }),
        &json!({}),
        &[],
        &expect![[r#"
            create job c-29726460
            wake at 2026-07-10T09:00:00Z
            note Warning UnsupportedSchedule: the schedule "TZ=Asia/Tokyo 0 18 * * *" names a time zone; move it to spec.timeZone
            note Normal SuccessfulCreate: Created job c-29726460
        "#]],
    );
}

#[test]
fn finished_jobs_beyond_the_limits_go_oldest_first() {
    let jobs = [
        job("c-1", 1, Some("Complete")),
        job("c-2", 2, Some("Failed")),
        job("c-3", 3, Some("Complete")),
        job("c-4", 4, Some("Failed")),
        job("c-5", 10, Some("Complete")),
    ];
    let status =
        json!({ "lastScheduleTime": "2026-07-09T10:00:00Z", "lastSuccessfulTime": "2026-07-09T10:00:07Z" });
    check(
        &json!({ "successfulJobsHistoryLimit": 1 }),
        &status,
        &jobs,
        &expect![[r#"
        delete job c-1
        delete job c-3
        delete job c-2
        wake at 2026-07-09T11:00:00Z
        note Normal SuccessfulDelete: Deleted job c-1
        note Normal SuccessfulDelete: Deleted job c-3
        note Normal SuccessfulDelete: Deleted job c-2
    "#]],
    );
    check(
        &json!({ "failedJobsHistoryLimit": 0, "suspend": true }),
        &status,
        &jobs,
        &expect![[r#"
        delete job c-2
        delete job c-4
        note Normal SuccessfulDelete: Deleted job c-2
        note Normal SuccessfulDelete: Deleted job c-4
    "#]],
    );
}

#[test]
fn a_job_of_that_name_that_is_somebody_elses_is_left_alone() {
    let mut foreign = job("c-29726520", 10, None);
    foreign["metadata"]["ownerReferences"] = json!([]);
    check(
        &json!({}),
        &json!({}),
        &[foreign],
        &expect![[r#"
        wake at 2026-07-09T11:00:00Z
    "#]],
    );
}

#[test]
fn a_job_is_made_from_the_template() {
    let mut objects = Objects::default();
    let spec = json!({ "timeZone": "Asia/Tokyo" });
    let object = cron_job(&spec, &json!({})).to_string();
    objects.insert(Arc::new(Object::decode(Kind::CronJob, object.as_bytes())));
    let key = Key::new("ns", "c");
    let plan = super::plan(&Snapshot::new(Kind::CronJob, &key, time(NOW), &objects));
    let Some(krafla_cluster::Step::Create { object, .. }) = plan.steps.first() else { panic!("no Job") };
    expect![[r#"
        {
          "apiVersion": "batch/v1",
          "kind": "Job",
          "metadata": {
            "annotations": {
              "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-07-09T19:00:00+09:00"
            },
            "labels": {
              "a": "b"
            },
            "name": "c-29726520",
            "namespace": "ns",
            "ownerReferences": [
              {
                "apiVersion": "batch/v1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "CronJob",
                "name": "c",
                "uid": "u"
              }
            ]
          },
          "spec": {
            "template": {
              "spec": {
                "restartPolicy": "Never"
              }
            }
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(object).unwrap());
}
