//! `krafla run`: why jobs wait, and when it gives them up.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::run::{cron_job_of, flow_of, run_text};
use crate::run_ends::interrupt;
use crate::support::{job, krafla};

/// Runs a job that can not start, until it says why, and interrupts it, if it has not given up.
fn why_it_waits(manifest: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("job.yaml"), manifest).unwrap();
    let mut run =
        krafla().current_dir(dir.path()).args(["run", "job.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    let reason = lines.find(|line| line.contains("waiting: ")).expect("it says why it waits");
    interrupt(&run);
    lines.for_each(drop);
    let code = run.wait().unwrap().code();
    assert!(matches!(code, Some(130 | 1)), "{code:?}");
    reason
}

#[test]
fn a_job_that_can_not_start_says_why() {
    let greedy =
        job("a", 4, "true", "").replace("name: main, ", "name: main, resources: {requests: {cpu: 1000}}, ");
    let why = why_it_waits(&greedy);
    assert!(why.starts_with("a: waiting: not admitted: it needs 4k cpu"), "{why}");
    assert!(why.contains("fix: lower resources.requests or spec.minAvailable"), "{why}");

    for (volume, place, remedy) in [
        ("configMap: {name: nowhere}", "a-work-0, container main", "configmap \"nowhere\" not found"),
        (
            "hostPath: {path: /krafla/nowhere, type: Directory}",
            "hostPath type check failed: /krafla/nowhere is not a directory",
            "create it, or change the type of the volume",
        ),
        ("nfs: {server: a, path: /b}", "volume \"data\"", "use emptyDir, hostPath"),
        (
            "persistentVolumeClaim: {claimName: nowhere}",
            "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; \
             Pending: 1 persistentvolumeclaim \"nowhere\" not found",
            "fix: add the PersistentVolumeClaim to the files, or correct spec.volumes",
        ),
    ] {
        let volumes = format!("volumes: [{{name: data, {volume}}}]\n          containers:");
        let why = why_it_waits(&job("a", 1, "true", "").replace("containers:", &volumes));
        assert!(why.contains(place) && why.contains(remedy), "{why}");
    }
}

/// A job that starts with one task, and has another which no machine can run.
pub(crate) const GROWS_NO_FURTHER: &str = r"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: a}
spec:
  minAvailable: 1
  tasks:
    - name: small
      replicas: 1
      minAvailable: 1
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: any, command: [sleep, '1000']}]
    - name: large
      replicas: 3
      minAvailable: 0
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: any, command: ['true'], resources: {requests: {cpu: 1000}}}]
";

#[test]
fn what_nobody_can_change_ends_the_run_with_1_and_its_reason() {
    let of_pod = |line: &str| {
        job("a", 1, "true", "").replace("restartPolicy", &format!("{line}\n          restartPolicy"))
    };
    let elsewhere = of_pod("nodeName: elsewhere");
    let unknown = of_pod("schedulerName: mine");
    let flow = "{apiVersion: flow.volcano.sh/v1alpha1, kind: JobFlow, metadata: {name: a}, spec: {flows: [{name: b}]}}";
    let never_due = "{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: \"0 0 31 2 *\", jobTemplate: \
         {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: any}]}}}}}}";
    // What still runs is waited for.
    let beside = format!("{unknown}---\n{}", job("b", 1, "echo done", ""));
    for (manifest, reason) in [
        (
            elsewhere.as_str(),
            "a: waiting: pod a-work-0: node elsewhere does not exist; fix: remove spec.nodeName",
        ),
        (
            &beside,
            "a: waiting: pod a-work-0: scheduler mine has not handled it; fix: remove spec.schedulerName",
        ),
        (flow, "a: waiting: step b has no JobTemplate b; fix: add the JobTemplate b to the files"),
        (never_due, "a: is never due; change spec.schedule"),
    ] {
        let (code, stdout, stderr) = run_text(manifest);
        assert_eq!(code, Some(1), "{stdout}{stderr}");
        let reasons: Vec<&str> = stdout.lines().filter(|line| line.contains(reason)).collect();
        assert_eq!(reasons.len(), 1, "{stdout}");
        assert!(
            stdout
                .contains("a: cannot make progress: nothing in this cluster can change what it waits for\n"),
            "{stdout}"
        );
        assert!(!stdout.contains("b: cannot"), "{stdout}");
    }
}

#[test]
fn what_failed_is_explained_also_if_something_else_can_not_go_on() {
    let volumes = "volumes: [{name: data, configMap: {name: nowhere}}]\n          containers:";
    let stuck = job("b", 1, "true", "").replace("containers:", volumes);
    let (code, stdout, stderr) =
        run_text(&format!("{}---{stuck}", job("a", 1, "echo out of luck; exit 3", "")));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("b: cannot make progress"), "{stdout}");
    assert!(stderr.contains("a-work-0, container main: exit code 3\n  out of luck\n"), "{stderr}");
}

