//! The command line: what it prints, and how it exits.

use std::process::{Command, Output};

fn krafla_sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_krafla-sim")).args(arguments).output().expect("krafla-sim starts")
}

fn last_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_replay_prints_a_timeline_and_the_count() {
    let output = krafla_sim(&["replay", "waiting:2:timeout-after"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("[timeout-after] -> outcome unknown: no answer in time"), "{printed}");
    assert!(printed.contains("\n  job waiting Pending, retried 0, version 0: no pods\n"), "{printed}");
    assert_eq!((last_line(&output).as_str(), output.status.code()), ("1 runs, 0 violations", Some(0)));
}

#[test]
fn a_swarm_ends_with_the_count() {
    let output = krafla_sim(&["swarm", "--seeds", "3", "--from", "7"]);
    assert_eq!((last_line(&output).as_str(), output.status.code()), ("3 runs, 0 violations", Some(0)));
    assert!(output.stderr.is_empty(), "progress is for terminals: {output:?}");
}

#[test]
fn bad_usage_exits_with_2_and_says_why() {
    for (arguments, why) in [
        (&["replay", "nowhere"][..], "there is no scenario \"nowhere\""),
        (&["replay", "waiting:1:nothing"], "there is no fault \"nothing\""),
        (&["swarm"], "--seeds <N>"),
        (&["everything"], "unrecognized subcommand"),
        (&[], "Usage:"),
    ] {
        let output = krafla_sim(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(why), "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
