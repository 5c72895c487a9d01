//! What probes say, and what follows from it.

use expect_test::expect;

use super::fixture::check;

#[test]
fn a_container_with_probes_is_ready_when_they_say_so() {
    check(
        "container main, probes main, now 5, main/0 1..",
        expect![[r#"
        Running
        main: running
    "#]],
    );
    check(
        "container main, probes main, now 5, main/0 1.., health main started",
        expect![[r#"
        Running
        main: running
    "#]],
    );
    check(
        "container main, probes main, now 5, main/0 1.., health main started ready",
        expect![[r#"
        Running
        main: running, ready
    "#]],
    );
}

#[test]
fn a_container_that_is_not_well_is_stopped_with_the_grace_of_its_probe() {
    check(
        "container main, probes main, now 5, main/0 1.., health main started ready failed",
        expect![[r#"
            terminate main #0
            Running
            main: running, ready
            Warning Unhealthy: Liveness probe failed: no
            Normal Killing: Container main failed liveness probe, will be restarted
        "#]],
    );
    check(
        "container main, probes main, now 6, main/0 1.. stopping 5, health main started failed",
        expect![[r#"
            Running
            main: running
            Warning Unhealthy: Liveness probe failed: no
            Normal Killing: Container main failed liveness probe, will be restarted
            wake at 10
        "#]],
    );
    check(
        "container main, probes main, now 10, main/0 1.. stopping 5, health main started failed",
        expect![[r#"
            kill main #0
            Running
            main: running
            Warning Unhealthy: Liveness probe failed: no
            Normal Killing: Container main failed liveness probe, will be restarted
        "#]],
    );
}

#[test]
fn what_is_found_wrong_with_a_container_is_told_before_it_is_stopped_for_it() {
    check(
        "container main, probes main, now 5, main/0 1.., health main started ready failing",
        expect![[r#"
            Running
            main: running, ready
            Warning Unhealthy: Liveness probe failed: no
        "#]],
    );
    check(
        "policy Never, container main, probes main, now 5, main/0 1.., health main started ready failed",
        expect![[r#"
            terminate main #0
            Running
            main: running, ready
            Warning Unhealthy: Liveness probe failed: no
            Normal Killing: Container main failed liveness probe
        "#]],
    );
    check(
        "container main, hook main, deleting 40, now 10, main/0 1.., hook main begun 9 failed",
        expect![[r#"
            terminate main #0
            Running
            main: running, ready
            Warning FailedPreStopHook: PreStopHook failed: exit code 1
            Normal Killing: Stopping container main
        "#]],
    );
}
