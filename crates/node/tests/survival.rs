//! What survives the death of the node, what ends with it, and what becomes of the rest.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

mod common;

use common::{Machine, once, sh, until_ended};
use futures_util::StreamExt;
use krafla_cluster::{ExecOptions, LogOptions};
use krafla_node::{Mode, Output};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

#[tokio::test]
async fn containers_outlive_the_node_and_the_next_one_finds_them() {
    let machine = Machine::new(Mode::OutliveNode);
    let gate = machine.make_gate("gate");
    let node = machine.start_node();
    machine.server.create_pod("p", once("echo start >> starts; echo one; read x < gate; echo two; exit 5"));
    machine.server.until_phase("p", "Running").await;
    node.kill().await;
    // It writes and ends while nobody is there to see it.
    gate.open().await;

    let node = machine.start_node();
    let pod = machine.server.until_phase("p", "Failed").await;
    assert_eq!(pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 5);
    assert_eq!(node.logs("p", LogOptions::default()).await, "one\ntwo\n");
    assert_eq!(machine.read("starts"), "start\n");
    node.stop().await;
}

#[tokio::test]
async fn each_start_is_told_of_once_whoever_runs_the_node_then() {
    let mut machine = Machine::new(Mode::OutliveNode);
    machine.tells = true;
    let node = machine.start_node();
    let script = "test -e was-here && exec sleep 1000; touch was-here; exit 1";
    machine.server.create_pod("p", json!({"restartPolicy": "OnFailure", "containers": [sh("main", script)]}));
    machine.server.until_messages("Started", 2).await;
    machine.server.create_pod("short", once("true"));
    machine.server.until_messages("Started", 3).await;
    node.kill().await;
    let node = machine.start_node();
    machine.server.delete_pod("p", Some(1));
    machine.server.until_gone("p").await;
    node.stop().await;
    assert_eq!(machine.server.messages("Started"), ["Started container main"; 3]);
}

#[tokio::test]
async fn a_pod_keeps_its_address_though_a_new_one_is_found_before_it() {
    let machine = Machine::new(Mode::OutliveNode);
    let node = machine.start_node();
    let address = |pod: &serde_json::Value| pod["status"]["podIP"].as_str().unwrap().to_owned();
    machine.server.create_pod("old", once("sleep 1000"));
    let before = address(&machine.server.until_phase("old", "Running").await);
    node.kill().await;
    // It is listed first, and would be given the first address that there is.
    machine.server.create_pod("new", once("sleep 1000"));

    let node = machine.start_node();
    let new = address(&machine.server.until_phase("new", "Running").await);
    assert_ne!(new, before);
    // One that comes after both of them is taken in when nothing is left to be said of these.
    machine.server.create_pod("last", once("true"));
    machine.server.until_phase("last", "Succeeded").await;
    assert_eq!(address(&machine.server.pod("old").unwrap()), before);
    for pod in ["old", "new"] {
        machine.server.delete_pod(pod, Some(0));
        machine.server.until_gone(pod).await;
    }
    node.stop().await;
}

#[tokio::test]
async fn a_pod_that_was_deleted_meanwhile_is_removed() {
    let machine = Machine::new(Mode::OutliveNode);
    let node = machine.start_node();
    let uid = machine.server.create_pod("p", once("echo $$ > pid; echo up; sleep 1000"));
    machine.server.until_phase("p", "Running").await;
    node.until_output("p").await;
    node.kill().await;
    machine.server.delete_pod("p", Some(0));

    let node = machine.start_node();
    until_ended(&machine.read("pid")).await;
    machine.until_removed(&uid).await;
    node.stop().await;
}

