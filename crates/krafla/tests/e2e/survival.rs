//! What happens when krafla is killed, stopped, or started twice.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Kubectl, Up, job, krafla, processes_of, text};

/// A pod that ends once the test says so, by making a file.
fn job_that_waits_for(file: &str) -> String {
    job("a", 2, &format!("until test -e {file}; do sleep 0.05; done; echo done"), "")
}

#[test]
fn a_job_survives_kill_9_in_the_middle() {
    let mut up = Up::start();
    let go = up.file("go");
    up.apply(&job_that_waits_for(go.to_str().unwrap()));
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    let uid = up.field("pod/a-work-0", "{.metadata.uid}");
    let address = std::fs::read_to_string(up.kubeconfig()).unwrap();

    up.kill_and_restart();
    assert_eq!(std::fs::read_to_string(up.kubeconfig()).unwrap(), address, "pods and others find it again");
    assert_eq!(up.field("vcjob/a", "{.status.state.phase}"), "Running");
    std::fs::write(go, "").unwrap();
    up.wait_for("vcjob/a", "{.status.state.phase}", "Completed");
    assert_eq!(up.field("pod/a-work-0", "{.metadata.uid}"), uid, "the pod went on; it was not started again");
    assert_eq!(up.field("vcjob/a", "{.status.retryCount}"), "");
    assert_eq!(up.kubectl_ok(&["logs", "a-work-0"]), "done\n");
}

#[test]
fn a_job_that_ends_while_krafla_is_dead_is_found_ended() {
    let mut up = Up::start();
    let go = up.file("go");
    up.apply(&job_that_waits_for(go.to_str().unwrap()));
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    up.child().kill().unwrap();
    std::fs::write(go, "").unwrap();
    up.kill_and_restart();
    up.wait_for("vcjob/a", "{.status.state.phase}", "Completed");
}

/// Pods that write down when they start and when they end, and wait in between for the lock of a file.
fn job_of_100_pods(starts: &Path, gate: &Path, ends: &Path) -> String {
    let (starts, gate, ends) = (starts.display(), gate.display(), ends.display());
    format!(
        r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: a}}
spec:
  minAvailable: 1
  tasks:
    - name: work
      replicas: 100
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: main
              image: any
              command: [sh, -c, "echo $HOSTNAME >> {starts}; flock -s {gate} true; echo $HOSTNAME >> {ends}"]
"#
    )
}

#[test]
fn each_of_100_pods_runs_exactly_once_though_krafla_is_killed_twice() {
    let mut up = Up::start();
    let (starts, gate, ends) = (up.file("starts"), up.file("gate"), up.file("ends"));
    let lock = File::create(&gate).unwrap();
    lock.lock().unwrap();
    up.apply(&job_of_100_pods(&starts, &gate, &ends));
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    // Once while most of them are still to be started, and once while all of them run.
    up.kill_and_restart();
    up.wait_for("vcjob/a", "{.status.running}", "100");
    let addresses =
        ["get", "pods", "-o", "jsonpath={range .items[*]}{.metadata.name} {.status.podIP}{'\\n'}{end}"];
    let before = up.kubectl_ok(&addresses);
    up.kill_and_restart();
    drop(lock);
    up.wait_for("vcjob/a", "{.status.state.phase}", "Completed");
    assert_eq!(up.kubectl_ok(&addresses), before, "each pod keeps its address");

    let mut all: Vec<String> = (0..100).map(|index| format!("a-work-{index}")).collect();
    all.sort();
    for file in [&starts, &ends] {
        let text = std::fs::read_to_string(file).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, all, "{} has each pod once", file.display());
    }
    assert_eq!(up.field("vcjob/a", "{.status.succeeded}"), "100");
    assert_eq!(up.field("vcjob/a", "{.status.retryCount}"), "");
    assert_eq!(processes_of(&gate), "", "no process is left");

    up.kubectl_ok(&["delete", "vcjob/a"]);
    let pods = up.data_dir().join("node/pods");
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::read_dir(&pods).unwrap().next().is_some() {
        assert!(Instant::now() < deadline, "files of pods are left in {}", pods.display());
    }
}

