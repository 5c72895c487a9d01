//! Volcano's other controllers, seen with kubectl.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use crate::support::{Up, job, repository_file, wait_until};

#[test]
fn a_finished_job_goes_when_its_time_is_over() {
    let up = Up::start();
    up.apply(&job("short", 1, "true", "  ttlSecondsAfterFinished: 1"));
    up.apply(&job("kept", 1, "true", "  ttlSecondsAfterFinished: 100000"));
    up.kubectl_ok(&["wait", "vcjob/short", "--for=delete", "--timeout=60s"]);
    up.wait_for("vcjob/kept", "{.status.state.phase}", "Completed");
    let pods = up.kubectl_ok(&["get", "pods", "-o", "name"]);
    assert_eq!(pods.trim(), "pod/kept-work-0", "what the job owned went with it");
}

/// JobTemplates of these names, each of which runs a shell command.
pub(crate) fn templates(commands: &[(&str, &str)]) -> String {
    let template = |(name, command): &(&str, &str)| {
        job(name, 1, command, "")
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
fn a_pod_that_ends_well_because_somebody_deletes_it_was_evicted() {
    const WAITS: &str = r#"trap "exit 0" TERM; while :; do sleep 0.05; done"#;
    let up = Up::start();
    let policies = "  policies: [{event: PodEvicted, action: RestartJob}]";
    let obedient = job("obedient", 1, WAITS, policies);
    // A container without a command waits to be told to go, and then ends well.
    let silent = job("silent", 1, "", policies).replace(", command: [sh, -c, '']", "");
    assert!(!silent.contains("command"), "{silent}");
    up.apply(&obedient);
    up.apply(&silent);
    up.apply(&job("unruled", 1, WAITS, ""));
    for name in ["obedient", "silent", "unruled"] {
        up.wait_for(&format!("vcjob/{name}"), "{.status.state.phase}", "Running");
        let uid = up.field(&format!("pod/{name}-work-0"), "{.metadata.uid}");
        up.kubectl_ok(&["delete", "pod", &format!("{name}-work-0"), "--wait=false"]);
        wait_until("it runs again", || {
            let pod =
                up.kubectl(&["get", "pod", &format!("{name}-work-0"), "-o", "jsonpath={.metadata.uid}"]);
            let status = up.field(&format!("vcjob/{name}"), "{.status.state.phase} {.status.running}");
            pod.status.success() && pod.stdout != uid.as_bytes() && status == "Running 1"
        });
        let expected = if name == "unruled" { " " } else { " 1" };
        let status = up.field(&format!("vcjob/{name}"), "{.status.succeeded} {.status.retryCount}");
        assert_eq!(status, expected, "{name}");
    }
}

#[test]
fn a_queue_shows_how_its_jobs_are_doing() {
    let up = Up::start();
    up.apply(&job("runs", 1, "exec sleep 1000", ""));
    let waits = job("waits", 1, "true", "");
    up.apply(&waits.replace("image: any", "image: any, resources: {requests: {cpu: 10000}}"));
    for (field, value) in [("state", "Open"), ("running", "1"), ("pending", "1")] {
        up.wait_for("queue/default", &format!("{{.status.{field}}}"), value);
    }
    let table = up.kubectl_ok(&["get", "queue", "default"]);
    let words: Vec<&str> = table.split_whitespace().collect();
    assert_eq!(words[..6], ["NAME", "PARENT", "STATE", "INQUEUE", "PENDING", "RUNNING"], "{table}");
    assert_eq!(words[6..], ["default", "root", "Open", "0", "1", "1"], "{table}");
    up.apply("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: unused}, spec: {}}");
    up.wait_for("queue/unused", "{.status.running}", "0");
    up.wait_for("queue/root", "{.status.running}", "0");
}

#[test]
fn branches_of_a_flow_meet_and_their_jobs_are_removed() {
    let up = Up::start();
    up.apply(&std::fs::read_to_string(repository_file("examples/branches.yaml")).unwrap());
    up.wait_for("jobflow/parallel-pipeline", "{.status.state.phase}", "Succeed");
    up.kubectl_ok(&["wait", "vcjob", "--all", "--for=delete", "--timeout=60s"]);
    let completed: Vec<String> =
        serde_json::from_str(&up.field("jobflow/parallel-pipeline", "{.status.completedJobs}")).unwrap();
    let steps =
        ["data-download", "feature-engineering", "model-training-v1", "model-training-v2", "model-ensemble"];
    assert_eq!(completed, steps.map(|step| format!("parallel-pipeline-{step}")), "in the order of the spec");
    // What the jobs owned goes with them.
    up.kubectl_ok(&["wait", "pod", "--all", "--for=delete", "--timeout=60s"]);
}

#[test]
fn a_flow_waits_for_a_template_that_comes_later() {
    let up = Up::start();
    up.apply("{apiVersion: flow.volcano.sh/v1alpha1, kind: JobFlow, metadata: {name: f}, spec: {flows: [{name: late}]}}");
    up.wait_for("jobflow/f", "{.status.conditions.f-late.phase}", "TemplateMissing");
    assert_eq!(up.field("jobflow/f", "{.status.state.phase}"), "Pending");
    up.apply(&templates(&[("late", "true")]));
    up.wait_for("jobflow/f", "{.status.state.phase}", "Succeed");
    let events = up.kubectl_ok(&["get", "events", "-o", "jsonpath={.items[*].message}"]);
    assert!(events.contains("JobTemplate late does not exist"), "{events}");
    up.wait_for("jobtemplate/late", "{.status.jobDependsOnList[0]}", "f-late");
}

#[test]
fn a_step_starts_as_soon_as_its_target_answers() {
    let up = Up::start();
    // The port is kept at one address, so that it is free at the pod's.
    let kept = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = kept.local_addr().unwrap().port();
    up.apply(&templates(&[("server", "exec sleep 1000"), ("client", "true")]));
    up.apply(&format!(
        "
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {{name: f}}
spec:
  flows:
    - {{name: server}}
    - name: client
      dependsOn:
        targets: [server]
        probe:
          tcpSocketList: [{{taskName: work, port: {port}}}]
          httpGetList: [{{taskName: work, port: {port}, path: /healthz, httpHeader: {{name: X-Who, value: flow}}}}]
"
    ));
    up.wait_for("pod/f-server-work-0", "{.status.phase}", "Running");
    let pod = up.field("pod/f-server-work-0", "{.status.podIP}");
    let is_well = Arc::new(AtomicBool::new(false));
    let requests = serve(TcpListener::bind(format!("{pod}:{port}")).unwrap(), is_well.clone());
    let request = requests.recv().unwrap();
    assert!(request.starts_with("GET /healthz HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("X-Who: flow\r\n"), "{request}");
    assert_eq!(up.kubectl_ok(&["get", "vcjob/f-client", "--ignore-not-found"]), "", "it is not ready yet");
    is_well.store(true, Ordering::Relaxed);
    up.wait_for("vcjob/f-client", "{.status.state.phase}", "Completed");
    assert_eq!(up.field("vcjob/f-server", "{.status.state.phase}"), "Running", "the server runs on");
    let events = up.kubectl_ok(&["get", "events", "-o", "jsonpath={.items[*].message}"]);
    assert!(events.contains("flow client waits until job f-server answers: "), "{events}");
}

/// Answers requests as long as the test goes on, well or not, and hands them over.
fn serve(server: TcpListener, is_well: Arc<AtomicBool>) -> Receiver<String> {
    let (send, requests) = channel();
    std::thread::spawn(move || {
        for mut stream in server.incoming().map_while(Result::ok) {
            let mut request = String::new();
            let mut reader = BufReader::new(&stream);
            while !request.ends_with("\r\n\r\n") && reader.read_line(&mut request).is_ok_and(|n| n > 0) {}
            // Who only knocks says nothing, and who has waited too long does not hear the answer.
            if !request.is_empty() {
                let answer = if is_well.load(Ordering::Relaxed) { "200 OK" } else { "503 Busy" };
                let _ = write!(stream, "HTTP/1.1 {answer}\r\n\r\n");
                let _ = send.send(request);
            }
        }
    });
    requests
}

#[test]
fn why_a_job_can_not_be_made_is_said_where_people_look() {
    let up = Up::start();
    // A template is a job only once somebody makes one of it: until then nobody minds.
    let twice = templates(&[("twice", "true")]).replace("  tasks:\n", "  maxRetry: 1\n  tasks:\n");
    let task = twice.split_once("  tasks:\n").unwrap().1.to_owned();
    up.apply(&(twice + &task));
    up.apply("{apiVersion: flow.volcano.sh/v1alpha1, kind: JobFlow, metadata: {name: f}, spec: {flows: [{name: twice}, {name: missing}]}}");
    let template = job("ignored", 1, "true", "").replace("apiVersion", "#").replace("kind:", "#");
    let template = (template + &task).replace('\n', "\n    ");
    up.apply(&format!(
        "
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {{name: tick}}
spec:
  schedule: '@every 1s'
  jobTemplate:
    {template}
"
    ));
    let refusal = up.wait_for_event("JobFlow", "f", "FailedCreate");
    assert!(refusal.contains("f-twice") && refusal.contains("duplicated"), "{refusal}");
    let missing = up.wait_for_event("JobFlow", "f", "SyncJobFlow");
    assert!(missing.contains("JobTemplate missing does not exist"), "{missing}");
    let refusal = up.wait_for_event("CronJob", "tick", "FailedCreate");
    assert!(refusal.contains("tick-") && refusal.contains("duplicated"), "{refusal}");
}

/// A Command for a queue.
pub(crate) fn queue_command(up: &Up, queue: &str, action: &str) -> String {
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
fn pods_of_a_workload_that_must_start_together_do_not_start_before_there_is_room_for_all() {
    let up = Up::start_with(&["--simulate", "nodes=1,cpu=4"]);
    up.apply(
        "
apiVersion: batch/v1
kind: Job
metadata: {name: pair, annotations: {scheduling.volcano.sh/group-min-member: '2'}}
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      schedulerName: volcano
      restartPolicy: Never
      containers: [{name: main, image: any, resources: {requests: {cpu: 3}}}]
",
    );
    let group = format!("podgroup/podgroup-{}", up.field("job.batch/pair", "{.metadata.uid}"));
    up.wait_for(&group, "{.status.conditions[0].reason}", "NotEnoughResources");
    assert_eq!(up.field("pods", "{.items[*].spec.nodeName}"), "");
}

#[test]
fn a_pod_in_a_queue_that_is_closed_or_unknown_does_not_run_and_says_why() {
    let up = Up::start();
    up.apply(
        "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: shut}, spec: {weight: 1}}",
    );
    up.wait_for("queue/shut", "{.status.state}", "Open");
    up.kubectl_with_input(&["create", "-f", "-"], &queue_command(&up, "shut", "CloseQueue"));
    up.wait_for("queue/shut", "{.status.state}", "Closed");
    for queue in ["shut", "unknown"] {
        up.apply(&format!(
            "
apiVersion: v1
kind: Pod
metadata: {{name: in-{queue}, annotations: {{scheduling.volcano.sh/queue-name: {queue}}}}}
spec:
  schedulerName: volcano
  containers: [{{name: main, image: any, command: [sleep, '1000']}}]
"
        ));
        let why = up.wait_for_event("Pod", &format!("in-{queue}"), "FailedCreate");
        assert!(why.contains(queue), "{why}");
        assert_eq!(up.field(&format!("pod/in-{queue}"), "{.spec.nodeName}"), "");
    }
}

#[test]
fn a_cronjob_runs_again_and_again_and_keeps_as_many_jobs_as_it_should() {
    let up = Up::start();
    let template = job("ignored", 1, "true", "")
        .replace("apiVersion", "#")
        .replace("kind:", "#")
        .replace('\n', "\n    ");
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