#[tokio::test]
async fn a_pod_that_writes_to_its_last_moment_leaves_nothing() {
    let mut machine = Machine::new(Mode::OutliveNode);
    machine.isolation = false;
    let node = machine.start_node();
    // In a directory of its pod, as to a volume.
    let script =
        "mkdir -p $PODS/$UID/new; cd $PODS/$UID; echo up; while :; do i=$((i + 1)); : > new/$i; done";
    let pods = machine.root().join("pods");
    let mut main = sh("main", script);
    main["env"] = json!([
        {"name": "PODS", "value": pods.to_str().unwrap()},
        {"name": "UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
    ]);
    let uid = machine.server.create_pod("p", json!({"restartPolicy": "Never", "containers": [main]}));
    machine.server.until_phase("p", "Running").await;
    node.until_output("p").await;
    node.kill().await;
    machine.server.delete_pod("p", Some(0));

    let node = machine.start_node();
    machine.until_removed(&uid).await;
    node.stop().await;
}

#[tokio::test]
async fn nothing_is_left_behind_when_containers_end_with_the_node() {
    let machine = Machine::new(Mode::EndWithNode);
    let node = machine.start_node();
    // A daemon that has left its session, its group and its parent.
    let daemon =
        "setsid sh -c 'echo $$ > daemon; exec sleep 1000' & sh -c 'echo $$ > child; exec sleep 1000' &";
    let script =
        format!("{daemon} while [ ! -s daemon ] || [ ! -s child ]; do sleep 0.01; done; echo up; wait");
    machine.server.create_pod("p", once(&script));
    machine.server.until_phase("p", "Running").await;
    node.until_output("p").await;
    let (daemon, child) = (machine.read("daemon"), machine.read("child"));
    node.kill().await;
    until_ended(&child).await;
    until_ended(&daemon).await;
}

#[tokio::test]
async fn who_will_not_end_is_killed_when_nobody_wants_to_wait() {
    let machine = Machine::new(Mode::EndWithNode);
    let node = machine.start_node();
    // Nobody would wait for an hour.
    let mut stubborn = once("trap '' TERM; echo $$ > pid; echo up; while :; do sleep 1000; done");
    stubborn["terminationGracePeriodSeconds"] = json!(3600);
    machine.server.create_pod("stubborn", stubborn);
    machine.server.create_pod("done", once("true"));
    machine.server.until_phase("done", "Succeeded").await;
    machine.server.until_phase("stubborn", "Running").await;
    node.until_output("stubborn").await;
    let left: Vec<_> = node.node.unfinished_pods().iter().map(|key| key.name.to_string()).collect();
    assert_eq!(left, ["stubborn"]);
    node.node.kill_all();
    node.stop().await;
    until_ended(&machine.read("pid")).await;
}

#[tokio::test]
async fn what_runs_beside_a_container_ends_with_the_node_though_the_container_goes_on() {
    let machine = Machine::new(Mode::OutliveNode);
    let node = machine.start_node();
    machine.server.create_pod("p", once("setsid sleep 1000 & echo $! > own; echo up; wait; echo ended"));
    machine.server.until_phase("p", "Running").await;
    node.until_output("p").await;
    // The daemon has left the process group, and both are children of whoever takes in orphans.
    let daemon = "setsid sh -c 'echo $$ > daemon; exec sleep 1000' &";
    let script = format!("{daemon} while [ ! -s daemon ]; do sleep 0.01; done; echo $$; exec sleep 1000");
    let command = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let options = ExecOptions { command, ..ExecOptions::default() };
    let mut session = node.node.exec("default", "p", "main", options).await.unwrap();
    let Some(Output::Stdout(pid)) = session.output.next().await else { panic!("no output") };
    node.kill().await;
    until_ended(std::str::from_utf8(&pid).unwrap()).await;
    until_ended(&machine.read("daemon")).await;

    let node = machine.start_node();
    machine.server.create_pod("q", once("true"));
    machine.server.until_phase("q", "Succeeded").await;
    assert_eq!(machine.server.pod("p").unwrap()["status"]["phase"], "Running");
    let own = Pid::from_raw(machine.read("own").trim().parse().unwrap()).unwrap();
    test_kill_process(own).unwrap();
    machine.server.delete_pod("p", Some(0));
    machine.server.until_gone("p").await;
    node.stop().await;
}

#[tokio::test]
async fn a_daemon_ends_with_its_container() {
    let machine = Machine::new(Mode::EndWithNode);
    let node = machine.start_node();
    let script =
        "setsid sh -c 'echo $$ > daemon; exec sleep 1000' & while [ ! -s daemon ]; do sleep 0.01; done";
    machine.server.create_pod("p", once(script));
    machine.server.until_phase("p", "Succeeded").await;
    until_ended(&machine.read("daemon")).await;
    node.stop().await;
}

#[tokio::test]
async fn what_no_longer_knows_where_it_comes_from_ends_with_its_container() {
    let machine = Machine::new(Mode::EndWithNode);
    let node = machine.start_node();
    machine.server.create_pod("other", once("exec sleep 1000"));
    machine.server.until_phase("other", "Running").await;
    // It has left its session, its group and its parent, and has nothing in its environment.
    let daemon = "env -i setsid /bin/sh -c 'echo $$ > daemon; exec /bin/sleep 1000' &";
    machine.server.create_pod("p", once(&format!("{daemon} while [ ! -s daemon ]; do sleep 0.01; done")));
    machine.server.until_phase("p", "Succeeded").await;
    until_ended(&machine.read("daemon")).await;
    assert_eq!(machine.server.pod("other").unwrap()["status"]["phase"], "Running");
    node.stop().await;
}

#[tokio::test]
async fn what_can_not_be_told_from_others_ends_with_the_last_container() {
    let machine = Machine::new(Mode::OutliveNode);
    let node = machine.start_node();
    // The number of locks that it may hold is what it is known by.
    let daemon =
        "prlimit --locks=unlimited env -i setsid /bin/sh -c 'echo $$ > daemon; exec /bin/sleep 1000' &";
    machine.server.create_pod("p", once(&format!("{daemon} while [ ! -s daemon ]; do sleep 0.01; done")));
    machine.server.until_phase("p", "Succeeded").await;
    until_ended(&machine.read("daemon")).await;
    node.stop().await;
}

#[tokio::test]
async fn containers_whose_krafla_and_supervisor_were_killed_can_still_be_ended() {
    let machine = Machine::new(Mode::LeaveNothing);
    let asked = machine.make_gate("asked");
    let node = machine.start_node();
    let daemon = "env -i setsid /bin/sh -c 'echo $$ > daemon; exec /bin/sleep 1000' &";
    let script = format!(
        "{daemon} trap 'echo > asked' TERM; while [ ! -s daemon ]; do sleep 0.01; done; \
         echo $PPID > supervisor; echo $$ > pid; echo up; while :; do sleep 0.05; done"
    );
    let mut stubborn = once(&script);
    stubborn["terminationGracePeriodSeconds"] = json!(3600);
    machine.server.create_pod("p", stubborn);
    machine.server.until_phase("p", "Running").await;
    node.until_output("p").await;
    node.kill().await;
    asked.until_written().await;
    let supervisor = machine.read("supervisor");
    kill_process(Pid::from_raw(supervisor.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    until_ended(&supervisor).await;

    krafla_node::supervisor::end_lost(&machine.root());
    until_ended(&machine.read("pid")).await;
    until_ended(&machine.read("daemon")).await;
}

#[tokio::test]
async fn a_container_that_loses_its_supervisor_is_lost_and_started_again() {
    let machine = Machine::new(Mode::EndWithNode);
    let node = machine.start_node();
    let script = "echo $PPID > supervisor; echo $$ >> pids; echo up; exec sleep 1000";
    machine.server.create_pod("p", json!({"restartPolicy": "Always", "containers": [sh("main", script)]}));
    machine.server.until_phase("p", "Running").await;
    node.until_output("p").await;
    let supervisor = Pid::from_raw(machine.read("supervisor").trim().parse().unwrap()).unwrap();
    let first = machine.read("pids");
    kill_process(supervisor, Signal::KILL).unwrap();
    let pod = machine
        .server
        .until("p", |pod| {
            let main = &pod["status"]["containerStatuses"][0];
            main["restartCount"] == 1 && main["state"]["running"].is_object()
        })
        .await;
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!((&last["reason"], &last["exitCode"]), (&json!("ContainerStatusUnknown"), &json!(137)));
    until_ended(&first).await;
    node.stop().await;
}

#[tokio::test]
async fn containers_end_with_the_node_though_their_supervisor_is_killed_meanwhile() {
    let machine = Machine::new(Mode::EndWithNode);
    let asked = machine.make_gate("asked");
    let node = machine.start_node();
    let script = "trap 'echo > asked' TERM; echo $PPID > supervisor; echo $$ > pid; echo up; while :; do sleep 0.05; done";
    let mut stubborn = once(script);
    stubborn["terminationGracePeriodSeconds"] = json!(3600);
    machine.server.create_pod("p", stubborn);
    machine.server.until_phase("p", "Running").await;
    node.until_output("p").await;
    let stopping = tokio::spawn(node.stop());
    asked.until_written().await;
    let supervisor = Pid::from_raw(machine.read("supervisor").trim().parse().unwrap()).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    stopping.await.unwrap();
    until_ended(&machine.read("pid")).await;
}

#[tokio::test]
async fn a_pause_goes_on_under_another_supervisor() {
    let machine = Machine::new(Mode::OutliveNode);
    let node = machine.start_node();
    machine.server.create_pod("p", json!({"containers": [{"name": "main", "image": "nginx"}]}));
    machine.server.create_pod("q", once("echo $PPID > supervisor"));
    machine.server.until_phase("p", "Running").await;
    machine.server.until_phase("q", "Succeeded").await;
    let supervisor = machine.read("supervisor");
    kill_process(Pid::from_raw(supervisor.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    // The node starts another supervisor, which starts this.
    machine.server.create_pod("r", once("true"));
    machine.server.until_phase("r", "Succeeded").await;
    let main = &machine.server.pod("p").unwrap()["status"]["containerStatuses"][0];
    assert!(main["state"]["running"].is_object() && main["restartCount"] == 0, "{main}");
    node.stop().await;
}

#[tokio::test]
async fn containers_end_when_nobody_can_ever_ask_for_them_again() {
    let machine = Machine::new(Mode::OutliveNode);
    let node = machine.start_node();
    machine.server.create_pod("p", once("echo $$ > pid; echo up; exec sleep 1000"));
    machine.server.until_phase("p", "Running").await;
    node.until_output("p").await;
    node.kill().await;
    std::fs::remove_dir_all(machine.root()).unwrap();
    until_ended(&machine.read("pid")).await;
}
