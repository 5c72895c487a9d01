//! What a person at a terminal sees.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::support::{job, krafla, repository_file, text};

/// A row of the picture before is erased.
const ERASED: &str = "\u{1b}[A\u{1b}[2K";

/// What `krafla run` shows of an example on a terminal, which `script` provides.
fn shown(args: &str) -> String {
    shown_with(args, &[("TERM", "xterm")])
}

fn shown_with(args: &str, environment: &[(&str, &str)]) -> String {
    let hello = repository_file("examples/hello.yaml");
    shown_of(&format!("{args} {}", hello.display()), environment, 0)
}

fn shown_of(args: &str, environment: &[(&str, &str)], exit_code: i32) -> String {
    shown_by(&format!("{} run {args}", krafla().get_program().display()), environment, exit_code)
}

fn shown_by(command: &str, environment: &[(&str, &str)], exit_code: i32) -> String {
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", command, "/dev/null"]);
    let output = script
        .env_remove("KUBECONFIG")
        .env_remove("NO_COLOR")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(exit_code), "{shown}");
    shown
}

#[test]
fn tasks_are_bars_that_are_drawn_in_place() {
    let shown = shown("");
    // The last picture, which stays.
    let (_, last) = shown.rsplit_once(ERASED).expect("pictures are drawn over each other");
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
    assert!(plain.contains(ERASED), "pictures are drawn: {plain}");
    assert!(plain.contains("[hello-greeter-0] hello from") && !plain.contains("\u{1b}[3"), "{plain:?}");
    let dumb = shown_with("", &[("TERM", "dumb")]);
    assert!(dumb.contains("hello: Completed") && !dumb.contains('\u{1b}'), "{dumb:?}");
}

#[test]
fn a_terminal_that_is_too_small_for_a_picture_gets_lines() {
    let hello = repository_file("examples/hello.yaml");
    for size in ["cols 1", "rows 2"] {
        let krafla = krafla().get_program().display().to_string();
        let command = format!("stty {size}; exec {krafla} run {}", hello.display());
        let shown = shown_by(&command, &[("TERM", "xterm")], 0);
        assert!(shown.contains("hello: Completed, 2 succeeded") && !shown.contains('\u{1b}'), "{shown:?}");
    }
}

#[test]
fn the_whole_reason_why_a_job_waits_is_shown_and_control_c_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    // Somebody may make the directory, so the run does not give up by itself.
    let volume =
        "volumes: [{name: data, hostPath: {path: /krafla/nowhere, type: Directory}}]\n          containers:";
    let mount = "name: main, volumeMounts: [{name: data, mountPath: /data}], ";
    let waiting = job("a", 4, "true", "").replace("containers:", volume).replace("name: main, ", mount);
    std::fs::write(dir.path().join("job.yaml"), waiting).unwrap();
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
    assert!(lines.any(|line| line.contains("change the type")), "it says what to do");
    keyboard.write_all(b"\x03").unwrap();
    let said =
        lines.find(|line| line.contains("interrupted: ending all jobs")).expect("it says what it does");
    // Above a picture that fills the terminal nobody would see it.
    assert!(!said.contains(ERASED), "{said:?}");
    assert!(!lines.any(|line| line.contains(ERASED)), "the last picture stays");
    assert_eq!(script.wait().unwrap().code(), Some(130));
}

#[test]
fn a_terminal_may_become_narrower_while_a_picture_is_on_it() {
    let dir = tempfile::tempdir().unwrap();
    // It runs until somebody writes into the pipe.
    let waiting = job("narrow", 1, "read word < pipe", "");
    std::fs::write(dir.path().join("job.yaml"), waiting).unwrap();
    let krafla = krafla().get_program().display().to_string();
    let command = format!("mkfifo pipe; tty > tty; stty cols 100 rows 24; exec {krafla} run job.yaml");
    let mut script = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(dir.path())
        .env_remove("KUBECONFIG")
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(script.stdout.take().unwrap()).lines().map_while(Result::ok);
    let bar = lines.find(|line| line.contains("1 running")).expect("it runs");
    let n_columns = bar.trim_end().chars().count();
    assert!(n_columns > 50, "{bar}");
    let tty = std::fs::read_to_string(dir.path().join("tty")).unwrap();
    let narrow = Command::new("stty").args(["-F", tty.trim(), "cols", "20"]).status().unwrap();
    assert!(narrow.success());
    // Two rows for the title and its time, and those that the bar is wrapped to.
    let mut n_rows_erased = lines.by_ref().map(|line| line.matches(ERASED).count());
    let n_rows = n_rows_erased.find(|n_rows| ![0, 2].contains(n_rows));
    assert_eq!(n_rows, Some(2 + n_columns.div_ceil(20)), "{bar}");
    std::fs::write(dir.path().join("pipe"), "go\n").unwrap();
    assert!(lines.any(|line| line.contains("Completed")), "it ends");
    assert_eq!(script.wait().unwrap().code(), Some(0));
}

