//! Decision tables: a pod and what its containers did as text, the decision as text.

mod fixture;

use expect_test::expect;

use fixture::{check, conditions_of, status_of};

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

#[test]
fn the_status_reads_like_a_kubelets() {
    status_of(
        "policy Never, init first, container main, started 1, now 9, first/0 1..2 exit 0, main/0 2..4 exit 1",
        expect![[r#"
            {
              "phase": "Failed",
              "conditions": [
                {
                  "type": "PodReadyToStartContainers",
                  "status": "False",
                  "lastTransitionTime": "1970-01-01T00:00:09Z"
                },
                {
                  "type": "Initialized",
                  "status": "True",
                  "lastTransitionTime": "1970-01-01T00:00:09Z"
                },
                {
                  "type": "Ready",
                  "status": "False",
                  "reason": "PodFailed",
                  "lastTransitionTime": "1970-01-01T00:00:09Z"
                },
                {
                  "type": "ContainersReady",
                  "status": "False",
                  "reason": "PodFailed",
                  "lastTransitionTime": "1970-01-01T00:00:09Z"
                },
                {
                  "type": "PodScheduled",
                  "status": "True",
                  "lastTransitionTime": "1970-01-01T00:00:09Z"
                }
              ],
              "hostIP": "127.0.0.1",
              "hostIPs": [
                {
                  "ip": "127.0.0.1"
                }
              ],
              "podIP": "127.64.0.1",
              "podIPs": [
                {
                  "ip": "127.64.0.1"
                }
              ],
              "startTime": "1970-01-01T00:00:01Z",
              "initContainerStatuses": [
                {
                  "name": "first",
                  "state": {
                    "terminated": {
                      "exitCode": 0,
                      "reason": "Completed",
                      "startedAt": "1970-01-01T00:00:01Z",
                      "finishedAt": "1970-01-01T00:00:02Z",
                      "containerID": "krafla://u/first/0"
                    }
                  },
                  "lastState": {},
                  "ready": true,
                  "restartCount": 0,
                  "image": "busybox",
                  "imageID": "",
                  "containerID": "krafla://u/first/0",
                  "started": false
                }
              ],
              "containerStatuses": [
                {
                  "name": "main",
                  "state": {
                    "terminated": {
                      "exitCode": 1,
                      "reason": "Error",
                      "startedAt": "1970-01-01T00:00:02Z",
                      "finishedAt": "1970-01-01T00:00:04Z",
                      "containerID": "krafla://u/main/0"
                    }
                  },
                  "lastState": {},
                  "ready": false,
                  "restartCount": 0,
                  "image": "busybox",
                  "imageID": "",
                  "containerID": "krafla://u/main/0",
                  "started": false
                }
              ]
            }"#]],
    );
}

#[test]
fn a_pod_is_ready_when_its_sidecars_and_its_gates_are() {
    let pod = "sidecar log, probes log, container main, gate a, gate b, now 5, log/0 1.., main/0 2..";
    conditions_of(
        &format!("{pod}, health log started"),
        expect![[r#"
            PodReadyToStartContainers True
            Initialized True
            Ready False ContainersNotReady containers with unready status: [log]
            ContainersReady False ContainersNotReady containers with unready status: [log]
            PodScheduled True
        "#]],
    );
    conditions_of(
        &format!("{pod}, health log started ready, condition a False"),
        expect![[r#"
            a False
            PodReadyToStartContainers True
            Initialized True
            Ready False ReadinessGatesNotReady the status of pod readiness gate "a" is not "True", but False, corresponding condition of pod readiness gate "b" does not exist.
            ContainersReady True
            PodScheduled True
        "#]],
    );
    conditions_of(
        &format!("{pod}, health log started ready, condition a True, condition b True"),
        expect![[r#"
            a True
            b True
            PodReadyToStartContainers True
            Initialized True
            Ready True
            ContainersReady True
            PodScheduled True
        "#]],
    );
}

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
        Normal Killing: Container main is not well, will be stopped
    "#]],
    );
    check(
        "container main, probes main, now 6, main/0 1.. stopping 5, health main started failed",
        expect![[r#"
            Running
            main: running
            Warning Unhealthy: Liveness probe failed: no
            Normal Killing: Container main is not well, will be stopped
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
            Normal Killing: Container main is not well, will be stopped
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
