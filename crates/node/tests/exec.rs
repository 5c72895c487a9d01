//! Commands beside those of containers, with real processes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

mod common;

use common::{Machine, RunningNode, once, until_ended};
use futures_util::StreamExt;
use krafla_node::{ExecError, ExecOptions, Mode, Output, Session};
use serde_json::Value;
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