#[test]
fn what_a_pod_writes_does_no_more_to_a_terminal_than_colour_its_lines() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("job.yaml");
    let script = r#"printf "\033[2J\033]0;title\007\033[31mred\n10 of 99\r99 of 99\n"; exit 1"#;
    std::fs::write(&file, job("a", 1, script, "")).unwrap();
    // While it runs, or in the last lines of the failed pod.
    let followed = ["[a-work-0]\u{1b}[0m \u{1b}[31mred\u{1b}[0m\r\n", "[a-work-0]\u{1b}[0m 99 of 99\r\n"];
    let last = ["\n  \u{1b}[31mred\u{1b}[0m\r\n", "\n  99 of 99\r\n"];
    for (flag, lines) in [("--logs ", followed), ("", last)] {
        let shown = shown_of(&format!("{flag}{}", file.display()), &[("TERM", "xterm")], 1);
        for line in lines {
            assert!(shown.contains(line), "{line:?} in {shown:?}");
        }
        assert!(!shown.contains("\u{1b}[2J") && !shown.contains("title"), "{shown:?}");
    }
    // A program that reads it gets what was written.
    let output = krafla().args(["run", "--logs"]).arg(&file).output().unwrap();
    let written = "\u{1b}[2J\u{1b}]0;title\u{7}\u{1b}[31mred\n";
    assert!(text(&output.stdout).contains(&format!("[a-work-0] {written}")), "{output:?}");
    let output = krafla().arg("run").arg(&file).output().unwrap();
    assert!(text(&output.stderr).contains(&format!("  {written}  10 of 99\r99 of 99\n")), "{output:?}");
}

#[test]
fn many_jobs_stand_in_the_order_of_their_file_and_not_every_change_is_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("jobs.yaml");
    let jobs: Vec<String> = (0..60).map(|n| job(&format!("job-{n}"), 1, "true", "")).collect();
    std::fs::write(&file, jobs.join("---")).unwrap();
    let (krafla, file) = (krafla().get_program().display().to_string(), file.display());
    let command = format!("stty cols 80 rows 24; exec {krafla} run {file}");
    let started = Instant::now();
    let shown = shown_by(&command, &[("TERM", "xterm")], 0);
    let elapsed_ms = started.elapsed().as_millis();
    assert_few_pictures(&shown, elapsed_ms);
    assert!(shown.contains("jobs more: "), "{shown}");
    // In the order of the file.
    let (_, last) = shown.rsplit_once(ERASED).unwrap();
    let positions = ["job-0: ", "job-1: ", "job-2: ", "job-10: "].map(|name| last.find(name));
    assert!(positions.is_sorted() && positions[0].is_some(), "{last}");
}

/// One each 50 ms because something happened, one each 250 ms because time passes, and the first and last ones.
fn assert_few_pictures(shown: &str, elapsed_ms: u128) {
    let n_drawn = shown.matches("\r\u{1b}[2K").count() as u128;
    assert!(n_drawn <= elapsed_ms / 50 + elapsed_ms / 250 + 4, "{n_drawn} pictures in {elapsed_ms} ms");
}

#[test]
fn of_many_lines_each_is_shown_but_not_a_picture_for_each() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("job.yaml");
    std::fs::write(&file, job("a", 1, "seq 5000", "")).unwrap();
    let started = Instant::now();
    let shown = shown_of(&format!("--logs {}", file.display()), &[("TERM", "xterm"), ("NO_COLOR", "1")], 0);
    assert_few_pictures(&shown, started.elapsed().as_millis());
    let lines = shown.lines().filter_map(|line| line.split_once("[a-work-0] "));
    let numbers: Vec<u32> = lines.map(|(_, number)| number.trim_end().parse().unwrap()).collect();
    assert_eq!(numbers, (1..=5000).collect::<Vec<_>>());
    let (_, last) = shown.rsplit_once("[a-work-0] ").unwrap();
    assert!(last.contains("1 of 1 succeeded"), "the picture stands below: {last:?}");
}
