//! What Kubernetes' own end-to-end tests ask of Jobs (batch/v1), where a real server and real processes show more than a decision
//! table does.

use crate::support::{Up, wait_until};

/// A Job whose pods run a shell command; `spec` is further lines of its spec.
pub(crate) fn job(name: &str, spec: &str, script: &str) -> String {
    format!(
        r#"
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
{spec}
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{{name: main, image: any, command: [sh, -c, '{script}']}}]
"#
    )
}

pub(crate) fn wait_for_condition(up: &Up, name: &str, condition: &str) {
    let job = format!("job/{name}");
    up.kubectl_ok(&["wait", &job, &format!("--for=condition={condition}"), "--timeout=60s"]);
}

/// What the conditions of a Job say, in order.
pub(crate) fn reasons(up: &Up, name: &str) -> String {
    up.field(&format!("job/{name}"), "{range .status.conditions[*]}{.type} {.reason},{end}")
}

#[test]
fn every_index_runs_although_some_fail() {
    let up = Up::start();
    let spec = "  completionMode: Indexed\n  completions: 4\n  parallelism: 4\n  backoffLimitPerIndex: 0";
    up.apply(&job("mixed", spec, "exit $((JOB_COMPLETION_INDEX % 2))"));
    wait_for_condition(&up, "mixed", "Failed");
    assert_eq!(reasons(&up, "mixed"), "FailureTarget FailedIndexes,Failed FailedIndexes,");
    let counted = "{.status.completedIndexes} {.status.failedIndexes} {.status.succeeded} {.status.failed}";
    assert_eq!(up.field("job/mixed", counted), "0,2 1,3 2 2");
    let count = r"{.items[*].metadata.annotations.batch\.kubernetes\.io/job-index-failure-count}";
    assert_eq!(up.field("pods", count), "0 0 0 0", "nobody was tried again");
}

#[test]
fn what_fails_is_tried_again_as_often_as_it_may() {
    let up = Up::start();
    let mixed = "  completionMode: Indexed\n  completions: 4\n  parallelism: 4\n  backoffLimitPerIndex: 1";
    up.apply(&job("mixed", mixed, "exit $((JOB_COMPLETION_INDEX % 2))"));
    up.apply(&job("hopeless", "  backoffLimit: 1", "exit 1"));
    up.apply(&job("second", "  backoffLimit: 1", "test -e tried || { touch tried; exit 1; }"));

    wait_for_condition(&up, "mixed", "Failed");
    assert_eq!(reasons(&up, "mixed"), "FailureTarget FailedIndexes,Failed FailedIndexes,");
    let counted = "{.status.completedIndexes} {.status.failedIndexes} {.status.succeeded} {.status.failed}";
    assert_eq!(up.field("job/mixed", counted), "0,2 1,3 2 4");
    let count = r"jsonpath={.items[*].metadata.annotations.batch\.kubernetes\.io/job-index-failure-count}";
    for (index, counts) in [("0", "0"), ("1", "0 1"), ("2", "0"), ("3", "0 1")] {
        let pods = format!("job-name=mixed,batch.kubernetes.io/job-completion-index={index}");
        let by_age = "--sort-by=.metadata.creationTimestamp";
        assert_eq!(up.kubectl_ok(&["get", "pods", "-l", &pods, by_age, "-o", count]), counts, "{index}");
    }
    wait_for_condition(&up, "hopeless", "Failed");
    assert_eq!(reasons(&up, "hopeless"), "FailureTarget BackoffLimitExceeded,Failed BackoffLimitExceeded,");
    assert_eq!(up.field("job/hopeless", "{.status.failed}"), "2", "as many as there were pods");
    wait_for_condition(&up, "second", "Complete");
    assert_eq!(up.field("job/second", "{.status.succeeded} {.status.failed}"), "1 1");
}

#[test]
fn a_job_is_done_when_enough_of_its_indexes_are() {
    let up = Up::start();
    let job_until = |name: &str, rule: &str| {
        let spec = format!(
            "  completionMode: Indexed\n  completions: 3\n  parallelism: 3\n  successPolicy: {{rules: [{rule}]}}"
        );
        up.apply(&job(name, &spec, "test $JOB_COMPLETION_INDEX = 1 || exec sleep 1000"));
    };
    job_until("counted", "{succeededCount: 1}");
    job_until("led", "{succeededIndexes: \"1\"}");
    job_until("few-of", "{succeededIndexes: \"0,1\", succeededCount: 1}");
    for name in ["counted", "led", "few-of"] {
        wait_for_condition(&up, name, "Complete");
        assert_eq!(reasons(&up, name), "SuccessCriteriaMet SuccessPolicy,Complete SuccessPolicy,");
        let counted = "{.status.completedIndexes} {.status.succeeded} {.status.failed}";
        assert_eq!(up.field(&format!("job/{name}"), counted), "1 1 ", "{name}: who had to go has not failed");
    }
}

