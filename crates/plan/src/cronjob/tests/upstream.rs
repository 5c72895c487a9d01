//! The cases by which Volcano tests one sync of a CronJob (`TestSyncCronJob`), as a table: when it is, what is there, and what
//! is done.

use std::fmt::Write;

use super::*;

/// What is done at one moment, in a line: what is made and removed, how many jobs are active then and which run is the last on
/// record, when the next look is, and what is said.
fn row(minutes: i64, text: &str) -> String {
    let plan = plan_at(minutes, text);
    let steps: Vec<String> = plan.steps.iter().chain(&plan.aside).map(ToString::to_string).collect();
    let status = plan.status.as_ref().map(|status| match status {
        Step::Patch { patch, .. } => {
            let status = &patch["status"];
            let n_active = status.get("active").map(|active| active.as_array().map_or(0, Vec::len));
            let shown = [
                n_active.map(|n| format!("active={n}")),
                status["lastScheduleTime"].as_str().map(|at| format!("last={}", clock(at))),
                status["lastSuccessfulTime"].as_str().map(|at| format!("succeeded={}", clock(at))),
            ];
            shown.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        step => panic!("{step}"),
    });
    let next = plan.wake_at.map(|at| format!("next look {}", clock(&at.to_string())));
    let said = plan.notes.iter().map(|note| note.reason.to_owned());
    let parts = steps.into_iter().chain(status).chain(next).chain(said);
    let line = parts.collect::<Vec<_>>().join("; ");
    if line.is_empty() { "nothing".to_owned() } else { line }
}

/// The day and time of a moment in March 2025.
fn clock(at: &str) -> &str {
    at.strip_prefix("2025-03-").unwrap_or(at).trim_end_matches(":00Z")
}

fn table(rows: &[(&str, i64, &str)]) -> String {
    let mut table = String::new();
    for (name, minutes, text) in rows {
        writeln!(table, "{name}: {}", row(*minutes, text)).unwrap();
    }
    table
}

#[test]
fn what_can_not_be_read_or_is_suspended_makes_nothing() {
    let rows = [
        ("bad schedule", 7, "cron schedule=something"),
        ("bad zone", 7, "cron zone=bad_zone"),
        ("suspended", 7, "cron suspend"),
        ("suspended, one runs", 10, "cron last=5 suspend\n active c-29028125\n job c-29028125 Running due=5"),
        ("never due", 7, "cron schedule=59_23_31_2_*"),
    ];
    expect![[r#"
        bad schedule: UnParseableCronJobSchedule
        bad zone: InvalidTimeZone
        suspended: nothing
        suspended, one runs: nothing
        never due: InvalidSchedule
    "#]]
    .assert_eq(&table(&rows));
}

#[test]
fn the_first_run_is_made_when_it_is_time_under_every_policy() {
    for policy in ["Allow", "Forbid", "Replace"] {
        let cron = format!("cron policy={policy}");
        assert_eq!(row(3, &cron), "next look 11T10:05", "{policy}");
        assert_eq!(row(5, &cron), "create job c-29028125; next look 11T10:10; SuccessfulCreate", "{policy}");
    }
    let rows = [
        ("late, no deadline", 7, "cron"),
        ("late, a deadline of 180 s", 7, "cron deadline=180"),
        ("late, a deadline of 60 s", 7, "cron deadline=60"),
        ("more than a hundred missed", 600, "cron"),
        ("Honolulu, ten in the morning in UTC", 0, "cron schedule=0_10_*_*_* zone=Pacific/Honolulu"),
        ("Honolulu, ten in the morning there", 600, "cron schedule=0_10_*_*_* zone=Pacific/Honolulu"),
        (
            "a zone in the schedule, another beside it",
            600,
            "cron schedule=TZ=UTC_0_20_*_*_* zone=Pacific/Honolulu",
        ),
        ("every hour, before the first", 5, "cron schedule=@every_1h"),
        ("every hour, at the first", 60, "cron schedule=@every_1h"),
        ("every hour, late beyond the deadline", 90, "cron schedule=@every_1h deadline=60"),
        ("every hour, late within the deadline", 90, "cron schedule=@every_1h deadline=7200"),
    ];
    expect![[r#"
        late, no deadline: create job c-29028125; next look 11T10:10; SuccessfulCreate
        late, a deadline of 180 s: create job c-29028125; next look 11T10:10; SuccessfulCreate
        late, a deadline of 60 s: next look 11T10:10; MissSchedule
        more than a hundred missed: create job c-29028720; next look 11T20:05; TooManyMissedTimes; SuccessfulCreate
        Honolulu, ten in the morning in UTC: next look 11T20:00
        Honolulu, ten in the morning there: create job c-29028720; next look 12T20:00; SuccessfulCreate
        a zone in the schedule, another beside it: create job c-29028720; next look 12T20:00; UnsupportedSchedule; SuccessfulCreate
        every hour, before the first: next look 11T11:00
        every hour, at the first: create job c-29028180; next look 11T12:00; SuccessfulCreate
        every hour, late beyond the deadline: next look 11T12:00; MissSchedule
        every hour, late within the deadline: create job c-29028180; next look 11T12:00; SuccessfulCreate
    "#]].assert_eq(&table(&rows));
}

#[test]
fn a_job_that_is_there_already_is_told_from_one_of_somebody_else() {
    let rows = [
        ("its own, finished", 5, "cron\n job c-29028125 Completed due=5"),
        ("its own, running and forgotten", 5, "cron\n job c-29028125 Running due=5"),
        ("somebody else's", 5, "cron\n foreign c-29028125 Running"),
        ("listed, but gone", 5, "cron\n active c-29028120"),
        ("to be replaced, but gone", 10, "cron last=5 policy=Replace\n active c-29028125"),
        ("another CronJob's under another name", 5, "cron\n foreign c-29028120 Running due=0"),
    ];
    expect![[r#"
        its own, finished: last=11T10:05 succeeded=11T10:04; next look 11T10:10
        its own, running and forgotten: active=1 last=11T10:05; next look 11T10:10
        somebody else's: next look 11T10:10; ForeignJob
        listed, but gone: create job c-29028125; active=0; next look 11T10:10; StaleReference; SuccessfulCreate
        to be replaced, but gone: create job c-29028130; active=0; next look 11T10:15; StaleReference; SuccessfulCreate
        another CronJob's under another name: create job c-29028125; next look 11T10:10; SuccessfulCreate
    "#]].assert_eq(&table(&rows));
}

/// The cases of `TestGetJobsByCronJob`: whose a job is, by every part of the reference to its owner.
#[test]
fn a_job_belongs_to_the_cronjob_that_its_owner_reference_names_in_full() {
    let owner = |api_version: &str, kind: &str, uid: &str, is_controller: bool| json!([{ "apiVersion": api_version, "kind": kind, "name": "c", "uid": uid, "controller": is_controller }]);
    let volcano = "batch.volcano.sh/v1alpha1";
    let cases = [
        ("its own", "ns", owner(volcano, "CronJob", "c1", true)),
        ("of another kind", "ns", owner(volcano, "JobFlow", "f1", true)),
        ("of Kubernetes' CronJob of this name", "ns", owner("batch/v1", "CronJob", "k1", true)),
        ("of an earlier CronJob of this name", "ns", owner(volcano, "CronJob", "c0", true)),
        ("of its namesake in another namespace", "other", owner(volcano, "CronJob", "c2", true)),
        ("only owned, not controlled", "ns", owner(volcano, "CronJob", "c1", false)),
        ("nobody's", "ns", json!([])),
    ];
    let mut found = String::new();
    for (name, namespace, owners) in cases {
        let metadata = json!({ "namespace": namespace, "name": "j", "uid": "j1", "ownerReferences": owners });
        let job = decode(
            Kind::VcJob,
            &json!({ "metadata": metadata, "status": { "state": { "phase": "Running" } } }),
        );
        let (mut objects, _) = parse("cron");
        let concerned = CronJobController.keys(&job, &objects);
        let concerned: Vec<String> = concerned.iter().map(ToString::to_string).collect();
        objects.insert(job);
        let key = Key::new("ns", "c");
        let plan = plan(&Snapshot::new(Kind::VcCronJob, &key, at(3), &objects));
        let is_active = plan.status.is_some_and(|status| status.to_string().contains("\"name\":\"j\""));
        writeln!(found, "{name}: {}{}", concerned.join(" "), if is_active { ", active" } else { "" })
            .unwrap();
    }
    expect![[r#"
        its own: ns/c, active
        of another kind: 
        of Kubernetes' CronJob of this name: 
        of an earlier CronJob of this name: ns/c
        of its namesake in another namespace: other/c
        only owned, not controlled: 
        nobody's: 
    "#]]
    .assert_eq(&found);
}

#[test]
fn the_next_run_is_made_beside_or_instead_of_the_one_before_or_not_at_all() {
    let runs = "active c-29028125\n job c-29028125 Running due=5";
    let ended = "active c-29028125\n job c-29028125 Completed due=5";
    for (policy, then) in [
        ("Allow", "create job c-29028130; next look 11T10:15; SuccessfulCreate"),
        ("Forbid", "next look 11T10:15; ForbidConcurrent"),
        (
            "Replace",
            "delete job c-29028125; create job c-29028130; next look 11T10:15; \
             ReplaceConcurrent; SuccessfulDelete; SuccessfulCreate",
        ),
    ] {
        assert_eq!(row(10, &format!("cron last=5 policy={policy}\n {runs}")), then);
        assert_eq!(
            row(10, &format!("cron last=5 policy={policy}\n {ended}")),
            "create job c-29028130; active=0 succeeded=11T10:04; next look 11T10:15; SawCompletedJob; SuccessfulCreate",
            "{policy}"
        );
        assert_eq!(
            row(8, &format!("cron last=5 policy={policy}\n {ended}")),
            "active=0 succeeded=11T10:04; next look 11T10:10; SawCompletedJob",
            "{policy}"
        );
    }
}

#[test]
fn the_history_is_as_long_as_it_may_be() {
    let completed = |n: i64| -> String {
        (0..n).map(|n| format!("\n job c-{} Completed due={}", 29_028_125 + n * 5, 5 + n * 5)).collect()
    };
    let rows = [
        ("none may be kept", 7, format!("cron last=5 keep=0,1{}", completed(1))),
        ("five may be kept, there are four", 22, format!("cron last=20 keep=5,1{}", completed(4))),
        ("three may be kept, there are four", 22, format!("cron last=20 keep=3,1{}", completed(4))),
        ("nobody said how many", 22, format!("cron last=20{}", completed(4))),
    ];
    let rows: Vec<(&str, i64, &str)> =
        rows.iter().map(|(name, at, text)| (*name, *at, text.as_str())).collect();
    expect![[r#"
        none may be kept: delete job c-29028125; succeeded=11T10:04; next look 11T10:10; SuccessfulDelete
        five may be kept, there are four: succeeded=11T10:04; next look 11T10:25
        three may be kept, there are four: delete job c-29028125; succeeded=11T10:04; next look 11T10:25; SuccessfulDelete
        nobody said how many: succeeded=11T10:04; next look 11T10:25
    "#]].assert_eq(&table(&rows));
}

#[test]
fn a_changed_schedule_is_looked_at_when_the_new_one_is_due() {
    let rows = [
        ("every hour", 5, "cron schedule=0_*_*_*_*"),
        ("every minute instead, not yet due", 0, "cron schedule=*/1_*_*_*_*"),
        ("every hour by the period", 5, "cron schedule=@every_1h last=0"),
        ("every ten minutes by the period instead", 5, "cron schedule=@every_10m last=0"),
        ("another zone", 5, "cron schedule=0_20_*_*_* zone=Asia/Tokyo"),
    ];
    expect![[r#"
        every hour: next look 11T11:00
        every minute instead, not yet due: next look 11T10:01
        every hour by the period: next look 11T11:00
        every ten minutes by the period instead: next look 11T10:10
        another zone: next look 11T11:00
    "#]]
    .assert_eq(&table(&rows));
}

/// The moments of `TestNextScheduleTimeDuration`: how long it is to the next look, whatever was missed.
#[test]
fn the_next_look_is_at_the_next_due_time_whatever_was_missed() {
    const HOUR: i64 = 60;
    let rows = [
        (
            "three hours and 59 minutes on a working day",
            24 * HOUR + 31,
            "cron schedule=30_6-16/4_*_*_1-5 last=30",
        ),
        ("18 hours to the next morning", 30 * HOUR + 30, "cron schedule=30_10,11,12_*_*_1-5 last=30"),
        (
            "48 hours and a half, two weeks missed",
            (19 * 24 + 1) * HOUR + 30,
            "cron schedule=0_12_*_*_2 last=120",
        ),
        ("20 hours to the first run", 6 * HOUR, "cron schedule=0_12_*_*_3"),
    ];
    expect![[r#"
        three hours and 59 minutes on a working day: create job c-29029590; next look 12T14:30; SuccessfulCreate
        18 hours to the next morning: create job c-29029710; next look 13T10:30; SuccessfulCreate
        48 hours and a half, two weeks missed: create job c-29048400; next look 2025-04-01T12:00; SuccessfulCreate
        20 hours to the first run: next look 12T12:00
    "#]].assert_eq(&table(&rows));
}
