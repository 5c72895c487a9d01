//! Deployments, StatefulSets and DaemonSets: a real kube-controller-manager beside krafla makes their pods, which
//! `scripts/install-tools kube-controller-manager` builds; without it there is nothing to run.

use std::process::{Child, Command, Stdio};

use crate::support::{Up, repository_file, text};

/// A set of two pods, if it may say how many.
fn set(kind: &str, more: &str) -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: {kind}
metadata: {{name: web}}
spec:
  selector: {{matchLabels: {{of: {kind}}}}}
  template:
    metadata: {{labels: {{of: {kind}}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{{name: main, image: any, command: [tail, -f, /dev/null]}}]
{more}"#
    )
}

/// A kube-controller-manager, which ends with the test.
struct ControllerManager(Child);

impl ControllerManager {
    fn start(up: &Up) -> Option<ControllerManager> {
        let program = repository_file("target/tools/bin/kube-controller-manager");
        if !program.exists() {
            println!(
                "{} is missing; scripts/install-tools kube-controller-manager makes it",
                program.display()
            );
            return None;
        }
        let controllers =
            ["deployment", "replicaset", "statefulset", "daemonset"].map(|name| format!("{name}-controller"));
        let mut command = Command::new(program);
        command.arg(format!("--kubeconfig={}", up.kubeconfig().display()));
        command.arg(format!("--controllers={}", controllers.join(",")));
        command.args(["--secure-port=0", "--use-service-account-credentials=false"]);
        let log = std::fs::File::create(up.file("controller-manager.log")).unwrap();
        Some(ControllerManager(
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap(),
        ))
    }
}

impl Drop for ControllerManager {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_set_whose_pods_nothing_makes_is_answered_with_a_warning() {
    let up = Up::start();
    let applied = up.kubectl_with_input(&["apply", "-f", "-"], &set("Deployment", "  replicas: 2"));
    assert!(applied.status.success());
    assert!(
        text(&applied.stderr).starts_with("Warning: nothing makes the pods of this Deployment"),
        "{applied:?}"
    );
}

#[test]
fn a_controller_manager_beside_krafla_runs_deployments_stateful_sets_and_daemon_sets() {
    let up = Up::start();
    let Some(_manager) = ControllerManager::start(&up) else { return };
    up.kubectl_ok(&[
        "wait",
        "lease/kube-controller-manager",
        "-n=kube-system",
        "--for=create",
        "--timeout=60s",
    ]);
    let claim = "{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}";
    let stateful = format!("  replicas: 2\n  serviceName: web\n  volumeClaimTemplates: [{claim}]");
    for (kind, more) in [("Deployment", "  replicas: 2"), ("StatefulSet", &stateful), ("DaemonSet", "")] {
        let applied = up.kubectl_with_input(&["apply", "-f", "-"], &set(kind, more));
        assert!(applied.status.success() && applied.stderr.is_empty(), "{kind}: {}", text(&applied.stderr));
    }
    up.wait_for("deployment/web", "{.status.readyReplicas}", "2");
    up.wait_for("statefulset/web", "{.status.readyReplicas}", "2");
    up.wait_for("daemonset/web", "{.status.numberReady}", "1");
    assert_eq!(up.field("persistentvolumeclaim/data-web-1", "{.status.phase}"), "Bound");
}
