//! Decision tables: a CronJob and its jobs in a few words, and the plan that follows.

mod upstream;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::Departed;

/// One object per line; times are minutes and seconds after 10:00 on 11 March 2025, when the CronJob was made:
///
/// ```text
/// cron schedule=*/5_*_*_*_* policy=Forbid last=5 deadline=60 suspend zone=Asia/Tokyo keep=3,1 going
/// active c-29028605
/// job c-29028605 Running due=5
/// foreign c-29028605 Running
/// gone c-29028605 Completed due=5
/// ```
fn parse(text: &str) -> (Objects, Vec<Departed>) {
    let (mut objects, mut departed) = (Objects::default(), Vec::new());
    let mut cron = Value::Null;
    let mut active = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "cron" => cron = cronjob(&words),
            "active" => active.push(json!({ "name": words[1], "uid": format!("uid-{}", words[1]) })),
            "job" => drop(objects.insert(decode(Kind::VcJob, &job(&words, "c1")))),
            "foreign" => drop(objects.insert(decode(Kind::VcJob, &job(&words, "somebody-else")))),
            "gone" => departed.push(Departed { object: decode(Kind::VcJob, &job(&words, "c1")), at: at(0) }),
            other => panic!("unknown line {other:?}"),
        }
    }
    if !active.is_empty() {
        cron["status"]["active"] = json!(active);
    }
    objects.insert(decode(Kind::VcCronJob, &cron));
    (objects, departed)
}

fn decode(kind: Kind, object: &Value) -> Arc<Object> {
    let object = Object::decode(kind, object.to_string().as_bytes());
    assert!(!matches!(object.body, Body::Unreadable(_)), "{object:?}");
    Arc::new(object)
}

/// So many minutes after 10:00.
fn at(minutes: i64) -> Time {
    Time::from_seconds(1_741_687_200 + minutes * 60)
}

fn value<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn minutes(words: &[&str], name: &str) -> Option<Time> {
    value(words, name).map(|text| at(text.parse().unwrap()))
}

fn cronjob(words: &[&str]) -> Value {
    let keep = value(words, "keep").and_then(|keep| keep.split_once(','));
    let number = |text: &str| text.parse::<i32>().unwrap();
    let mut metadata = json!({ "namespace": "ns", "name": "c", "uid": "c1", "resourceVersion": "7", "creationTimestamp": at(0) });
    if words.contains(&"going") {
        metadata["deletionTimestamp"] = json!(at(1));
    }
    json!({
        "metadata": metadata,
        "spec": {
            "schedule": value(words, "schedule").unwrap_or("*/5_*_*_*_*").replace('_', " "),
            "timeZone": value(words, "zone"),
            "concurrencyPolicy": value(words, "policy").unwrap_or("Allow"),
            "startingDeadlineSeconds": value(words, "deadline").map(|text| text.parse::<i64>().unwrap()),
            "suspend": words.contains(&"suspend"),
            "successfulJobsHistoryLimit": keep.map(|(n, _)| number(n)),
            "failedJobsHistoryLimit": keep.map(|(_, n)| number(n)),
            "jobTemplate": { "metadata": { "labels": { "a": "b" }, "name": "ignored" }, "spec": { "newer": 1 } },
        },
        "status": { "lastScheduleTime": minutes(words, "last") },
    })
}

