//! Connections with what containers run themselves, with real processes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

mod common;

use common::{Machine, RunningNode, sh};
use futures_util::StreamExt;
use krafla_api::Kind;
use krafla_node::{Mode, Output, Session};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

/// A machine with a pod `p` that runs a script, with these fields of its container.
async fn machine_with_pod(script: &str, fields: Value) -> (Machine, RunningNode) {
    let machine = Machine::new(Mode::EndWithNode);
    let node = machine.start_node();
    let mut container = sh("main", script);
    container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    machine.server.create_pod("p", json!({"restartPolicy": "Never", "containers": [container]}));
    machine.server.until("p", |pod: &Value| pod["status"]["phase"] == "Running").await;
    (machine, node)
}

async fn attach(node: &RunningNode) -> Session {
    node.node.attach("default", "p", "main").await.unwrap()
}

async fn write(session: &mut Session, text: &str) {
    session.stdin.as_mut().unwrap().write_all(text.as_bytes()).await.unwrap();
}

/// Reads until `end` has been written.
async fn read_until(session: &mut Session, end: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(end) {
        let Some(Output::Stdout(data) | Output::Stderr(data)) = session.output.next().await else {
            panic!("it ended after {text:?}");
        };
        text += &String::from_utf8_lossy(&data);
    }
    text
}

/// Reads until the container has ended, which it must do with 0.
async fn read_to_end(mut session: Session) -> String {
    let mut text = String::new();
    while let Some(Output::Stdout(data) | Output::Stderr(data)) = session.output.next().await {
        text += &String::from_utf8_lossy(&data);
    }
    assert_eq!(session.end.await, Ok(0));
    text
}

#[tokio::test]
async fn a_container_that_is_added_to_a_pod_runs_beside_the_others() {
    let (machine, node) = machine_with_pod("exec sleep 1000", json!({})).await;
    let added = json!({"name": "debugger", "image": "busybox", "stdin": true, "tty": true});
    machine.server.patch(Kind::Pod, "p", &json!({"spec": {"ephemeralContainers": [added]}}));
    let is_running =
        |pod: &Value| pod["status"]["ephemeralContainerStatuses"][0]["state"]["running"].is_object();
    machine.server.until("p", is_running).await;
    let mut session = node.node.attach("default", "p", "debugger").await.unwrap();
    write(&mut session, "echo here $((1 + 1)); exit 3\n").await;
    assert!(read_to_end(session).await.contains("here 2\r\n"));
    let has_ended =
        |pod: &Value| pod["status"]["ephemeralContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 3;
    let pod = machine.server.until("p", has_ended).await;
    assert_eq!(pod["status"]["phase"], "Running");
    node.stop().await;
}

#[tokio::test]
async fn input_stays_open_for_the_next_that_comes() {
    let script = "while read line; do test $line = end && exit; echo got $line; done; echo never";
    let (_machine, node) = machine_with_pod(script, json!({"stdin": true})).await;
    for word in ["one", "two"] {
        let mut session = attach(&node).await;
        write(&mut session, &format!("{word}\n")).await;
        assert_eq!(read_until(&mut session, "\n").await, format!("got {word}\n"));
    }
    let mut session = attach(&node).await;
    write(&mut session, "end\n").await;
    assert_eq!(read_to_end(session).await, "");
    node.stop().await;
}

#[tokio::test]
async fn input_that_is_given_once_ends_with_the_first_that_came() {
    let fields = json!({"stdin": true, "stdinOnce": true});
    let (machine, node) = machine_with_pod("cat; read x < gate", fields).await;
    let gate = machine.make_gate("gate");
    let mut first = attach(&node).await;
    write(&mut first, "a prompt without an end").await;
    drop(first.stdin.take());
    assert_eq!(read_until(&mut first, "end").await, "a prompt without an end");
    // The pipe is gone before the container can read to the end, and so before it comes to the gate.
    gate.open().await;
    assert_eq!(read_to_end(first).await, "");
    let refused = node.node.attach("default", "p", "main").await.err().map(|error| error.to_string());
    assert_eq!(
        refused.as_deref(),
        Some("container \"main\" of pod \"p\" does not run: it has not started yet, or has ended")
    );
    node.stop().await;
}

#[tokio::test]
async fn a_container_without_stdin_has_nothing_to_read() {
    let machine = Machine::new(Mode::EndWithNode);
    let gate = machine.make_gate("gate");
    let node = machine.start_node();
    machine.server.create_pod("p", common::once("cat; echo empty; read x < gate"));
    machine.server.until("p", |pod: &Value| pod["status"]["phase"] == "Running").await;
    node.until_output("p").await;
    let session = attach(&node).await;
    assert!(session.stdin.is_none());
    gate.open().await;
    assert_eq!(read_to_end(session).await, "");
    node.stop().await;
}

#[tokio::test]
async fn a_terminal_has_a_size_and_shows_what_is_typed() {
    let script = "until test \"$(stty size)\" = '33 77'; do sleep 0.02; done; test -t 2 && printf 'your name: '; \
                  read name; echo hello $name; exec cat";
    let fields = json!({"stdin": true, "stdinOnce": true, "tty": true});
    let (_machine, node) = machine_with_pod(script, fields).await;
    let mut session = attach(&node).await;
    session.resize.as_ref().unwrap()(77, 33);
    assert_eq!(read_until(&mut session, ": ").await, "your name: ", "a prompt is shown at once");
    write(&mut session, "Ada\n").await;
    assert_eq!(read_until(&mut session, "hello Ada\r\n").await, "Ada\r\nhello Ada\r\n");
    drop(session.stdin.take());
    read_to_end(session).await;
    node.stop().await;
}

#[tokio::test]
async fn the_two_outputs_are_told_apart() {
    let script = "read x; echo out; echo err >&2; printf more";
    let (_machine, node) = machine_with_pod(script, json!({"stdin": true})).await;
    let mut session = attach(&node).await;
    write(&mut session, "go\n").await;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(output) = session.output.next().await {
        match output {
            Output::Stdout(data) => stdout.extend(data),
            Output::Stderr(data) => stderr.extend(data),
        }
    }
    assert_eq!((stdout.as_slice(), stderr.as_slice()), (&b"out\nmore"[..], &b"err\n"[..]));
    node.stop().await;
}
