//! Processes that are stopped, replaced, or have a wrong clock: the faults strike, and nothing breaks.

use krafla_api::volcano::JobPhase;
use krafla_plan::Plan;
use krafla_sim::{Case, Program, play};

use crate::mutants::tampered;

/// What happens in a case in which nothing may break.
fn timeline(case: &str) -> String {
    let case: Case = case.parse().unwrap();
    let outcome = play(&case, &Program::as_shipped(), true);
    assert_eq!(outcome.findings, [], "{case}");
    outcome.timeline.join("\n")
}

#[test]
fn who_is_replaced_finishes_the_plan_that_it_was_about_and_ends() {
    let told = timeline("straight:2:deposed");
    assert_eq!(told.matches("controllers  starts").count(), 2, "{told}");
    assert_eq!(told.matches("finds itself replaced, and ends").count(), 1, "{told}");
}

#[test]
fn two_leaders_both_decide_until_one_learns_that_it_is_replaced() {
    let told = timeline("straight:2:two-leaders");
    assert_eq!(told.matches("controllers  starts").count(), 2, "{told}");
    let ended =
        told.lines().find(|line| line.contains("finds itself replaced, and ends")).unwrap_or_default();
    assert!(ended.trim_start().starts_with("3"), "half a minute later: {ended}");
}

/// A pod that a replaced process makes for a job that was aborted meanwhile.
const TOO_LATE: &str = "stopped:13:deposed";

#[test]
fn what_a_replaced_process_makes_too_late_goes_again() {
    let told = timeline(TOO_LATE);
    let (_, after) = told.split_once("create pod aborted-main-1  [deposed]").unwrap();
    assert!(after.contains("delete pod aborted-main-1"), "{told}");
}

#[test]
fn what_was_made_too_late_and_is_left_is_found() {
    let controllers = || {
        tampered(|snapshot, plan| {
            let job = snapshot.root().and_then(|root| root.as_vcjob());
            let is_aborted = job.is_some_and(|job| job.status.state.phase == JobPhase::Aborted);
            if is_aborted { Plan::nothing() } else { plan }
        })
    };
    let case: Case = TOO_LATE.parse().unwrap();
    let findings = play(&case, &Program::with_controllers(controllers), false).findings;
    let message = "default/aborted-main-1: created while the job is Aborted";
    assert!(findings.iter().any(|it| it.rule == "P7" && it.message == message), "{findings:?}");
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

#[test]
fn a_clock_that_is_wrong_for_a_while_loses_no_timer() {
    for scenario in ["patient", "expired", "batch-expired", "batch-deadline"] {
        for write in 1..10 {
            timeline(&format!("{scenario}:{write}:clock-glitch"));
        }
    }
}

#[test]
fn a_process_that_is_slow_while_it_has_work_does_not_rest() {
    timeline("cron-forbid+yields-unseen~5322097522200575883:56:clock-ahead:75:busy");
    timeline("forgiven+yields-unseen~16337716150108809581:23:clock-behind:46:clock-glitch");
}
