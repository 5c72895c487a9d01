//! What is told of a pod.

use expect_test::expect;

use super::fixture::{check, conditions_of, decision_of, starts_of, status_of};

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
fn each_attempt_that_has_started_is_told_of_until_it_is_reported() {
    starts_of("container main, now 5", &[]);
    starts_of("container main, now 5, main/0 1..", &["main/0"]);
    starts_of("container main, now 5, main/0 1.., reported main/0", &[]);
    // It may have ended by now, and the next one may have started.
    starts_of(
        "policy Never, init first, container main, now 5, first/0 1..2 exit 0, main/0 2..3 exit 1",
        &["first/0", "main/0"],
    );
    starts_of("container main, now 5, main/0 1..2 exit 1, main/1 2..", &["main/0", "main/1"]);
    starts_of("container main, now 5, main/0 1..2 exit 1, main/1 2.., reported main/0", &["main/1"]);
    starts_of("container main, now 5, main/0 1..2 exit 1, main/1 2.., reported main/1", &[]);
    starts_of("policy Never, container main, now 5, main/0 fails at 3", &[]);
}

#[test]
fn that_limits_can_not_be_kept_is_told_once_for_each_pod() {
    let pod = "container main, container beside, now 5";
    check(
        &format!("{pod}, main/0 1.. unlimited, beside/0 1.. unlimited"),
        expect![[r#"
            Running
            main: running, ready
            beside: running, ready
            Warning LimitsNotKept: limits of cpu and memory are not enforced on this machine: run `krafla doctor` for the reason and a fix
        "#]],
    );
    // It is known from the one that was reported, though another one or another attempt is new.
    check(
        &format!("{pod}, main/0 1.. unlimited, beside/0 1.. unlimited, reported main/0"),
        expect![[r#"
            Running
            main: running, ready
            beside: running, ready
        "#]],
    );
    check(
        "container main, now 5, main/0 1..2 exit 1 unlimited, main/1 2.. unlimited, reported main/0",
        expect![[r#"
            Running
            main: running, was Error 1, ready, restarts 1
        "#]],
    );
}

#[test]
fn a_report_says_which_version_of_the_pod_it_is_about() {
    let observed = |facts: &str, expected| {
        let status = decision_of(facts).status;
        assert_eq!(status.observed_generation, expected, "{facts}");
        assert!(
            status.conditions.iter().all(|condition| condition.observed_generation == expected),
            "{facts}"
        );
    };
    observed("container main, generation 2, observed 1, now 5, main/0 1..", 2);
    // Only of its deletion nothing is told before there is more to tell, nor of one that has ended.
    observed("container main, generation 3, observed 2, deleting 35, now 5, main/0 1..", 2);
    observed("container main, generation 3, observed 2, deleting 35, now 5, main/0 1..4 exit 0", 3);
    observed(
        "phase Failed, container main, generation 3, observed 2, deleting 35, now 5, main/0 1..4 exit 1",
        2,
    );
}

#[test]
fn what_a_container_was_given_is_reported_if_it_asked_for_anything() {
    let status =
        decision_of("container main, container beside, asks main 500m, main/0 1.., beside/0 1..").status;
    let resources = |name: &str| {
        let status = serde_json::to_value(status.container(name).unwrap()).unwrap();
        (status.get("resources").cloned(), status.get("allocatedResources").cloned())
    };
    let cpu = serde_json::json!({"cpu": "500m"});
    assert_eq!(resources("main"), (Some(serde_json::json!({"requests": cpu})), Some(cpu)));
    assert_eq!(resources("beside"), (None, None));
}
