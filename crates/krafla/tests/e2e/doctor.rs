//! `krafla doctor`: what this machine offers, and why jobs wait.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run_waits::GROWS_NO_FURTHER;
use crate::support::{Up, job, krafla, text};

#[test]
fn every_finding_has_a_state_and_a_remedy_if_it_needs_one() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let output = krafla().args(["doctor", "--output", "json", "--data-dir"]).arg(&data).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "these tests run pods: {}", text(&output.stdout));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["podsCanRun"], true);
    let findings = found["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["what"] == "pod addresses"), "{found:#}");
    for finding in findings {
        let has_remedy = finding["remedy"] != "";
        assert_eq!(finding["state"] != "ok", has_remedy, "{finding:#}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_data_directory_that_can_not_be_made_is_the_end() {
    let output = krafla().args(["doctor", "--data-dir", "/proc/nowhere"]).output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("missing  data directory: cannot write to /proc/nowhere"), "{said}");
    assert!(said.contains("--data-dir") && said.ends_with("pods cannot run on this machine\n"), "{said}");
}

/// Asks about the jobs of a cluster until all of these are said to wait.
fn wait_until_told(up: &Up, names: &[&str]) -> Vec<Value> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let mut doctor = krafla();
        doctor.args(["doctor", "--output", "json"]).env("KUBECONFIG", up.kubeconfig());
        let output = doctor.arg("--data-dir").arg(up.data_dir()).output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        // A cluster that is too busy to answer in time is no answer.
        let waiting = found["cluster"]["waiting"].as_array().cloned().unwrap_or_default();
        let told = names.iter().map(|name| waiting.iter().find(|it| it["name"] == *name).cloned());
        if let Some(told) = told.collect() {
            return told;
        }
        assert!(Instant::now() < deadline, "not all of {names:?} are told: {found:#}");
    }
}

#[test]
fn jobs_that_wait_say_why_and_what_to_do() {
    let up = Up::start();
    let config = "env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}], command";
    up.apply(&job("settings", 1, "true", "").replace("command", config));
    let greedy = "resources: {requests: {cpu: 100k}}, command";
    up.apply(&job("greedy", 2, "true", "").replace("command", greedy));
    up.apply(GROWS_NO_FURTHER);
    up.apply(&job("fine", 1, "true", ""));
    up.wait_for("vcjob/fine", "{.status.state.phase}", "Completed");

    let told = wait_until_told(&up, &["settings", "greedy", "a"]);
    let [settings, greedy, grows] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(settings["reason"], "Container", "{settings:#}");
    assert!(
        settings["cause"].as_str().unwrap().ends_with("configmap \"settings\" not found"),
        "{settings:#}"
    );
    assert_eq!(greedy["reason"], "Unschedulable", "{greedy:#}");
    assert!(greedy["cause"].as_str().unwrap().contains("cpu"), "{greedy:#}");
    assert!(greedy["remedy"].as_str().unwrap().contains("resources.requests"), "{greedy:#}");
    assert_eq!(grows["reason"], "Unschedulable", "{grows:#}");
    // One of them says it for all: the last that the scheduler knew of when it first said so.
    let cause = grows["cause"].as_str().unwrap();
    let (pod, why) = cause.split_once(": ").unwrap();
    assert!(pod.starts_with("pod a-large-"), "{grows:#}");
    assert_eq!(why, "0/1 nodes are available: 1 Insufficient cpu");

    let output = krafla().args(["doctor", "--kubeconfig"]).arg(up.kubeconfig()).output().unwrap();
    let said = text(&output.stdout);
    assert!(said.contains("\nwaits    vcjob default/greedy: ") && !said.contains("fine"), "{said}");
}

#[test]
fn a_cluster_that_was_named_and_is_not_there_is_bad_input() {
    let output = krafla().args(["doctor", "--kubeconfig", "/nowhere/kubeconfig"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("/nowhere/kubeconfig"), "{}", text(&output.stderr));
}
