//! Limits of memory and cpu, and what is told of containers that do not keep to them.
//!
//! Few machines on which tests run let them have control groups of version 2, so `scripts/test` runs these once more in a virtual
//! machine that does, with `KRAFLA_LIMITS=hold`: there they must.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{NOBODY, Up, job, krafla, krafla_as_nobody, text, wait_until};

const TREE: &str = "/sys/fs/cgroup";

/// Whether containers are held to their limits on this machine, as `krafla doctor` says.
fn limits_hold() -> bool {
    let output =
        krafla().args(["doctor", "--output", "json"]).current_dir(std::env::temp_dir()).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = found["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["what"] == "limits of cpu and memory").unwrap();
    let hold = finding["state"] == "ok";
    let must_hold = std::env::var_os("KRAFLA_LIMITS").is_some_and(|value| value == "hold");
    assert!(hold || !must_hold, "{finding}");
    if !hold {
        println!("not tested, because this machine does not hold containers to limits; see krafla doctor");
    }
    hold
}

/// A pod with limits.
fn pod(limits: &str, restart_policy: &str, script: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  restartPolicy: {restart_policy}
  containers:
    - {{name: main, image: any, resources: {{limits: {limits}}}, command: [sh, -c, '{script}']}}
"#
    )
}

/// A program that takes all the memory that it can get. Where nobody stops it, it stops at a limit of its own, before it has taken
/// all that there is.
const GREEDY: &str = "ulimit -v 1048576; exec tail /dev/zero";

#[test]
fn a_container_that_takes_too_much_memory_is_ended_and_told_so() {
    if !limits_hold() {
        return;
    }
    let up = Up::start();
    // Its main process is not the greedy one: nothing of the container goes on half dead.
    up.apply(&pod("{memory: 32Mi}", "Never", &format!("({GREEDY}); sleep 1000")));
    up.wait_for("pod/p", "{.status.phase}", "Failed");
    let ended = "{.status.containerStatuses[0].state.terminated";
    let told = up.field("pod/p", &format!("{ended}.reason}} {ended}.exitCode}}"));
    assert_eq!(told, "OOMKilled 137");
}

#[test]
fn what_runs_beside_a_container_is_held_to_its_limits() {
    if !limits_hold() {
        return;
    }
    let up = Up::start();
    up.apply(&pod("{memory: 32Mi}", "Never", "sleep 1000"));
    up.wait_for("pod/p", "{.status.phase}", "Running");
    // It ends with the container, whose memory it has used up.
    let ran = up.kubectl(&["exec", "p", "--", "sh", "-c", GREEDY]);
    assert!(!ran.status.success());
    assert!(!text(&ran.stderr).contains("memory exhausted"), "{}", text(&ran.stderr));
    up.wait_for("pod/p", "{.status.phase}", "Failed");
    assert_eq!(up.field("pod/p", "{.status.containerStatuses[0].state.terminated.reason}"), "OOMKilled");
}

#[test]
fn a_job_answers_the_exit_code_of_a_container_without_memory() {
    if !limits_hold() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let policy = "  policies: [{exitCode: 137, action: CompleteJob}]";
    let limited = "image: any, resources: {limits: {memory: 32Mi}}";
    let manifest = job("a", 1, GREEDY, policy).replace("image: any", limited);
    fs::write(dir.path().join("job.yaml"), manifest).unwrap();
    let ran = krafla().args(["run", "job.yaml"]).current_dir(dir.path()).output().unwrap();
    assert!(ran.status.success(), "{}\n{}", text(&ran.stdout), text(&ran.stderr));
}

#[test]
fn a_container_gets_as_much_of_a_processor_as_its_limit_says() {
    if !limits_hold() {
        return;
    }
    let up = Up::start();
    // It works until the kernel has held it back.
    let script = r#"g=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); cat $g/cpu.max; until grep -q "nr_throttled [1-9]" $g/cpu.stat; do :; done; echo held back"#;
    up.apply(&pod("{cpu: 150m}", "Never", script));
    up.wait_for("pod/p", "{.status.phase}", "Succeeded");
    assert_eq!(up.kubectl_ok(&["logs", "p"]), "15000 100000\nheld back\n");
}

