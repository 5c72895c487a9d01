//! What happens when krafla is killed, stopped, or started twice.

use crate::support::{Up, krafla, text};

/// A pod that ends once the test says so, by making a file.
fn job_that_waits_for(file: &str) -> String {
    format!(
        r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: a}}
spec:
  minAvailable: 2
  tasks:
    - name: work
      replicas: 2
      template:
        spec:
          restartPolicy: Never
          containers: [{{name: main, image: any, command: [sh, -c, "until test -e {file}; do sleep 0.05; done; echo done"]}}]
"#
    )
}

#[test]
fn a_job_survives_kill_9_in_the_middle() {
    let mut up = Up::start();
    let go = up.file("go");
    up.apply(&job_that_waits_for(go.to_str().unwrap()));
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    let uid = up.field("pod/a-work-0", "{.metadata.uid}");

    up.kill_and_restart();
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

#[test]
fn a_second_start_on_the_same_data_directory_is_refused() {
    let up = Up::start();
    let output = krafla().args(["up", "--data-dir"]).arg(up.data_dir()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("data") && message.contains("in use"), "{message}");
}

#[test]
fn sigterm_stops_krafla_in_order() {
    let mut up = Up::start();
    let pid = up.child().id().to_string();
    assert!(std::process::Command::new("kill").arg(pid).status().unwrap().success());
    assert_eq!(up.child().wait().unwrap().code(), Some(0));
}
