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
