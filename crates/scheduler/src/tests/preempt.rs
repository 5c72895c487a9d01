//! Room for gangs with a higher priority.

use expect_test::expect;

use super::fixture::{check, check_preempting};

/// A gang of a low priority that has all of a node, and one of a high priority that needs half of it.
const FULL: &str = "class low value=1
     class high value=10
     node one cpu=4
     podgroup a min=1 priority=low phase=Running scheduled running=4
     pod a-0 of=a on=one phase=Running
     pod a-1 of=a on=one phase=Running
     pod a-2 of=a on=one phase=Running
     pod a-3 of=a on=one phase=Running
     podgroup b min=2 priority=high phase=Inqueue
     pod b-0 of=b
     pod b-1 of=b
     pod b-2 of=b
";

#[test]
fn pods_of_a_lower_priority_go_as_many_as_the_gang_needs_to_start() {
    check_preempting(
        FULL,
        &expect![[r#"
        podgroup b: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; waits for pods that are leaving)
        pod b-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; waits for pods that are leaving)
        pod b-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; waits for pods that are leaving)
        pod b-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; waits for pods that are leaving)
        delete pod a-3
        delete pod a-2
    "#]],
    );
    check(
        FULL,
        &expect![[r#"
        podgroup b: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
    "#]],
    );
}

#[test]
fn nobody_goes_for_an_equal_or_a_lower_priority_or_for_another_queue() {
    check_preempting(
        &FULL.replace("priority=high", "priority=low"),
        &expect![[r#"
        podgroup b: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
    "#]],
    );
    let apart = FULL.replace("podgroup b", "queue other\n podgroup b queue=other");
    check_preempting(
        &apart,
        &expect![[r#"
        podgroup b: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
    "#]],
    );
}

#[test]
fn no_gang_is_broken_and_no_protected_pod_goes_for_a_higher_priority() {
    check_preempting(
        &FULL.replace("podgroup a min=1", "podgroup a min=4"),
        &expect![[r#"
        podgroup b: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
    "#]],
    );
    check_preempting(
        &FULL.replace("of=a on", "of=a protected on"),
        &expect![[r#"
        podgroup b: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
    "#]],
    );
    check_preempting(
        &FULL.replace("of=a on", "of=a scheduler=other on"),
        &expect![[r#"
        podgroup a: not Scheduled, phase=Inqueue, running=null
        podgroup b: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
    "#]],
    );
}

#[test]
fn nobody_goes_in_vain() {
    // There would not be room enough; and gated pods need none.
    check_preempting(
        &FULL.replace("of=b", "of=b cpu=3"),
        &expect![[r#"
        podgroup b: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
    "#]],
    );
    check_preempting(
        &FULL.replace("of=b", "of=b gated"),
        &expect![[r#"
        podgroup b: Unschedulable(NotEnoughTasks: pod group is not ready, 3 Gated; 2 more needed)
    "#]],
    );
}

#[test]
fn a_gang_is_let_in_where_a_lower_priority_makes_room() {
    let pending = "class low value=1
         class high value=10
         node one cpu=4
         podgroup a min=1 priority=low phase=Running scheduled running=1
         pod a-0 of=a on=one cpu=4 phase=Running
         podgroup b min=2 priority=high phase=Pending needs:cpu=4";
    check_preempting(
        pending,
        &expect![[r#"
        podgroup b: phase=Inqueue
    "#]],
    );
    check_preempting(
        &pending.replace("priority=high", "priority=low"),
        &expect![[r#"
        podgroup b: Unschedulable(NotEnoughResources: not admitted: it needs 4 cpu, and not enough is left of the cluster's 4)
    "#]],
    );
}
