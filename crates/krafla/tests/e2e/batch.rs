//! Kubernetes' own Jobs and CronJobs, seen with kubectl.

use std::fs::File;

use crate::support::{Up, wait_until};

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
    wait_until("what it made went with it", || {
        up.kubectl_ok(&["get", "jobs.batch", "-o", "name"]).is_empty()
    });
}

/// A CronJob that was due on the last leap day, which it has missed, and whose Jobs are labelled with its name; `spec` is further
/// lines of its spec.
fn create_overdue(up: &Up, name: &str, spec: &str, script: &str) {
    up.apply(&format!(
        r#"
apiVersion: batch/v1
kind: CronJob
metadata: {{name: {name}}}
spec:
  schedule: 0 0 29 2 *
  suspend: true
{spec}
  jobTemplate:
    metadata: {{labels: {{of: {name}}}}}
    spec:
      template:
        spec:
          restartPolicy: Never
          terminationGracePeriodSeconds: 1
          containers: [{{name: main, image: any, command: [sh, -c, '{script}']}}]
"#
    ));
    let cron_job = format!("cronjob/{name}");
    let missed = r#"{"status":{"lastScheduleTime":"2024-01-01T00:00:00Z"}}"#;
    up.kubectl_ok(&["patch", &cron_job, "--subresource=status", "--type=merge", "-p", missed]);
    up.kubectl_ok(&["patch", &cron_job, "-p", r#"{"spec":{"suspend":false}}"#]);
}

/// The names of the Jobs of a CronJob.
fn runs(up: &Up, name: &str) -> Vec<String> {
    let jobs = up.kubectl_ok(&["get", "jobs.batch", "-l", &format!("of={name}"), "-o", "name"]);
    jobs.lines().map(str::to_owned).collect()
}

#[test]
fn a_run_that_is_due_while_another_runs_waits_for_it_or_takes_its_place() {
    let up = Up::start();
    for policy in ["Forbid", "Replace"] {
        let (name, spec) = (policy.to_lowercase(), format!("  concurrencyPolicy: {policy}"));
        create_overdue(&up, &name, &spec, "until test -e go; do sleep 0.1; done");
        let is_running = || !up.field(&format!("cronjob/{name}"), "{.status.active[*].name}").is_empty();
        wait_until("it runs", is_running);
    }
    let [waited_for, replaced] = ["forbid", "replace"].map(|name| runs(&up, name).remove(0));
    for name in ["forbid", "replace"] {
        let due = r#"{"spec":{"schedule":"* * * * *"}}"#;
        up.kubectl_ok(&["patch", &format!("cronjob/{name}"), "-p", due]);
    }
    wait_until("it is replaced", || {
        let runs = runs(&up, "replace");
        runs.len() == 1 && !runs.contains(&replaced)
    });
    up.wait_for_event("CronJob", "forbid", "JobAlreadyActive");
    assert_eq!(runs(&up, "forbid"), [waited_for.as_str()]);

    File::create(up.file("go")).unwrap();
    wait_until("what had to wait runs", || runs(&up, "forbid").iter().any(|run| *run != waited_for));
}

#[test]
fn a_run_is_made_by_the_clock_of_its_zone_kept_as_long_as_it_should_be_and_missed_when_it_is_gone() {
    let up = Up::start();
    create_overdue(&up, "tokyo", "  timeZone: Asia/Tokyo", "exec sleep 1000");
    create_overdue(&up, "tidy", "  successfulJobsHistoryLimit: 0", "true");

    wait_until("it runs", || !up.field("cronjob/tokyo", "{.status.active[*].name}").is_empty());
    let run = runs(&up, "tokyo").remove(0);
    let scheduled = r"{.metadata.annotations.batch\.kubernetes\.io/cronjob-scheduled-timestamp}";
    assert!(up.field(&run, scheduled).ends_with("-02-29T00:00:00+09:00"), "{}", up.field(&run, scheduled));
    up.kubectl_ok(&["delete", &run, "--timeout=60s"]);
    let said = up.wait_for_event("CronJob", "tokyo", "MissingJob");
    assert!(run.ends_with(said.trim_start_matches("Active job went missing: ")), "{run}: {said}");
    wait_until("it is not active", || up.field("cronjob/tokyo", "{.status.active}").is_empty());

    let succeeded = "--for=jsonpath={.status.lastSuccessfulTime}";
    up.kubectl_ok(&["wait", "cronjob/tidy", succeeded, "--timeout=60s"]);
    wait_until("its run is not kept", || runs(&up, "tidy").is_empty());
}

/// The words of a table or a description, with one space between them.
fn squeezed(text: &str) -> String {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

fn assert_has_lines(text: &str, starts: &[&str]) {
    let text = squeezed(text);
    for start in starts {
        assert!(text.lines().any(|line| line.starts_with(start)), "{start:?} is missing in:\n{text}");
    }
}

#[test]
fn kubectl_shows_of_jobs_and_cron_jobs_what_it_shows_of_any_clusters() {
    let up = Up::start();
    // It is due on leap days only.
    up.kubectl_ok(&["create", "cronjob", "leap", "--image=any", "--schedule=0 0 29 2 *", "--", "true"]);
    up.kubectl_ok(&["create", "job", "by-hand", "--from=cronjob/leap"]);
    up.kubectl_ok(&["create", "job", "once", "--image=any", "--", "true"]);
    up.kubectl_ok(&["wait", "job/by-hand", "job/once", "--for=condition=complete", "--timeout=60s"]);
    assert_has_lines(
        &up.kubectl_ok(&["get", "jobs,cronjobs"]),
        &[
            "NAME STATUS COMPLETIONS DURATION AGE",
            "job.batch/by-hand Complete 1/1 ",
            "job.batch/once Complete 1/1 ",
            "NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST SCHEDULE AGE",
            "cronjob.batch/leap 0 0 29 2 * <none> False ",
        ],
    );
    up.wait_for_event("Job", "once", "Completed");
    assert_has_lines(
        &up.kubectl_ok(&["describe", "job/once"]),
        &[
            "Parallelism: 1",
            "Completions: 1",
            "Completion Mode: NonIndexed",
            "Suspend: false",
            "Backoff Limit: 6",
            "Start Time: ",
            "Completed At: ",
            "Pods Statuses: 0 Active (0 Ready) / 1 Succeeded / 0 Failed",
            "Normal SuccessfulCreate ",
            "Normal Completed ",
        ],
    );
    assert_has_lines(&up.kubectl_ok(&["describe", "job/by-hand"]), &["Controlled By: CronJob/leap"]);
    assert_has_lines(
        &up.kubectl_ok(&["describe", "cronjob/leap"]),
        &[
            "Schedule: 0 0 29 2 *",
            "Concurrency Policy: Allow",
            "Suspend: False",
            "Successful Job History Limit: 3",
            "Failed Job History Limit: 1",
            "Last Schedule Time: <unset>",
        ],
    );
}
