//! What the scheduler says of a gang.

use expect_test::expect;

use super::fixture::{check, objects, plan};

#[test]
fn a_pending_podgroup_is_let_in_when_its_minimum_is_there() {
    check(
        "node one cpu=4
         podgroup small min=1 needs:cpu=2
         podgroup large min=1 needs:cpu=3
         podgroup any min=1",
        &expect![[r#"
            podgroup any: phase=Inqueue
            podgroup large: Unschedulable(NotEnoughResources: not admitted: it needs 3 cpu, and not enough is left of the cluster's 4), phase=Pending
            podgroup small: phase=Inqueue
        "#]],
    );
}

#[test]
fn a_gang_that_was_let_in_keeps_its_room_until_its_pods_are_there() {
    check(
        "node one cpu=4
         podgroup first min=1 needs:cpu=4 phase=Inqueue young
         podgroup second min=1 needs:cpu=1",
        &expect![[r#"
            podgroup second: Unschedulable(NotEnoughResources: not admitted: it needs 1 cpu, and not enough is left of the cluster's 4), phase=Pending
        "#]],
    );
}

#[test]
fn quotas_are_no_resources() {
    check(
        "node one cpu=4
         podgroup g min=1 needs:cpu=1 needs:requests.cpu=1 needs:limits.cpu=99 needs:count/pods=99 needs:pods=1",
        &expect![[r#"
            podgroup g: phase=Inqueue
        "#]],
    );
}

#[test]
fn a_gang_in_a_queue_that_is_missing_or_closed_is_not_let_in() {
    check(
        "node one
         queue closed state=Closed
         queue closing state=Closing
         podgroup a queue=missing
         podgroup b queue=closed
         podgroup c queue=closing",
        &expect![[r#"
            podgroup a: Unschedulable(QueueNotFound: not admitted: there is no queue missing), phase=Pending
            podgroup b: Unschedulable(QueueClosed: not admitted: queue closed is closed), phase=Pending
            podgroup c: Unschedulable(QueueClosed: not admitted: queue closing is closed), phase=Pending
        "#]],
    );
}

#[test]
fn a_gang_runs_while_its_pods_run_and_is_complete_when_they_ended() {
    check(
        "node one
         podgroup runs min=2 phase=Inqueue
         pod runs-0 of=runs on=one phase=Running
         pod runs-1 of=runs on=one phase=Succeeded
         podgroup ended min=2 phase=Running scheduled running=2
         pod ended-0 of=ended on=one phase=Failed
         pod ended-1 of=ended on=one phase=Succeeded",
        &expect![[r#"
            podgroup ended: failed=1, phase=Completed, running=null, succeeded=1
            podgroup runs: Scheduled, phase=Running, running=1, succeeded=1
        "#]],
    );
}

#[test]
fn a_gang_of_which_a_part_runs_and_the_rest_finds_no_room_is_unknown() {
    check(
        "node one cpu=2
         podgroup g min=3 phase=Running scheduled running=3
         pod g-0 of=g on=one phase=Running
         pod g-1 of=g on=one phase=Running
         pod g-2 of=g",
        &expect![[r#"
            podgroup g: not Scheduled, Unschedulable(NotEnoughResources: 1/3 tasks in gang unschedulable: pod group is not ready, 1 Pending, 2 Running, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu), phase=Unknown, running=2
            pod g-2: not PodScheduled(Unschedulable: 1/3 tasks in gang unschedulable: pod group is not ready, 1 Pending, 2 Running, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
}

#[test]
fn a_gang_that_lacks_a_pod_which_nobody_has_made_yet_stays_as_it_is() {
    check(
        "node one
         podgroup g min=3 phase=Running scheduled running=2
         pod g-0 of=g on=one phase=Running
         pod g-1 of=g on=one phase=Running",
        &expect![""],
    );
}

#[test]
fn a_gang_that_lost_all_its_pods_starts_anew() {
    check(
        "node one
         podgroup g min=1 phase=Running scheduled running=1",
        &expect![[r#"
            podgroup g: not Scheduled, phase=Inqueue, running=null
        "#]],
    );
}

#[test]
fn a_gang_that_ran_and_whose_new_pods_find_no_room_waits_again() {
    check(
        "node one cpu=2
         podgroup g min=2 phase=Running scheduled running=2 needs:cpu=2
         pod g-0 of=g
         pod g-1 of=g
         pod other on=one phase=Running",
        &expect![[r#"
            podgroup g: not Scheduled, Unschedulable(NotEnoughResources: not admitted: it needs 2 cpu, and not enough is left of the cluster's 2), phase=Pending, running=null
            pod g-0: not PodScheduled(Unschedulable: not admitted: it needs 2 cpu, and not enough is left of the cluster's 2)
            pod g-1: not PodScheduled(Unschedulable: not admitted: it needs 2 cpu, and not enough is left of the cluster's 2)
        "#]],
    );
}

#[test]
fn a_gang_is_complete_whether_its_pods_succeeded_or_failed() {
    for phase in ["Succeeded", "Failed"] {
        let plan = plan(&objects(&format!(
            "node one
             podgroup g min=1 phase=Running scheduled running=1
             pod g-0 of=g on=one phase={phase}"
        )));
        let written = plan.to_string();
        assert!(written.contains(r#""phase":"Completed""#), "{phase}: {written}");
    }
}

#[test]
fn a_complete_gang_stays_complete_without_its_pods() {
    check(
        "node one
         podgroup g min=1 phase=Completed scheduled",
        &expect![""],
    );
}

#[test]
fn a_gang_that_finds_room_at_last_is_no_longer_unschedulable() {
    check(
        "node one
         podgroup g min=1 phase=Inqueue unschedulable=no_room
         pod g-0 of=g",
        &expect![[r#"
            bind pod g-0 to one
            podgroup g: not Unschedulable, Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn pods_that_do_not_come_are_worth_a_word_only_after_a_while() {
    check(
        "node one
         podgroup old min=2 phase=Inqueue
         pod old-0 of=old
         podgroup young min=2 phase=Inqueue young
         pod young-0 of=young",
        &expect![[r#"
            podgroup old: Unschedulable(NotEnoughTasks: pod group is not ready, 1 Pending; 1 more needed)
            pod old-0: not PodScheduled(Unschedulable: pod group is not ready, 1 Pending; 1 more needed)
        "#]],
    );
    let plan = plan(&objects("podgroup young min=2 phase=Inqueue young"));
    expect!["2027-01-15T08:00:20Z"].assert_eq(&plan.wake_at.unwrap().to_string());
}

#[test]
fn how_many_nodes_are_full_is_no_news() {
    let cluster = |told: &str| {
        format!(
            "node one cpu=1
             node two cpu=1
             podgroup g min=1 phase=Inqueue unschedulable={told}
             pod g-0 of=g cpu=2"
        )
    };
    let told = "1/1_tasks_in_gang_unschedulable:_pod_group_is_not_ready,_1_Pending,_1_minAvailable;_Pending:_9_Insufficient_cpu;_0/7_nodes_are_available:_7_Insufficient_cpu";
    check(
        &cluster(told),
        &expect![[r#"
        pod g-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 2 Insufficient cpu)
    "#]],
    );
    let told = told.replace("1_Pending", "2_Pending");
    check(
        &cluster(&told),
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 2 Insufficient cpu)
            pod g-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 2 Insufficient cpu)
        "#]],
    );
    let told = told.replace("cpu", "memory");
    check(
        &cluster(&told),
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 2 Insufficient cpu)
            pod g-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 2 Insufficient cpu)
        "#]],
    );
}

#[test]
fn a_condition_keeps_its_time_while_it_stays_true() {
    let objects = objects(
        "node one cpu=1
         podgroup g min=1 phase=Inqueue unschedulable=something_else
         pod g-0 of=g cpu=2",
    );
    expect![[r#"
        patch podgroup g {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T07:50:00Z","message":"1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu","reason":"NotEnoughResources","status":"True","type":"Unschedulable"}]}}
        patch pod status g-0 {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:00:00Z","message":"1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu","reason":"Unschedulable","status":"False","type":"PodScheduled"}]}}
        patch queue status default {"status":{"inqueue":1}}
    "#]].assert_eq(&plan(&objects).to_string());
}

#[test]
fn a_condition_gets_a_new_time_when_it_turns() {
    let objects = objects(
        "node one cpu=1
         podgroup g min=1 phase=Inqueue scheduled was=Unschedulable
         pod g-0 of=g cpu=2",
    );
    expect![[r#"
        patch podgroup g {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:00:00Z","message":"1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu","reason":"NotEnoughResources","status":"True","type":"Unschedulable"},{"lastTransitionTime":"2027-01-15T08:00:00Z","status":"False","type":"Scheduled"}]}}
        patch pod status g-0 {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:00:00Z","message":"1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu","reason":"Unschedulable","status":"False","type":"PodScheduled"}]}}
        patch queue status default {"status":{"inqueue":1}}
    "#]].assert_eq(&plan(&objects).to_string());
}

#[test]
fn in_a_fifo_queue_nobody_is_let_in_before_the_first() {
    check(
        "node one cpu=4
         queue line fifo
         queue any
         class urgent value=9
         podgroup first queue=line needs:cpu=6
         podgroup second queue=line needs:cpu=1
         podgroup third queue=line
         podgroup other queue=any needs:cpu=1
         podgroup urgent queue=line needs:cpu=1 priority=urgent",
        &expect![[r#"
            podgroup first: Unschedulable(NotEnoughResources: not admitted: it needs 6 cpu and can never fit, because all nodes that take pods have 4: ask for less, or add nodes), phase=Pending
            podgroup other: phase=Inqueue
            podgroup second: Unschedulable(NotEnoughResources: not admitted: waits behind default/first in its first in, first out queue), phase=Pending
            podgroup third: Unschedulable(NotEnoughResources: not admitted: waits behind default/first in its first in, first out queue), phase=Pending
            podgroup urgent: phase=Inqueue
        "#]],
    );
}

#[test]
fn a_gang_that_can_never_fit_is_told_so_and_what_to_do() {
    check(
        "node one cpu=8
         queue small cap:cpu=2
         podgroup huge min=1 needs:cpu=12
         podgroup little-too-large min=1 needs:cpu=9
         podgroup beyond min=1 queue=small needs:cpu=3
         podgroup later min=1 needs:cpu=8
         pod there on=one phase=Running cpu=4",
        &expect![[r#"
            podgroup beyond: Unschedulable(NotEnoughResources: not admitted: it needs 3 cpu and can never fit, because queue small may use 2: ask for less, or let it use more), phase=Pending
            podgroup huge: Unschedulable(NotEnoughResources: not admitted: it needs 12 cpu and can never fit, because all nodes that take pods have 8: ask for less, or add nodes), phase=Pending
            podgroup later: Unschedulable(NotEnoughResources: not admitted: it needs 8 cpu, and not enough is left of the cluster's 8), phase=Pending
            podgroup little-too-large: Unschedulable(NotEnoughResources: not admitted: it needs 9 cpu and can never fit, because all nodes that take pods have 8: ask for less, or add nodes), phase=Pending
        "#]],
    );
}

#[test]
fn what_a_cordoned_node_has_lets_no_gang_in() {
    check(
        "node old cpu=8 cordoned
         node new cpu=4
         podgroup g needs:cpu=6
         pod g-0 of=g cpu=6 tolerates=node.kubernetes.io/unschedulable",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughResources: not admitted: it needs 6 cpu and can never fit, because all nodes that take pods have 4: ask for less, or add nodes), phase=Pending
            pod g-0: not PodScheduled(Unschedulable: not admitted: it needs 6 cpu and can never fit, because all nodes that take pods have 4: ask for less, or add nodes)
        "#]],
    );
}
