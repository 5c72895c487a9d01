//! `krafla controller-manager`: the controllers in a process of their own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::support::{Up, job, krafla, text};

/// A running manager, killed at the end.
struct Manager(Child);

impl Manager {
    /// Starts a manager and waits until the lease is its own.
    fn start(up: &Up) -> Manager {
        let mut child = krafla()
            .args(["controller-manager", "--kubeconfig"])
            .arg(up.kubeconfig())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let has_lease = lines.by_ref().any(|line| line.contains("the lease is ours"));
        assert!(has_lease, "the manager ended before it had its lease: {:?}", child.wait());
        // Keep reading, so that it never waits for somebody to take its lines.
        std::thread::spawn(move || lines.for_each(drop));
        Manager(child)
    }

    fn terminate(&mut self) -> Option<i32> {
        assert!(Command::new("kill").arg(self.0.id().to_string()).status().unwrap().success());
        self.0.wait().unwrap().code()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // One that has ended can not be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn jobs_complete_though_the_manager_is_killed_and_started_again() {
    let up = Up::start_with(&["--without-controllers"]);
    let go = up.file("go");
    up.apply(&job("a", 2, &format!("until test -e {}; do sleep 0.05; done", go.display()), ""));
    assert_eq!(up.field("vcjob/a", "{.status.state.phase}"), "", "nobody looks after it");

    let manager = Manager::start(&up);
    up.wait_for("vcjob/a", "{.status.state.phase}", "Running");
    let uid = up.field("pod/a-work-0", "{.metadata.uid}");
    drop(manager);
    std::fs::write(&go, "").unwrap();
    up.apply(&job("b", 2, "true", ""));

    let mut manager = Manager::start(&up);
    for name in ["vcjob/a", "vcjob/b"] {
        up.wait_for(name, "{.status.state.phase}", "Completed");
        assert_eq!(up.field(name, "{.status.retryCount}"), "");
    }
    assert_eq!(up.field("pod/a-work-0", "{.metadata.uid}"), uid, "the pod went on");

    let lease = ["get", "lease", "-n", "volcano-system", "vc-controller-manager", "-o"];
    let transitions = up.kubectl_ok(&[&lease[..], &["jsonpath={.spec.leaseTransitions}"]].concat());
    assert_eq!(transitions, "1", "the second took the lease of the first");
    assert_eq!(manager.terminate(), Some(0));
    let holder = up.kubectl_ok(&[&lease[..], &["jsonpath={.spec.holderIdentity}"]].concat());
    assert_eq!(holder, "", "the lease was given back");
}

#[test]
fn what_can_not_be_used_is_named_and_exits_with_2() {
    let refused = |args: &[&str]| {
        let output = krafla().arg("controller-manager").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        text(&output.stderr)
    };
    let message = refused(&["--kubeconfig", "/nowhere/kubeconfig"]);
    assert!(message.contains("/nowhere/kubeconfig"), "{message}");
    let message = refused(&["--controllers", "*,-job-controler"]);
    assert!(message.contains("job-controler") && message.contains("jobflow-controller"), "{message}");
    let message = refused(&["--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=5s"]);
    assert!(message.contains("--leader-elect-renew-deadline"), "{message}");
    let message = refused(&[]);
    assert!(message.contains("--kubeconfig"), "{message}");
}
