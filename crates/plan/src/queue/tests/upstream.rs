//! The cases by which Volcano tests its Queue controller, as tables: every state, every Command, with and without gangs, and
//! which queues a change concerns.

use std::fmt::Write;

use super::*;

/// The state that a plan writes; `-` if it leaves the state as it is.
fn state_written(name: &str, text: &str) -> String {
    let objects = parse(text);
    let key = Key::new("", name);
    let plan = plan(&Snapshot::new(Kind::Queue, &key, Time::from_seconds(1_800_000_000), &objects));
    match &plan.status {
        Some(Step::Patch { patch, .. }) => patch["status"]["state"].as_str().unwrap_or("-").to_owned(),
        _ => "-".to_owned(),
    }
}

#[test]
fn every_state_under_every_command() {
    let mut table = String::new();
    for state in ["New", "Open", "Closed", "Closing", "Unknown", "Draining"] {
        for command in ["OpenQueue", "CloseQueue", "SyncQueue", "none"] {
            let command_line = if command == "none" { String::new() } else { format!("command {command} q") };
            let cells = ["", "group g queue=q Completed", "group g queue=q Running"].map(|group| {
                state_written(
                    "q",
                    &format!("queue root Open parent=\n queue q {state}\n {group}\n {command_line}"),
                )
            });
            writeln!(table, "{state} {command}: {}", cells.join(" | ")).unwrap();
        }
    }
    expect![[r#"
        New OpenQueue: Open | Open | Open
        New CloseQueue: Closed | Closed | Closing
        New SyncQueue: - | - | -
        New none: Open | Open | Open
        Open OpenQueue: - | - | -
        Open CloseQueue: Closed | Closed | Closing
        Open SyncQueue: - | - | -
        Open none: - | - | -
        Closed OpenQueue: Open | Open | Open
        Closed CloseQueue: - | - | -
        Closed SyncQueue: - | - | -
        Closed none: - | - | -
        Closing OpenQueue: Open | Open | Open
        Closing CloseQueue: Closed | Closed | -
        Closing SyncQueue: Closed | Closed | -
        Closing none: Closed | Closed | -
        Unknown OpenQueue: Open | Open | Open
        Unknown CloseQueue: Closed | Closed | Closing
        Unknown SyncQueue: - | - | -
        Unknown none: - | - | -
        Draining OpenQueue: Open | Open | Open
        Draining CloseQueue: Closed | Closed | Closing
        Draining SyncQueue: - | - | -
        Draining none: - | - | -
    "#]]
    .assert_eq(&table);
}

#[test]
fn root_opens_and_stays_open() {
    for (state, command, written) in [
        ("New", "", "Open"),
        ("Open", "command CloseQueue root", "-"),
        ("Closed", "command OpenQueue root", "Open"),
        ("Open", "command SyncQueue root", "-"),
    ] {
        let text = format!("queue root {state} parent=\n {command}");
        assert_eq!(state_written("root", &text), written, "{text}");
    }
}

#[test]
fn a_change_concerns_the_queues_that_it_can_change() {
    let objects = parse(
        "queue p Closed\n queue open Open parent=p\n queue shut Closed parent=p\n queue marked Closed parent=p marked=true
         queue going Closing\n group g queue=open Running\n command CloseQueue shut",
    );
    let keys = |kind, namespace: &str, name: &str| {
        let changed = objects.get(kind, &Key::new(namespace, name)).unwrap();
        let keys = QueueController.keys(changed, &objects);
        keys.iter().map(|key| key.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(keys(Kind::Queue, "", "p"), "open p", "closing a parent concerns the children that are open");
    assert_eq!(keys(Kind::Queue, "", "open"), "open");
    assert_eq!(keys(Kind::PodGroup, "ns", "g"), "going", "only who closes waits for gangs");
    assert_eq!(keys(Kind::Command, "ns", "c6"), "shut");
    let reopened =
        parse("queue p Open\n queue shut Closed parent=p\n queue marked Closed parent=p marked=true");
    let parent = reopened.get(Kind::Queue, &Key::new("", "p")).unwrap();
    let keys = QueueController.keys(parent, &reopened);
    assert_eq!(keys, [Key::new("", "marked"), Key::new("", "p")], "and opening it those that closed with it");
}

#[test]
fn what_is_gone_concerns_the_same_queues_as_before() {
    let mut objects = parse(
        "queue p Closed\n queue open Open parent=p\n queue going Closing\n group g queue=going Running",
    );
    let (group, parent) = (Key::new("ns", "g"), Key::new("", "p"));
    let gone = objects.remove(Kind::PodGroup, &group).unwrap();
    assert_eq!(QueueController.keys(&gone, &objects), [Key::new("", "going")]);
    let gone = objects.remove(Kind::Queue, &parent).unwrap();
    assert_eq!(QueueController.keys(&gone, &objects), [Key::new("", "open"), parent.clone()]);
    let planned = plan(&Snapshot::new(Kind::Queue, &parent, Time::from_seconds(1_800_000_000), &objects));
    assert!(planned.is_quiet(), "{planned}");
}

#[test]
fn a_command_for_a_job_concerns_no_queue() {
    let command = json!({ "metadata": { "namespace": "ns", "name": "c", "uid": "c" }, "action": "AbortJob",
        "target": { "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "q", "uid": "j" } });
    let command = Object::decode(Kind::Command, command.to_string().as_bytes());
    assert_eq!(QueueController.keys(&command, &parse("queue q Open")), []);
}
