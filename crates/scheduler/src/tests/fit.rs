//! Which nodes will do.

use expect_test::expect;

use super::fixture::check;

#[test]
fn a_closed_node_takes_no_new_pods() {
    check(
        "node cordoned cordoned
         node down down
         pod a
         podgroup g min=1 phase=Inqueue
         pod g-0 of=g",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 node(s) were not ready; 0/2 nodes are available: 1 node(s) were not ready, 1 node(s) were unschedulable)
            pod a: not PodScheduled(Unschedulable: 0/2 nodes are available: 1 node(s) were not ready, 1 node(s) were unschedulable)
        "#]],
    );
}

#[test]
fn a_taint_keeps_pods_away_that_do_not_tolerate_it() {
    check(
        "node tainted taint=gpu
         pod a
         pod b tolerates=gpu
         pod c tolerates=other",
        &expect![[r#"
            pod a: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 node(s) had untolerated taint(s))
            pod c: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 node(s) had untolerated taint(s))
            bind pod b to tainted
        "#]],
    );
}

#[test]
fn a_node_selector_is_met_by_labels() {
    check(
        "node one
         node two label:disk=ssd
         pod a node:disk=ssd
         pod b node:disk=hdd",
        &expect![[r#"
            pod b: not PodScheduled(Unschedulable: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector)
            bind pod a to two
        "#]],
    );
}

#[test]
fn the_reason_counts_every_node_once() {
    check(
        "node full cpu=1
         node small cpu=1 memory=1Gi
         node tainted taint=gpu
         node cordoned cordoned
         podgroup g min=1 phase=Inqueue
         pod g-0 of=g cpu=2 memory=2Gi",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/4 nodes are available: 2 Insufficient cpu, 1 Insufficient memory, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable)
        "#]],
    );
}

#[test]
fn without_any_node_a_gang_says_so() {
    check(
        "podgroup g min=1 phase=Inqueue
         pod g-0 of=g",
        &expect![[r#"
            podgroup g: Unschedulable(NotEnoughResources: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Unschedulable; 0/0 nodes are available)
        "#]],
    );
}

#[test]
fn pods_that_avoid_each_other_go_to_different_zones() {
    check(
        "node a1 label:zone=a
         node a2 label:zone=a
         node b1 label:zone=b
         podgroup g min=2 phase=Inqueue
         pod g-0 of=g label:app=db away=app:db@zone
         pod g-1 of=g label:app=db away=app:db@zone
         pod g-2 of=g label:app=db away=app:db@zone",
        &expect![[r#"
            bind pod g-0 to a1
            bind pod g-1 to b1
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_pod_that_others_avoid_stays_away_from_them() {
    check(
        "node a label:zone=a
         node b label:zone=b cpu=2
         pod shy on=a phase=Running away=app:loud@zone
         pod loud label:app=loud
         pod quiet label:app=quiet",
        &expect![[r#"
            bind pod loud to b
            bind pod quiet to a
        "#]],
    );
}

#[test]
fn pods_that_want_company_follow_it() {
    check(
        "node a label:zone=a
         node b label:zone=b
         pod web on=b phase=Running label:app=web cpu=2
         pod cache near=app:web@zone
         pod lost near=app:nothing@zone",
        &expect![[r#"
            pod lost: not PodScheduled(Unschedulable: 0/2 nodes are available: 2 node(s) didn't match pod affinity rules)
            bind pod cache to b
        "#]],
    );
}

#[test]
fn the_first_of_a_series_that_wants_its_own_kind_may_go_anywhere() {
    check(
        "node a label:zone=a cpu=2
         node b label:zone=b cpu=2
         podgroup g min=2 phase=Inqueue
         pod g-0 of=g label:app=ring near=app:ring@zone
         pod g-1 of=g label:app=ring near=app:ring@zone
         pod g-2 of=g label:app=ring near=app:ring@zone",
        &expect![[r#"
            bind pod g-0 to a
            bind pod g-1 to a
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_gang_that_fails_leaves_no_trace_on_its_neighbours() {
    check(
        "node a label:zone=a
         podgroup fails min=2 phase=Inqueue
         podgroup next min=1 phase=Inqueue
         pod fails-0 of=fails label:app=db away=app:db@zone
         pod fails-1 of=fails label:app=db away=app:db@zone
         pod next-0 of=next label:app=db away=app:db@zone",
        &expect![[r#"
            podgroup fails: Unschedulable(NotEnoughResources: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 node(s) didn't match pod anti-affinity rules; 0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules)
            bind pod next-0 to a
            podgroup next: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn a_term_without_a_selector_picks_no_pod() {
    check(
        "node a label:zone=a
         pod there on=a phase=Running
         pod shy away=@zone
         pod lost near=@zone",
        &expect![[r#"
            pod lost: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 node(s) didn't match pod affinity rules)
            bind pod shy to a
        "#]],
    );
}
