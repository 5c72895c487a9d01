//! `krafla run`: how it ends before its jobs do, and that nothing of it is left.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{job, krafla, processes_of, text, wait_until};

/// What Ctrl-C does to a run that may have ended already.
pub(crate) fn interrupt(run: &Child) {
    Command::new("kill").args(["-INT", &run.id().to_string()]).stderr(Stdio::null()).status().unwrap();
}

#[test]
fn why_a_run_can_not_begin_is_said_before_what_has_begun_is_ended() {
    let quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: one}, \
         spec: {hard: {count/jobs.batch.volcano.sh: '1'}}}\n---\n";
    // It never goes.
    let stays = job("a", 1, "true", "").replace("{name: a}", "{name: a, finalizers: [acme.io/stay]}");
    let dir = tempfile::tempdir().unwrap();
    let manifest = format!("{quota}{stays}---{}", job("b", 1, "true", ""));
    std::fs::write(dir.path().join("job.yaml"), manifest).unwrap();
    let mut run = krafla()
        .current_dir(dir.path())
        .args(["run", "-o", "json", "job.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mistake = lines.find(|line| line.starts_with("krafla: ")).unwrap_or_default();
    assert!(mistake.contains("job.yaml, document 3") && mistake.contains("exceeded quota: one"), "{mistake}");
    interrupt(&run);
    lines.for_each(drop);
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "the mistake is what matters");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["error"].as_str().unwrap().contains("exceeded quota: one"), "{result}");
}

#[test]
fn a_run_that_takes_too_long_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let farewell = "trap \"echo bye; exit\" TERM; echo hi; while :; do sleep 0.05; done";
    std::fs::write(dir.path().join("job.yaml"), job("a", 1, farewell, "")).unwrap();
    // Enough for a busy machine to start it.
    let args = ["run", "--logs", "--timeout", "15s", "-o", "json", "job.yaml"];
    let output = krafla().current_dir(dir.path()).args(args).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("a: exceeded --timeout 15s: Running\n"), "{stderr}");
    assert!(stderr.contains("[a-work-0] bye\n"), "what pods write at their end is printed: {stderr}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["outcome"], &result["jobs"][0]["phase"]), (&"TimedOut".into(), &"Running".into()));
}

/// Fills its standard output, so that whoever writes there next waits, and becomes another program.
const FILL: &str = r#"
import os, sys
os.set_blocking(1, False)
try:
    while True: os.write(1, b"x" * 4096)
except BlockingIOError: pass
os.set_blocking(1, True)
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn a_run_whose_output_nobody_reads_is_ended_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let [begun, ended] = ["begun", "ended"].map(|name| dir.path().join(name));
    assert!(Command::new("mkfifo").args([&begun, &ended]).status().unwrap().success());
    let script = format!(
        "trap \"echo bye > {}; exit\" TERM; echo up > {}; while :; do echo and on; sleep 0.05; done",
        ended.display(),
        begun.display()
    );
    std::fs::write(dir.path().join("job.yaml"), job("a", 1, &script, "")).unwrap();
    let mut filled = Command::new("python3");
    filled.args(["-c", FILL]).arg(krafla().get_program()).env_remove("KUBECONFIG");
    filled.current_dir(dir.path()).args(["run", "--logs", "job.yaml"]).stdout(Stdio::piped());
    let mut run = filled.spawn().unwrap();
    assert_eq!(std::fs::read_to_string(&begun).unwrap(), "up\n");
    interrupt(&run);
    assert_eq!(std::fs::read_to_string(&ended).unwrap(), "bye\n");
    drop(run.stdout.take());
    assert_eq!(run.wait().unwrap().code(), Some(130));
}