#[test]
fn pods_that_lose_their_supervisor_have_failed_and_policies_answer() {
    let up = Up::start();
    let (starts, go, never) = (up.file("starts"), up.file("go"), up.file("never"));
    let script = |name: &str, go: &Path| {
        let (starts, go) = (starts.display(), go.display());
        format!("echo {name} $PPID >> {starts}; until test -e {go}; do sleep 0.05; done")
    };
    let lines = || std::fs::read_to_string(&starts).unwrap_or_default();
    let until_lines = |n_lines: usize| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while lines().lines().count() < n_lines {
            assert!(Instant::now() < deadline, "{}", lines());
            std::thread::yield_now();
        }
    };
    let policy = "  policies: [{event: PodFailed, action: RestartJob}]";
    up.apply(&job("a", 3, &script("a", &go), policy));
    up.apply(&job("b", 1, &script("b", &never), ""));
    up.wait_for("vcjob/a", "{.status.running}", "3");
    up.wait_for("vcjob/b", "{.status.running}", "1");
    until_lines(4);
    let supervisor = lines().split_whitespace().nth(1).unwrap().to_owned();
    assert!(Command::new("kill").args(["-9", &supervisor]).status().unwrap().success());

    // Who has no policy has failed, and says why.
    up.wait_for("vcjob/b", "{.status.state.phase}", "Failed");
    let end = "{.status.containerStatuses[0].state.terminated.exitCode} {.status.containerStatuses[0].state.terminated.message}";
    assert_eq!(up.field("pod/b-work-0", end), "137 the supervisor of this container ended before it did");
    assert_eq!(processes_of(&never), "", "a container without a supervisor does not go on");
    // Three pods failed at once: that is one restart.
    up.wait_for("vcjob/a", "{.status.retryCount}", "1");
    until_lines(7);
    std::fs::write(&go, "").unwrap();
    up.wait_for("vcjob/a", "{.status.state.phase}", "Completed");
    assert_eq!(up.field("vcjob/a", "{.status.retryCount}"), "1");
    assert_eq!(lines().lines().filter(|line| line.starts_with("a ")).count(), 6, "{}", lines());
}

#[test]
fn a_second_start_on_the_same_data_directory_is_refused() {
    let up = Up::start();
    let output = krafla().args(["up", "--data-dir"]).arg(up.data_dir()).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let message = text(&output.stderr);
    assert!(message.contains("data") && message.contains("in use"), "{message}");
}

#[test]
fn a_damaged_data_directory_is_named_with_the_remedy_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store.redb");
    std::fs::write(&store, "dear diary").unwrap();
    let output =
        krafla().args(["up", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains(&format!("{} is damaged", store.display())), "{message}");
    assert!(message.contains("move the whole directory away to start empty"), "{message}");
    assert_eq!(std::fs::read_to_string(&store).unwrap(), "dear diary");
}

#[test]
fn an_address_in_use_is_told_once() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = tempfile::tempdir().unwrap();
    let output = krafla().args(["up", "--listen", &address, "--data-dir"]).arg(dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    let message = text(&output.stderr);
    assert!(message.contains(&address), "{message}");
    assert_eq!(message.matches("in use").count(), 1, "{message}");
}

#[test]
fn what_goes_on_without_krafla_is_named_and_nobody_else_can_look_into_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut child = krafla().args(["up", "--data-dir"]).arg(&data).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("use it with")));
    let kubectl = Kubectl::in_dir(&data);
    kubectl.apply(&job("a", 2, "exec sleep 1000", ""));
    kubectl.wait_for("vcjob/a", "{.status.running}", "2");
    for (path, mode) in [("", 0o700), ("store.redb", 0o600), ("node", 0o700)] {
        assert_eq!(data.join(path).metadata().unwrap().permissions().mode() & 0o777, mode, "{path}");
    }

    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let said: Vec<String> = lines.collect();
    let remedy = "`krafla up` with the same --data-dir takes them over";
    assert_eq!(said, ["stopping", &format!("pods that continue to run: a-work-0, a-work-1; {remedy}")]);
    // They end when their directory is gone, which nothing could ever take over.
    assert!(child.wait().unwrap().success());
}

#[test]
fn sigterm_stops_krafla_in_order() {
    let mut up = Up::start();
    let pid = up.child().id().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    assert_eq!(up.child().wait().unwrap().code(), Some(0));
}