fn job(words: &[&str], owner: &str) -> Value {
    let due = minutes(words, "due");
    let owner = json!([{ "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "name": "c", "uid": owner, "controller": true }]);
    let mut metadata = json!({ "namespace": "ns", "name": words[1], "uid": format!("uid-{}", words[1]),
        "resourceVersion": "9", "creationTimestamp": due.unwrap_or(at(0)), "ownerReferences": owner });
    if let Some(due) = due {
        metadata["annotations"] = json!({ "volcano.sh/cronjob-scheduled-timestamp": due });
    }
    json!({ "metadata": metadata, "status": { "state": { "phase": words[2], "lastTransitionTime": at(4) } } })
}

fn plan_at(minutes: i64, text: &str) -> Plan {
    let (objects, departed) = parse(text);
    let key = Key::new("ns", "c");
    let snapshot = Snapshot::new(Kind::VcCronJob, &key, at(minutes), &objects);
    plan(&Snapshot { departed: &departed, ..snapshot })
}

fn check(minutes: i64, text: &str, expected: Expect) {
    expected.assert_eq(&plan_at(minutes, text).to_string());
}

#[test]
fn a_job_is_made_when_it_is_due_and_not_before() {
    check(
        3,
        "cron",
        expect![[r#"
        wake at 2025-03-11T10:05:00Z
    "#]],
    );
    check(
        5,
        "cron",
        expect![[r#"
        create job c-29028125
        wake at 2025-03-11T10:10:00Z
        note Normal SuccessfulCreate: job c-29028125 is made for 2025-03-11T10:05:00Z
    "#]],
    );
    check(
        7,
        "cron",
        expect![[r#"
        create job c-29028125
        wake at 2025-03-11T10:10:00Z
        note Normal SuccessfulCreate: job c-29028125 is made for 2025-03-11T10:05:00Z
    "#]],
    );
}

#[test]
fn a_job_carries_its_owner_its_due_time_and_the_template() {
    let plan = plan_at(5, "cron zone=Asia/Tokyo");
    let Some(Step::Create { object, .. }) = plan.steps.first() else { panic!("no job") };
    expect![[r#"
        {
          "apiVersion": "batch.volcano.sh/v1alpha1",
          "kind": "Job",
          "metadata": {
            "annotations": {
              "volcano.sh/cronjob-scheduled-timestamp": "2025-03-11T19:05:00+09:00"
            },
            "labels": {
              "a": "b"
            },
            "name": "c-29028125",
            "namespace": "ns",
            "ownerReferences": [
              {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "CronJob",
                "name": "c",
                "uid": "c1"
              }
            ]
          },
          "spec": {
            "newer": 1
          }
        }
    "#]]
    .assert_eq(&format!("{object:#}\n"));
}

#[test]
fn volcano_34_and_36_a_job_that_was_made_is_put_on_record_and_none_is_made_twice() {
    check(
        5,
        "cron\n job c-29028125 Pending due=5",
        expect![[r#"
        patch cronjob status c {"status":{"active":[{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","name":"c-29028125","namespace":"ns","resourceVersion":"9","uid":"uid-c-29028125"}],"lastScheduleTime":"2025-03-11T10:05:00Z"}}
        wake at 2025-03-11T10:10:00Z
    "#]],
    );
    check(
        6,
        "cron last=5\n active c-29028125\n job c-29028125 Running due=5",
        expect![[r#"
        wake at 2025-03-11T10:10:00Z
    "#]],
    );
    // It has come and gone between two looks.
    check(
        6,
        "cron\n gone c-29028125 Completed due=5",
        expect![[r#"
        patch cronjob status c {"status":{"lastScheduleTime":"2025-03-11T10:05:00Z","lastSuccessfulTime":"2025-03-11T10:04:00Z"}}
        wake at 2025-03-11T10:10:00Z
    "#]],
    );
}

#[test]
fn a_finished_job_is_no_longer_active() {
    check(
        6,
        "cron last=5\n active c-29028125\n job c-29028125 Completed due=5",
        expect![[r#"
        patch cronjob status c {"status":{"active":null,"lastSuccessfulTime":"2025-03-11T10:04:00Z"}}
        wake at 2025-03-11T10:10:00Z
        note Normal SawCompletedJob: job c-29028125 has finished
    "#]],
    );
    check(
        6,
        "cron last=5\n active c-29028125\n job c-29028125 Failed due=5",
        expect![[r#"
        patch cronjob status c {"status":{"active":null}}
        wake at 2025-03-11T10:10:00Z
        note Normal SawCompletedJob: job c-29028125 has finished
    "#]],
    );
    check(
        6,
        "cron last=5\n active c-29028125\n gone c-29028125 Completed due=5",
        expect![[r#"
        patch cronjob status c {"status":{"active":null,"lastSuccessfulTime":"2025-03-11T10:04:00Z"}}
        wake at 2025-03-11T10:10:00Z
        note Normal SawCompletedJob: job c-29028125 has finished
    "#]],
    );
    check(
        6,
        "cron last=5\n active c-29028125",
        expect![[r#"
        patch cronjob status c {"status":{"active":null}}
        wake at 2025-03-11T10:10:00Z
        note Warning StaleReference: job c-29028125 is gone before it finished
    "#]],
    );
}

#[test]
fn the_policies_for_a_run_that_is_due_while_another_runs() {
    let jobs = "active c-29028125\n job c-29028125 Running due=5";
    check(
        10,
        &format!("cron last=5 policy=Allow\n {jobs}"),
        expect![[r#"
        create job c-29028130
        wake at 2025-03-11T10:15:00Z
        note Normal SuccessfulCreate: job c-29028130 is made for 2025-03-11T10:10:00Z
    "#]],
    );
    check(
        10,
        &format!("cron last=5 policy=Forbid\n {jobs}"),
        expect![[r#"
        wake at 2025-03-11T10:15:00Z
        note Warning ForbidConcurrent: a run is due, but the one before it has not ended
    "#]],
    );
    check(
        10,
        &format!("cron last=5 policy=Replace\n {jobs}"),
        expect![[r#"
        delete job c-29028125
        create job c-29028130
        wake at 2025-03-11T10:15:00Z
        note Warning ReplaceConcurrent: a run is due; the one before it is ended
        note Normal SuccessfulDelete: job c-29028125 is removed
        note Normal SuccessfulCreate: job c-29028130 is made for 2025-03-11T10:10:00Z
    "#]],
    );
}

#[test]
fn only_the_latest_of_several_missed_runs_is_started() {
    check(
        62,
        "cron",
        expect![[r#"
        create job c-29028180
        wake at 2025-03-11T11:05:00Z
        note Normal SuccessfulCreate: job c-29028180 is made for 2025-03-11T11:00:00Z
    "#]],
    );
    check(
        600,
        "cron",
        expect![[r#"
        create job c-29028720
        wake at 2025-03-11T20:05:00Z
        note Warning TooManyMissedTimes: about 120 runs were missed; set spec.startingDeadlineSeconds, or check the clock
        note Normal SuccessfulCreate: job c-29028720 is made for 2025-03-11T20:00:00Z
    "#]],
    );
}

#[test]
fn what_was_missed_before_the_deadline_began_is_forgiven() {
    check(
        600,
        "cron deadline=180",
        expect![[r#"
        create job c-29028720
        wake at 2025-03-11T20:05:00Z
        note Normal SuccessfulCreate: job c-29028720 is made for 2025-03-11T20:00:00Z
    "#]],
    );
}

#[test]
fn volcano_43_a_run_that_missed_its_deadline_is_left_out_and_said_so() {
    check(
        7,
        "cron deadline=180",
        expect![[r#"
        create job c-29028125
        wake at 2025-03-11T10:10:00Z
        note Normal SuccessfulCreate: job c-29028125 is made for 2025-03-11T10:05:00Z
    "#]],
    );
    check(
        7,
        "cron deadline=60",
        expect![[r#"
        wake at 2025-03-11T10:10:00Z
        note Warning MissSchedule: the run of 2025-03-11T10:05:00Z was not started by 2025-03-11T10:06:00Z, its deadline
    "#]],
    );
}

#[test]
fn a_suspended_cronjob_starts_nothing_and_still_counts() {
    check(
        7,
        "cron suspend\n active c-29028125\n job c-29028125 Completed due=5",
        expect![[r#"
        patch cronjob status c {"status":{"active":null,"lastScheduleTime":"2025-03-11T10:05:00Z","lastSuccessfulTime":"2025-03-11T10:04:00Z"}}
        note Normal SawCompletedJob: job c-29028125 has finished
    "#]],
    );
}

#[test]
fn every_hour_is_counted_from_the_last_run() {
    check(
        5,
        "cron schedule=@every_1h",
        expect![[r#"
        wake at 2025-03-11T11:00:00Z
    "#]],
    );
    check(
        90,
        "cron schedule=@every_1h",
        expect![[r#"
        create job c-29028180
        wake at 2025-03-11T12:00:00Z
        note Normal SuccessfulCreate: job c-29028180 is made for 2025-03-11T11:00:00Z
    "#]],
    );
}

#[test]
fn the_oldest_finished_jobs_go() {
    let jobs =
        "job c-1 Completed due=1\n job c-2 Completed due=2\n job c-3 Failed due=3\n job c-4 Terminated due=4";
    check(
        4,
        &format!("cron last=4 keep=1,1\n {jobs}"),
        expect![[r#"
        patch cronjob status c {"status":{"lastSuccessfulTime":"2025-03-11T10:04:00Z"}}
        delete job c-1
        delete job c-3
        wake at 2025-03-11T10:05:00Z
        note Normal SuccessfulDelete: job c-1 is removed; enough newer ones are kept
        note Normal SuccessfulDelete: job c-3 is removed; enough newer ones are kept
    "#]],
    );
    check(
        4,
        &format!("cron last=4 keep=3,3\n {jobs}"),
        expect![[r#"
        patch cronjob status c {"status":{"lastSuccessfulTime":"2025-03-11T10:04:00Z"}}
        wake at 2025-03-11T10:05:00Z
    "#]],
    );
    check(
        4,
        &format!("cron last=4\n {jobs}"),
        expect![[r#"
        patch cronjob status c {"status":{"lastSuccessfulTime":"2025-03-11T10:04:00Z"}}
        wake at 2025-03-11T10:05:00Z
    "#]],
    );
}

#[test]
fn the_run_that_is_due_does_not_depend_on_what_is_cleaned_up() {
    let plan = plan_at(5, "cron last=0 keep=0,0\n job c-1 Completed due=0");
    let created: Vec<String> = plan.steps.iter().map(Step::to_string).collect();
    let cleaned: Vec<String> = plan.aside.iter().map(Step::to_string).collect();
    assert_eq!(
        (created, cleaned),
        (vec!["create job c-29028125".to_owned()], vec!["delete job c-1".to_owned()])
    );
}

#[test]
fn volcano_35_and_37_replace_ends_all_that_runs() {
    let jobs = "job c-1 Running due=1\n job c-2 Running due=2\n job c-3 Pending due=3";
    let plan = plan_at(10, &format!("cron last=5 policy=Replace\n {jobs}"));
    assert_eq!(plan.steps.iter().filter(|step| matches!(step, Step::Delete { .. })).count(), 3);
    assert!(matches!(plan.steps.last(), Some(Step::Create { .. })));
}

#[test]
fn volcano_38_a_suspended_job_does_not_block_the_next_and_terminated_ones_are_cleaned_up() {
    check(
        10,
        "cron last=5 policy=Forbid\n active c-1\n job c-1 Aborted due=5",
        expect![[r#"
        create job c-29028130
        wake at 2025-03-11T10:15:00Z
        note Normal SuccessfulCreate: job c-29028130 is made for 2025-03-11T10:10:00Z
    "#]],
    );
    check(
        4,
        "cron last=4 keep=0,0\n job c-1 Terminated due=4",
        expect![[r#"
        delete job c-1
        wake at 2025-03-11T10:05:00Z
        note Normal SuccessfulDelete: job c-1 is removed; enough newer ones are kept
    "#]],
    );
}

#[test]
fn volcano_39_and_41_what_can_not_be_read_is_said_once_and_waits_for_a_change() {
    check(
        7,
        "cron schedule=TZ=UTC",
        expect![[r#"
        note Warning UnParseableCronJobSchedule: spec.schedule: no schedule after the time zone
    "#]],
    );
    check(
        7,
        "cron zone=Mars/Olympus",
        expect![[r#"
        note Warning InvalidTimeZone: spec.timeZone: there is no time zone "Mars/Olympus"
    "#]],
    );
    check(
        7,
        "cron schedule=0_0_31_2_*",
        expect![[r#"
        note Warning InvalidSchedule: "0 0 31 2 *" is never due
    "#]],
    );
}

#[test]
fn volcano_40_runs_within_one_minute_have_names_of_their_own() {
    let plan = plan_at(1, "cron schedule=@every_20s");
    let Some(Step::Create { object, .. }) = plan.steps.first() else { panic!("no job") };
    assert_eq!(object["metadata"]["name"], "c-29028121-0");
}

#[test]
fn volcano_50_a_job_of_somebody_else_is_named_and_the_run_left_out() {
    check(
        5,
        "cron\n foreign c-29028125 Running",
        expect![[r#"
        wake at 2025-03-11T10:10:00Z
        note Warning ForeignJob: job c-29028125 exists and does not belong to this CronJob; delete it, or the run is left out
    "#]],
    );
}

#[test]
fn volcano_51_an_own_job_that_is_not_listed_is_active_all_the_same() {
    check(
        6,
        "cron last=5\n job c-29028125 Running due=5",
        expect![[r#"
        patch cronjob status c {"status":{"active":[{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","name":"c-29028125","namespace":"ns","resourceVersion":"9","uid":"uid-c-29028125"}]}}
        wake at 2025-03-11T10:10:00Z
    "#]],
    );
}

#[test]
fn a_zone_in_the_schedule_goes_first_and_is_advised_against() {
    check(
        5,
        "cron schedule=TZ=UTC_*/5_*_*_*_* zone=Asia/Tokyo",
        expect![[r#"
        create job c-29028125
        wake at 2025-03-11T10:10:00Z
        note Warning UnsupportedSchedule: a time zone within spec.schedule goes before spec.timeZone; better use spec.timeZone alone
        note Normal SuccessfulCreate: job c-29028125 is made for 2025-03-11T10:05:00Z
    "#]],
    );
}

#[test]
fn a_cronjob_that_is_going_makes_nothing() {
    check(5, "cron going", expect![[""]]);
}
