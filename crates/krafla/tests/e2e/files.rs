//! What `krafla run` reads, and where its containers start.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use crate::support::{job, krafla, text};

const GREETING: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {WORD: hello}\n";

/// A job that says what a ConfigMap holds.
fn greeter() -> String {
    let from = "name: main, envFrom: [{configMapRef: {name: greeting}}], ";
    job("greeter", 1, "echo $WORD", "").replace("name: main, ", from)
}

fn directory_with(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

/// Runs what is there, and returns the lines that its pods wrote.
fn said(dir: &Path, args: &[&str]) -> Vec<String> {
    let output = krafla().current_dir(dir).args(["run", "--logs"]).args(args).output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    let logs = stdout.lines().filter_map(|line| line.strip_prefix("[")?.split_once("] "));
    logs.map(|(_, line)| line.to_owned()).collect()
}

#[test]
fn a_directory_stands_for_the_manifests_in_it() {
    let files = [
        ("1-greeting.yml", GREETING),
        ("2-greeter.yaml", &greeter()),
        ("notes.txt", "this: is: no: manifest"),
    ];
    let dir = directory_with(&files);
    assert_eq!(said(dir.path(), &["."]), ["hello"]);
    assert_eq!(
        said(dir.path(), &["-f", "1-greeting.yml", "-f", "2-greeter.yaml"]),
        ["hello"],
        "as kubectl does"
    );
}

#[test]
fn standard_input_may_hold_many_documents() {
    let mut run = krafla()
        .args(["run", "--logs", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let documents = format!("{GREETING}---\n{}", greeter());
    run.stdin.take().unwrap().write_all(documents.as_bytes()).unwrap();
    let output = run.wait_with_output().unwrap();
    let lines = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{lines}{}", text(&output.stderr));
    assert!(lines.contains("[greeter-work-0] hello\n"), "{lines}");
}

#[test]
fn what_holds_no_manifest_is_named() {
    let dir = directory_with(&[("notes.txt", "")]);
    let output = krafla().current_dir(dir.path()).args(["run", "."]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("no objects found in .:"), "{message}");
}

#[test]
fn containers_start_where_the_run_was_called_or_where_it_says() {
    let dir = directory_with(&[("job.yaml", &job("a", 1, "cat data", "")), ("data", "beside\n")]);
    std::fs::create_dir(dir.path().join("elsewhere")).unwrap();
    std::fs::write(dir.path().join("elsewhere/data"), "elsewhere\n").unwrap();
    assert_eq!(said(dir.path(), &["job.yaml"]), ["beside"]);
    assert_eq!(said(dir.path(), &["--workdir", "elsewhere", "job.yaml"]), ["elsewhere"]);
}
