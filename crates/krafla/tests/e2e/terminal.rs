//! What a person at a terminal sees.

use std::process::Command;

use crate::support::{krafla, repository_file, text};

/// What `krafla run` shows of an example on a terminal, which `script` provides.
fn shown(args: &str) -> String {
    let hello = repository_file("examples/hello.yaml");
    let command = format!("{} run {args} {}", krafla().get_program().display(), hello.display());
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    let output =
        script.env_remove("KUBECONFIG").env_remove("NO_COLOR").env("TERM", "xterm").output().unwrap();
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
