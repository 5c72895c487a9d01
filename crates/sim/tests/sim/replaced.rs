//! Processes that are stopped, replaced, or have a wrong clock: the faults strike, and nothing breaks.

use krafla_sim::{Case, Program, play};

/// What happens in a case in which nothing may break.
fn timeline(case: &str) -> String {
    let case: Case = case.parse().unwrap();
    let outcome = play(&case, &Program::as_shipped(), true);
    assert_eq!(outcome.findings, [], "{case}");
    outcome.timeline.join("\n")
}

#[test]
fn who_is_replaced_sends_what_it_was_about_to_send_and_ends() {
    let told = timeline("straight:2:deposed");
    assert_eq!(told.matches("controllers  starts").count(), 2, "{told}");
    assert_eq!(told.matches("finds itself replaced, and ends").count(), 1, "{told}");
}

#[test]
fn who_is_stopped_goes_on_a_minute_later() {
    let told = timeline("straight:2:paused");
    assert!(!told.contains("replaced"), "{told}");
    let struck = told.lines().find(|line| line.contains("[paused]")).unwrap_or_default();
    assert!(struck.contains("60."), "{struck}");
}

#[test]
fn a_wrong_clock_neither_loses_nor_doubles_a_delayed_action() {
    for fault in ["clock-ahead", "clock-behind"] {
        for write in [1, 3, 6, 9] {
            timeline(&format!("patient:{write}:{fault}"));
            timeline(&format!("expired:{write}:{fault}"));
        }
    }
}
