//! Volcano's other controllers, seen with kubectl.

use crate::support::Up;

/// A Volcano Job of one task that runs a shell command.
fn job(name: &str, command: &str, more: &str) -> String {
    format!(
        r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec:
  minAvailable: 1
{more}
  tasks:
    - name: work
      replicas: 1
      template:
        spec:
          restartPolicy: Never
          containers: [{{name: main, image: any, command: [sh, -c, '{command}']}}]
"#
    )
}

#[test]
fn a_finished_job_goes_when_its_time_is_over() {
    let up = Up::start();
    up.apply(&job("short", "true", "  ttlSecondsAfterFinished: 1"));
    up.apply(&job("kept", "true", "  ttlSecondsAfterFinished: 100000"));
    up.kubectl_ok(&["wait", "vcjob/short", "--for=delete", "--timeout=60s"]);
    up.wait_for("vcjob/kept", "{.status.state.phase}", "Completed");
    let pods = up.kubectl_ok(&["get", "pods", "-o", "name"]);
    assert_eq!(pods.trim(), "pod/kept-work-0", "what the job owned went with it");
}

/// JobTemplates of these names, each of which runs a shell command.
fn templates(commands: &[(&str, &str)]) -> String {
    let template = |(name, command): &(&str, &str)| {
        job(name, command, "")
            .replace("batch.volcano.sh", "flow.volcano.sh")
            .replace("kind: Job", "kind: JobTemplate")
    };
    commands.iter().map(template).collect::<Vec<_>>().join("---")
}

#[test]
fn a_flow_runs_its_jobs_in_order_and_removes_them_at_the_end() {
    let up = Up::start();
    let log = up.file("order");
    let say = |word: &str| format!("echo {word} >> {}", log.display());
    up.apply(&templates(&[("one", &say("one")), ("two", &say("two")), ("three", &say("three"))]));
    up.apply(
        "
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: f}
spec:
  jobRetainPolicy: delete
  flows:
    - {name: three, dependsOn: {targets: [one, two]}}
    - {name: two, dependsOn: {targets: [one]}}
    - {name: one}
",
    );
    up.wait_for("jobflow/f", "{.status.state.phase}", "Succeed");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\ntwo\nthree\n");
    up.kubectl_ok(&["wait", "vcjob", "--all", "--for=delete", "--timeout=60s"]);
    let completed = up.field("jobflow/f", "{.status.completedJobs}");
    assert_eq!(completed, r#"["f-one","f-two","f-three"]"#, "what is gone is still on record");
}

#[test]
fn a_flow_waits_for_a_template_that_comes_later() {
    let up = Up::start();
    up.apply("{apiVersion: flow.volcano.sh/v1alpha1, kind: JobFlow, metadata: {name: f}, spec: {flows: [{name: late}]}}");
    up.wait_for("jobflow/f", "{.status.state.phase}", "Pending");
    up.apply(&templates(&[("late", "true")]));
    up.wait_for("jobflow/f", "{.status.state.phase}", "Succeed");
    let events = up.kubectl_ok(&["get", "events", "-o", "jsonpath={.items[*].message}"]);
    assert!(events.contains("JobTemplate late does not exist"), "{events}");
    assert_eq!(up.field("jobtemplate/late", "{.status.jobDependsOnList[0]}"), "f-late");
}

/// A Command for a queue.
fn queue_command(up: &Up, queue: &str, action: &str) -> String {
    let uid = up.field(&format!("queue/{queue}"), "{.metadata.uid}");
    format!(
        "
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
metadata: {{generateName: {queue}-}}
action: {action}
target: {{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, name: {queue}, uid: {uid}}}
"
    )
}

#[test]
fn queues_close_and_open_with_their_parents() {
    let up = Up::start();
    up.apply(
        "
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: team}, spec: {weight: 1}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: member}, spec: {weight: 1, parent: team}}
",
    );
    up.wait_for("queue/member", "{.status.state}", "Open");
    assert_eq!(up.field("queue/team", "{.spec.parent}"), "root");
    for (action, state) in [("CloseQueue", "Closed"), ("OpenQueue", "Open")] {
        up.kubectl_with_input(&["create", "-f", "-"], &queue_command(&up, "team", action));
        up.wait_for("queue/team", "{.status.state}", state);
        up.wait_for("queue/member", "{.status.state}", state);
    }
    up.wait_for("queue/member", "{.metadata.annotations.volcano\\.sh/closed-by-parent}", "false");
    up.kubectl_ok(&["wait", "commands", "--all", "--for=delete", "--timeout=60s"]);
}

