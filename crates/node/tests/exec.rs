//! Commands beside those of containers, with real processes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

mod common;

use common::{Machine, RunningNode, once, until_ended};
use futures_util::StreamExt;
use krafla_api::Kind;
use krafla_cluster::{ExecOptions, LogOptions};
use krafla_node::{ExecError, Mode, Output, Session};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

/// A machine with a pod `p` that runs until it is told to end.
async fn machine_with_pod(script: &str) -> (Machine, RunningNode) {
    let machine = Machine::new(Mode::EndWithNode);
    let node = machine.start_node();
    machine.server.create_pod("p", once(script));
    machine.server.until("p", |pod: &Value| pod["status"]["phase"] == "Running").await;
    (machine, node)
}

fn shell(script: &str) -> ExecOptions {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    ExecOptions { command, ..ExecOptions::default() }
}

async fn exec(node: &RunningNode, options: ExecOptions) -> Result<Session, ExecError> {
    node.node.exec("default", "p", "main", options).await
}

/// Everything that a command writes.
async fn written(session: &mut Session) -> String {
    let mut text = String::new();
    while let Some(Output::Stdout(data) | Output::Stderr(data)) = session.output.next().await {
        text += &String::from_utf8_lossy(&data);
    }
    text
}

#[tokio::test]
async fn a_terminal_has_the_size_that_it_is_given() {
    let (_machine, node) = machine_with_pod("exec sleep 1000").await;
    let mut session = exec(&node, ExecOptions { tty: true, ..shell("read x; stty size") }).await.unwrap();
    session.resize.as_ref().unwrap()(77, 33);
    session.stdin.as_mut().unwrap().write_all(b"go\n").await.unwrap();
    let text = written(&mut session).await;
    assert!(text.contains("33 77\r\n"), "{text}");
    assert_eq!(session.end.await, Ok(0));
    node.stop().await;
}

#[tokio::test]
async fn a_command_that_nobody_waits_for_is_killed_with_what_it_has_started() {
    let (_machine, node) = machine_with_pod("exec sleep 1000").await;
    let mut session = exec(&node, shell("sleep 1000 & echo $!; wait")).await.unwrap();
    let Some(Output::Stdout(pid)) = session.output.next().await else { panic!("no output") };
    drop(session);
    until_ended(std::str::from_utf8(&pid).unwrap()).await;
    node.stop().await;
}

#[tokio::test]
async fn a_command_has_the_environment_that_its_container_was_started_with() {
    let machine = Machine::new(Mode::OutliveNode);
    let mut node = machine.start_node();
    let metadata = |name: &str| json!({"name": name, "namespace": "default"});
    machine.server.create(Kind::ConfigMap, json!({"metadata": metadata("cm"), "data": {"k": "old"}}));
    machine.server.create(Kind::Secret, json!({"metadata": metadata("s"), "data": {"SECRET": "b2xk"}}));
    let mut spec = once("exec sleep 1000");
    let value = json!({"configMapKeyRef": {"name": "cm", "key": "k"}});
    spec["containers"][0]["env"] = json!([{"name": "VALUE", "valueFrom": value}]);
    spec["containers"][0]["envFrom"] = json!([{"secretRef": {"name": "s"}}]);
    machine.server.create_pod("p", spec);
    machine.server.until_phase("p", "Running").await;
    machine.server.patch(Kind::ConfigMap, "cm", &json!({"data": {"k": "new"}}));
    machine.server.remove(Kind::Secret, "s");
    for _ in 0..2 {
        let mut session = exec(&node, shell("echo $VALUE $SECRET")).await.unwrap();
        assert_eq!(written(&mut session).await, "old old\n");
        node.kill().await;
        node = machine.start_node();
        // What runs is known to the next node by the time that it has run something itself.
        machine.server.create_pod("q", once("true"));
        machine.server.until_phase("q", "Succeeded").await;
        machine.server.remove(Kind::Pod, "q");
    }
    machine.server.delete_pod("p", Some(0));
    machine.server.until_gone("p").await;
    node.stop().await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    let (machine, node) = machine_with_pod("exec sleep 1000").await;
    for environment in ["env", "env -i"] {
        let daemon = format!("{environment} setsid /bin/sh -c 'echo $$ > daemon; exec /bin/sleep 1000'");
        let wait = "while [ ! -s daemon ]; do sleep 0.01; done";
        let session = exec(&node, shell(&format!("{daemon} >/dev/null 2>&1 & {wait}"))).await.unwrap();
        assert_eq!(session.end.await, Ok(0));
        until_ended(&machine.read("daemon")).await;
        std::fs::remove_file(machine.workdir().join("daemon")).unwrap();
    }
    assert_eq!(machine.server.pod("p").unwrap()["status"]["phase"], "Running");
    node.stop().await;
}

