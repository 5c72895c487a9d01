//! Decision tables: queues in a few words, and the plan for queue `q`.

mod upstream;

use std::sync::Arc;

use expect_test::{Expect, expect};
use krafla_api::Time;

use super::*;

/// One object per line:
///
/// ```text
/// queue q Open parent=p marked=true going
/// group g1 queue=q Running
/// command CloseQueue q uid=other
/// command CloseQueue q name=z revision=7      all of these are of one second
/// ```
fn parse(text: &str) -> Objects {
    let mut objects = Objects::default();
    for (index, line) in text.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let value = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let (kind, object) = match words[0] {
            "queue" => {
                let state = if words[2] == "New" { "" } else { words[2] };
                let mut metadata = json!({ "name": words[1], "uid": format!("uid-{}", words[1]) });
                if let Some(marked) = value("marked") {
                    metadata["annotations"] = json!({ "volcano.sh/closed-by-parent": marked });
                }
                if words.contains(&"going") {
                    metadata["deletionTimestamp"] = json!("2027-01-15T08:01:00Z");
                }
                let spec = json!({ "parent": value("parent").unwrap_or("root"), "weight": 1 });
                (Kind::Queue, json!({ "metadata": metadata, "spec": spec, "status": { "state": state } }))
            }
            "group" => {
                let metadata = json!({ "namespace": "ns", "name": words[1], "uid": words[1] });
                let spec = json!({ "queue": value("queue") });
                (
                    Kind::PodGroup,
                    json!({ "metadata": metadata, "spec": spec, "status": { "phase": words[3] } }),
                )
            }
            "command" => {
                let revision = value("revision").unwrap_or("1");
                let seconds = if revision == "1" { i64::try_from(index).unwrap() } else { 0 };
                let created_at = Time::from_seconds(1_800_000_000 + seconds);
                let name = value("name").map_or_else(|| format!("c{index}"), str::to_owned);
                let metadata = json!({ "namespace": "ns", "name": name, "uid": name, "creationTimestamp": created_at,
                    "resourceVersion": revision });
                let uid = value("uid").map_or_else(|| format!("uid-{}", words[2]), str::to_owned);
                let target = json!({ "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                    "name": words[2], "uid": uid });
                (Kind::Command, json!({ "metadata": metadata, "action": words[1], "target": target }))
            }
            other => panic!("unknown line {other:?}"),
        };
        let object = Object::decode(kind, object.to_string().as_bytes());
        assert!(!matches!(object.body, Body::Unreadable(_)), "{object:?}");
        objects.insert(Arc::new(object));
    }
    objects
}

fn check(text: &str, expected: Expect) {
    check_queue("q", text, expected);
}

fn check_queue(name: &str, text: &str, expected: Expect) {
    let objects = parse(&format!("queue root Open parent=\n{text}"));
    let key = Key::new("", name);
    let plan = plan(&Snapshot::new(Kind::Queue, &key, Time::from_seconds(1_800_000_000), &objects));
    expected.assert_eq(&plan.to_string());
}

#[test]
fn a_new_queue_gets_its_parent_and_is_open() {
    check(
        "queue q New parent=",
        expect![[r#"
        patch queue status q {"status":{"state":"Open"}}
        patch queue q {"spec":{"parent":"root"}}
    "#]],
    );
    check("queue q Open", expect![[""]]);
}

#[test]
fn closing_waits_for_the_gangs_that_have_not_ended() {
    check(
        "queue q Open\n command CloseQueue q",
        expect![[r#"
        patch queue status q {"status":{"state":"Closed"}}
        delete command c2
        note Normal CloseQueue: queue q is closed by a Command
    "#]],
    );
    check(
        "queue q Open\n group g queue=q Running\n command CloseQueue q",
        expect![[r#"
        patch queue status q {"status":{"state":"Closing"}}
        delete command c3
        note Normal CloseQueue: queue q is closed by a Command
    "#]],
    );
    check("queue q Closing\n group g queue=q Running", expect![[""]]);
    check(
        "queue q Closing\n group g queue=other Running",
        expect![[r#"
        patch queue status q {"status":{"state":"Closed"}}
    "#]],
    );
}

#[test]
fn a_command_for_what_is_so_already_is_only_used_up() {
    check(
        "queue q Closed\n command CloseQueue q",
        expect![[r#"
        delete command c2
    "#]],
    );
    check(
        "queue q Open marked=false\n command OpenQueue q",
        expect![[r#"
        delete command c2
    "#]],
    );
    check(
        "queue q Open\n command SyncQueue q",
        expect![[r#"
        delete command c2
    "#]],
    );
    check(
        "queue q Open\n command DoSomething q",
        expect![[r#"
        delete command c2
    "#]],
    );
}

#[test]
fn commands_work_in_the_order_in_which_they_were_made() {
    check(
        "queue q Open\n command CloseQueue q\n command OpenQueue q",
        expect![[r#"
        patch queue status q {"status":{"state":"Closed"}}
        delete command c2
        note Normal CloseQueue: queue q is closed by a Command
    "#]],
    );
}

#[test]
fn a_closed_queue_opens_by_a_command() {
    for state in ["Closed", "Closing", "Unknown"] {
        let objects = parse(&format!("queue root Open parent=\n queue q {state}\n command OpenQueue q"));
        let key = Key::new("", "q");
        let plan = plan(&Snapshot::new(Kind::Queue, &key, Time::from_seconds(1_800_000_000), &objects));
        let lines: Vec<String> = plan.to_string().lines().map(str::to_owned).collect();
        assert_eq!(lines[0], r#"patch queue status q {"status":{"state":"Open"}}"#, "from {state}");
        assert_eq!(lines[2], "delete command c2", "from {state}");
    }
}

#[test]
fn root_can_not_be_closed() {
    check_queue(
        "root",
        "command CloseQueue root",
        expect![[r#"
        delete command c1
        note Warning CloseQueue: queue root cannot be closed; close the queues below it
    "#]],
    );
}

#[test]
fn a_child_closes_with_its_parent_marked_first() {
    check(
        "queue p Closed\n queue q Open parent=p",
        expect![[r#"
        patch queue q {"metadata":{"annotations":{"volcano.sh/closed-by-parent":"true"}}}
    "#]],
    );
    check(
        "queue p Closing\n queue q Open parent=p marked=true",
        expect![[r#"
        patch queue status q {"status":{"state":"Closed"}}
        note Normal CloseQueue: queue q is closed with its parent
    "#]],
    );
    check(
        "queue p Closed\n queue q New parent=p marked=true\n group g queue=q Inqueue",
        expect![[r#"
        patch queue status q {"status":{"state":"Closing"}}
        note Normal CloseQueue: queue q is closed with its parent
    "#]],
    );
}

#[test]
fn a_child_opens_with_its_parent_only_if_it_closed_with_it() {
    check(
        "queue p Open\n queue q Closed parent=p marked=true",
        expect![[r#"
        patch queue status q {"status":{"state":"Open"}}
        patch queue q {"metadata":{"annotations":{"volcano.sh/closed-by-parent":"false"}}}
        note Normal OpenQueue: queue q is opened with its parent
    "#]],
    );
    check("queue p Open\n queue q Closed parent=p marked=false", expect![[""]]);
    check("queue p Open\n queue q Closed parent=p", expect![[""]]);
    // A crash between the state and the mark is made good.
    check(
        "queue p Open\n queue q Open parent=p marked=true",
        expect![[r#"
        patch queue q {"metadata":{"annotations":{"volcano.sh/closed-by-parent":"false"}}}
    "#]],
    );
}

#[test]
fn a_queue_that_moves_follows_its_new_parent() {
    check(
        "queue q Closed parent=root marked=true",
        expect![[r#"
        patch queue status q {"status":{"state":"Open"}}
        patch queue q {"metadata":{"annotations":{"volcano.sh/closed-by-parent":"false"}}}
        note Normal OpenQueue: queue q is opened with its parent
    "#]],
    );
}

#[test]
fn volcano_18_and_22_a_gang_that_moved_away_no_longer_keeps_its_old_queue() {
    let objects = parse("queue q Closing\n queue r Open\n group g queue=r Running");
    let group = objects.get(Kind::PodGroup, &Key::new("ns", "g")).unwrap();
    assert_eq!(QueueController.keys(group, &objects), [Key::new("", "q")]);
    check(
        "queue q Closing\n queue r Open\n group g queue=r Running",
        expect![[r#"
        patch queue status q {"status":{"state":"Closed"}}
    "#]],
    );
}

#[test]
fn volcano_19_a_wish_to_open_below_a_closed_parent_is_kept() {
    check(
        "queue p Closed\n queue q Closed parent=p\n command OpenQueue q",
        expect![[r#"
        patch queue q {"metadata":{"annotations":{"volcano.sh/closed-by-parent":"true"}}}
        delete command c3
        note Warning OpenQueue: queue q opens together with its parent p, which is closed
    "#]],
    );
    check(
        "queue p Closed\n queue q Closed parent=p marked=true\n command OpenQueue q",
        expect![[r#"
        delete command c3
        note Warning OpenQueue: queue q opens together with its parent p, which is closed
    "#]],
    );
}

#[test]
fn volcano_20_a_command_for_another_queue_of_the_same_name_is_not_obeyed() {
    check("queue q Open\n command CloseQueue q uid=predecessor", expect![[""]]);
}

#[test]
fn volcano_21_and_23_a_completed_gang_keeps_no_queue_open_and_every_gang_is_known() {
    check(
        "queue q Open\n group g queue=q Completed\n command CloseQueue q",
        expect![[r#"
        patch queue status q {"status":{"state":"Closed"}}
        delete command c3
        note Normal CloseQueue: queue q is closed by a Command
    "#]],
    );
}

#[test]
fn volcano_24_only_the_state_is_written_and_whoever_wrote_it_last_does_not_matter() {
    let objects = parse("queue root Open parent=\n queue q Open\n command CloseQueue q");
    let key = Key::new("", "q");
    let plan = plan(&Snapshot::new(Kind::Queue, &key, Time::from_seconds(1_800_000_000), &objects));
    let Some(Step::Patch { of_status, revision, patch, .. }) = plan.status else { panic!("no state") };
    assert_eq!((of_status, revision, patch), (true, Some(0), json!({ "status": { "state": "Closed" } })));
}

#[test]
fn volcano_26_a_queue_needs_no_root_and_says_that_it_opens() {
    let planned = |text: &str| {
        let (objects, key) = (parse(text), Key::new("", "q"));
        plan(&Snapshot::new(Kind::Queue, &key, Time::from_seconds(1_800_000_000), &objects)).to_string()
    };
    expect![[r#"
        patch queue status q {"status":{"state":"Open"}}
    "#]]
    .assert_eq(&planned("queue q New"));
    expect![[r#"
        patch queue status q {"status":{"state":"Open"}}
        patch queue q {"metadata":{"annotations":{"volcano.sh/closed-by-parent":"false"}}}
        delete command c1
        note Normal OpenQueue: queue q is opened by a Command
    "#]]
    .assert_eq(&planned("queue q Closed\n command OpenQueue q"));
}

#[test]
fn a_queue_whose_parent_is_missing_is_on_its_own() {
    check(
        "queue q New parent=nobody",
        expect![[r#"
        patch queue status q {"status":{"state":"Open"}}
    "#]],
    );
    check("queue q Closed parent=nobody marked=true", expect![[""]]);
}

#[test]
fn a_queue_that_is_going_is_left_alone() {
    check("queue q Open going\n command CloseQueue q", expect![[""]]);
}

#[test]
fn a_queue_that_can_not_be_read_says_so() {
    let mut objects = Objects::default();
    let queue = r#"{ "metadata": { "name": "q", "uid": "q" }, "spec": { "weight": "heavy" } }"#;
    objects.insert(Object::decode(Kind::Queue, queue.as_bytes()).into());
    let key = Key::new("", "q");
    let plan = plan(&Snapshot::new(Kind::Queue, &key, Time::from_seconds(0), &objects));
    expect![[r#"
        note Warning SyncQueue: cannot read the queue: spec.weight: invalid type: string "heavy", expected i32
    "#]]
    .assert_eq(&plan.to_string());
}

#[test]
fn commands_of_one_second_work_in_the_order_in_which_they_were_stored() {
    check(
        "queue q Open
         command OpenQueue q name=a revision=8
         command CloseQueue q name=z revision=7",
        expect![[r#"
            patch queue status q {"status":{"state":"Closed"}}
            delete command z
            note Normal CloseQueue: queue q is closed by a Command
        "#]],
    );
}
