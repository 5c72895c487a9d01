//! `krafla up` and the real kubectl.

use crate::support::{Up, repository_file, text, wait_for_log};

const JOB: &str = r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: a}
spec:
  minAvailable: 2
  queue: default
  tasks:
    - name: work
      replicas: 2
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: any, command: [sh, -c, "echo line from $HOSTNAME; exec tail -f /dev/null"]}]
"#;

#[test]
fn get_shows_upstreams_columns() {
    let up = Up::start();
    up.apply(JOB);
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    up.kubectl_ok(&["wait", "podgroup", "--all", "--for=jsonpath={.status.phase}=Running", "--timeout=60s"]);
    let columns = |kind: &str| {
        up.kubectl_ok(&["get", kind]).lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(columns("vcjob"), "NAME STATUS MINAVAILABLE RUNNINGS AGE");
    assert_eq!(columns("podgroup"), "NAME STATUS MINMEMBER RUNNINGS AGE");
    assert_eq!(columns("pod"), "NAME READY STATUS RESTARTS AGE");
    let rows = up.kubectl_ok(&["get", "vcjob,podgroup,pod", "--no-headers"]);
    for row in ["job.batch.volcano.sh/a", "podgroup.scheduling.volcano.sh/a-", "pod/a-work-0", "pod/a-work-1"]
    {
        assert!(rows.contains(row), "{row} is missing in:\n{rows}");
    }
}

#[test]
fn logs_show_what_a_pod_printed() {
    let up = Up::start();
    up.apply(JOB);
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    wait_for_log(&up, &["a-work-1", "--tail=1"], "line from a-work-1\n");
}

/// Ends badly at first, and then writes two lines.
const SECOND_ATTEMPT: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  restartPolicy: OnFailure
  containers:
    - name: main
      image: any
      command: [sh, -c, "if ! test -e tried; then touch tried; echo first; exit 1; fi; echo second; echo third"]
"#;

#[test]
fn logs_are_followed_cut_and_dated_and_those_of_the_attempt_before_are_kept() {
    let up = Up::start();
    up.apply(SECOND_ATTEMPT);
    up.wait_for("pod/p", "{.status.phase}", "Succeeded");
    let logs = |options: &[&str]| up.kubectl_ok(&[&["logs", "p"], options].concat());
    assert_eq!(logs(&["--follow"]), "second\nthird\n");
    assert_eq!(logs(&["--previous"]), "first\n");
    assert_eq!(logs(&["--tail=1"]), "third\n");
    assert_eq!(logs(&["--limit-bytes=3"]), "sec");
    assert_eq!(logs(&["--since=1h"]), "second\nthird\n");
    assert_eq!(logs(&["--since-time=2999-01-01T00:00:00Z"]), "");
    let dated = logs(&["--timestamps"]);
    let line = dated.lines().next().unwrap();
    let (time, second) = line.split_once(' ').unwrap();
    assert_eq!(second, "second");
    // What says when a line was written can be used to ask for those from then on.
    assert_eq!(logs(&[&format!("--since-time={time}"), "--timestamps"]), dated);
}

#[test]
fn deleting_a_job_removes_its_pods_and_podgroup() {
    let up = Up::start();
    up.apply(JOB);
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    up.kubectl_ok(&["delete", "vcjob", "a", "--cascade=foreground"]);
    up.kubectl_ok(&["wait", "pods", "--all", "--for=delete", "--timeout=60s"]);
    assert_eq!(up.kubectl_ok(&["get", "pods,podgroups", "--ignore-not-found"]), "");
}

#[test]
fn configmaps_and_pods_are_applied_changed_and_deleted() {
    let up = Up::start();
    let config = |value: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata: {{key: {value}}}\n")
    };
    assert_eq!(up.apply(&config("one")), "configmap/c created\n");
    assert_eq!(up.apply(&config("one")), "configmap/c unchanged\n");
    assert_eq!(up.apply(&config("two")), "configmap/c configured\n");
    assert_eq!(up.field("configmap/c", "{.data.key}"), "two");

    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {restartPolicy: Never, containers: [{name: main, image: any, command: [sh, -c, 'exit 7']}]}\n";
    assert_eq!(up.apply(pod), "pod/p created\n");
    up.wait_for("pod/p", "{.status.phase}", "Failed");
    assert_eq!(up.field("pod/p", "{.status.containerStatuses[0].state.terminated.exitCode}"), "7");
    up.kubectl_ok(&["delete", "pod/p", "configmap/c"]);
    assert_eq!(up.kubectl_ok(&["get", "pods", "--ignore-not-found"]), "");
}

