//! Taking back what is due.

use expect_test::expect;
use krafla_cluster::Step;

use super::fixture::{check, check_reclaiming, objects, plan_reclaiming};

/// A queue that has all of a cluster's four processors, and another that is due two.
const GREEDY: &str = "node one cpu=4
     queue greedy
     queue patient
     podgroup a min=1 queue=greedy phase=Running scheduled running=4
     pod a-0 of=a on=one phase=Running
     pod a-1 of=a on=one phase=Running
     pod a-2 of=a on=one phase=Running
     pod a-3 of=a on=one phase=Running
     podgroup b min=2 queue=patient phase=Inqueue
     pod b-0 of=b
     pod b-1 of=b
";

#[test]
fn a_queue_gives_back_what_is_beyond_its_share_the_youngest_first() {
    check_reclaiming(
        GREEDY,
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            delete pod a-3
            delete pod a-2
        "#]],
    );
}

#[test]
fn without_reclaiming_a_queue_waits() {
    check(
        GREEDY,
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
}

#[test]
fn pods_that_are_leaving_are_waited_for() {
    let leaving = GREEDY
        .replace("pod a-2 of=a on=one", "pod a-2 of=a on=one deleting")
        .replace("pod a-3 of=a on=one", "pod a-3 of=a on=one deleting");
    check_reclaiming(
        &leaving,
        &expect![[r#"
            podgroup a: running=2
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
        "#]],
    );
}

#[test]
fn one_that_leaves_already_spares_another() {
    check_reclaiming(
        &GREEDY.replace("pod a-1 of=a on=one", "pod a-1 of=a on=one deleting"),
        &expect![[r#"
            podgroup a: running=3
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            delete pod a-3
        "#]],
    );
}

#[test]
fn no_gang_is_broken_to_start_another() {
    check_reclaiming(
        &GREEDY.replace("podgroup a min=1", "podgroup a min=3"),
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
}

#[test]
fn a_queue_that_is_not_reclaimable_keeps_what_it_has() {
    check_reclaiming(
        &GREEDY.replace("queue greedy", "queue greedy keeps"),
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
}

#[test]
fn a_protected_pod_stays() {
    check_reclaiming(
        &GREEDY.replace("pod a-3 of=a", "pod a-3 of=a protected"),
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            delete pod a-2
            delete pod a-1
        "#]],
    );
}

#[test]
fn a_queue_takes_back_no_more_than_its_own_share() {
    let wants_more = GREEDY.replace("podgroup b min=2", "podgroup b min=3");
    check_reclaiming(
        &format!("{wants_more} pod b-2 of=b"),
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 3 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
}

#[test]
fn only_pods_whose_room_is_used_must_go() {
    check_reclaiming(
        "node small cpu=1
         node large cpu=3
         queue greedy
         queue patient
         podgroup a min=1 queue=greedy phase=Running scheduled running=2
         pod a-0 of=a on=large cpu=3 phase=Running
         pod a-1 of=a on=small cpu=1 phase=Running
         podgroup b min=1 queue=patient phase=Inqueue
         pod b-0 of=b cpu=2",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits for pods that are leaving)
            delete pod a-0
        "#]],
    );
}

#[test]
fn a_queue_gives_back_to_its_sibling_though_their_parent_has_no_more() {
    check_reclaiming(
        "node one cpu=4
         queue family
         queue greedy parent=family
         queue patient parent=family
         podgroup a min=1 queue=greedy phase=Running scheduled running=2
         pod a-0 of=a on=one cpu=2 phase=Running
         pod a-1 of=a on=one cpu=2 phase=Running
         podgroup b min=1 queue=patient phase=Inqueue
         pod b-0 of=b cpu=2",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits for pods that are leaving)
            delete pod a-1
        "#]],
    );
}

#[test]
fn nobody_has_to_leave_a_node_that_takes_no_new_pods() {
    let closed = GREEDY.replace("node one cpu=4", "node one cpu=4\n node old cpu=9 cordoned");
    check_reclaiming(
        &closed.replace("pod a-3 of=a on=one", "pod a-3 of=a on=old"),
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            delete pod a-2
        "#]],
    );
}

#[test]
fn a_queue_within_its_share_does_not_pay_for_its_sibling() {
    check_reclaiming(
        "node one cpu=6
         queue family
         queue greedy parent=family
         queue modest parent=family
         queue patient
         podgroup a min=1 queue=greedy phase=Running scheduled running=4
         pod a-0 of=a on=one phase=Running
         pod a-1 of=a on=one phase=Running
         pod a-2 of=a on=one phase=Running
         pod a-3 of=a on=one phase=Running
         podgroup m min=1 queue=modest phase=Running scheduled running=1
         pod m-0 of=m on=one phase=Running
         podgroup b min=3 queue=patient phase=Inqueue
         pod b-0 of=b
         pod b-1 of=b
         pod b-2 of=b",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; waits for pods that are leaving)
            pod b-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; waits for pods that are leaving)
            pod b-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; waits for pods that are leaving)
            delete pod a-3
            delete pod a-2
        "#]],
    );
}

#[test]
fn pods_in_no_podgroup_and_pods_of_another_scheduler_stay() {
    let lone = GREEDY.replace("podgroup a min=1 queue=greedy phase=Running scheduled running=4", "");
    let lone = lone.replace(" of=a", " queue=greedy");
    check_reclaiming(
        &lone,
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
    check_reclaiming(
        &lone.replace("queue=greedy on", "queue=greedy scheduler=volcano on"),
        &expect![[r#"
        podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
    "#]],
    );
    check_reclaiming(
        &GREEDY.replace("of=a on", "of=a scheduler=other on"),
        &expect![[r#"
        podgroup a: not Scheduled, phase=Inqueue, running=null
        podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
    "#]],
    );
    check_reclaiming(
        &GREEDY.replace("of=a on", "of=a scheduler=default-scheduler on"),
        &expect![[r#"
        podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
    "#]],
    );
}

#[test]
fn a_gang_that_runs_grows_to_its_queues_share() {
    let grows = GREEDY.replace(
        "podgroup b min=2 queue=patient phase=Inqueue",
        "podgroup b min=1 queue=patient phase=Running scheduled running=1
         node two cpu=2
         pod b-there of=b on=two cpu=2 phase=Running",
    );
    check_reclaiming(
        &grows,
        &expect![[r#"
            pod b-0: not PodScheduled(Unschedulable: waits for pods that are leaving)
            pod b-1: not PodScheduled(Unschedulable: 0/2 nodes are available: 2 Insufficient cpu)
            delete pod a-3
        "#]],
    );
    check_reclaiming(
        &grows.replace("cpu=2 phase=Running", "cpu=1 phase=Running"),
        &expect![[r#"
            delete pod a-3
            bind pod b-0 to two
        "#]],
    );
}

#[test]
fn what_keeps_a_family_at_its_limit_must_go_though_there_is_room_elsewhere() {
    // The pod gets a free node; what it needs is what its family may use.
    check_reclaiming(
        "node one cpu=4
         node two cpu=4
         queue family cap:cpu=4
         queue greedy parent=family
         queue patient parent=family
         podgroup a min=1 queue=greedy phase=Running scheduled running=4
         pod a-0 of=a on=one phase=Running
         pod a-1 of=a on=one phase=Running
         pod a-2 of=a on=one phase=Running
         pod a-3 of=a on=one phase=Running
         podgroup b min=2 queue=patient phase=Inqueue
         pod b-0 of=b
         pod b-1 of=b",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            delete pod a-3
            delete pod a-2
        "#]],
    );
}

#[test]
fn of_pods_on_one_node_no_more_must_go_than_make_room() {
    // The least important goes first and does not suffice; the one after it does, alone.
    check_reclaiming(
        "node one cpu=6
         queue greedy
         queue patient
         podgroup a min=1 queue=greedy phase=Running scheduled running=4
         pod a-0 of=a on=one cpu=1 phase=Running
         pod a-1 of=a on=one cpu=1 phase=Running
         pod a-2 of=a on=one cpu=3 phase=Running
         pod a-3 of=a on=one cpu=1 phase=Running
         podgroup b min=1 queue=patient phase=Inqueue
         pod b-0 of=b cpu=3",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits for pods that are leaving)
            delete pod a-2
        "#]],
    );
}

#[test]
fn a_pod_that_others_avoid_must_go_though_there_is_room_for_both() {
    check_reclaiming(
        "node one cpu=8 label:host=one
         queue greedy
         queue patient
         podgroup a min=1 queue=greedy phase=Running scheduled running=3
         pod a-0 of=a on=one cpu=4 phase=Running
         pod a-1 of=a on=one cpu=1 phase=Running label:app=noisy
         pod a-2 of=a on=one cpu=3 phase=Running
         podgroup b min=1 queue=patient phase=Inqueue
         pod b-0 of=b cpu=3 away=app:noisy@host
         podgroup c queue=patient needs:cpu=1 phase=Inqueue young",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits for pods that are leaving)
            delete pod a-2
            delete pod a-1
        "#]],
    );
}

#[test]
fn nobody_leaves_for_a_gang_that_waits_behind_another() {
    // The first of the queue wants a node that greedy can not free: what is asked of others for the second is of no use.
    check_reclaiming(
        "node one cpu=4
         node kept cpu=4 label:disk=fast
         queue greedy
         queue line fifo weight=2
         podgroup a min=1 queue=greedy phase=Running scheduled running=5
         pod a-0 of=a on=one phase=Running
         pod a-1 of=a on=one phase=Running
         pod a-2 of=a on=one phase=Running
         pod a-3 of=a on=one phase=Running
         pod a-4 of=a on=kept cpu=4 phase=Running protected
         podgroup first min=1 queue=line phase=Inqueue
         pod first-0 of=first cpu=2 node:disk=fast
         podgroup second min=1 queue=line phase=Inqueue
         pod second-0 of=second cpu=2",
        &expect![[r#"
            podgroup first: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            podgroup second: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits behind default/first in its first in, first out queue)
            pod first-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            pod second-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits behind default/first in its first in, first out queue)
        "#]],
    );
}

#[test]
fn a_pod_that_can_never_run_does_not_keep_its_gang_from_growing() {
    let grows = GREEDY.replace(
        "podgroup b min=2 queue=patient phase=Inqueue",
        "podgroup b min=1 queue=patient phase=Running scheduled running=1
         node two cpu=1
         pod b-there of=b on=two phase=Running
         pod b-huge of=b cpu=64",
    );
    check_reclaiming(
        &grows,
        &expect![[r#"
            pod b-0: not PodScheduled(Unschedulable: waits for pods that are leaving)
            pod b-1: not PodScheduled(Unschedulable: 0/2 nodes are available: 2 Insufficient cpu)
            pod b-huge: not PodScheduled(Unschedulable: 0/2 nodes are available: 2 Insufficient cpu)
            delete pod a-3
        "#]],
    );
    // Nor does one whose node nobody has to leave.
    let grows = grows.replace("cpu=64", "cpu=2 node:disk=fast").replace(
        "node one cpu=4",
        "node one cpu=4
         node fast cpu=2 label:disk=fast
         pod stays queue=greedy cpu=2 on=fast phase=Running protected",
    );
    check_reclaiming(
        &grows,
        &expect![[r#"
            pod b-0: not PodScheduled(Unschedulable: waits for pods that are leaving)
            pod b-1: not PodScheduled(Unschedulable: waits for pods that are leaving)
            pod b-huge: not PodScheduled(Unschedulable: 0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector)
            delete pod a-3
            delete pod a-2
        "#]],
    );
}

#[test]
fn a_node_with_more_pods_than_it_has_room_for_does_not_hide_the_room_of_others() {
    let overdrawn = GREEDY.replace(
        "node one cpu=4",
        "node one cpu=4
         node shrunk cpu=1
         pod stranger scheduler=other on=shrunk cpu=4 phase=Running
         podgroup c queue=patient needs:cpu=1 phase=Inqueue young",
    );
    check_reclaiming(
        &overdrawn,
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; waits for pods that are leaving)
            delete pod a-3
            delete pod a-2
        "#]],
    );
}

#[test]
fn a_gang_that_waits_for_its_share_of_one_thing_is_still_due_another() {
    // It has its share of the processors, which the third queue waits for, and none of the devices.
    check_reclaiming(
        "node one cpu=8 nvidia.com/gpu=2
         queue greedy
         queue patient
         queue third
         podgroup a min=1 queue=greedy phase=Running scheduled running=2
         pod a-0 of=a cpu=0 nvidia.com/gpu=1 on=one phase=Running
         pod a-1 of=a cpu=0 nvidia.com/gpu=1 on=one phase=Running
         podgroup b min=1 queue=patient phase=Running scheduled running=1
         pod b-0 of=b cpu=4 on=one phase=Running
         pod b-1 of=b cpu=1
         pod b-2 of=b cpu=0 nvidia.com/gpu=1
         podgroup c min=1 queue=third phase=Inqueue
         pod c-0 of=c cpu=5",
        &expect![[r#"
            podgroup c: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-1: not PodScheduled(Unschedulable: queue patient has its share of cpu, and others wait for it)
            pod b-2: not PodScheduled(Unschedulable: waits for pods that are leaving)
            pod c-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            delete pod a-1
        "#]],
    );
}

#[test]
fn a_gang_for_which_many_must_go_gets_its_room_too() {
    // Nodes are freed pod by pod, and the large pod fits only where all have gone. On the way there are many tries in vain.
    let mut cluster = String::from(
        "queue greedy
         queue patient weight=9
         podgroup a min=1 queue=greedy phase=Running scheduled running=60
         podgroup b min=2 queue=patient phase=Inqueue
         pod b-0 of=b cpu=12
         pod b-1 of=b cpu=1
         podgroup c queue=patient needs:cpu=45 phase=Inqueue young\n",
    );
    for node in 0..5 {
        cluster += &format!("node n{node} cpu=12 pods=20\n");
    }
    for pod in 0..60 {
        cluster += &format!(
            "pod a-{pod:02} of=a on=n{} phase=Running\n",
            if pod < 24 { pod % 2 } else { 2 + pod % 3 }
        );
    }
    let plan = plan_reclaiming(&objects(&cluster));
    let n_gone = plan.aside.iter().filter(|step| matches!(step, Step::Delete { .. })).count();
    assert_eq!(n_gone, 13, "{plan}");
}

#[test]
fn a_neighbour_that_others_avoid_must_go_from_a_node_that_is_of_no_use_itself() {
    check_reclaiming(
        "node one cpu=4 label:zone=z label:disk=fast
         node two cpu=4 label:zone=z
         queue greedy
         queue patient
         podgroup a min=1 queue=greedy phase=Running scheduled running=3
         pod a-0 of=a on=two cpu=2 phase=Running
         pod a-1 of=a on=one cpu=1 phase=Running
         pod a-2 of=a on=two cpu=2 phase=Running label:app=noisy
         podgroup b min=1 queue=patient phase=Inqueue
         pod b-0 of=b cpu=3 node:disk=fast away=app:noisy@zone
         podgroup c queue=patient needs:cpu=2 phase=Inqueue young",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits for pods that are leaving)
            pod b-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits for pods that are leaving)
            delete pod a-2
        "#]],
    );
}
