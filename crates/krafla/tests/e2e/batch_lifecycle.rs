//! How Jobs of Kubernetes (batch/v1) replace, restart, give up and go, with real processes and a real collector of garbage.

use std::fs::File;

use crate::batch_conformance::{job, reasons, wait_for_condition};
use crate::support::{Up, wait_until};

const TRACKED: &str = "{.items[*].metadata.finalizers}";

#[test]
fn who_replaces_only_what_has_failed_waits_for_the_end_of_a_pod_that_goes() {
    let up = Up::start();
    // It ends when it is told to, but not before the file is there.
    let script =
        "trap \"until test -e go; do sleep 0.1; done; exit 1\" TERM; touch up; while :; do sleep 0.1; done";
    let patient = job("patient", "  podReplacementPolicy: Failed", script)
        .replace("terminationGracePeriodSeconds: 1", "terminationGracePeriodSeconds: 600");
    up.apply(&patient);
    wait_until("the trap is set", || up.file("up").exists());
    // Its successor may come to have its name.
    let uids = || up.field("pods", "{.items[*].metadata.uid}");
    let first = uids();
    up.kubectl_ok(&["delete", "pods", "--all", "--wait=false"]);
    up.wait_for("job/patient", "{.status.terminating}", "1");
    assert_eq!(up.field("job/patient", "{.status.active}{.status.failed}"), "", "it has not ended");
    assert_eq!(uids(), first, "nobody has taken its place");

    File::create(up.file("go")).unwrap();
    up.wait_for("job/patient", "{.status.failed}", "1");
    up.wait_for("job/patient", "{.status.active}", "1");
    assert_eq!(up.field("job/patient", "{.status.terminating}"), "0");
    assert_ne!(uids(), first);
    // Its successor would wait for the file after the test, where none will be.
    up.kubectl_ok(&["delete", "job/patient", "--cascade=foreground", "--timeout=60s"]);
}

#[test]
fn a_rule_gives_an_index_up_that_had_tries_left() {
    let up = Up::start();
    let spec = "  completionMode: Indexed\n  completions: 2\n  parallelism: 2\n  backoffLimitPerIndex: 5\n  podFailurePolicy:\n    \
                rules:\n    - action: FailIndex\n      onExitCodes: {operator: In, values: [42]}";
    up.apply(&job("judged", spec, "test $JOB_COMPLETION_INDEX = 0 || exit 42"));
    wait_for_condition(&up, "judged", "Failed");
    assert_eq!(reasons(&up, "judged"), "FailureTarget FailedIndexes,Failed FailedIndexes,");
    let counted = "{.status.completedIndexes} {.status.failedIndexes} {.status.failed}";
    assert_eq!(up.field("job/judged", counted), "0 1 1");
}

#[test]
fn a_container_that_fails_is_started_again_in_its_pod_and_the_job_completes() {
    let up = Up::start();
    let script = "test -e tried || { touch tried; exit 1; }";
    up.apply(&job("stubborn", "  backoffLimit: 6", script).replace("Never", "OnFailure"));
    wait_for_condition(&up, "stubborn", "Complete");
    assert_eq!(up.field("job/stubborn", "{.status.succeeded} {.status.failed}"), "1 ");
    assert_eq!(up.field("pods", "{.items[*].status.containerStatuses[*].restartCount}"), "1");
}

#[test]
fn a_container_that_its_own_rule_starts_again_has_not_failed_its_pod() {
    let up = Up::start();
    let spec = "  backoffLimit: 0\n  podFailurePolicy:\n    rules:\n    - action: FailJob\n      onExitCodes: {operator: In, values: \
                [42]}";
    let own = "restartPolicy: Never, restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]";
    let script = "test -e tried || { touch tried; exit 42; }";
    up.apply(&job("forgiven", spec, script).replace("name: main,", &format!("name: main, {own},")));
    wait_for_condition(&up, "forgiven", "Complete");
    assert_eq!(up.field("job/forgiven", "{.status.succeeded} {.status.failed}"), "1 ");
    assert_eq!(up.field("pods", "{.items[*].status.containerStatuses[*].restartCount}"), "1");
}

#[test]
fn restarts_within_a_pod_count_for_the_limit() {
    let up = Up::start();
    up.apply(&job("hopeless", "  backoffLimit: 1", "exit 1").replace("Never", "OnFailure"));
    wait_for_condition(&up, "hopeless", "Failed");
    assert_eq!(reasons(&up, "hopeless"), "FailureTarget BackoffLimitExceeded,Failed BackoffLimitExceeded,");
    assert_eq!(up.field("job/hopeless", "{.status.failed}"), "1", "there was one pod");
}

#[test]
fn a_job_that_somebody_holds_stays_although_its_time_is_over() {
    let up = Up::start();
    let held = job("held", "  ttlSecondsAfterFinished: 0", "true")
        .replace("name: held", "name: held, finalizers: [acme.io/reads-the-result]");
    up.apply(&held);
    let is_going = "--for=jsonpath={.metadata.deletionTimestamp}";
    up.kubectl_ok(&["wait", "job/held", is_going, "--timeout=60s"]);
    wait_until("its pods go first", || up.kubectl_ok(&["get", "pods", "-o", "name"]).is_empty());
    wait_until("nobody else holds it", || {
        up.field("job/held", "{.metadata.finalizers}") == r#"["acme.io/reads-the-result"]"#
    });
    assert_eq!(up.field("job/held", "{.status.succeeded}"), "1");
    up.kubectl_ok(&["patch", "job/held", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
    up.kubectl_ok(&["wait", "job/held", "--for=delete", "--timeout=60s"]);
}

#[test]
fn all_jobs_of_a_namespace_go_at_once_with_their_pods_or_without_them() {
    let up = Up::start();
    for (how, pods_stay) in [("Background", false), ("Foreground", false), ("Orphan", true), ("", true)] {
        for name in ["one", "two"] {
            up.apply(&job(name, "  parallelism: 1", "exec sleep 1000"));
            up.wait_for(&format!("job/{name}"), "{.status.ready}", "1");
        }
        let policy = if how.is_empty() { String::new() } else { format!("?propagationPolicy={how}") };
        up.kubectl_ok(&["delete", "--raw", &format!("/apis/batch/v1/namespaces/default/jobs{policy}")]);
        wait_until("the Jobs are gone", || up.kubectl_ok(&["get", "jobs.batch", "-o", "name"]).is_empty());
        if pods_stay {
            let owners = "{.items[*].metadata.ownerReferences}";
            wait_until("the pods are nobody's", || up.field("pods", owners).is_empty());
            wait_until("nobody holds them", || up.field("pods", TRACKED).is_empty());
            let phases = up.field("pods", "{.items[*].status.phase}");
            assert_eq!(phases, "Running Running", "{how}: they run on");
            up.kubectl_ok(&["delete", "pods", "--all", "--timeout=60s"]);
        }
        wait_until("the pods are gone", || up.kubectl_ok(&["get", "pods", "-o", "name"]).is_empty());
    }
}
