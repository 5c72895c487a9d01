//! Who gets nodes: gangs as a whole, in the right order.

use expect_test::expect;

use super::fixture::{check, objects, plan};

#[test]
fn a_gang_that_fits_is_bound_as_a_whole() {
    check(
        "node one
         podgroup g min=3 phase=Inqueue
         pod g-0 of=g
         pod g-1 of=g
         pod g-2 of=g",
        &expect![[r#"
            bind pod g-0 to one
            bind pod g-1 to one
            bind pod g-2 to one
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_gang_that_does_not_fit_gets_no_node_at_all() {
    check(
        "node one cpu=2
         podgroup g min=3 phase=Inqueue
         pod g-0 of=g
         pod g-1 of=g
         pod g-2 of=g",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod g-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod g-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod g-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
}

#[test]
fn a_gang_that_does_not_fit_leaves_its_room_to_the_next() {
    check(
        "node one cpu=2
         podgroup large min=3 phase=Inqueue
         podgroup small min=2 phase=Inqueue
         pod large-0 of=large
         pod large-1 of=large
         pod large-2 of=large
         pod small-0 of=small
         pod small-1 of=small",
        &expect![[r#"
            podgroup large: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod large-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod large-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod large-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            bind pod small-0 to one
            bind pod small-1 to one
            podgroup small: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn pods_beyond_the_minimum_are_bound_as_far_as_there_is_room() {
    check(
        "node one cpu=3
         podgroup g min=2 phase=Inqueue
         pod g-0 of=g
         pod g-1 of=g
         pod g-2 of=g
         pod g-3 of=g",
        &expect![[r#"
            bind pod g-0 to one
            bind pod g-1 to one
            bind pod g-2 to one
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn of_pods_beyond_the_minimum_that_find_no_room_the_last_of_each_sort_says_why() {
    let cluster = |told: &str| {
        format!(
            "node one cpu=2
             podgroup g min=1 phase=Running scheduled running=2
             pod g-0 of=g on=one phase=Running
             pod g-1 of=g on=one phase=Running
             pod g-2 of=g
             pod g-3 of=g
             pod g-4 of=g {told}
             pod g-x-0 of=g node:disk=fast
             pod g-x-1 of=g node:disk=fast"
        )
    };
    check(
        &cluster(""),
        &expect![[r#"
            pod g-2: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Insufficient cpu)
            pod g-3: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Insufficient cpu)
            pod g-4: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Insufficient cpu)
            pod g-x-0: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector)
            pod g-x-1: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector)
        "#]],
    );
    check(
        &cluster("unschedulable=0/7_nodes_are_available:_7_Insufficient_cpu"),
        &expect![[r#"
            pod g-2: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Insufficient cpu)
            pod g-3: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Insufficient cpu)
            pod g-x-0: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector)
            pod g-x-1: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector)
        "#]],
    );
}

#[test]
fn a_gang_that_still_grows_does_not_say_yet_who_is_left_over() {
    check(
        "node one cpu=2
         podgroup g min=1 phase=Running scheduled running=1
         pod g-0 of=g on=one phase=Running
         pod g-1 of=g
         pod g-2 of=g",
        &expect![[r#"
            bind pod g-1 to one
        "#]],
    );
}

#[test]
fn every_gang_starts_before_any_grows() {
    check(
        "node one cpu=3
         podgroup a min=1 phase=Inqueue
         podgroup b min=2 phase=Inqueue
         pod a-0 of=a
         pod a-1 of=a
         pod b-0 of=b
         pod b-1 of=b",
        &expect![[r#"
            bind pod a-0 to one
            bind pod b-0 to one
            bind pod b-1 to one
            podgroup a: Scheduled, phase=Running
            podgroup b: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn bound_and_succeeded_pods_count_towards_the_minimum() {
    check(
        "node one cpu=4
         podgroup g min=3 phase=Running scheduled running=1 succeeded=1
         pod g-0 of=g on=one phase=Running
         pod g-1 of=g on=one phase=Succeeded
         pod g-2 of=g",
        &expect![[r#"
            bind pod g-2 to one
        "#]],
    );
}

#[test]
fn a_gang_that_lost_a_pod_while_it_started_is_bound_to_the_end() {
    check(
        "node one cpu=4
         podgroup g min=2 phase=Inqueue
         pod g-0 of=g on=one phase=Failed
         pod g-1 of=g
         podgroup of-tasks min=2 task:master=1 task:worker=1 phase=Inqueue
         pod of-tasks-master of=of-tasks task=master on=one phase=Failed
         pod of-tasks-worker of=of-tasks task=worker",
        &expect![[r#"
            bind pod g-1 to one
            bind pod of-tasks-worker to one
            podgroup g: Scheduled, failed=1, phase=Running
            podgroup of-tasks: Scheduled, failed=1, phase=Running
        "#]],
    );
}

#[test]
fn a_failed_pod_that_is_being_deleted_leaves_its_place_to_the_next() {
    check(
        "node one cpu=4
         podgroup g min=2 phase=Inqueue
         pod g-0 of=g on=one phase=Failed deleting
         pod g-1 of=g",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughTasks: pod group is not ready, 1 Failed, 1 Pending; 1 more needed), failed=1
            pod g-1: not PodScheduled(Unschedulable: pod group is not ready, 1 Failed, 1 Pending; 1 more needed)
        "#]],
    );
}

#[test]
fn a_failed_pod_fills_no_place_that_another_can_fill() {
    check(
        "node one cpu=1
         podgroup g min=2 phase=Inqueue
         pod evicted of=g on=one phase=Failed
         pod g-0 of=g
         pod g-1 of=g",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughResources: 2/3 tasks in gang unschedulable: pod group is not ready, 1 Failed, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu), failed=1
            pod g-0: not PodScheduled(Unschedulable: 2/3 tasks in gang unschedulable: pod group is not ready, 1 Failed, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod g-1: not PodScheduled(Unschedulable: 2/3 tasks in gang unschedulable: pod group is not ready, 1 Failed, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
}

#[test]
fn each_task_needs_its_minimum() {
    check(
        "node one cpu=2
         podgroup g min=2 task:master=1 task:worker=1 phase=Inqueue
         pod g-master-0 of=g task=master
         pod g-worker-0 of=g task=worker
         pod g-worker-1 of=g task=worker",
        &expect![[r#"
            bind pod g-master-0 to one
            bind pod g-worker-0 to one
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_gang_whose_task_finds_no_room_does_not_start_with_others_instead() {
    check(
        "node one cpu=4
         podgroup g min=2 task:master=1 task:worker=1 phase=Inqueue
         pod g-master-0 of=g task=master cpu=8
         pod g-worker-0 of=g task=worker
         pod g-worker-1 of=g task=worker",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod g-master-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod g-worker-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod g-worker-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
}

#[test]
fn task_minimums_beyond_the_gangs_own_do_not_count() {
    check(
        "node one cpu=2
         podgroup g min=2 task:master=1 task:worker=3 phase=Inqueue
         pod g-master-0 of=g task=master
         pod g-worker-0 of=g task=worker
         pod g-worker-1 of=g task=worker
         pod g-worker-2 of=g task=worker",
        &expect![[r#"
            bind pod g-master-0 to one
            bind pod g-worker-0 to one
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn the_higher_priority_goes_first_and_then_the_older() {
    check(
        "node one cpu=2
         class urgent value=100
         podgroup old min=1 phase=Inqueue
         podgroup older-but-poor min=1 phase=Inqueue priority=missing
         podgroup young-and-urgent min=1 phase=Inqueue priority=urgent
         pod old-0 of=old
         pod older-but-poor-0 of=older-but-poor
         pod young-and-urgent-0 of=young-and-urgent",
        &expect![[r#"
            podgroup older-but-poor: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod older-but-poor-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            bind pod old-0 to one
            bind pod young-and-urgent-0 to one
            podgroup old: Scheduled, phase=Running
            podgroup young-and-urgent: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn what_names_no_priority_class_has_the_one_that_is_meant_for_all() {
    check(
        "node one cpu=2
         class low value=10
         class usual value=50 for-all
         class unusual value=90 for-all
         podgroup a min=1 phase=Inqueue priority=low
         podgroup b min=1 phase=Inqueue
         podgroup c min=1 phase=Inqueue priority=missing
         pod a-0 of=a
         pod b-0 of=b
         pod c-0 of=c",
        &expect![[r#"
            podgroup a: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod a-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            bind pod b-0 to one
            bind pod c-0 to one
            podgroup b: Scheduled, phase=Running
            podgroup c: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_gang_that_was_bound_in_part_is_completed_before_all_others() {
    check(
        "node one cpu=3
         class urgent value=100
         podgroup urgent min=2 phase=Inqueue priority=urgent
         podgroup begun min=2 phase=Inqueue
         pod begun-0 of=begun on=one
         pod begun-1 of=begun
         pod urgent-0 of=urgent
         pod urgent-1 of=urgent",
        &expect![[r#"
            podgroup urgent: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod urgent-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod urgent-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            bind pod begun-1 to one
            podgroup begun: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn within_a_gang_the_pod_with_the_higher_priority_goes_first() {
    check(
        "node one cpu=1
         class urgent value=100
         podgroup g min=1 phase=Inqueue
         pod g-0 of=g
         pod g-1 of=g priority=urgent",
        &expect![[r#"
            bind pod g-1 to one
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_pod_in_no_gang_is_placed_alone() {
    check(
        "node one cpu=2
         pod a
         pod b
         pod c scheduler=other
         pod d",
        &expect![[r#"
            pod d: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Insufficient cpu)
            bind pod a to one
            bind pod b to one
        "#]],
    );
}

#[test]
fn a_pod_that_asks_for_gangs_waits_until_it_is_in_one() {
    check(
        "node one cpu=2
         pod a scheduler=volcano
         podgroup g min=2 phase=Inqueue
         pod g-0 of=g
         pod g-1 scheduler=volcano",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughTasks: pod group is not ready, 1 Pending; 1 more needed)
            pod g-0: not PodScheduled(Unschedulable: pod group is not ready, 1 Pending; 1 more needed)
        "#]],
    );
}

#[test]
fn a_pod_of_another_scheduler_takes_room_all_the_same() {
    check(
        "node one cpu=2
         pod a scheduler=other on=one phase=Running
         pod b
         pod c",
        &expect![[r#"
            pod c: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Insufficient cpu)
            bind pod b to one
        "#]],
    );
}

#[test]
fn a_pod_whose_podgroup_is_missing_waits_for_it_and_says_so_after_a_while() {
    check(
        "node one
         pod a-0 of=missing
         pod a-1 of=missing
         pod a-2 of=missing on=one phase=Running
         pod b of=nowhere unschedulable=podgroup_\"nowhere\"_not_found
         pod young of=late young",
        &expect![[r#"
            pod a-0: not PodScheduled(Unschedulable: podgroup "missing" not found)
            pod a-1: not PodScheduled(Unschedulable: podgroup "missing" not found)
        "#]],
    );
    let plan = plan(&objects("pod young of=missing young"));
    expect!["2027-01-15T08:00:20Z"].assert_eq(&plan.wake_at.unwrap().to_string());
}

#[test]
fn room_is_free_when_its_pod_ended_and_not_while_it_leaves() {
    check(
        "node ended cpu=1
         node leaving cpu=1
         pod a on=ended phase=Succeeded
         pod b on=leaving phase=Running deleting
         pod c
         pod d",
        &expect![[r#"
            pod d: not PodScheduled(Unschedulable: 0/2 nodes are available: 2 Insufficient cpu)
            bind pod c to ended
        "#]],
    );
}

#[test]
fn a_pod_that_is_gated_or_being_deleted_gets_no_node() {
    check(
        "node one
         pod gated gated
         pod deleting deleting
         podgroup g min=2 phase=Inqueue
         pod g-0 of=g
         pod g-1 of=g gated",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughTasks: pod group is not ready, 1 Gated, 1 Pending; 1 more needed)
            pod g-0: not PodScheduled(Unschedulable: pod group is not ready, 1 Gated, 1 Pending; 1 more needed)
        "#]],
    );
}

#[test]
fn load_spreads_to_the_emptier_node() {
    check(
        "node busy cpu=4
         node idle cpu=4
         pod there on=busy phase=Running
         pod a
         pod b
         pod c",
        &expect![[r#"
            bind pod a to idle
            bind pod b to busy
            bind pod c to idle
        "#]],
    );
}

#[test]
fn a_node_takes_no_more_pods_than_it_says_and_any_resource_can_run_out() {
    check(
        "node one pods=2 cpu=8 nvidia.com/gpu=1
         pod gpu-a nvidia.com/gpu=1
         pod gpu-b nvidia.com/gpu=1
         pod c
         pod d",
        &expect![[r#"
            pod d: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Too many pods)
            pod gpu-b: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu)
            bind pod c to one
            bind pod gpu-a to one
        "#]],
    );
}

#[test]
fn absurd_requests_do_no_harm() {
    check(
        "node one cpu=4
         pod negative cpu=-5
         pod enormous cpu=9223372036854775807
         pod usual cpu=4",
        &expect![[r#"
            pod enormous: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Insufficient cpu)
            bind pod negative to one
            bind pod usual to one
        "#]],
    );
}

#[test]
fn a_lone_pod_says_why_it_waits_and_does_not_repeat_itself() {
    check(
        "node one cpu=1
         pod told cpu=2 unschedulable=0/7_nodes_are_available:_7_Insufficient_cpu
         pod told-otherwise cpu=2 unschedulable=0/7_nodes_are_available:_7_Insufficient_memory
         pod untold cpu=2",
        &expect![[r#"
            pod told-otherwise: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Insufficient cpu)
            pod untold: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
}

#[test]
fn what_pods_of_a_gang_lack_is_counted() {
    check(
        "node one cpu=2
         podgroup g min=4 phase=Running
         pod g-0 of=g on=one phase=Running
         pod g-1 of=g
         pod g-2 of=g
         pod g-3 of=g
         podgroup mixed min=3 phase=Inqueue
         pod mixed-0 of=mixed cpu=3
         pod mixed-1 of=mixed cpu=4
         pod mixed-2 of=mixed node:disk=fast",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughResources: 3/4 tasks in gang unschedulable: pod group is not ready, 3 Pending, 1 Running, 4 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu), phase=Unknown, running=1
            podgroup mixed: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 2 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector; 0/1 nodes are available: 1 Insufficient cpu)
            pod g-1: not PodScheduled(Unschedulable: 3/4 tasks in gang unschedulable: pod group is not ready, 3 Pending, 1 Running, 4 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod g-2: not PodScheduled(Unschedulable: 3/4 tasks in gang unschedulable: pod group is not ready, 3 Pending, 1 Running, 4 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod g-3: not PodScheduled(Unschedulable: 3/4 tasks in gang unschedulable: pod group is not ready, 3 Pending, 1 Running, 4 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod mixed-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 2 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector; 0/1 nodes are available: 1 Insufficient cpu)
            pod mixed-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 2 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector; 0/1 nodes are available: 1 Insufficient cpu)
            pod mixed-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 2 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector; 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
}

#[test]
fn a_pod_waits_for_the_claim_that_it_names() {
    check(
        "node one
         claim there
         pod a claim=there
         pod b claim=missing
         podgroup g min=2 phase=Inqueue
         pod g-0 of=g claim=there
         pod g-1 of=g claim=missing
         pod elsewhere",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 persistentvolumeclaim "missing" not found; 0/1 nodes are available: persistentvolumeclaim "missing" not found)
            pod g-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 persistentvolumeclaim "missing" not found; 0/1 nodes are available: persistentvolumeclaim "missing" not found)
            pod g-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 persistentvolumeclaim "missing" not found; 0/1 nodes are available: persistentvolumeclaim "missing" not found)
            pod b: not PodScheduled(Unschedulable: 0/1 nodes are available: persistentvolumeclaim "missing" not found)
            bind pod a to one
            bind pod elsewhere to one
        "#]],
    );
    check(
        "node one
         claim late
         pod b claim=late unschedulable=0/1_nodes_are_available:_persistentvolumeclaim_\"late\"_not_found",
        &expect![[r#"
            bind pod b to one
        "#]],
    );
    check(
        "node one
         pod b claim=part-2 unschedulable=0/1_nodes_are_available:_persistentvolumeclaim_\"part-1\"_not_found",
        &expect![[r#"
            pod b: not PodScheduled(Unschedulable: 0/1 nodes are available: persistentvolumeclaim "part-2" not found)
        "#]],
    );
}

#[test]
fn what_waits_for_a_claim_takes_nothing_from_others() {
    check(
        "node one cpu=2
         queue a
         queue b
         podgroup waits min=2 phase=Inqueue queue=a
         pod waits-0 of=waits claim=missing
         pod waits-1 of=waits claim=missing
         podgroup runs min=2 phase=Inqueue queue=b
         pod runs-0 of=runs
         pod runs-1 of=runs",
        &expect![[r#"
            podgroup waits: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 persistentvolumeclaim "missing" not found; 0/1 nodes are available: persistentvolumeclaim "missing" not found)
            pod waits-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 persistentvolumeclaim "missing" not found; 0/1 nodes are available: persistentvolumeclaim "missing" not found)
            pod waits-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 persistentvolumeclaim "missing" not found; 0/1 nodes are available: persistentvolumeclaim "missing" not found)
            bind pod runs-0 to one
            bind pod runs-1 to one
            podgroup runs: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn the_largest_pods_of_a_gang_are_placed_first() {
    check(
        "node one
         node two
         podgroup g min=3 phase=Inqueue
         pod g-0 of=g
         pod g-1 of=g
         pod g-2 of=g cpu=4",
        &expect![[r#"
            bind pod g-0 to two
            bind pod g-1 to two
            bind pod g-2 to one
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_gang_that_finds_no_room_when_it_spreads_is_packed() {
    check(
        "node one
         node two
         class urgent value=9
         podgroup g min=3 phase=Inqueue
         pod g-0 of=g cpu=2 priority=urgent
         pod g-1 of=g cpu=2 priority=urgent
         pod g-2 of=g cpu=4",
        &expect![[r#"
            bind pod g-0 to one
            bind pod g-1 to one
            bind pod g-2 to two
            podgroup g: Scheduled, phase=Running
        "#]],
    );
    check(
        "node large cpu=4
         node small cpu=3
         podgroup g min=3 phase=Inqueue
         pod g-0 of=g cpu=3
         pod g-1 of=g cpu=2
         pod g-2 of=g cpu=2",
        &expect![[r#"
            bind pod g-0 to small
            bind pod g-1 to large
            bind pod g-2 to large
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_gang_that_may_choose_starts_with_small_pods_if_it_must() {
    check(
        "node one
         podgroup g min=2 phase=Inqueue
         pod g-0 of=g cpu=4
         pod g-1 of=g cpu=1
         pod g-2 of=g cpu=1",
        &expect![[r#"
            bind pod g-1 to one
            bind pod g-2 to one
            podgroup g: Scheduled, phase=Running
        "#]],
    );
    check(
        "node one cpu=8
         queue small cap:cpu=4
         podgroup g min=2 phase=Inqueue queue=small
         pod g-0 of=g cpu=4
         pod g-1 of=g cpu=1
         pod g-2 of=g cpu=1",
        &expect![[r#"
            bind pod g-1 to one
            bind pod g-2 to one
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_gang_that_wants_to_be_together_goes_where_there_is_room_for_all_of_it() {
    check(
        "node a label:zone=a cpu=4
         node b1 label:zone=b cpu=3
         node b2 label:zone=b cpu=3
         podgroup g min=5 phase=Inqueue
         pod g-0 of=g label:app=ring near=app:ring@zone
         pod g-1 of=g label:app=ring near=app:ring@zone
         pod g-2 of=g label:app=ring near=app:ring@zone
         pod g-3 of=g label:app=ring near=app:ring@zone
         pod g-4 of=g label:app=ring near=app:ring@zone",
        &expect![[r#"
            bind pod g-0 to b1
            bind pod g-1 to b1
            bind pod g-2 to b1
            bind pod g-3 to b2
            bind pod g-4 to b2
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn pods_that_ask_for_nothing_spread_too() {
    check(
        "node one
         node two
         pod a cpu=0
         pod b cpu=0
         pod c cpu=0
         pod d cpu=0",
        &expect![[r#"
            bind pod a to one
            bind pod b to two
            bind pod c to one
            bind pod d to two
        "#]],
    );
}

#[test]
fn a_pod_that_asks_for_one_resource_too_many_says_so() {
    let flood: String = (0..300).map(|index| format!(" example.com/r{index}=1")).collect();
    check(
        &format!(
            "node one {flood}
             pod usual example.com/r1=1
             pod strange example.com/strange=1
             pod unasked example.com/strange=0"
        ),
        &expect![[r#"
            pod strange: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 Too many resource names)
            bind pod unasked to one
            bind pod usual to one
        "#]],
    );
}
