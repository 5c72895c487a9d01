//! Who may use how much, and whose turn it is.

use expect_test::expect;
use krafla_cluster::Step;

use super::fixture::{check, check_queues, check_reclaiming, objects, plan};

#[test]
fn the_two_queues_that_must_exist_are_made() {
    expect![[r#"
        create queue root
        create queue default
    "#]]
    .assert_eq(&plan(&krafla_plan::Objects::default()).to_string());
}

#[test]
fn a_queue_says_what_it_and_those_below_it_use() {
    check_queues(
        "node one cpu=8
         queue research used:cpu=1 used:gone/now=3
         queue vision parent=research
         podgroup g min=1 queue=vision phase=Inqueue
         pod g-0 of=g cpu=1500m memory=1Gi
         pod lone on=one phase=Running",
        &expect![[r#"
            patch queue status default {"status":{"allocated":{"cpu":"1","pods":"1"}}}
            patch queue status research {"status":{"allocated":{"cpu":"1500m","gone/now":null,"memory":"1Gi","pods":"1"}}}
            patch queue status vision {"status":{"allocated":{"cpu":"1500m","memory":"1Gi","pods":"1"},"running":1}}
        "#]],
    );
}

#[test]
fn a_queue_says_how_its_gangs_are_doing() {
    check_queues(
        "node one cpu=8
         queue research pending=1 running=1
         queue vision parent=research
         podgroup waits min=1 queue=research phase=Pending needs:cpu=100
         podgroup runs min=1 queue=research phase=Running
         podgroup over min=1 queue=research phase=Completed succeeded=1
         podgroup below min=1 queue=vision phase=Pending needs:cpu=100
         podgroup nowhere min=1 queue=missing phase=Pending
         pod runs-0 of=runs on=one phase=Running
         pod over-0 of=over on=one phase=Succeeded",
        &expect![[r#"
            patch queue status research {"status":{"allocated":{"cpu":"1","pods":"1"},"completed":1}}
            patch queue status vision {"status":{"pending":1}}
        "#]],
    );
}

#[test]
fn a_queue_follows_a_gang_that_loses_pods_from_running_to_pending_or_unknown() {
    let queue = "node one cpu=2\n queue q running=1";
    check_queues(
        &format!(
            "{queue}
             podgroup g min=2 queue=q phase=Running scheduled running=2 needs:cpu=2
             pod g-0 of=g
             pod g-1 of=g
             pod other on=one phase=Running"
        ),
        &expect![[r#"
            patch queue status default {"status":{"allocated":{"cpu":"1","pods":"1"}}}
            patch queue status q {"status":{"pending":1,"running":0}}
        "#]],
    );
    check_queues(
        &format!(
            "{queue}
             podgroup g min=3 queue=q phase=Running scheduled running=3
             pod g-0 of=g on=one phase=Running
             pod g-1 of=g on=one phase=Running
             pod g-2 of=g"
        ),
        &expect![[r#"
            patch queue status q {"status":{"allocated":{"cpu":"2","pods":"2"},"running":0,"unknown":1}}
        "#]],
    );
}

#[test]
fn a_new_queue_shows_zeros_and_is_then_left_alone() {
    check_queues(
        "node one cpu=8\n queue fresh uncounted",
        &expect![[r#"
            patch queue status fresh {"status":{"completed":0,"inqueue":0,"pending":0,"running":0,"unknown":0}}
        "#]],
    );
    check_queues("node one cpu=8\n queue fresh", &expect![[""]]);
}

#[test]
fn a_queue_never_uses_more_than_its_capability() {
    check(
        "node one cpu=8
         queue small cap:cpu=2
         podgroup too-large min=3 queue=small phase=Inqueue
         podgroup fits min=1 queue=small phase=Inqueue
         podgroup pending min=1 queue=small needs:cpu=3
         pod too-large-0 of=too-large
         pod too-large-1 of=too-large
         pod too-large-2 of=too-large
         pod fits-0 of=fits
         pod fits-1 of=fits
         pod fits-2 of=fits",
        &expect![[r#"
            podgroup pending: Unschedulable(NotEnoughResources: not admitted: it needs 3 cpu and can never fit, because queue small may use 2: ask for less, or let it use more), phase=Pending
            podgroup too-large: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 over queue small's limit; queue small may not use more cpu)
            pod too-large-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 over queue small's limit; queue small may not use more cpu)
            pod too-large-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 over queue small's limit; queue small may not use more cpu)
            pod too-large-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 over queue small's limit; queue small may not use more cpu)
            bind pod fits-0 to one
            bind pod fits-1 to one
            podgroup fits: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn the_capability_of_a_parent_binds_its_children_together() {
    check(
        "node one cpu=8
         queue parent cap:cpu=3
         queue one parent=parent
         queue two parent=parent
         podgroup a min=2 queue=one phase=Inqueue
         podgroup b min=2 queue=two phase=Inqueue
         pod a-0 of=a
         pod a-1 of=a
         pod b-0 of=b
         pod b-1 of=b",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 over queue parent's limit; queue parent may not use more cpu)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 over queue parent's limit; queue parent may not use more cpu)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 over queue parent's limit; queue parent may not use more cpu)
            bind pod a-0 to one
            bind pod a-1 to one
            podgroup a: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn what_is_guaranteed_to_a_queue_is_kept_free_for_it() {
    check(
        "node one cpu=4
         queue vip guarantee:cpu=3
         podgroup a min=1 phase=Inqueue
         podgroup pending needs:cpu=2
         pod a-0 of=a
         pod a-1 of=a",
        &expect![[r#"
            podgroup pending: Unschedulable(NotEnoughResources: not admitted: it needs 2 cpu and can never fit, because queue default may use 1: ask for less, or let it use more), phase=Pending
            bind pod a-0 to one
            podgroup a: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn guarantees_larger_than_the_cluster_stop_nobody_that_has_one() {
    check(
        "node one cpu=4
         queue gold guarantee:cpu=6
         queue silver guarantee:cpu=6
         podgroup a min=2 queue=gold phase=Inqueue
         pod a-0 of=a
         pod a-1 of=a
         podgroup b min=1 queue=silver phase=Inqueue
         pod b-0 of=b
         podgroup pending queue=silver needs:cpu=1
         podgroup beside needs:cpu=1",
        &expect![[r#"
            podgroup beside: Unschedulable(NotEnoughResources: not admitted: it needs 1 cpu and can never fit, because queue default may use 0: ask for less, or let it use more), phase=Pending
            podgroup pending: phase=Inqueue
            bind pod a-0 to one
            bind pod a-1 to one
            bind pod b-0 to one
            podgroup a: Scheduled, phase=Running
            podgroup b: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn queues_share_by_weight() {
    check(
        "node one cpu=4
         queue heavy weight=3
         queue light weight=1
         podgroup a queue=light phase=Inqueue
         pod a-0 of=a
         pod a-1 of=a
         pod a-2 of=a
         pod a-3 of=a
         podgroup b queue=heavy phase=Inqueue
         pod b-0 of=b
         pod b-1 of=b
         pod b-2 of=b
         pod b-3 of=b",
        &expect![[r#"
            bind pod a-0 to one
            bind pod b-0 to one
            bind pod b-1 to one
            bind pod b-2 to one
            podgroup a: Scheduled, phase=Running
            podgroup b: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn what_one_queue_does_not_want_the_other_may_have() {
    check(
        "node one cpu=4
         queue heavy weight=3
         queue light weight=1
         podgroup a queue=light phase=Inqueue
         pod a-0 of=a
         pod a-1 of=a
         pod a-2 of=a",
        &expect![[r#"
            bind pod a-0 to one
            bind pod a-1 to one
            bind pod a-2 to one
            podgroup a: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_queue_beyond_its_share_waits_for_the_large_gang_of_another() {
    check(
        "node one cpu=4
         queue greedy
         queue patient
         podgroup a queue=greedy phase=Running scheduled running=2
         pod a-0 of=a on=one phase=Running
         pod a-1 of=a on=one phase=Running
         podgroup a2 queue=greedy phase=Inqueue
         pod a2-0 of=a2
         podgroup b min=3 queue=patient phase=Inqueue
         pod b-0 of=b
         pod b-1 of=b
         pod b-2 of=b",
        &expect![[r#"
            podgroup a2: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 over queue greedy's share; queue greedy has its share of cpu, and others wait for it)
            podgroup b: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod a2-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 over queue greedy's share; queue greedy has its share of cpu, and others wait for it)
            pod b-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
        "#]],
    );
}

#[test]
fn a_gang_that_can_never_run_keeps_nothing_from_the_others() {
    check(
        "node one cpu=4
         queue dreamer
         queue worker
         podgroup b min=1 queue=dreamer phase=Inqueue
         pod b-0 of=b cpu=64
         podgroup c min=9 queue=dreamer phase=Inqueue
         pod c-0 of=c
         pod c-1 of=c
         pod c-2 of=c
         pod c-3 of=c
         pod c-4 of=c
         pod c-5 of=c
         pod c-6 of=c
         pod c-7 of=c
         pod c-8 of=c
         podgroup a queue=worker phase=Inqueue
         pod a-0 of=a cpu=4",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            podgroup c: Unschedulable(NotEnoughResources: 9/9 tasks in gang unschedulable: pod group is not ready, 9 Pending, 9 minAvailable; Pending: 5 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod c-0: not PodScheduled(Unschedulable: 9/9 tasks in gang unschedulable: pod group is not ready, 9 Pending, 9 minAvailable; Pending: 5 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod c-1: not PodScheduled(Unschedulable: 9/9 tasks in gang unschedulable: pod group is not ready, 9 Pending, 9 minAvailable; Pending: 5 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod c-2: not PodScheduled(Unschedulable: 9/9 tasks in gang unschedulable: pod group is not ready, 9 Pending, 9 minAvailable; Pending: 5 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod c-3: not PodScheduled(Unschedulable: 9/9 tasks in gang unschedulable: pod group is not ready, 9 Pending, 9 minAvailable; Pending: 5 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod c-4: not PodScheduled(Unschedulable: 9/9 tasks in gang unschedulable: pod group is not ready, 9 Pending, 9 minAvailable; Pending: 5 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod c-5: not PodScheduled(Unschedulable: 9/9 tasks in gang unschedulable: pod group is not ready, 9 Pending, 9 minAvailable; Pending: 5 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod c-6: not PodScheduled(Unschedulable: 9/9 tasks in gang unschedulable: pod group is not ready, 9 Pending, 9 minAvailable; Pending: 5 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod c-7: not PodScheduled(Unschedulable: 9/9 tasks in gang unschedulable: pod group is not ready, 9 Pending, 9 minAvailable; Pending: 5 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod c-8: not PodScheduled(Unschedulable: 9/9 tasks in gang unschedulable: pod group is not ready, 9 Pending, 9 minAvailable; Pending: 5 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            bind pod a-0 to one
            podgroup a: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_queue_below_its_share_gets_its_gangs_in_though_the_cluster_is_full() {
    check(
        "node one cpu=4
         queue greedy
         queue patient
         podgroup a queue=greedy phase=Running scheduled running=4
         pod a-0 of=a on=one phase=Running
         pod a-1 of=a on=one phase=Running
         pod a-2 of=a on=one phase=Running
         pod a-3 of=a on=one phase=Running
         podgroup more queue=greedy needs:cpu=1
         podgroup b queue=patient needs:cpu=2",
        &expect![[r#"
            podgroup b: phase=Inqueue
            podgroup more: Unschedulable(NotEnoughResources: not admitted: it needs 1 cpu, and not enough is left of the cluster's 4), phase=Pending
        "#]],
    );
}

#[test]
fn the_queue_with_the_higher_priority_goes_first() {
    check(
        "node one cpu=1
         queue a
         queue b priority=5
         podgroup a queue=a phase=Inqueue
         pod a-0 of=a
         podgroup b queue=b phase=Inqueue
         pod b-0 of=b",
        &expect![[r#"
            podgroup a: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod a-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            bind pod b-0 to one
            podgroup b: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn in_a_fifo_queue_nobody_overtakes() {
    check(
        "node one cpu=2
         queue line fifo
         podgroup first min=1 queue=line phase=Inqueue
         podgroup second min=1 queue=line phase=Inqueue
         pod first-0 of=first cpu=3
         pod second-0 of=second",
        &expect![[r#"
            podgroup first: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            podgroup second: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits behind default/first in its first in, first out queue)
            pod first-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod second-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits behind default/first in its first in, first out queue)
        "#]],
    );
}

#[test]
fn in_a_fifo_queue_a_gang_that_runs_grows_only_after_the_others_have_started() {
    check(
        "node one cpu=2
         queue line fifo
         podgroup runs min=1 queue=line phase=Running scheduled running=1
         pod runs-0 of=runs on=one phase=Running
         pod runs-1 of=runs
         pod runs-2 of=runs
         podgroup large min=1 queue=line phase=Inqueue
         pod large-0 of=large cpu=3",
        &expect![[r#"
            podgroup large: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod large-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod runs-1: not PodScheduled(Unschedulable: waits behind default/large in its first in, first out queue)
            pod runs-2: not PodScheduled(Unschedulable: waits behind default/large in its first in, first out queue)
        "#]],
    );
}

#[test]
fn queues_that_are_each_others_parents_hang_below_root() {
    check(
        "node one
         queue chicken parent=egg
         queue egg parent=chicken
         podgroup g queue=egg phase=Inqueue
         pod g-0 of=g",
        &expect![[r#"
            bind pod g-0 to one
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_gang_larger_than_its_queues_share_can_start_all_the_same() {
    check(
        "node one cpu=10
         queue a
         queue b
         podgroup a queue=a phase=Inqueue
         pod a-0 of=a cpu=6
         podgroup b queue=b phase=Inqueue
         pod b-0 of=b cpu=6",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod b-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            bind pod a-0 to one
            podgroup a: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn whether_a_gang_can_ever_run_is_judged_by_the_pods_that_its_tasks_need() {
    // The two workers would do for two pods, but without its master the gang does not start; and with it, it is too large.
    check(
        "node one cpu=4
         queue a
         queue b
         podgroup a min=2 task:master=1 task:worker=1 queue=a phase=Inqueue
         pod a-0 of=a task=worker
         pod a-1 of=a task=worker
         pod a-2 of=a task=master cpu=4
         podgroup b queue=b phase=Inqueue
         pod b-0 of=b
         pod b-1 of=b
         pod b-2 of=b
         pod b-3 of=b",
        &expect![[r#"
            podgroup a: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod a-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod a-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            pod a-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 2 minAvailable; Pending: 2 Insufficient cpu; 0/1 nodes are available: 1 Insufficient cpu)
            bind pod b-0 to one
            bind pod b-1 to one
            bind pod b-2 to one
            bind pod b-3 to one
            podgroup b: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn what_can_not_be_divided_evenly_is_not_left_idle() {
    check(
        "node one nvidia.com/gpu=1
         queue a
         queue b
         podgroup a queue=a phase=Inqueue
         pod a-0 of=a nvidia.com/gpu=1
         podgroup b queue=b phase=Inqueue
         pod b-0 of=b nvidia.com/gpu=1",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient nvidia.com/gpu; 0/1 nodes are available: 1 Insufficient nvidia.com/gpu)
            pod b-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient nvidia.com/gpu; 0/1 nodes are available: 1 Insufficient nvidia.com/gpu)
            bind pod a-0 to one
            podgroup a: Scheduled, phase=Running
        "#]],
    );
    check(
        "node one cpu=16 pods=20 nvidia.com/gpu=4
         queue a
         queue b
         queue c
         podgroup a min=1 queue=a phase=Inqueue
         pod a-0 of=a nvidia.com/gpu=1
         pod a-1 of=a nvidia.com/gpu=1
         podgroup b min=1 queue=b phase=Inqueue
         pod b-0 of=b nvidia.com/gpu=1
         pod b-1 of=b nvidia.com/gpu=1
         podgroup c min=1 queue=c phase=Inqueue
         pod c-0 of=c nvidia.com/gpu=1
         pod c-1 of=c nvidia.com/gpu=1",
        &expect![[r#"
            bind pod a-0 to one
            bind pod a-1 to one
            bind pod b-0 to one
            bind pod c-0 to one
            podgroup a: Scheduled, phase=Running
            podgroup b: Scheduled, phase=Running
            podgroup c: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn of_what_is_left_over_the_queue_that_has_it_keeps_it_and_else_the_one_that_waits_longest_gets_it() {
    check(
        "node one nvidia.com/gpu=1
         queue a
         queue b
         podgroup b queue=b phase=Inqueue
         pod b-0 of=b nvidia.com/gpu=1
         podgroup a queue=a phase=Inqueue
         pod a-0 of=a nvidia.com/gpu=1",
        &expect![[r#"
            podgroup a: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 over queue a's share; queue a has its share of nvidia.com/gpu, and others wait for it)
            pod a-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 over queue a's share; queue a has its share of nvidia.com/gpu, and others wait for it)
            bind pod b-0 to one
            podgroup b: Scheduled, phase=Running
        "#]],
    );
    check_reclaiming(
        "node one nvidia.com/gpu=1
         queue a
         queue b
         podgroup a queue=a phase=Inqueue
         pod a-0 of=a nvidia.com/gpu=1
         podgroup b min=1 queue=b phase=Running scheduled running=1
         pod b-0 of=b on=one phase=Running nvidia.com/gpu=1",
        &expect![[r#"
            podgroup a: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient nvidia.com/gpu; 0/1 nodes are available: 1 Insufficient nvidia.com/gpu)
            pod a-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient nvidia.com/gpu; 0/1 nodes are available: 1 Insufficient nvidia.com/gpu)
        "#]],
    );
}

#[test]
fn what_sits_on_a_closed_node_takes_nothing_of_a_queues_share_of_the_others() {
    let used = |mark: &str| {
        format!(
            "node closed {mark}
             node open
             podgroup a min=1 phase=Running scheduled running=4
             pod a-0 of=a on=closed phase=Running
             pod a-1 of=a on=closed phase=Running
             pod a-2 of=a on=closed phase=Running
             pod a-3 of=a on=closed phase=Running
             pod lone on=closed phase=Running
             podgroup b phase=Inqueue
             pod b-0 of=b"
        )
    };
    for mark in ["cordoned", "down", "deleting"] {
        let placed = expect![[r#"
            bind pod b-0 to open
            podgroup b: Scheduled, phase=Running
        "#]];
        check(&used(mark), &placed);
        check(&format!("queue vip guarantee:cpu=1\n{}", used(mark)), &placed);
        check(&used(mark).replace("node closed", "node renamed"), &placed);
    }
    // What is in use is told in full all the same.
    check_queues(
        &used("cordoned"),
        &expect![[r#"
            patch queue status default {"status":{"allocated":{"cpu":"6","pods":"6"},"running":2}}
        "#]],
    );
}

#[test]
fn what_sits_on_a_closed_node_counts_against_a_queues_capability() {
    check(
        "node closed cordoned
         node open
         queue small cap:cpu=2
         podgroup a min=1 queue=small phase=Running scheduled running=2
         pod a-0 of=a on=closed phase=Running
         pod a-1 of=a on=closed phase=Running
         podgroup b queue=small phase=Inqueue
         pod b-0 of=b",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 over queue small's limit; queue small may not use more cpu)
            pod b-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 over queue small's limit; queue small may not use more cpu)
        "#]],
    );
}

#[test]
fn a_gang_with_pods_on_a_closed_node_may_grow_on_the_others() {
    check(
        "node closed cordoned
         node open
         podgroup a min=6 phase=Running scheduled running=4 needs:cpu=6
         pod a-0 of=a on=closed phase=Running
         pod a-1 of=a on=closed phase=Running
         pod a-2 of=a on=closed phase=Running
         pod a-3 of=a on=closed phase=Running
         pod a-4 of=a
         pod a-5 of=a
         podgroup b min=3 phase=Inqueue
         pod b-0 of=b
         pod b-1 of=b
         pod b-2 of=b",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable)
            pod b-0: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable)
            pod b-1: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable)
            pod b-2: not PodScheduled(Unschedulable: 3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable)
            bind pod a-4 to open
            bind pod a-5 to open
        "#]],
    );
}

/// A queue whose pods fill half of four processors, and which wants more; the other half is free.
const HALF: &str = "node one cpu=4
     queue worker
     queue other
     podgroup a min=1 queue=worker phase=Running scheduled running=2
     pod a-0 of=a on=one phase=Running
     pod a-1 of=a on=one phase=Running
     pod a-2 of=a
     pod a-3 of=a
";

#[test]
fn what_a_queue_may_not_use_it_does_not_keep_from_others() {
    let others_get_all = expect![[r#"
        bind pod a-2 to one
        bind pod a-3 to one
    "#]];
    // Its own capability, or that of a queue above it, is less than the gang needs.
    let too_large = "podgroup b min=3 queue=other phase=Inqueue scheduled was=Unschedulable
         pod b-0 of=b
         pod b-1 of=b
         pod b-2 of=b";
    for limited in [
        HALF.replace("queue other", "queue other cap:cpu=2"),
        HALF.replace("queue other", "queue family cap:cpu=2\n queue other parent=family"),
    ] {
        let plan = plan(&objects(&format!("{limited}{too_large}")));
        let bound: Vec<_> = plan.steps.iter().filter(|step| matches!(step, Step::Bind { .. })).collect();
        assert_eq!(bound.len(), 2, "{plan}");
    }
    // It is closed, and has not let the gang in.
    check(
        &format!(
            "{}podgroup b queue=other needs:cpu=2 phase=Pending",
            HALF.replace("queue other", "queue other state=Closed")
        ),
        &expect![[r#"
            podgroup b: Unschedulable(QueueClosed: not admitted: queue other is closed)
            bind pod a-2 to one
            bind pod a-3 to one
        "#]],
    );
    // The gang has all that it needed.
    check(
        &format!("{HALF}podgroup b queue=other needs:cpu=2 phase=Completed succeeded=1"),
        &expect![[r#"
            podgroup b: succeeded=null
            bind pod a-2 to one
            bind pod a-3 to one
        "#]],
    );
    check(
        &format!(
            "{HALF}podgroup b min=3 queue=other needs:cpu=3 phase=Running scheduled running=1 succeeded=2
             pod b-0 of=b cpu=0 on=one phase=Running
             pod b-1 of=b on=one phase=Succeeded
             pod b-2 of=b on=one phase=Succeeded"
        ),
        &others_get_all,
    );
    // A pod of it failed and is not made anew yet; the others have succeeded.
    check(
        &format!(
            "{HALF}podgroup b min=3 queue=other needs:cpu=3 phase=Running scheduled running=1 succeeded=2
             pod b-1 of=b on=one phase=Succeeded
             pod b-2 of=b on=one phase=Succeeded"
        ),
        &expect![[r#"
            podgroup b: running=null
            bind pod a-2 to one
        "#]],
    );
}

#[test]
fn a_queue_claims_no_more_for_those_below_it_than_they_may_use() {
    check(
        "node one cpu=8
         queue worker
         queue family
         queue child parent=family cap:cpu=1
         podgroup a queue=worker phase=Inqueue
         pod a-0 of=a cpu=4
         pod a-1 of=a cpu=3
         podgroup b queue=child phase=Inqueue
         pod b-0 of=b
         pod b-1 of=b
         pod b-2 of=b
         pod b-3 of=b",
        &expect![[r#"
            bind pod a-0 to one
            bind pod a-1 to one
            bind pod b-0 to one
            podgroup a: Scheduled, phase=Running
            podgroup b: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn what_nobody_below_its_share_can_use_is_free_for_all() {
    // The other queue wants a node that is full; what is free, it can not use.
    check(
        "node full cpu=4 label:disk=fast
         node free cpu=4
         queue worker
         queue other
         podgroup a min=1 queue=worker phase=Running scheduled running=4
         pod a-0 of=a on=full phase=Running
         pod a-1 of=a on=full phase=Running
         pod a-2 of=a on=full phase=Running
         pod a-3 of=a on=full phase=Running
         pod a-4 of=a
         pod a-5 of=a
         podgroup a2 queue=worker phase=Inqueue
         pod a2-0 of=a2
         podgroup b min=1 queue=other phase=Inqueue
         pod b-0 of=b cpu=4 node:disk=fast",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            pod b-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            bind pod a-4 to free
            bind pod a-5 to free
            bind pod a2-0 to free
            podgroup a2: Scheduled, phase=Running
        "#]],
    );
    // It can use a part of what is free, with others: that part is kept for it.
    check(
        "node busy cpu=4
         node free cpu=4
         queue worker
         queue other
         podgroup a min=1 queue=worker phase=Running scheduled running=1
         pod a-0 of=a on=busy phase=Running cpu=4
         pod a-1 of=a
         pod a-2 of=a
         pod a-3 of=a
         podgroup b min=2 queue=other phase=Inqueue
         pod b-0 of=b cpu=3
         pod b-1 of=b cpu=4",
        &expect![[r#"
            podgroup b: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 2 Insufficient cpu)
            pod b-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 2 Insufficient cpu)
            pod b-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 2 Insufficient cpu)
            bind pod a-1 to free
        "#]],
    );
}

#[test]
fn room_is_kept_for_the_gangs_that_will_get_it_first() {
    // Only one of two gangs can have its queue's share: room is kept for the urgent one, whose name comes last.
    check(
        "class urgent value=10
         node one cpu=4 label:zone=one
         node two cpu=4 label:zone=two
         queue worker
         queue other
         podgroup a min=1 queue=worker phase=Running scheduled running=1
         pod a-0 of=a on=one phase=Running cpu=4
         pod a-1 of=a
         podgroup early min=1 queue=other phase=Inqueue
         pod early-0 of=early cpu=4 node:zone=one
         podgroup late min=2 queue=other phase=Inqueue priority=urgent
         pod late-0 of=late cpu=1 node:zone=one
         pod late-1 of=late cpu=4 node:zone=two",
        &expect![[r#"
            podgroup early: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            podgroup late: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            pod a-1: not PodScheduled(Unschedulable: queue worker has its share of cpu, and others wait for it)
            pod early-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            pod late-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            pod late-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
        "#]],
    );
}

#[test]
fn a_fifo_queue_uses_what_others_can_not_in_its_own_order() {
    check(
        "node full cpu=4 label:disk=fast
         node free cpu=3
         queue worker fifo
         queue other
         podgroup a min=1 queue=worker phase=Running scheduled running=1
         pod a-0 of=a on=full phase=Running cpu=4
         podgroup a1 queue=worker phase=Inqueue
         pod a1-0 of=a1 cpu=2
         podgroup a2 queue=worker phase=Inqueue
         pod a2-0 of=a2 cpu=2
         podgroup a3 queue=worker phase=Inqueue
         pod a3-0 of=a3 cpu=1
         podgroup b min=1 queue=other phase=Inqueue
         pod b-0 of=b cpu=4 node:disk=fast",
        &expect![[r#"
            podgroup a2: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits behind default/a1 in its first in, first out queue)
            podgroup a3: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits behind default/a2 in its first in, first out queue)
            podgroup b: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            pod a2-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits behind default/a1 in its first in, first out queue)
            pod a3-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; waits behind default/a2 in its first in, first out queue)
            pod b-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            bind pod a1-0 to free
            podgroup a1: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn room_is_kept_for_pods_of_a_queue_below_its_share_that_are_not_made_yet() {
    check(
        &format!("{HALF}podgroup b queue=other needs:cpu=2 phase=Inqueue young"),
        &expect![[r#"
            pod a-2: not PodScheduled(Unschedulable: queue worker has its share of cpu, and others wait for it)
            pod a-3: not PodScheduled(Unschedulable: queue worker has its share of cpu, and others wait for it)
        "#]],
    );
    // Only as much as they will need.
    check(
        &format!(
            "{}podgroup b queue=other needs:cpu=2 phase=Inqueue young
             podgroup c queue=other phase=Inqueue
             pod c-0 of=c cpu=4 node:disk=fast",
            HALF.replace("node one cpu=4", "node fast cpu=4 label:disk=fast\n node one cpu=7")
                .replace("pod a-0 of=a on=one", "pod a-0 of=a on=fast cpu=4")
        ),
        &expect![[r#"
            podgroup c: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            pod c-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            bind pod a-2 to one
            bind pod a-3 to one
        "#]],
    );
}

#[test]
fn a_gang_may_start_with_small_pods_where_room_is_kept_for_others() {
    // Two processors are kept for pods that are not made yet, and two are free for all.
    check(
        "node fast cpu=4 label:disk=fast
         node one cpu=4
         queue worker
         queue other
         podgroup a min=1 queue=worker phase=Running scheduled running=1
         pod a-0 of=a cpu=4 on=fast phase=Running
         podgroup g min=1 queue=worker phase=Inqueue
         pod g-large of=g cpu=3
         pod g-small of=g cpu=1
         podgroup b queue=other needs:cpu=2 phase=Inqueue young
         podgroup c queue=other phase=Inqueue
         pod c-0 of=c cpu=3 node:disk=fast",
        &expect![[r#"
            podgroup c: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            pod c-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector)
            bind pod g-small to one
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_lone_pod_waits_for_its_queue_as_a_gang_does() {
    check(
        "node one cpu=8
         queue closed state=Closed
         queue small cap:cpu=1
         pod nowhere queue=missing
         pod late queue=closed
         pod a queue=small
         pod b queue=small
         pod c",
        &expect![[r#"
            pod b: not PodScheduled(Unschedulable: queue small may not use more cpu)
            pod late: not PodScheduled(Unschedulable: not admitted: queue closed is closed)
            pod nowhere: not PodScheduled(Unschedulable: not admitted: there is no queue missing)
            bind pod a to one
            bind pod c to one
        "#]],
    );
}

#[test]
fn a_gang_whose_queue_is_gone_waits_for_it() {
    check(
        "node one cpu=8
         podgroup g min=1 queue=missing phase=Inqueue
         pod g-0 of=g
         podgroup runs min=1 queue=missing phase=Running scheduled running=1
         pod runs-0 of=runs on=one phase=Running
         pod runs-1 of=runs",
        &expect![[r#"
            podgroup g: Unschedulable(QueueNotFound: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; there is no queue missing)
            pod g-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; there is no queue missing)
            pod runs-1: not PodScheduled(Unschedulable: there is no queue missing)
        "#]],
    );
}

#[test]
fn pods_whose_podgroup_is_gone_count_in_its_queue_or_else_in_the_default_one() {
    let cluster = "node one cpu=8
         queue small cap:cpu=2
         pod a-0 of=gone queue=small on=one phase=Running
         pod a-1 of=gone queue=small on=one phase=Running
         pod b-0 of=gone-too on=one phase=Running
         podgroup c queue=small phase=Inqueue
         pod c-0 of=c";
    check_queues(
        cluster,
        &expect![[r#"
        patch queue status default {"status":{"allocated":{"cpu":"1","pods":"1"}}}
        patch queue status small {"status":{"allocated":{"cpu":"2","pods":"2"},"inqueue":1}}
    "#]],
    );
    check(
        cluster,
        &expect![[r#"
            podgroup c: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 over queue small's limit; queue small may not use more cpu)
            pod c-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 over queue small's limit; queue small may not use more cpu)
        "#]],
    );
}

/// The queue takes a gang of all its processors; another one waits to be let in.
const PROMISED: &str = "node one cpu=4
     claim here
     podgroup first min=2 phase=Inqueue needs:cpu=4
     pod first-0 of=first cpu=2
     pod first-1 of=first cpu=2
     podgroup second min=1 phase=Pending needs:cpu=3";

#[test]
fn what_waits_for_a_reason_outside_the_scheduler_keeps_no_room() {
    let is_let_in = |cluster: &str| {
        let plan = plan(&objects(cluster));
        plan.writes().any(|step| {
            let text = step.to_string();
            text.contains("second") && text.contains("Inqueue")
        })
    };
    // Pods that are not made yet have their room, until their gang has said for half a minute that they are missing.
    let unmade = PROMISED.replace("pod first-1 of=first cpu=2", "");
    for (cluster, expected) in [
        (PROMISED.replace("cpu=2", "cpu=2 gated"), true),
        (PROMISED.replace("pod first-1 of=first cpu=2", "pod first-1 of=first cpu=2 gated"), true),
        (PROMISED.replace("cpu=2", "cpu=2 claim=gone"), true),
        (PROMISED.replace("cpu=2", "cpu=2 node:disk=none"), true),
        (unmade.clone(), false),
        (unmade.replace("podgroup first", "podgroup first lacks-pods"), true),
        (PROMISED.replace("cpu=2", "cpu=2 claim=here"), false),
        (PROMISED.to_owned(), false),
    ] {
        assert_eq!(is_let_in(&cluster), expected, "{cluster}");
    }
}

#[test]
fn gated_pods_are_no_demand() {
    // Without the gates the queues would share the node.
    check(
        "node one cpu=4
         queue waits
         queue runs
         podgroup w min=4 queue=waits phase=Inqueue needs:cpu=4
         pod w-0 of=w gated
         pod w-1 of=w gated
         pod w-2 of=w
         pod w-3 of=w
         podgroup r min=1 queue=runs phase=Inqueue
         pod r-0 of=r
         pod r-1 of=r
         pod r-2 of=r
         pod r-3 of=r",
        &expect![[r#"
            podgroup w: Unschedulable(NotEnoughTasks: pod group is not ready, 2 Gated, 2 Pending; 2 more needed)
            pod w-2: not PodScheduled(Unschedulable: pod group is not ready, 2 Gated, 2 Pending; 2 more needed)
            pod w-3: not PodScheduled(Unschedulable: pod group is not ready, 2 Gated, 2 Pending; 2 more needed)
            bind pod r-0 to one
            bind pod r-1 to one
            bind pod r-2 to one
            bind pod r-3 to one
            podgroup r: Scheduled, phase=Running
        "#]],
    );
}

/// Volcano's example `hierarchical-jobs`: each of four queues of one weight wants more than the node has.
#[test]
fn four_queues_of_one_weight_get_a_quarter_each() {
    let mut cluster = String::from("node one cpu=4 pods=100\n");
    for queue in ["eng-prod", "eng-dev", "sci-prod", "sci-dev"] {
        cluster +=
            &format!("queue {queue}\n podgroup {queue} min=1 queue={queue} phase=Inqueue needs:cpu=500m\n");
        for pod in 0..6 {
            cluster += &format!("pod {queue}-{pod} of={queue} cpu=500m\n");
        }
    }
    let plan = plan(&objects(&cluster));
    let bound: Vec<String> = plan.steps.iter().filter_map(bound).collect();
    for queue in ["eng-prod", "eng-dev", "sci-prod", "sci-dev"] {
        assert_eq!(bound.iter().filter(|pod| pod.starts_with(queue)).count(), 2, "{queue} of {bound:?}");
    }
}

fn bound(step: &Step) -> Option<String> {
    if let Step::Bind { pod, .. } = step { Some(pod.name.to_string()) } else { None }
}

#[test]
fn the_first_job_of_a_burst_does_not_take_what_is_due_to_those_behind_it() {
    let first = "node one cpu=4
         queue a
         queue b
         queue c
         podgroup a min=1 queue=a phase=Inqueue new
         pod a-0 of=a
         pod a-1 of=a
         pod a-2 of=a
         pod a-3 of=a";
    // With the queue `default` there are four that may want something.
    check(
        first,
        &expect![[r#"
        bind pod a-0 to one
        podgroup a: Scheduled, phase=Running
    "#]],
    );
    let plan = plan(&objects(first));
    assert_eq!(plan.wake_at.map(|at| at.to_string()), Some("2027-01-15T08:00:02Z".to_owned()));
    // After a while nobody else has come.
    check(
        &first.replace("new", "young"),
        &expect![[r#"
        bind pod a-0 to one
        bind pod a-1 to one
        bind pod a-2 to one
        bind pod a-3 to one
        podgroup a: Scheduled, phase=Running
    "#]],
    );
}

#[test]
fn what_is_there_alone_starts_at_once() {
    // There is no other queue.
    check(
        "node one cpu=4
         podgroup a min=1 phase=Inqueue new
         pod a-0 of=a
         pod a-1 of=a
         pod lone new",
        &expect![[r#"
            bind pod a-0 to one
            bind pod a-1 to one
            bind pod lone to one
            podgroup a: Scheduled, phase=Running
        "#]],
    );
    // A gang may reach beyond its queue's share once.
    check(
        "node one cpu=4
         queue a
         queue b
         podgroup a min=4 queue=a phase=Inqueue new
         pod a-0 of=a
         pod a-1 of=a
         pod a-2 of=a
         pod a-3 of=a",
        &expect![[r#"
            bind pod a-0 to one
            bind pod a-1 to one
            bind pod a-2 to one
            bind pod a-3 to one
            podgroup a: Scheduled, phase=Running
        "#]],
    );
}