#[test]
fn a_job_with_a_wrong_field_is_refused_with_the_fields_path() {
    let up = Up::start();
    let output =
        up.kubectl_with_input(&["apply", "-f", "-"], &JOB.replace("minAvailable: 2", "minAvailable: -1"));
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("spec.minAvailable"), "{}", text(&output.stderr));
}

#[test]
fn the_examples_complete_under_kubectl() {
    let up = Up::start();
    for example in ["hello", "restart"] {
        up.kubectl_ok(&[
            "apply",
            "-f",
            repository_file(&format!("examples/{example}.yaml")).to_str().unwrap(),
        ]);
        up.wait_for(&format!("vcjob/{example}"), "{.status.state.phase}", "Completed");
    }
    assert_eq!(up.field("vcjob/restart", "{.status.retryCount}"), "1");
}

#[test]
fn plugins_give_a_job_its_hosts_and_its_ssh_key() {
    let up = Up::start();
    let job = JOB.replace("  queue: default\n", "  queue: default\n  plugins: {env: [], svc: [], ssh: []}\n");
    up.apply(
        &job.replace("echo line from $HOSTNAME", "echo $VC_TASK_INDEX of $VC_WORK_NUM in $VC_WORK_HOSTS"),
    );
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    wait_for_log(&up, &["a-work-1"], "1 of 2 in a-work-0.a,a-work-1.a\n");
    assert_eq!(up.field("service/a", "{.spec.clusterIP}"), "None");
    let key = up.field("secret/a-ssh", "{.data.id_rsa}");
    assert!(key.len() > 1000, "a private key of 2048 bits: {key}");
    up.kubectl_ok(&["delete", "vcjob", "a"]);
    up.kubectl_ok(&["wait", "configmap/a-svc", "service/a", "secret/a-ssh", "--for=delete", "--timeout=60s"]);
}

#[test]
fn a_job_can_be_suspended_and_resumed_by_commands() {
    let up = Up::start();
    up.apply(JOB);
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    let uid = up.field("vcjob/a", "{.metadata.uid}");
    let command = |action: &str| {
        format!(
            "apiVersion: bus.volcano.sh/v1alpha1\nkind: Command\nmetadata: {{generateName: a-}}\naction: {action}\n\
             target: {{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: a, uid: {uid}}}\n"
        )
    };
    for (action, phase) in [("AbortJob", "Aborted"), ("ResumeJob", "Running")] {
        let output = up.kubectl_with_input(&["create", "-f", "-"], &command(action));
        assert!(output.status.success(), "{}", text(&output.stderr));
        up.wait_for("vcjob/a", "{.status.state.phase}", phase);
        assert_eq!(up.kubectl_ok(&["get", "commands", "--ignore-not-found"]), "", "{action} is used up");
    }
    let events = up.kubectl_ok(&["get", "events", "-o", "jsonpath={.items[*].reason}"]);
    assert!(events.contains("CommandIssued") && events.contains("ExecuteAction"), "{events}");
}

#[test]
fn describe_tells_why_a_job_waits() {
    let up = Up::start();
    let greedy = JOB.replace("name: main, ", "name: main, resources: {requests: {cpu: 1000}}, ");
    up.apply(&greedy);
    up.wait_for_event("Job", "a", "PodGroupPending");
    let why = up.kubectl_ok(&["describe", "podgroup"]);
    assert!(why.contains("cpu"), "{why}");
}
