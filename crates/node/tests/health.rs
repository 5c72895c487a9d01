//! Probes, and hooks around a container's life, with real processes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

mod common;

use common::server::PATIENCE;
use common::{Machine, sh, until_ended};
use krafla_node::Mode;
use serde_json::{Value, json};

fn machine() -> Machine {
    Machine::new(Mode::EndWithNode)
}

fn exec(script: &str) -> Value {
    json!({"exec": {"command": ["sh", "-c", script]}})
}

/// A probe that a busy machine may take its time for.
fn probe(script: &str) -> Value {
    let mut probe = exec(script);
    probe["timeoutSeconds"] = json!(60);
    probe
}

/// A container that sleeps, with something added.
fn sleeper(addition: Value) -> Value {
    let mut container = sh("main", "echo up >> starts; exec sleep 1000");
    container.as_object_mut().unwrap().extend(addition.as_object().unwrap().clone());
    json!({"containers": [container], "terminationGracePeriodSeconds": 5})
}

fn main_status(pod: &Value) -> Value {
    pod["status"]["containerStatuses"][0].clone()
}

#[tokio::test]
async fn a_pod_is_ready_when_its_probe_succeeds() {
    let machine = machine();
    let node = machine.start_node();
    let mut probe = probe("test -e ready");
    probe["periodSeconds"] = json!(1);
    machine.server.create_pod("p", sleeper(json!({"readinessProbe": probe})));
    let pod = machine.server.until("p", |pod| main_status(pod)["state"]["running"].is_object()).await;
    assert_eq!((&main_status(&pod)["ready"], &main_status(&pod)["started"]), (&json!(false), &json!(true)));
    std::fs::write(machine.workdir().join("ready"), "").unwrap();
    let ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    machine.server.until("p", ready).await;
    node.stop().await;
}

#[tokio::test]
async fn a_container_that_is_not_alive_is_started_again() {
    let machine = machine();
    let node = machine.start_node();
    let mut probe =
        probe("until test -s starts; do sleep 0.01; done; echo I am dead; test $(wc -l < starts) = 2");
    probe["failureThreshold"] = json!(1);
    machine.server.create_pod("p", sleeper(json!({"livenessProbe": probe})));
    let pod = machine.server.until("p", |pod| main_status(pod)["restartCount"] == 1).await;
    assert_eq!(main_status(&pod)["lastState"]["terminated"]["exitCode"], 143);
    let event = machine.server.until_event("Unhealthy").await;
    assert_eq!(event["message"], "Liveness probe failed: I am dead");
    let event = machine.server.until_event("Killing").await;
    assert_eq!(event["message"], "Container main failed liveness probe, will be restarted");
    node.stop().await;
}

#[tokio::test]
async fn a_container_has_started_when_its_startup_probe_and_its_hook_say_so() {
    let machine = machine();
    let gate = machine.make_gate("gate");
    let node = machine.start_node();
    let hook = json!({"postStart": exec("read x < gate")});
    let mut probe = probe("true");
    probe["periodSeconds"] = json!(1);
    machine.server.create_pod("p", sleeper(json!({"lifecycle": hook, "startupProbe": probe})));
    let pod = machine.server.until("p", |pod| main_status(pod)["state"]["running"].is_object()).await;
    assert_eq!(main_status(&pod)["started"], false);
    gate.open().await;
    let pod = machine.server.until("p", |pod| main_status(pod)["started"] == true).await;
    assert_eq!(main_status(&pod)["ready"], true);
    node.stop().await;
}

#[tokio::test]
async fn a_failed_hook_after_the_start_stops_the_container() {
    let machine = machine();
    let node = machine.start_node();
    let mut pod = sleeper(json!({"lifecycle": {"postStart": exec("echo no; exit 3")}}));
    pod["restartPolicy"] = json!("Never");
    machine.server.create_pod("p", pod);
    machine.server.until_phase("p", "Failed").await;
    let event = machine.server.until_event("FailedPostStartHook").await;
    assert_eq!((&event["type"], &event["message"]), (&json!("Warning"), &json!("PostStartHook failed: no")));
    let event = machine.server.until_event("Killing").await;
    assert_eq!(event["message"], "Container main failed postStart hook");
    node.stop().await;
}

