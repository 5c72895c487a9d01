//! What happens when a container has ended by itself.

use expect_test::expect;

use super::fixture::check;

#[test]
fn a_container_that_ends_is_not_started_again_when_it_must_not_be() {
    check(
        "policy Never, container main, now 5, main/0 1..4 exit 0",
        expect![[r#"
            Succeeded
            main: Completed 0
        "#]],
    );
    check(
        "policy Never, container main, now 5, main/0 1..4 exit 1",
        expect![[r#"
            Failed
            main: Error 1
        "#]],
    );
    check(
        "policy OnFailure, container main, now 5, main/0 1..4 exit 0",
        expect![[r#"
            Succeeded
            main: Completed 0
        "#]],
    );
}

#[test]
fn a_container_has_a_policy_of_its_own_and_exit_codes_that_go_before_it() {
    check(
        "policy Never, container main policy OnFailure, now 5, main/0 1..4 exit 1",
        expect![[r#"
        start main #1 backoff 10
        Running
        main: Error 1
    "#]],
    );
    check(
        "policy OnFailure, container main policy Never, now 5, main/0 1..4 exit 1",
        expect![[r#"
        Failed
        main: Error 1
    "#]],
    );
    check(
        "policy Never, container main policy Never restarts-on 42, now 5, main/0 1..4 exit 42",
        expect![[r#"
            start main #1 backoff 10
            Running
            main: Error 42
        "#]],
    );
    check(
        "policy Never, container main policy Never restarts-on 42, now 5, main/0 1..4 exit 1",
        expect![[r#"
            Failed
            main: Error 1
        "#]],
    );
}

#[test]
fn a_rule_that_would_restart_all_containers_is_not_heeded() {
    check(
        "policy Never, container main policy Never restarts-all-on 42, container b, now 5, main/0 1..4 exit 42, b/0 1..4 exit 0",
        expect![[r#"
            Failed
            main: Error 42
            b: Completed 0
        "#]],
    );
    check(
        "policy Never, container main policy OnFailure restarts-all-on 42, container b, now 5, main/0 1..4 exit 42, b/0 1..",
        expect![[r#"
            start main #1 backoff 10
            Running
            main: Error 42
            b: running, ready
        "#]],
    );
}

#[test]
fn a_pod_is_not_finished_before_its_last_container() {
    check(
        "policy Never, container a, container b, now 5, a/0 1..4 exit 1, b/0 1..",
        expect![[r#"
            Running
            a: Error 1
            b: running, ready
        "#]],
    );
}

#[test]
fn a_first_failure_is_forgiven_and_further_ones_wait_longer_and_longer() {
    check(
        "policy OnFailure, container main, now 5, main/0 1..4 exit 1",
        expect![[r#"
            start main #1 backoff 10
            Running
            main: Error 1
        "#]],
    );
    check(
        "policy OnFailure, container main, now 5, main/0 1..4 exit 1, main/1 4..5 exit 1 backoff 10",
        expect![[r#"
            Running
            main: waiting CrashLoopBackOff (back-off 10s restarting failed container=main pod=p_ns(u)), was Error 1, restarts 1
            Warning BackOff: Back-off restarting failed container main in pod p_ns(u)
            wake at 15
        "#]],
    );
    check(
        "policy OnFailure, container main, now 15, main/1 4..5 exit 1 backoff 10",
        expect![[r#"
            start main #2 backoff 20
            Running
            main: Error 1, restarts 1
        "#]],
    );
    check(
        "policy Always, container main, now 600, main/9 500..501 exit 0 backoff 300",
        expect![[r#"
            Running
            main: waiting CrashLoopBackOff (back-off 5m0s restarting failed container=main pod=p_ns(u)), was Completed 0, restarts 9
            Warning BackOff: Back-off restarting failed container main in pod p_ns(u)
            wake at 801
        "#]],
    );
}

#[test]
fn a_container_that_ran_for_long_starts_again_at_once() {
    check(
        "policy Always, container main, now 1300, main/9 500..1300 exit 1 backoff 300",
        expect![[r#"
            start main #10 backoff 10
            Running
            main: Error 1, restarts 9
        "#]],
    );
}

#[test]
fn a_command_that_does_not_exist_fails_the_pod() {
    check(
        "policy Never, container main, now 5, main/0 fails at 4",
        expect![[r#"
            Failed
            main: StartError 128 (no such command)
            Warning Failed: Error: no such command
        "#]],
    );
    check(
        "policy Always, container main, now 5, main/1 fails at 4 backoff 10",
        expect![[r#"
            Running
            main: waiting CrashLoopBackOff (back-off 10s restarting failed container=main pod=p_ns(u)), was StartError 128 (no such command), restarts 1
            Warning BackOff: Back-off restarting failed container main in pod p_ns(u)
            Warning Failed: Error: no such command
            wake at 14
        "#]],
    );
}

#[test]
fn a_container_that_wanted_too_much_memory_says_so() {
    check(
        "policy Never, container main, now 5, main/0 1..4 exit 137 oom",
        expect![[r#"
        Failed
        main: OOMKilled 137
    "#]],
    );
    check(
        "policy OnFailure, container main, now 5, main/1 4..5 exit 137 oom backoff 10",
        expect![[r#"
        Running
        main: waiting CrashLoopBackOff (back-off 10s restarting failed container=main pod=p_ns(u)), was OOMKilled 137, restarts 1
        Warning BackOff: Back-off restarting failed container main in pod p_ns(u)
        wake at 15
    "#]],
    );
}