#[test]
fn a_pod_that_asks_for_the_volcano_scheduler_gets_a_podgroup() {
    let up = Up::start();
    up.apply(
        "
apiVersion: v1
kind: Pod
metadata: {name: alone}
spec:
  schedulerName: volcano
  restartPolicy: Never
  containers: [{name: main, image: any, command: ['true'], resources: {requests: {cpu: 10m}}}]
",
    );
    up.wait_for("pod/alone", "{.status.phase}", "Succeeded");
    let uid = up.field("pod/alone", "{.metadata.uid}");
    let group = format!("podgroup-{uid}");
    assert_eq!(up.field("pod/alone", r"{.metadata.annotations.scheduling\.k8s\.io/group-name}"), group);
    assert_eq!(up.field(&format!("podgroup/{group}"), "{.spec.minResources.cpu}"), "10m");
    up.wait_for(&format!("podgroup/{group}"), "{.status.phase}", "Completed");
}

#[test]
fn a_cronjob_runs_again_and_again_and_keeps_as_many_jobs_as_it_should() {
    let up = Up::start();
    let template =
        job("ignored", "true", "").replace("apiVersion", "#").replace("kind:", "#").replace('\n', "\n    ");
    up.apply(&format!(
        "
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {{name: tick}}
spec:
  schedule: '@every 1s'
  concurrencyPolicy: Forbid
  successfulJobsHistoryLimit: 1
  jobTemplate:
    {template}
"
    ));
    let first = r"{.items[0].metadata.annotations.volcano\.sh/cronjob-scheduled-timestamp}";
    up.kubectl_ok(&[
        "wait",
        "cronvcjob/tick",
        "--for=jsonpath={.status.lastSuccessfulTime}",
        "--timeout=60s",
    ]);
    let before = up.field("vcjob", first);
    assert!(before.ends_with('Z'), "{before}");
    // Each goes when a newer one has completed.
    up.kubectl_ok(&["wait", "vcjob", "--all", "--for=delete", "--timeout=60s"]);
    assert_ne!(up.field("cronvcjob/tick", "{.status.lastScheduleTime}"), before);
}

#[test]
fn a_job_of_kubernetes_is_suspended_resumed_and_deleted() {
    let up = Up::start();
    up.apply(
        r#"
apiVersion: batch/v1
kind: Job
metadata: {name: batch}
spec:
  parallelism: 2
  completions: 2
  suspend: true
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: any, command: [sleep, "1000"]}]
"#,
    );
    up.kubectl_ok(&["wait", "job/batch", "--for=condition=Suspended", "--timeout=60s"]);
    up.kubectl_ok(&["patch", "job/batch", "-p", r#"{"spec":{"suspend":false}}"#]);
    up.wait_for("job/batch", "{.status.active}", "2");
    up.kubectl_ok(&["patch", "job/batch", "-p", r#"{"spec":{"parallelism":1}}"#]);
    up.wait_for("job/batch", "{.status.active}", "1");
    assert_eq!(up.field("job/batch", "{.status.failed}"), "", "who is not needed has not failed");
    up.kubectl_ok(&["delete", "job/batch", "--cascade=foreground", "--timeout=60s"]);
    assert_eq!(up.kubectl_ok(&["get", "pods", "-o", "name"]), "", "nothing holds the pods");
}

#[test]
fn kubectl_waits_for_a_job_of_kubernetes_that_goes_when_its_time_is_over() {
    let up = Up::start();
    up.kubectl_ok(&["create", "job", "once", "--image=any", "--", "true"]);
    up.kubectl_ok(&["wait", "job/once", "--for=condition=Complete", "--timeout=60s"]);
    up.wait_for("job/once", "{.status.succeeded}", "1");
    up.kubectl_ok(&["patch", "job/once", "-p", r#"{"spec":{"ttlSecondsAfterFinished":0}}"#]);
    up.kubectl_ok(&["wait", "job/once", "--for=delete", "--timeout=60s"]);
}

#[test]
fn a_cron_job_of_kubernetes_makes_jobs_and_remembers_the_last() {
    let up = Up::start();
    up.kubectl_ok(&["create", "cronjob", "tick", "--image=any", "--schedule=@every 1s", "--", "true"]);
    let wait = |field: &str| {
        up.kubectl_ok(&[
            "wait",
            "cronjob/tick",
            &format!("--for=jsonpath={{.status.{field}}}"),
            "--timeout=60s",
        ]);
    };
    wait("lastScheduleTime");
    wait("lastSuccessfulTime");
    let owner = "{.items[0].metadata.ownerReferences[0].kind}";
    assert_eq!(up.field("jobs.batch", owner), "CronJob");
    up.kubectl_ok(&["delete", "cronjob/tick", "--cascade=foreground", "--timeout=60s"]);
    assert_eq!(up.kubectl_ok(&["get", "jobs.batch", "-o", "name"]), "", "what it made went with it");
}