#[test]
fn limits_outlive_krafla_and_leave_no_group() {
    if !limits_hold() {
        return;
    }
    let mut up = Up::start();
    let go = up.file("go");
    let script = format!(
        "cut -d: -f3 /proc/self/cgroup; until test -e {}; do sleep 0.05; done; {GREEDY}",
        go.display()
    );
    up.apply(&pod("{memory: 32Mi}", "OnFailure", &script));
    up.wait_for("pod/p", "{.status.phase}", "Running");
    up.kill_and_restart();
    fs::write(go, "").unwrap();
    // The first attempt was held to its limit, and so is the second.
    up.wait_for("pod/p", "{.status.containerStatuses[0].state.waiting.reason}", "CrashLoopBackOff");
    let terminated = "{.status.containerStatuses[0].lastState.terminated.reason}";
    assert_eq!(up.field("pod/p", terminated), "OOMKilled");
    let group = format!("{TREE}{}", up.kubectl_ok(&["logs", "p", "--previous"]).trim());
    let all = Path::new(&group).parent().unwrap();
    assert!(all.exists(), "{group}");
    wait_until(&format!("{group} is left"), || !Path::new(&group).exists());
    drop(up);
    // Nothing runs any more, so the supervisor ends too, and removes what it has made.
    wait_until(&format!("{} is left", all.display()), || !all.exists());
}

/// A group that somebody else than root may divide, as systemd hands them out.
struct Delegated(PathBuf);

impl Delegated {
    fn new(name: &str) -> Delegated {
        fs::write(format!("{TREE}/cgroup.subtree_control"), "+memory +cpu").unwrap();
        let delegated = Delegated(Path::new(TREE).join(name));
        delegated.hand_over(&delegated.0);
        delegated
    }

    fn hand_over(&self, group: &Path) {
        fs::create_dir(group).unwrap();
        for file in ["", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"] {
            chown(group.join(file), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// A group in it, which is that somebody's too.
    fn part(&self, name: &str) -> PathBuf {
        let part = self.0.join(name);
        self.hand_over(&part);
        part
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        let _ = Command::new("find")
            .arg(&self.0)
            .args(["-depth", "-type", "d", "-exec", "rmdir", "{}", ";"])
            .status();
    }
}

/// Runs a job that takes too much memory, as somebody who is not root, from within a group.
fn run_as_nobody(group: &Path) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let limited = "image: any, resources: {limits: {memory: 32Mi}}";
    fs::write(dir.path().join("job.yaml"), job("a", 1, GREEDY, "").replace("image: any", limited)).unwrap();
    let join = format!("echo $$ > {}/cgroup.procs", group.display());
    krafla_as_nobody(dir.path(), &join, "run job.yaml")
}

/// The groups in a group.
fn groups_in(group: &Path) -> Vec<PathBuf> {
    fs::read_dir(group).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

#[test]
fn limits_hold_for_a_user_who_was_given_a_part_of_the_tree() {
    if !limits_hold() {
        return;
    }
    let tree = Delegated::new("krafla-e2e-part");
    let session = tree.part("session");
    let ran = run_as_nobody(&session);
    assert!(text(&ran.stderr).contains("(OOMKilled)"), "{}\n{}", text(&ran.stdout), text(&ran.stderr));
    assert_eq!(groups_in(&tree.0), [session], "nothing is left");
}

#[test]
fn limits_hold_for_a_user_who_was_given_nothing_but_a_group() {
    if !limits_hold() {
        return;
    }
    let tree = Delegated::new("krafla-e2e-alone");
    let ran = run_as_nobody(&tree.0);
    assert!(text(&ran.stderr).contains("(OOMKilled)"), "{}\n{}", text(&ran.stdout), text(&ran.stderr));
    assert_eq!(groups_in(&tree.0), [] as [PathBuf; 0], "nothing is left");
}