#[tokio::test]
async fn commands_run_in_a_container_that_has_no_command_and_see_its_volumes() {
    let machine = Machine::new(Mode::EndWithNode);
    if !machine.allows_isolation() {
        return;
    }
    let node = machine.start_node();
    let mounts = json!([{"name": "v", "mountPath": "/krafla-v"}]);
    let container = json!({"name": "main", "image": "ubuntu", "volumeMounts": mounts});
    let volumes = json!([{"name": "v", "emptyDir": {}}]);
    machine.server.create_pod("p", json!({"containers": [container], "volumes": volumes}));
    machine.server.until_phase("p", "Running").await;
    for (script, expected) in [("hostname | tee /krafla-v/x", "p\n"), ("cat /krafla-v/x", "p\n")] {
        let mut session = exec(&node, shell(script)).await.unwrap();
        assert_eq!(written(&mut session).await, expected);
        assert_eq!(session.end.await, Ok(0));
    }
    node.stop().await;
}

#[tokio::test]
async fn commands_run_where_their_container_runs_also_if_that_is_in_a_volume() {
    let machine = Machine::new(Mode::EndWithNode);
    if !machine.allows_isolation() {
        return;
    }
    let node = machine.start_node();
    for command in [json!(["sleep", "1000"]), json!([])] {
        let mut spec = once("");
        spec["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
        spec["containers"][0]["command"] = command;
        spec["containers"][0]["workingDir"] = json!("/krafla-w");
        spec["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/krafla-w"}]);
        spec["containers"][0]["readinessProbe"] =
            json!({"exec": {"command": ["true"]}, "timeoutSeconds": 60});
        machine.server.create_pod("p", spec);
        machine.server.until("p", |pod| pod["status"]["containerStatuses"][0]["ready"] == true).await;
        for (tty, expected) in [(false, "/krafla-w\n"), (true, "/krafla-w\r\n")] {
            let mut session = exec(&node, ExecOptions { tty, ..shell("pwd") }).await.unwrap();
            assert_eq!(written(&mut session).await, expected);
            assert_eq!(session.end.await, Ok(0));
        }
        machine.server.delete_pod("p", Some(0));
        machine.server.until_gone("p").await;
    }
    node.stop().await;
}

/// Where limits are kept, that is a group of the container's own.
#[tokio::test]
async fn a_command_is_in_the_control_group_of_its_container() {
    let machine = Machine::new(Mode::EndWithNode);
    let node = machine.start_node();
    let mut spec = once("cat /proc/self/cgroup > group; echo up; exec sleep 1000");
    spec["containers"][0]["resources"] = json!({"limits": {"memory": "1Gi"}});
    machine.server.create_pod("p", spec);
    machine.server.until_phase("p", "Running").await;
    node.until_output("p").await;
    let mut session = exec(&node, shell("cat /proc/self/cgroup")).await.unwrap();
    assert_eq!(written(&mut session).await, machine.read("group"));
    assert_eq!(session.end.await, Ok(0));
    node.stop().await;
}

#[tokio::test]
async fn a_command_ends_with_its_container() {
    let machine = Machine::new(Mode::EndWithNode);
    let gate = machine.make_gate("gate");
    let node = machine.start_node();
    machine.server.create_pod("p", once("read x < gate"));
    machine.server.until("p", |pod: &Value| pod["status"]["phase"] == "Running").await;
    let mut session = exec(&node, shell("echo $$; exec sleep 1000")).await.unwrap();
    let Some(Output::Stdout(pid)) = session.output.next().await else { panic!("no output") };
    gate.open().await;
    assert_eq!(session.end.await, Err("container \"main\" has ended".to_owned()));
    until_ended(std::str::from_utf8(&pid).unwrap()).await;
    let refused = exec(&node, shell("true")).await.err().map(|error| error.to_string());
    let expected = "container \"main\" of pod \"p\" does not run: it has not started yet, or has ended";
    assert_eq!(refused.as_deref(), Some(expected));
    node.stop().await;
}

/// The supervisor and krafla raise their own limit.
#[tokio::test]
async fn containers_and_what_runs_beside_them_have_the_limit_of_open_files_that_krafla_had() {
    for isolation in [false, true] {
        let mut machine = Machine::new(Mode::EndWithNode);
        (machine.isolation, machine.open_files) = (isolation, Some(123));
        let node = machine.start_node();
        let mut spec = once("ulimit -Sn; exec sleep 1000");
        let probe =
            json!({"exec": {"command": ["sh", "-c", "test $(ulimit -Sn) = 123"]}, "periodSeconds": 1});
        spec["containers"][0]["readinessProbe"] = probe;
        let hook = json!({"exec": {"command": ["sh", "-c", "ulimit -Sn > hook"]}});
        spec["containers"][0]["lifecycle"] = json!({"postStart": hook});
        machine.server.create_pod("p", spec);
        let is_ready = |pod: &Value| pod["status"]["containerStatuses"][0]["ready"] == true;
        machine.server.until("p", is_ready).await;
        assert_eq!(machine.read("hook"), "123\n");
        assert_eq!(node.logs("p", LogOptions::default()).await, "123\n");
        for tty in [false, true] {
            let mut session = exec(&node, ExecOptions { tty, ..shell("ulimit -Sn") }).await.unwrap();
            assert_eq!(written(&mut session).await.trim_end(), "123");
        }
        node.stop().await;
    }
}