#[test]
fn a_job_that_runs_and_can_not_grow_says_why() {
    let why = why_it_waits(GROWS_NO_FURTHER);
    assert!(
        // One of them says it for all, whichever came first.
        why.starts_with("a: waiting: pod a-large-")
            && why.contains("0/1 nodes are available: 1 Insufficient cpu"),
        "{why}"
    );
    assert!(why.ends_with("fix: lower resources.requests, or wait until other jobs have ended"), "{why}");
}

#[test]
fn a_container_that_is_started_again_and_again_is_explained() {
    let missing = job("a", 1, "true", "").replace("[sh, -c, \'true\']", "[no-such-command]");
    let why = why_it_waits(&missing.replace("Never", "OnFailure"));
    assert!(why.contains("container main cannot start") && why.contains("no-such-command"), "{why}");
    assert!(why.contains("restartPolicy is OnFailure; fix: correct its command"), "{why}");
    let why = why_it_waits(&job("a", 1, "true", "").replace("          restartPolicy: Never\n", ""));
    assert!(why.contains("exit code 0 and restarts because restartPolicy is Always; fix:"), "{why}");
}

/// A Job of Kubernetes with these lines in its spec and its pods'.
fn kubernetes_job(spec: &str, pod: &str) -> String {
    let container = "containers: [{name: main, image: any, command: [\"true\"]}]";
    format!(
        "{{apiVersion: batch/v1, kind: Job, metadata: {{name: a}}, spec: {{{spec} template: {{spec: {{restartPolicy: Never, {pod} {container}}}}}}}}}"
    )
}

#[test]
fn a_job_that_is_refused_what_it_needs_says_so() {
    let quota = |of: &str| {
        format!(
            "{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: none}}, spec: {{hard: {{{of}: '0'}}}}}}\n---\n"
        )
    };
    let groups = "count/podgroups.scheduling.volcano.sh";
    for (of, job, name, who) in [
        ("pods", job("a", 1, "true", ""), "a", "pods \"a-work-0\" is forbidden"),
        (groups, job("a", 1, "true", ""), "a", "podgroups.scheduling.volcano.sh \"a-"),
        (
            groups,
            kubernetes_job("", "schedulerName: volcano,"),
            "a",
            "podgroups.scheduling.volcano.sh \"podgroup-",
        ),
        ("pods", flow_of(&job("a", 1, "true", "")), "f-a", "pods \"f-a-work-0\" is forbidden"),
    ] {
        let told = why_it_waits(&(quota(of) + &job));
        assert!(told.starts_with(&format!("{name}: waiting: ")) && told.contains(who), "{told}");
        assert!(told.contains("exceeded quota: none"), "{told}");
        assert!(told.ends_with("or raise the ResourceQuota of the namespace"), "{told}");
    }
}

#[test]
fn a_flow_or_a_cron_job_whose_job_is_refused_says_so() {
    // As a template it is no job yet, and nobody minds.
    let twice = job("a", 1, "true", "");
    let (_, task) = twice.split_once("  tasks:\n").unwrap();
    let twice = format!("{twice}{}", task.trim_start_matches('\n'));
    let kubernetes = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template: {spec: {restartPolicy: Never, \
         containers: [{name: main, image: any, command: [\"true\"]}]}}";
    let quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {count/jobs.batch: '0'}}}\n---\n";
    for (manifest, name, why) in [
        (flow_of(&twice), "f", "duplicated"),
        (cron_job_of(&twice), "a", "duplicated"),
        (format!("{quota}{}", cron_job_of(kubernetes)), "a", "exceeded quota: none"),
    ] {
        let told = why_it_waits(&manifest);
        assert!(told.starts_with(&format!("{name}: waiting: ")) && told.contains(why), "{told}");
    }
}

#[test]
fn a_job_of_kubernetes_that_can_not_start_says_why() {
    for (spec, pod, why) in [
        ("suspend: true,", "", "spec.suspend is true: nothing runs until it is false"),
        ("parallelism: 0,", "", "spec.parallelism is 0: nothing runs until it is more"),
        ("managedBy: acme.io/jobs,", "", "spec.managedBy names the controller acme.io/jobs"),
        ("", "nodeSelector: {disk: none},", "0/1 nodes are available"),
        ("", "schedulingGates: [{name: acme.io/later}],", "scheduling gates"),
        ("", "priorityClassName: nobody,", "no PriorityClass with name nobody was found"),
    ] {
        let told = why_it_waits(&kubernetes_job(spec, pod));
        assert!(told.starts_with("a: waiting: ") && told.contains(why), "{told}");
    }
}