#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let marker = dir.path().join("marker");
    let manifest = job("a", 1, &format!("touch {0}; exec tail -f {0}", marker.display()), "");
    std::fs::write(dir.path().join("job.yaml"), manifest).unwrap();
    let mut run =
        krafla().current_dir(dir.path()).args(["run", "job.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut lines = lines.skip_while(|line| !line.contains("Running"));
    assert!(lines.next().is_some(), "the job runs");
    let interrupt = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    lines.for_each(drop);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(processes_of(&marker), "", "the container is gone");
}

#[test]
fn a_run_that_is_killed_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (marker, temporary) = (dir.path().join("marker"), dir.path().join("tmp"));
    std::fs::create_dir(&temporary).unwrap();
    let script = format!("echo up; touch {0}; exec tail -f {0}", marker.display());
    std::fs::write(dir.path().join("job.yaml"), job("a", 1, &script, "")).unwrap();
    let mut run = krafla()
        .current_dir(dir.path())
        .env("TMPDIR", &temporary)
        .args(["run", "--logs", "job.yaml"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.ends_with("up")), "the container runs");
    let is_empty = || std::fs::read_dir(&temporary).unwrap().next().is_none();
    assert!(!is_empty(), "the run has a directory of its own");
    run.kill().unwrap();
    run.wait().unwrap();

    wait_until(&format!("files are left in {}", temporary.display()), is_empty);
    assert_eq!(processes_of(&marker), "", "the container is gone");
}

#[test]
fn a_second_interrupt_does_not_wait_for_those_who_will_not_end() {
    let dir = tempfile::tempdir().unwrap();
    let marker = dir.path().join("marker");
    // Nobody would wait for an hour.
    let stubborn =
        job("a", 1, &format!("trap \"\" TERM; touch {0}; tail -f {0} & wait; wait", marker.display()), "")
            .replace("restartPolicy", "terminationGracePeriodSeconds: 3600\n          restartPolicy");
    std::fs::write(dir.path().join("job.yaml"), stubborn).unwrap();
    let mut run =
        krafla().current_dir(dir.path()).args(["run", "job.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    for sign in ["Running", "pods that have not terminated yet: a-work-0"] {
        assert!(lines.any(|line| line.contains(sign)), "{sign}");
        wait_until("it heeds no signal", || marker.exists());
        interrupt(&run);
    }
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(processes_of(&marker), "", "the container is gone");
}

/// A bare pod beside a job that ends as soon as the pod runs, whose process says in `marker` that it does.
fn pod_beside_job(dir: &Path, grace_seconds: u32, on_term: &str) -> PathBuf {
    let marker = dir.join("marker");
    let script = format!("trap \"{on_term}\" TERM; touch {0}; tail -f {0} & wait; wait", marker.display());
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: beside}}\nspec:\n  \
         terminationGracePeriodSeconds: {grace_seconds}\n  \
         containers: [{{name: main, image: any, command: [sh, -c, \'{script}\']}}]\n---\n"
    );
    let until_it_runs = format!("until test -e {}; do sleep 0.05; done", marker.display());
    std::fs::write(dir.join("job.yaml"), format!("{pod}{}", job("a", 1, &until_it_runs, ""))).unwrap();
    marker
}

#[test]
fn pods_beside_the_jobs_are_named_and_end_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let farewell = dir.path().join("farewell");
    let marker = pod_beside_job(dir.path(), 3600, &format!("echo bye > {}; exit", farewell.display()));
    let output = krafla().current_dir(dir.path()).args(["run", "job.yaml"]).output().unwrap();
    let lines = text(&output.stdout);
    assert!(lines.ends_with("\nending the remaining pods: beside; Ctrl-C kills them at once\n"), "{lines}");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(farewell).unwrap(), "bye\n");
    assert_eq!(processes_of(&marker), "", "what it left behind is gone too");
}

#[test]
fn pods_beside_the_jobs_that_do_not_end_are_killed_by_an_interrupt() {
    let dir = tempfile::tempdir().unwrap();
    // Nobody would wait for an hour.
    let marker = pod_beside_job(dir.path(), 3600, "");
    let mut run =
        krafla().current_dir(dir.path()).args(["run", "job.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    for sign in ["a: Completed", "ending the remaining pods: beside; Ctrl-C kills them at once"] {
        assert!(lines.any(|line| line.contains(sign)), "{sign}");
    }
    assert!(Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(0), "the jobs have completed");
    assert_eq!(processes_of(&marker), "", "the container is gone");
}

#[test]
fn a_run_that_ends_before_it_begins_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("job.yaml");
    std::fs::write(&file, "{apiVersion: batch.volcano.sh/v1alpha1, kind: Jobb, metadata: {name: a}}")
        .unwrap();
    for _ in 0..20 {
        let output = krafla().env("TMPDIR", temporary.path()).arg("run").arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
    }
    let left: Vec<PathBuf> =
        std::fs::read_dir(temporary.path()).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(left, [file]);
}
