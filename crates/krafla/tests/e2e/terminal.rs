//! What a person at a terminal sees.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::support::{job, krafla, repository_file, text};

/// What `krafla run` shows of an example on a terminal, which `script` provides.
fn shown(args: &str) -> String {
    shown_with(args, &[("TERM", "xterm")])
}

fn shown_with(args: &str, environment: &[(&str, &str)]) -> String {
    let hello = repository_file("examples/hello.yaml");
    let command = format!("{} run {args} {}", krafla().get_program().display(), hello.display());
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    let output = script
        .env_remove("KUBECONFIG")
        .env_remove("NO_COLOR")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    shown
}

#[test]
fn tasks_are_bars_that_are_drawn_in_place() {
    let shown = shown("");
    // The last picture, which stays.
    let (_, last) = shown.rsplit_once("\u{1b}[J").expect("pictures are drawn over each other");
    assert!(last.contains("hello") && last.contains("Completed"), "{last}");
    let bar = last.lines().find(|line| line.contains("greeter")).unwrap_or_else(|| panic!("no bar: {last}"));
    assert!(bar.contains("2 of 2 succeeded"), "{bar}");
}

#[test]
fn the_names_before_lines_of_logs_have_colours() {
    let shown = shown("--logs");
    let line = shown.lines().find(|line| line.contains("hello from hello-greeter-0"));
    let line = line.unwrap_or_else(|| panic!("{shown}"));
    let (name, _) = line.split_once("hello from").unwrap();
    assert!(name.contains("\u{1b}[3") && name.contains("hello-greeter-0"), "{name:?}");
}

#[test]
fn no_color_takes_the_colours_away_and_a_dumb_terminal_has_no_pictures() {
    let plain = shown_with("--logs", &[("TERM", "xterm"), ("NO_COLOR", "1")]);
    assert!(plain.contains("\u{1b}[J"), "pictures are drawn: {plain}");
    assert!(plain.contains("[hello-greeter-0] hello from") && !plain.contains("\u{1b}[3"), "{plain:?}");
    let dumb = shown_with("", &[("TERM", "dumb")]);
    assert!(dumb.contains("hello: Completed") && !dumb.contains('\u{1b}'), "{dumb:?}");
}

#[test]
fn the_whole_reason_why_a_job_waits_is_shown_and_control_c_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let greedy =
        job("a", 4, "true", "").replace("name: main, ", "name: main, resources: {requests: {cpu: 1000}}, ");
    std::fs::write(dir.path().join("job.yaml"), greedy).unwrap();
    let command = format!("{} run job.yaml", krafla().get_program().display());
    let mut script = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(dir.path())
        .env_remove("KUBECONFIG")
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keyboard = script.stdin.take().unwrap();
    let mut lines = BufReader::new(script.stdout.take().unwrap()).lines().map_while(Result::ok);
    // These words stand behind more than the eighty columns of one line.
    assert!(lines.any(|line| line.contains("resources.requests")), "it says what to do");
    keyboard.write_all(b"\x03").unwrap();
    assert!(lines.any(|line| line.contains("interrupted: ending all jobs")), "it says what it does");
    lines.for_each(drop);
    assert_eq!(script.wait().unwrap().code(), Some(130));
}