#[test]
fn one_failed_index_more_than_allowed_ends_the_job() {
    let up = Up::start();
    let spec = "  completionMode: Indexed\n  completions: 3\n  parallelism: 1\n  backoffLimitPerIndex: 0\n  maxFailedIndexes: 0";
    up.apply(&job("strict", spec, "exit 1"));
    wait_for_condition(&up, "strict", "Failed");
    assert_eq!(
        reasons(&up, "strict"),
        "FailureTarget MaxFailedIndexesExceeded,Failed MaxFailedIndexesExceeded,"
    );
    assert_eq!(up.field("job/strict", "{.status.failedIndexes} {.status.failed}"), "0 1");
}

#[test]
fn a_pod_knows_its_index_by_variable_host_name_label_and_annotation() {
    let up = Up::start();
    let spec = "  completionMode: Indexed\n  completions: 2\n  parallelism: 2";
    up.apply(&job("named", spec, "echo $JOB_COMPLETION_INDEX"));
    wait_for_condition(&up, "named", "Complete");
    let label = "batch.kubernetes.io/job-completion-index";
    for index in ["0", "1"] {
        let selector = format!("{label}={index}");
        assert_eq!(up.kubectl_ok(&["logs", "-l", &selector]), format!("{index}\n"));
        let path = r"jsonpath={.items[*].spec.hostname} {.items[*].metadata.annotations.batch\.kubernetes\.io/job-completion-index}";
        assert_eq!(
            up.kubectl_ok(&["get", "pods", "-l", &selector, "-o", path]),
            format!("named-{index} {index}")
        );
    }
}

