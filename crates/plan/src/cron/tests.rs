//! Due times, as recorded from the library that Kubernetes and Volcano use.

use super::*;

fn time(text: &str) -> Time {
    Time(text.parse().unwrap())
}

/// The due times after a moment, one after the other.
fn times(schedule: &str, zone: Option<&str>, after: &str, n: usize) -> Vec<String> {
    let timetable = Timetable::new(schedule, zone).unwrap();
    let mut at = time(after);
    let next = std::iter::from_fn(|| {
        at = timetable.next(at)?;
        Some(at.to_string())
    });
    next.take(n).collect()
}

#[test]
fn the_reference_values() {
    for (schedule, one, two) in [
        ("*/5 * * * *", "2025-03-11T10:05:00Z", "2025-03-11T10:10:00Z"),
        ("5/15 * * * *", "2025-03-11T10:05:00Z", "2025-03-11T10:20:00Z"),
        ("30 6-16/4 * * 1-5", "2025-03-11T10:30:00Z", "2025-03-11T14:30:00Z"),
        ("0 0 13 * fri", "2025-03-13T00:00:00Z", "2025-03-14T00:00:00Z"),
        ("0 0 */1 * 1", "2025-03-17T00:00:00Z", "2025-03-24T00:00:00Z"),
        ("0 0 */2 * 1", "2025-03-13T00:00:00Z", "2025-03-15T00:00:00Z"),
        ("0 0 1 JAN *", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("CRON_TZ=Asia/Tokyo 0 9 * * *", "2025-03-12T00:00:00Z", "2025-03-13T00:00:00Z"),
        ("@weekly", "2025-03-16T00:00:00Z", "2025-03-23T00:00:00Z"),
        ("@every 30s", "2025-03-11T10:00:30Z", "2025-03-11T10:01:00Z"),
        ("@every 500ms", "2025-03-11T10:00:01Z", "2025-03-11T10:00:02Z"),
        ("@every 90m", "2025-03-11T11:30:00Z", "2025-03-11T13:00:00Z"),
    ] {
        assert_eq!(times(schedule, None, "2025-03-11T10:00:00Z", 2), [one, two], "{schedule}");
    }
    assert!(times("59 23 31 2 *", None, "2025-03-11T10:00:00Z", 1).is_empty());
}

#[test]
fn a_skipped_hour_has_no_runs_and_a_repeated_one_has_them_twice() {
    let new_york = Some("America/New_York");
    // Clocks go from 01:59:59 to 03:00:00 on 11 March 2012, and from 01:59:59 back to 01:00:00 on 4 November.
    assert_eq!(times("0 2 * * *", new_york, "2012-03-11T05:00:00Z", 1), ["2012-03-12T06:00:00Z"]);
    assert_eq!(
        times("0 1 * * *", new_york, "2012-11-04T04:00:00Z", 3),
        ["2012-11-04T05:00:00Z", "2012-11-04T06:00:00Z", "2012-11-05T06:00:00Z"]
    );
    assert_eq!(
        times("0 * * * *", new_york, "2012-03-11T06:30:00Z", 2),
        ["2012-03-11T07:00:00Z", "2012-03-11T08:00:00Z"]
    );
    // Where a day has no midnight, it starts an hour late, and a run at midnight is skipped.
    assert_eq!(
        times("0 0 * * *", Some("America/Sao_Paulo"), "2018-11-03T12:00:00Z", 1),
        ["2018-11-05T02:00:00Z"]
    );
}

#[test]
fn the_latest_of_many_missed_times_is_found_however_irregular_the_schedule() {
    let due = |schedule: &str, earliest: &str, now: &str| {
        let due = Timetable::new(schedule, None).unwrap().due(time(earliest), time(now));
        due.map(|due| (due.at.to_string(), due.n_missed))
    };
    let day = "2025-03-11T10:00:00Z";
    assert_eq!(due("*/5 * * * *", day, "2025-03-11T10:04:59Z"), None);
    assert_eq!(due("*/5 * * * *", day, "2025-03-11T10:05:00Z"), Some(("2025-03-11T10:05:00Z".into(), 1)));
    assert_eq!(due("*/5 * * * *", day, "2025-03-11T20:07:00Z"), Some(("2025-03-11T20:05:00Z".into(), 121)));
    // Twice on Mondays, five minutes apart: on Sunday the latest is still Monday's second.
    assert_eq!(
        due("0,5 9 * * 1", "2025-03-09T00:00:00Z", "2025-03-16T12:00:00Z").unwrap().0,
        "2025-03-10T09:05:00Z"
    );
    assert_eq!(due("@every 1h", day, "2025-03-11T12:30:00Z"), Some(("2025-03-11T12:00:00Z".into(), 2)));
    assert_eq!(due("0 0 31 2 *", day, "2035-03-11T12:30:00Z"), None);
}

#[test]
fn what_can_not_be_read_is_said() {
    assert!(matches!(Timetable::new("* * *", None), Err(Problem::Schedule(_))));
    assert!(matches!(Timetable::new("TZ=UTC", None), Err(Problem::Schedule(_))));
    for zone in ["Mars/Olympus", "asia/tokyo", "Local", ""] {
        assert_eq!(Timetable::new("@daily", Some(zone)).unwrap_err(), Problem::Zone(zone.to_owned()));
    }
}

#[test]
fn a_time_is_shown_with_its_distance_to_utc() {
    let shown = |zone| Timetable::new("@daily", zone).unwrap().on_the_wall(time("2025-03-11T10:00:00Z"));
    assert_eq!(shown(Some("Asia/Tokyo")), "2025-03-11T19:00:00+09:00");
    assert_eq!(shown(None), "2025-03-11T10:00:00Z");
}

/// The cases of `TestNextScheduleTime` and `TestMostRecentScheduleTime`: what is due at a moment, and how many runs were
/// missed.
#[test]
fn the_latest_time_that_has_come_is_due() {
    let hour = "0 * * * *";
    let ten = "2016-05-19T10:00:00Z";
    let rows = [
        ("before the first", hour, ten, None, "2016-05-19T10:59:59Z"),
        ("at the first", hour, ten, None, "2016-05-19T11:00:00Z"),
        ("just after the first", hour, ten, None, "2016-05-19T11:00:02Z"),
        ("just before the second", hour, ten, None, "2016-05-19T11:59:59Z"),
        ("two have come", hour, ten, None, "2016-05-19T12:00:02Z"),
        ("five have come", hour, ten, None, "2016-05-19T15:30:00Z"),
        ("five have come, a deadline of half an hour", hour, ten, Some(1800), "2016-05-19T15:20:00Z"),
        ("five have come, too late for all", hour, ten, Some(60), "2016-05-19T15:30:00Z"),
        ("two hundred have come", hour, ten, None, "2016-05-27T18:00:00Z"),
        (
            "working hours, over a weekend",
            "30 6-16/4 * * 1-5",
            "2016-05-20T14:30:00Z",
            None,
            "2016-05-23T09:00:00Z",
        ),
        (
            "mornings, over a weekend",
            "30 10,11,12 * * 1-5",
            "2016-05-20T12:30:00Z",
            None,
            "2016-05-23T11:45:00Z",
        ),
        ("once a week, three weeks ago", "0 12 * * 2", "2016-05-03T12:00:00Z", None, "2016-05-24T11:00:00Z"),
        ("every hour and a half", "@every 90m", ten, None, "2016-05-19T14:59:00Z"),
        ("never", "59 23 31 2 *", ten, None, "2016-06-19T10:00:00Z"),
    ];
    let mut found = String::new();
    for (name, schedule, earliest, deadline, now) in rows {
        let table = Timetable::new(schedule, None).unwrap();
        let (earliest, now) = (time(earliest), time(now));
        let due = table.due(earliest, now).map_or("nothing".to_owned(), |due| due.at.to_string());
        let n_missed = table.n_missed(earliest, deadline.map(Duration::from_secs), now);
        found += &format!("{name}: {due}, {n_missed} missed\n");
    }
    expect_test::expect![[r#"
        before the first: nothing, 0 missed
        at the first: 2016-05-19T11:00:00Z, 1 missed
        just after the first: 2016-05-19T11:00:00Z, 1 missed
        just before the second: 2016-05-19T11:00:00Z, 1 missed
        two have come: 2016-05-19T12:00:00Z, 2 missed
        five have come: 2016-05-19T15:00:00Z, 5 missed
        five have come, a deadline of half an hour: 2016-05-19T15:00:00Z, 1 missed
        five have come, too late for all: 2016-05-19T15:00:00Z, 0 missed
        two hundred have come: 2016-05-27T18:00:00Z, 200 missed
        working hours, over a weekend: 2016-05-23T06:30:00Z, 1 missed
        mornings, over a weekend: 2016-05-23T11:30:00Z, 2 missed
        once a week, three weeks ago: 2016-05-17T12:00:00Z, 2 missed
        every hour and a half: 2016-05-19T14:30:00Z, 3 missed
        never: nothing, 0 missed
    "#]]
    .assert_eq(&found);
}
