//! What starts, and in which order.

use expect_test::expect;

use super::fixture::check;

#[test]
fn containers_of_a_new_pod_start_at_once_and_together() {
    check(
        "container main, container helper",
        expect![[r#"
            start main #0
            start helper #0
            Pending
            main: waiting ContainerCreating
            helper: waiting ContainerCreating
        "#]],
    );
}

#[test]
fn a_container_that_was_added_is_started_at_once_and_only_once() {
    check(
        "init first, container main, ephemeral debug, now 5, first/0 1..",
        expect![[r#"
        start debug #0
        Pending
        first: running, ready
        main: waiting PodInitializing
        debug: waiting PodInitializing
    "#]],
    );
    check(
        "container main, ephemeral debug, now 5, main/0 1.., debug/0 2..3 exit 1",
        expect![[r#"
        Running
        main: running, ready
        debug: Error 1
    "#]],
    );
}

#[test]
fn a_container_that_was_added_does_not_hold_up_the_end() {
    check(
        "policy Never, container main, ephemeral debug, now 5, main/0 1..4 exit 0, debug/0 2..",
        expect![[r#"
            kill debug #0
            Running
            main: Completed 0
            debug: running, ready
        "#]],
    );
    check(
        "container main, ephemeral debug, deleting 10, now 5, main/0 1.., debug/0 2..",
        expect![[r#"
        terminate main #0
        Running
        main: running, ready
        debug: running, ready
        Normal Killing: Stopping container main
        Normal Killing: Stopping container debug
    "#]],
    );
    check(
        "policy Never, container main, ephemeral debug, now 5, main/0 1..4 exit 0, debug/0 2..5 exit 137",
        expect![[r#"
            Succeeded
            main: Completed 0
            debug: Error 137
        "#]],
    );
}

#[test]
fn init_containers_run_one_after_the_other_before_the_containers() {
    check(
        "init first, init second, container main, now 5",
        expect![[r#"
            start first #0
            Pending
            first: waiting PodInitializing
            second: waiting PodInitializing
            main: waiting PodInitializing
        "#]],
    );
    check(
        "init first, init second, container main, now 5, first/0 1..",
        expect![[r#"
            Pending
            first: running, ready
            second: waiting PodInitializing
            main: waiting PodInitializing
        "#]],
    );
    check(
        "init first, init second, container main, now 5, first/0 1..2 exit 0",
        expect![[r#"
            start second #0
            Pending
            first: Completed 0, ready
            second: waiting PodInitializing
            main: waiting PodInitializing
        "#]],
    );
    check(
        "init first, init second, container main, now 5, first/0 1..2 exit 0, second/0 2..3 exit 0",
        expect![[r#"
            start main #0
            Pending
            first: Completed 0, ready
            second: Completed 0, ready
            main: waiting PodInitializing
        "#]],
    );
}

#[test]
fn a_failed_init_container_fails_a_pod_that_may_not_restart() {
    check(
        "policy Never, init first, container main, now 5, first/0 1..2 exit 3",
        expect![[r#"
            Failed
            first: Error 3
            main: waiting PodInitializing
        "#]],
    );
}

#[test]
fn a_failed_init_container_is_tried_again_otherwise() {
    check(
        "policy OnFailure, init first, container main, now 5, first/0 1..2 exit 3",
        expect![[r#"
            start first #1 backoff 10
            Pending
            first: Error 3
            main: waiting PodInitializing
        "#]],
    );
}

#[test]
fn a_pod_runs_when_its_containers_do() {
    check(
        "container main, now 5, main/0 1..",
        expect![[r#"
            Running
            main: running, ready
        "#]],
    );
}

#[test]
fn what_a_container_lacks_is_said_and_tried_again() {
    check(
        "container main, now 5, trouble main until 7",
        expect![[r#"
            Pending
            main: waiting CreateContainerConfigError (configmap "c" not found)
            Warning Failed: configmap "c" not found
            wake at 7
        "#]],
    );
    check(
        "container main, now 7, trouble main until 7",
        expect![[r#"
            start main #0
            Pending
            main: waiting CreateContainerConfigError (configmap "c" not found)
            Warning Failed: configmap "c" not found
        "#]],
    );
}
