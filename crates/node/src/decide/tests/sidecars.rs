//! Containers that start before all others and end after them.

use expect_test::expect;

use super::fixture::check;

#[test]
fn a_sidecar_starts_first_and_ends_last() {
    check(
        "policy Never, sidecar log, container main, now 5, log/0 1..",
        expect![[r#"
            start main #0
            Pending
            log: running, ready
            main: waiting PodInitializing
        "#]],
    );
    check(
        "policy Never, sidecar log, container main, now 5, log/0 1.., main/0 2..4 exit 0",
        expect![[r#"
            terminate log #0
            Running
            log: running, ready
            main: Completed 0
        "#]],
    );
    check(
        "policy Never, sidecar log, container main, now 5, log/0 1..5 exit 143 stopping 4, main/0 2..4 exit 0",
        expect![[r#"
            Succeeded
            log: Error 143
            main: Completed 0
        "#]],
    );
}

#[test]
fn nothing_starts_before_a_sidecar_has_had_its_start() {
    let pod = "policy Never, sidecar log, probes log, container main, now 5";
    check(
        &format!("{pod}, log/0 1.."),
        expect![[r#"
            Pending
            log: running
            main: waiting PodInitializing
        "#]],
    );
    // It ended once before its probe succeeded.
    check(
        &format!("{pod}, log/0 1..4 exit 1"),
        expect![[r#"
            start log #1 backoff 10
            Pending
            log: Error 1
            main: waiting PodInitializing
        "#]],
    );
    check(
        &format!("{pod}, log/0 1..4 exit 1, log/1 4.., health log started"),
        expect![[r#"
            start main #0
            Pending
            log: running, was Error 1, restarts 1
            main: waiting PodInitializing
        "#]],
    );
}

#[test]
fn a_sidecar_that_starts_anew_does_not_take_back_what_began_after_it() {
    let pod = "policy Never, sidecar log, probes log, init second, container main, now 5";
    check(
        &format!("{pod}, log/0 1..4 exit 1, log/1 4.., second/0 2..3 exit 0, main/0 3.."),
        expect![[r#"
            Running
            log: running, was Error 1, restarts 1
            second: Completed 0, ready
            main: running, ready
        "#]],
    );
    check(
        &format!("{pod}, log/0 1..4 exit 1, log/1 4.., second/0 2..3 exit 0"),
        expect![[r#"
            start main #0
            Pending
            log: running, was Error 1, restarts 1
            second: Completed 0, ready
            main: waiting PodInitializing
        "#]],
    );
}

#[test]
fn a_sidecar_that_ends_early_is_started_again_whatever_the_policy() {
    check(
        "policy Never, sidecar log, container main, now 5, log/0 1..4 exit 0, main/0 2..",
        expect![[r#"
            start log #1 backoff 10
            Running
            log: Completed 0
            main: running, ready
        "#]],
    );
}
