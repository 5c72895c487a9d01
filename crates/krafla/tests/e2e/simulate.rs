//! `krafla up --simulate`: a cluster that nobody has.

use crate::support::{Up, krafla, text};

/// A job whose pods want a processor each.
fn job(name: &str, replicas: u32, annotations: &str) -> String {
    format!(
        r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec:
  minAvailable: {replicas}
  tasks:
    - name: work
      replicas: {replicas}
      template:
        metadata: {{annotations: {{{annotations}}}}}
        spec:
          restartPolicy: Never
          containers: [{{name: main, image: any, resources: {{requests: {{cpu: 1}}}}}}]
"#
    )
}

#[test]
fn jobs_run_on_nodes_that_only_pretend() {
    let up = Up::start_with(&["--simulate", "nodes=3,cpu=4,memory=8Gi,duration=10ms"]);
    for node in ["node/simulated-0", "node/simulated-1", "node/simulated-2"] {
        up.kubectl_ok(&["wait", node, "--for=create", "--timeout=60s"]);
    }
    let nodes = up.kubectl_ok(&["get", "nodes", "-o", "name"]);
    assert_eq!(nodes, "node/simulated-0\nnode/simulated-1\nnode/simulated-2\n");

    up.apply(&job("all", 12, ""));
    up.wait_for("vcjob/all", "{.status.state.phase}", "Completed");
    let used = up.kubectl_ok(&["get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}"]);
    for node in ["simulated-0", "simulated-1", "simulated-2"] {
        assert_eq!(used.split(' ').filter(|used| *used == node).count(), 4, "{used}");
    }

    up.apply(&job("failing", 1, r#"krafla.dev/simulated-exit-code: "7""#));
    up.wait_for("pod/failing-work-0", "{.status.containerStatuses[0].state.terminated.exitCode}", "7");
    up.wait_for("vcjob/failing", "{.status.state.phase}", "Failed");

    up.apply(&job("endless", 1, "krafla.dev/simulated-duration: forever"));
    up.wait_for("vcjob/endless", "{.status.state.phase}", "Running");
    up.kubectl_ok(&["delete", "vcjob/endless", "--timeout=60s"]);
    up.kubectl_ok(&["wait", "pod/endless-work-0", "--for=delete", "--timeout=60s"]);
}

#[test]
fn a_job_of_ten_thousand_pods_says_in_its_status_that_there_is_no_room_and_holds_up_nobody() {
    let up = Up::start_with(&["--simulate", "nodes=2,cpu=4,memory=8Gi,duration=10ms"]);
    up.apply(&job("endless", 10_000, ""));
    up.wait_for("vcjob/endless", "{.status.state.reason}", "PodGroupPending");
    let why = up.field("vcjob/endless", "{.status.state.message}");
    assert!(why.contains("10k cpu"), "{why}");
    up.apply(&job("sane", 8, ""));
    up.wait_for("vcjob/sane", "{.status.state.phase}", "Completed");
    assert_eq!(up.field("vcjob/endless", "{.status.state.phase}"), "Pending");
}

/// Makes a queue, and a job in it that starts with one pod and runs for ever.
fn fill_queue(up: &Up, name: &str, reclaimable: bool, replicas: u32) {
    up.apply(&format!(
        "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: {name}}}, \
         spec: {{reclaimable: {reclaimable}}}}}"
    ));
    up.wait_for(&format!("queue/{name}"), "{.status.state}", "Open");
    let job = job(name, replicas, "krafla.dev/simulated-duration: forever");
    let min_available = format!("  minAvailable: {replicas}\n");
    up.apply(&job.replace(&min_available, &format!("  queue: {name}\n  minAvailable: 1\n")));
    up.wait_for(&format!("vcjob/{name}"), "{.status.running}", &replicas.to_string());
}

#[test]
fn a_queue_takes_back_its_share_from_a_queue_that_lets_it_and_from_no_other() {
    let up = Up::start_with(&["--simulate", "nodes=1,cpu=8,memory=8Gi", "--reclaim"]);
    let pods_of = |job: &str| {
        let label = format!("volcano.sh/job-name={job}");
        up.kubectl_ok(&["get", "pods", "-l", &label, "-o", "jsonpath={.items[*].metadata.uid}"])
    };
    fill_queue(&up, "lender", true, 4);
    // It is younger, and its name comes first: whoever did not ask would take from it.
    fill_queue(&up, "keeper", false, 4);
    let (of_lender, of_keeper) = (pods_of("lender"), pods_of("keeper"));

    fill_queue(&up, "owner", true, 1);
    up.wait_for("vcjob/lender", "{.status.running}", "3");
    assert_eq!(pods_of("keeper"), of_keeper);
    assert_ne!(pods_of("lender"), of_lender, "one of its pods waits anew");
}

#[test]
fn simulated_nodes_go_when_the_cluster_is_started_without_them() {
    let mut up = Up::start_with(&["--simulate", "nodes=2"]);
    up.apply(&job("endless", 1, "krafla.dev/simulated-duration: forever"));
    up.wait_for("vcjob/endless", "{.status.state.phase}", "Running");
    up.kill_and_restart();
    up.wait_for("node/localhost", "{.kind}", "Node");
    assert_eq!(up.kubectl_ok(&["get", "nodes", "-o", "name"]), "node/localhost\n");
    up.wait_for("pod/endless-work-0", "{.spec.nodeName}", "localhost");
    let data_dir = up.data_dir();
    up.child().kill().unwrap();
    up.child().wait().unwrap();
    let output = krafla().args(["up", "--simulate", "nodes=2", "--data-dir"]).arg(data_dir).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("use another --data-dir"), "{}", text(&output.stderr));
}

#[test]
fn a_pod_whose_annotation_makes_no_sense_fails_and_says_why() {
    let up = Up::start_with(&["--simulate", "nodes=1"]);
    up.apply(&job("odd", 1, "krafla.dev/simulated-duration: soon"));
    up.wait_for("pod/odd-work-0", "{.status.reason}", "InvalidSimulation");
    let why = up.field("pod/odd-work-0", "{.status.message}");
    assert!(why.contains("krafla.dev/simulated-duration is \"soon\""), "{why}");
}

#[test]
fn of_simulated_pods_there_is_nothing_to_see_or_to_warn_of() {
    let up = Up::start_with(&["--simulate", "nodes=1,duration=10ms,exit-code=3"]);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("job.yaml"), job("a", 1, "")).unwrap();
    let mut run = krafla();
    run.current_dir(dir.path()).args(["run", "job.yaml"]).env("KUBECONFIG", up.kubeconfig());
    let output = run.output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("exit code 3"), "{said}");
    assert!(!said.contains("has no command"), "{said}");
    up.apply(&job("b", 1, "krafla.dev/simulated-duration: forever"));
    up.wait_for("pod/b-work-0", "{.status.phase}", "Running");
    for (verb, expected) in [
        (["logs", "a-work-0"].as_slice(), "pod a-work-0 is simulated: it has no logs"),
        (&["exec", "b-work-0", "--", "true"], "pod b-work-0 is simulated: it has no processes"),
        (&["attach", "b-work-0"], "pod b-work-0 is simulated: it has no processes"),
    ] {
        let output = up.kubectl(verb);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(expected), "{said}");
    }
}

#[test]
fn a_size_that_makes_no_sense_is_refused() {
    let output = krafla().args(["up", "--simulate", "nodes=none"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("nodes=none: must be a whole number from 1 to 100000"), "{error}");
}
