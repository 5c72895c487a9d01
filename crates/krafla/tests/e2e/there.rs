//! `krafla run` in a cluster that is there already.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::files::{MADE_IN_ORDER, of_many_kinds};
use crate::support::{Up, job, krafla, text};

/// `krafla run` of a manifest in a directory of its own.
struct Run {
    dir: tempfile::TempDir,
}

impl Run {
    fn of(manifest: &str) -> Run {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("job.yaml"), manifest).unwrap();
        Run { dir }
    }

    fn command(&self) -> Command {
        let mut command = krafla();
        command.current_dir(self.dir.path()).args(["run", "job.yaml"]);
        command
    }
}

fn shown(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_run_uses_a_krafla_up_that_kubeconfig_names_and_its_job_stays() {
    let up = Up::start();
    let run = Run::of(&job("a", 1, "cat beside.txt; echo done", ""));
    std::fs::write(run.dir.path().join("beside.txt"), "found\n").unwrap();
    let (code, stdout, stderr) = shown(run.command().arg("--logs").env("KUBECONFIG", up.kubeconfig()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    for line in ["job/a created", "[a-work-0] found", "[a-work-0] done", "a: Completed"] {
        assert!(stdout.contains(line), "{line} is missing in:\n{stdout}{stderr}");
    }
    assert_eq!(up.field("vcjob/a", "{.status.state.phase}"), "Completed");

    let (code, stdout, stderr) = shown(run.command().env("KUBECONFIG", up.kubeconfig()));
    assert_eq!(code, Some(2), "{stdout}{stderr}");
    assert!(stderr.contains("job.yaml") && stderr.contains("already exists"), "{stderr}");
    assert!(stderr.contains("kubectl delete job.batch.volcano.sh a"), "{stderr}");
}

#[test]
fn a_krafla_up_of_this_directory_is_used_if_it_answers_unless_one_wants_another() {
    let up = Up::start();
    let run = Run::of(&job("a", 1, "true", ""));
    std::fs::create_dir(run.dir.path().join(".krafla")).unwrap();
    std::fs::copy(up.kubeconfig(), run.dir.path().join(".krafla/kubeconfig")).unwrap();
    let (code, stdout, stderr) = shown(run.command().arg("--own-cluster"));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(up.kubectl_ok(&["get", "vcjob", "-o", "name"]), "");
    let (code, stdout, stderr) = shown(&mut run.command());
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("in the cluster of context \"krafla\" of .krafla/kubeconfig"), "{stderr}");
    assert_eq!(up.kubectl_ok(&["get", "vcjob", "-o", "name"]), "job.batch.volcano.sh/a\n");
    drop(up);
    let (code, stdout, stderr) = shown(&mut run.command());
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
}

#[test]
fn a_job_that_fails_there_exits_with_1_and_shows_its_last_words() {
    let up = Up::start();
    let run = Run::of(&job("a", 1, "echo out of luck; exit 3", ""));
    let (code, stdout, stderr) = shown(run.command().arg("--kubeconfig").arg(up.kubeconfig()));
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("a-work-0") && stderr.contains("out of luck"), "{stderr}");
}

#[test]
fn an_interrupted_run_deletes_its_job_and_no_other() {
    let up = Up::start();
    up.apply(&job("other", 1, "exec tail -f /dev/null", ""));
    up.wait_for("vcjob/other", "{.status.state.phase}", "Running");
    let run = Run::of(&job("a", 1, "exec tail -f /dev/null", ""));
    let mut child =
        run.command().arg("--kubeconfig").arg(up.kubeconfig()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut lines = lines.skip_while(|line| !line.contains("a: Running"));
    assert!(lines.next().is_some(), "the job runs");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let left = up.kubectl_ok(&["get", "vcjob", "-o", "name"]);
    assert_eq!(left, "job.batch.volcano.sh/other\n");
    assert_eq!(up.kubectl_ok(&["get", "pod", "-o", "name"]), "pod/other-work-0\n");
}

#[test]
fn what_supports_a_job_may_be_there_and_a_run_that_can_not_begin_leaves_no_job() {
    let up = Up::start();
    let config = |value: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata: {{k: {value}}}\n---\n")
    };
    up.apply(&config("old"));
    let run = Run::of(&format!("{}{}", config("new"), job("a", 1, "true", "")));
    let (code, stdout, stderr) = shown(run.command().arg("--kubeconfig").arg(up.kubeconfig()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("configmap/c configured"), "{stdout}");
    assert_eq!(up.field("configmap/c", "{.data.k}"), "new");

    let fixed = |value: &str| format!("immutable: true\n{}", config(value));
    up.kubectl_ok(&["delete", "configmap/c"]);
    up.apply(&fixed("old"));
    let run = Run::of(&format!("{}{}", fixed("new"), job("b", 1, "true", "")));
    let (code, stdout, stderr) = shown(run.command().arg("--kubeconfig").arg(up.kubeconfig()));
    assert_eq!(code, Some(2), "{stdout}{stderr}");
    assert!(stderr.contains("job.yaml, document 1: ") && stderr.contains("immutable"), "{stderr}");

    let run = Run::of(&format!("{}---{}", job("b", 1, "true", ""), job("Bad Name", 1, "true", "")));
    let (code, stdout, stderr) = shown(run.command().arg("--kubeconfig").arg(up.kubeconfig()));
    assert_eq!(code, Some(2), "{stdout}{stderr}");
    assert!(stderr.contains("job.yaml, document 2"), "{stderr}");
    assert_eq!(up.kubectl_ok(&["get", "vcjob", "-o", "name"]), "job.batch.volcano.sh/a\n");
}

#[test]
fn any_kind_that_the_cluster_serves_is_made_there_and_stays() {
    let up = Up::start();
    let run = Run::of(&of_many_kinds());
    let (code, stdout, stderr) = shown(run.command().arg("--kubeconfig").arg(up.kubeconfig()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let made: Vec<&str> = stdout.lines().filter(|line| line.ends_with(" created")).collect();
    assert_eq!(made, MADE_IN_ORDER);
    assert_eq!(up.kubectl_ok(&["get", "widget/w", "-n", "shop", "-o", "jsonpath={.size}"]), "3");

    // A definition that is there already says what is made of its kind; only the server knows its fields.
    let widget = |name: &str, field: &str| {
        format!("{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: {name}}}, {field}: 4}}\n---")
    };
    let again = |manifest: String| {
        let run = Run::of(&manifest);
        let (code, stdout, stderr) = shown(run.command().arg("--kubeconfig").arg(up.kubeconfig()));
        (code, stdout + &stderr)
    };
    let (code, said) = again(widget("x", "size") + &job("b", 1, "true", ""));
    assert!(code == Some(0) && said.contains("widget/x created"), "{said}");
    let (code, said) = again(widget("x", "size") + &job("c", 1, "true", ""));
    assert!(code == Some(0) && said.contains("widget/x unchanged"), "{said}");
    let (code, said) = again(widget("z", "sise") + &job("d", 1, "true", ""));
    assert!(
        code == Some(2) && said.contains("job.yaml, document 1: ") && said.contains("unknown field \"sise\""),
        "{said}"
    );
}

#[test]
fn a_cluster_that_is_gone_is_missed_only_if_it_was_named() {
    let kubeconfig = {
        let up = Up::start();
        std::fs::read_to_string(up.kubeconfig()).unwrap()
    };
    let run = Run::of(&job("a", 1, "true", ""));
    let file = run.dir.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig).unwrap();
    let (code, _, stderr) = shown(run.command().arg("--kubeconfig").arg(&file));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("kubeconfig") && stderr.contains("can not be used"), "{stderr}");

    let (code, stdout, stderr) = shown(run.command().env("KUBECONFIG", &file));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("a cluster of its own instead"), "{stdout}");
}