#[tokio::test]
async fn the_hook_before_the_end_runs_while_the_container_does() {
    let machine = machine();
    let node = machine.start_node();
    let script =
        "trap 'echo end >> order; exit 0' TERM; echo $$ > pid; echo up; while :; do sleep 0.05; done";
    let mut container = sh("main", script);
    container["lifecycle"] = json!({"preStop": exec("kill -0 $(cat pid) && echo hook >> order")});
    machine.server.create_pod("p", json!({"containers": [container]}));
    machine.server.until_phase("p", "Running").await;
    node.until_output("p").await;
    machine.server.delete_pod("p", None);
    machine.server.until_gone("p").await;
    assert_eq!(machine.read("order"), "hook\nend\n");
    node.stop().await;
}

#[tokio::test]
async fn the_hook_before_the_end_does_not_outlive_the_container() {
    let machine = machine();
    let (gate, begun) = (machine.make_gate("gate"), machine.make_gate("begun"));
    let node = machine.start_node();
    let mut container = sh("main", "read x < gate");
    container["lifecycle"] = json!({"preStop": exec("echo $$ > hook; echo > begun; exec sleep 1000")});
    let grace = json!({"terminationGracePeriodSeconds": 3600, "containers": [container]});
    machine.server.create_pod("p", grace);
    machine.server.until_phase("p", "Running").await;
    machine.server.delete_pod("p", None);
    begun.until_written().await;
    // It ends by itself, long before its time is over.
    gate.open().await;
    machine.server.until_gone("p").await;
    let ended = tokio::time::timeout(PATIENCE, until_ended(&machine.read("hook"))).await;
    ended.expect("the hook still runs");
    node.stop().await;
}

#[tokio::test]
async fn a_probe_that_fails_is_told_of_before_that_has_consequences_and_a_failed_hook_before_the_end_too() {
    let machine = machine();
    let node = machine.start_node();
    let mut probe = probe("cat /no/such/file");
    probe["failureThreshold"] = json!(1000);
    let hook = json!({"preStop": exec("echo no >&2; exit 1")});
    machine.server.create_pod("p", sleeper(json!({"livenessProbe": probe, "lifecycle": hook})));
    let event = machine.server.until_event("Unhealthy").await;
    let message = event["message"].as_str().unwrap();
    assert!(
        message.starts_with("Liveness probe failed: cat: ") && message.contains("/no/such/file"),
        "{message}"
    );
    machine.server.delete_pod("p", None);
    machine.server.until_gone("p").await;
    assert_eq!(machine.server.until_event("FailedPreStopHook").await["message"], "PreStopHook failed: no");
    node.stop().await;
}

#[tokio::test]
async fn what_was_started_and_ready_is_so_for_the_next_node_without_a_second_hook() {
    let machine = Machine::new(Mode::OutliveNode);
    let node = machine.start_node();
    // A probe that succeeds once: asked again, it would never say yes.
    let mut beside = sh("beside", "exec sleep 1000");
    beside["restartPolicy"] = json!("Always");
    beside["startupProbe"] = probe("mkdir asked");
    let mut main = sh("main", "exec sleep 1000");
    main["lifecycle"] = json!({"postStart": exec("echo hook >> hooks")});
    main["readinessProbe"] = probe("true");
    machine.server.create_pod("p", json!({"initContainers": [beside], "containers": [main]}));
    let is_ready = |pod: &Value| main_status(pod)["ready"] == true;
    let before = machine.server.until("p", is_ready).await;
    assert_eq!(before["status"]["phase"], "Running");
    node.kill().await;

    let node = machine.start_node();
    // All that this node has to say of the one that it found, it has said when the other has come and gone.
    machine.server.create_pod("q", json!({"restartPolicy": "Never", "containers": [sh("main", "true")]}));
    machine.server.until_phase("q", "Succeeded").await;
    assert_eq!(machine.server.pod("p").unwrap()["status"], before["status"]);
    assert_eq!(machine.read("hooks"), "hook\n");
    machine.server.delete_pod("p", Some(0));
    machine.server.until_gone("p").await;
    node.stop().await;
}
