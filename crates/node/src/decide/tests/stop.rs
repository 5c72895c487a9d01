//! How a pod is stopped, and what is left of it.

use expect_test::expect;

use super::fixture::check;

#[test]
fn a_deleted_pod_is_terminated_then_killed_then_confirmed() {
    check(
        "container main, grace 30, deleting 100, now 70, main/0 1..",
        expect![[r#"
            terminate main #0
            Running
            main: running, ready
            Normal Killing: Stopping container main
        "#]],
    );
    check(
        "container main, grace 30, deleting 100, now 71, main/0 1.. stopping 70",
        expect![[r#"
            Running
            main: running, ready
            Normal Killing: Stopping container main
            wake at 100
        "#]],
    );
    check(
        "container main, grace 30, deleting 100, now 100, main/0 1.. stopping 70",
        expect![[r#"
            kill main #0
            Running
            main: running, ready
            Normal Killing: Stopping container main
        "#]],
    );
    check(
        "container main, grace 30, deleting 100, now 101, main/0 1..100 exit 137 stopping 70",
        expect![[r#"
            Failed
            main: Error 137
            then confirm the deletion
        "#]],
    );
    check(
        "container main, grace 30, deleting 100, now 90, main/0 1..80 exit 0 stopping 70",
        expect![[r#"
            Succeeded
            main: Completed 0
            then confirm the deletion
        "#]],
    );
}

#[test]
fn a_pod_that_is_deleted_before_it_ran_fails() {
    check(
        "container main, deleting 100, now 70",
        expect![[r#"
            Failed
            main: waiting ContainerCreating
            then confirm the deletion
        "#]],
    );
}

#[test]
fn what_is_left_of_a_pod_that_is_no_more_is_stopped_and_removed() {
    check(
        "container main, gone, now 70, main/0 1..",
        expect![[r#"
            terminate main #0
            Running
            main: running, ready
            Normal Killing: Stopping container main
        "#]],
    );
    check(
        "container main, gone, now 71, main/0 1..70 exit 143 stopping 70",
        expect![[r#"
            Failed
            main: Error 143
            then clean up
        "#]],
    );
}

#[test]
fn a_finished_pod_stays_as_it_is() {
    check(
        "policy Always, phase Failed, container main, now 9, main/0 1..4 exit 0",
        expect![[r#"
            Failed
            main: Completed 0
        "#]],
    );
}

#[test]
fn a_pod_past_its_deadline_is_stopped_and_fails() {
    check(
        "container main, deadline 60, started 10, now 20, main/0 11..",
        expect![[r#"
            Running
            main: running, ready
            wake at 70
        "#]],
    );
    check(
        "container main, deadline 60, started 10, now 70, main/0 11..",
        expect![[r#"
            terminate main #0
            Running
            main: running, ready
            Normal Killing: Stopping container main
        "#]],
    );
    check(
        "container main, deadline 60, started 10, now 71, main/0 11..71 exit 143 stopping 70",
        expect![[r#"
            Failed DeadlineExceeded: Pod was active on the node longer than the specified deadline
            main: Error 143
        "#]],
    );
}

#[test]
fn the_hook_before_the_end_is_a_part_of_the_grace_period() {
    let pod = "container main, hook main, grace 30, deleting 130, main/0 1..";
    check(
        &format!("{pod}, now 100"),
        expect![[r#"
        pre-stop main #0
        Running
        main: running, ready
        Normal Killing: Stopping container main
    "#]],
    );
    check(
        &format!("{pod}, now 110, hook main begun 100"),
        expect![[r#"
        Running
        main: running, ready
        Normal Killing: Stopping container main
        wake at 130
    "#]],
    );
    check(
        &format!("{pod}, now 110, hook main begun 100 done"),
        expect![[r#"
        terminate main #0
        Running
        main: running, ready
        Normal Killing: Stopping container main
    "#]],
    );
    check(
        &format!("{pod} stopping 110, now 111, hook main begun 100 done"),
        expect![[r#"
        Running
        main: running, ready
        Normal Killing: Stopping container main
        wake at 130
    "#]],
    );
    check(
        &format!("{pod}, now 130, hook main begun 100"),
        expect![[r#"
        terminate main #0
        Running
        main: running, ready
        Normal Killing: Stopping container main
    "#]],
    );
    check(
        &format!("{pod} stopping 130, now 130, hook main begun 100"),
        expect![[r#"
        Running
        main: running, ready
        Normal Killing: Stopping container main
        wake at 132
    "#]],
    );
    check(
        &format!("{pod} stopping 130, now 132, hook main begun 100"),
        expect![[r#"
        kill main #0
        Running
        main: running, ready
        Normal Killing: Stopping container main
    "#]],
    );
}

#[test]
fn a_pod_that_the_server_has_no_more_is_killed_after_a_moment_whatever_its_grace() {
    check(
        "container main, grace 30, gone, now 5, main/0 1..",
        expect![[r#"
            terminate main #0
            Running
            main: running, ready
            Normal Killing: Stopping container main
        "#]],
    );
    check(
        "container main, grace 30, gone, now 5, main/0 1.. stopping 5",
        expect![[r#"
            Running
            main: running, ready
            Normal Killing: Stopping container main
            wake at 6
        "#]],
    );
    check(
        "container main, grace 30, deleting 35, gone, now 12, main/0 1.. stopping 5",
        expect![[r#"
            kill main #0
            Running
            main: running, ready
            Normal Killing: Stopping container main
        "#]],
    );
}