#[test]
fn an_evicted_pod_is_forgiven_where_a_rule_says_so() {
    let up = Up::start();
    let rule = "  backoffLimit: 0\n  podFailurePolicy:\n    rules:\n    - action: Ignore\n      onPodConditions: [{type: DisruptionTarget}]";
    up.apply(&job("spared", rule, "exec sleep 1000"));
    up.wait_for("job/spared", "{.status.ready}", "1");
    let pod = up.field("pods", "{.items[0].metadata.name}");
    let uid = up.field("pods", "{.items[0].metadata.uid}");
    let eviction = format!(r#"{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{pod}"}}}}"#);
    let path = format!("/api/v1/namespaces/default/pods/{pod}/eviction");
    let output = up.kubectl_with_input(&["create", "--raw", &path, "-f", "-"], &eviction);
    assert!(output.status.success(), "{output:?}");
    wait_until("it has a successor", || {
        let uids = up.field("pods", "{.items[*].metadata.uid}");
        uids.split(' ').any(|other| !other.is_empty() && other != uid)
    });
    assert_eq!(up.field("job/spared", "{.status.failed}{.status.conditions}"), "");
    // Who waits for the evicted pod to be gone waits for its name.
    up.kubectl_ok(&["wait", "pod", &pod, "--for=delete", "--timeout=60s"]);
}

#[test]
fn a_job_that_takes_too_long_fails_and_leaves_nothing_running() {
    let up = Up::start();
    up.apply(&job("late", "  activeDeadlineSeconds: 1", "exec sleep 1000"));
    wait_for_condition(&up, "late", "Failed");
    assert_eq!(reasons(&up, "late"), "FailureTarget DeadlineExceeded,Failed DeadlineExceeded,");
    assert_eq!(up.field("job/late", "{.status.active}{.status.ready}{.status.terminating}"), "00");
}

#[test]
fn a_pod_without_an_owner_is_taken_in_and_one_that_no_longer_matches_is_let_go() {
    let up = Up::start();
    up.apply(&job("parent", "  parallelism: 1", "exec sleep 1000"));
    up.wait_for("job/parent", "{.status.ready}", "1");
    let pod = format!("pod/{}", up.field("pods", "{.items[0].metadata.name}"));
    up.kubectl_ok(&["patch", &pod, "--type=merge", "-p", r#"{"metadata":{"ownerReferences":null}}"#]);
    up.wait_for(&pod, "{.metadata.ownerReferences[0].name}", "parent");
    up.kubectl_ok(&["label", &pod, "batch.kubernetes.io/controller-uid-", "controller-uid-"]);
    wait_until("it is let go", || up.field(&pod, "{.metadata.ownerReferences}").is_empty());
    let successors = ["get", "pods", "-l", "batch.kubernetes.io/controller-uid", "-o", "name"];
    wait_until("it has a successor", || !up.kubectl_ok(&successors).is_empty());
}

#[test]
fn pods_have_what_a_suspended_job_was_changed_to_ask_for() {
    let up = Up::start();
    up.apply(&job("resized", "  suspend: true", "exec sleep 1000"));
    let resume_with = |cpu: &str| {
        let patch = format!(
            r#"[{{"op":"add","path":"/spec/template/spec/containers/0/resources","value":{{"requests":{{"cpu":"{cpu}"}}}}}},
            {{"op":"replace","path":"/spec/suspend","value":false}}]"#
        );
        up.kubectl_ok(&["patch", "job/resized", "--type=json", "-p", &patch]);
        up.wait_for("job/resized", "{.status.ready}", "1");
        assert_eq!(up.field("pods", "{.items[*].spec.containers[*].resources.requests.cpu}"), cpu);
    };
    resume_with("7m");
    // One that has started before can be changed as well, once its pods are gone.
    up.kubectl_ok(&["patch", "job/resized", "-p", r#"{"spec":{"suspend":true}}"#]);
    wait_for_condition(&up, "resized", "Suspended");
    wait_until("its pod is gone", || up.kubectl_ok(&["get", "pods", "-o", "name"]).is_empty());
    resume_with("9m");
}

#[test]
fn a_job_and_its_status_are_changed_replaced_listed_and_removed() {
    let up = Up::start();
    up.apply(&job("worked-on", "  suspend: true\n  parallelism: 2", "exec sleep 1000"));
    wait_for_condition(&up, "worked-on", "Suspended");
    let patch = r#"{"metadata":{"annotations":{"patched":"yes"}},"spec":{"parallelism":9},"status":{"startTime":"2027-01-15T08:00:00Z"}}"#;
    up.kubectl_ok(&["patch", "job/worked-on", "--subresource=status", "--type=merge", "-p", patch]);
    let path = "jsonpath={.metadata.annotations.patched} {.spec.parallelism} {.status.startTime}";
    let shown = up.kubectl_ok(&["get", "job/worked-on", "--subresource=status", "-o", path]);
    assert_eq!(shown, "yes 2 2027-01-15T08:00:00Z", "what is not of the status is left alone");

    let whole = up.kubectl_ok(&["get", "job/worked-on", "-o", "json"]);
    let resumed = whole.replace(r#""suspend": true"#, r#""suspend": false"#);
    let replaced = up.kubectl_with_input(&["replace", "-f", "-"], &resumed);
    assert!(replaced.status.success(), "{replaced:?}");
    up.wait_for("job/worked-on", "{.status.ready}", "2");
    assert_ne!(
        up.field("job/worked-on", "{.status.startTime}"),
        "2027-01-15T08:00:00Z",
        "it has started anew"
    );
    up.kubectl_ok(&["patch", "job/worked-on", "-p", r#"{"spec":{"suspend":true}}"#]);
    up.wait_for("job/worked-on", "{.status.ready}", "0");

    up.kubectl_ok(&["label", "job/worked-on", "kind=of-test"]);
    let listed = ["get", "jobs.batch", "--all-namespaces", "-l", "kind=of-test", "-o", "name"];
    assert_eq!(up.kubectl_ok(&listed), "job.batch/worked-on\n");
    up.kubectl_ok(&["delete", "jobs.batch", "-l", "kind=of-test", "--timeout=60s"]);
    assert_eq!(up.kubectl_ok(&listed), "");
}

#[test]
fn a_job_of_another_manager_is_left_to_it() {
    let up = Up::start();
    up.apply(&job("foreign", "  managedBy: acme.io/jobs", "true"));
    up.apply(&job("own", "  managedBy: kubernetes.io/job-controller", "true"));
    wait_for_condition(&up, "own", "Complete");
    assert_eq!(up.field("job/foreign", "{.status.conditions}{.status.startTime}{.status.ready}"), "");
    assert_eq!(up.kubectl_ok(&["get", "pods", "-l", "job-name=foreign", "-o", "name"]), "");
}

#[test]
fn a_job_beyond_its_quota_runs_what_fits_and_says_why_not_more() {
    let up = Up::start();
    up.kubectl_ok(&["create", "quota", "few", "--hard=pods=3"]);
    up.apply(&job("crowd", "  parallelism: 300\n  completions: 300", "exec sleep 1000"));
    up.wait_for("job/crowd", "{.status.active}", "3");
    let why = up.wait_for_event("Job", "crowd", "FailedCreate");
    assert!(why.starts_with("Error creating: ") && why.contains("exceeded quota: few"), "{why}");
    let page = up.kubectl_ok(&["get", "--raw", "/metrics"]);
    let written = r#"krafla_writes_total{controller="kubernetes-job-controller"} "#;
    let n_written = page.lines().find_map(|line| line.strip_prefix(written)).unwrap();
    assert!(
        n_written.parse::<f64>().unwrap() < 100.0,
        "seven pods at first, and one at every try: {n_written}"
    );
    let refused = r#"job_controller_job_pods_creation_total{reason="new",status="failed"} "#;
    let n_refused = page.lines().find_map(|line| line.strip_prefix(refused)).unwrap();
    assert!(n_refused.parse::<f64>().unwrap() >= 4.0, "{n_refused}");
}
