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
            pod g-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 node(s) were not ready; 0/2 nodes are available: 1 node(s) were not ready, 1 node(s) were unschedulable)
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
            pod g-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Insufficient cpu; 0/4 nodes are available: 2 Insufficient cpu, 1 Insufficient memory, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable)
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
            pod g-0: not PodScheduled(Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Unschedulable; 0/0 nodes are available)
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
            pod fails-0: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 node(s) didn't match pod anti-affinity rules; 0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules)
            pod fails-1: not PodScheduled(Unschedulable: 2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 1 node(s) didn't match pod anti-affinity rules; 0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules)
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

#[test]
fn a_port_of_a_node_is_given_to_one_pod_only() {
    check(
        "node a
         node b
         pod there on=a phase=Running port=80
         pod ended on=b phase=Succeeded port=80
         podgroup g min=1 phase=Inqueue
         pod g-0 of=g port=80
         pod g-1 of=g port=80
         pod other port=80/UDP
         pod local port=127.0.0.1:90
         pod remote port=127.0.0.2:90
         pod everywhere port=90
         pod sidecar sidecar-port=80",
        &expect![[r#"
            pod everywhere: not PodScheduled(Unschedulable: 0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports)
            pod sidecar: not PodScheduled(Unschedulable: 0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports)
            bind pod g-0 to b
            bind pod local to b
            bind pod other to a
            bind pod remote to a
            podgroup g: Scheduled, phase=Running
        "#]],
    );
}

#[test]
fn what_a_pod_wants_near_it_must_be_one_pod_that_is_all_of_it() {
    // In zone a there is one pod of each sort, in zone b one that is both.
    check(
        "node a label:zone=a
         node b label:zone=b cpu=2
         pod web on=a phase=Running label:app=web
         pod fast on=a phase=Running label:disk=fast
         pod both on=b phase=Running label:app=web label:disk=fast
         pod cache near=app:web@zone near=disk:fast@zone",
        &expect![[r#"
            bind pod cache to b
        "#]],
    );
    check(
        "node a label:zone=a
         pod web on=a phase=Running label:app=web
         pod fast on=a phase=Running label:disk=fast
         pod cache near=app:web@zone near=disk:fast@zone
         pod half label:app=web near=app:web@zone near=disk:fast@zone
         pod first label:app=web label:disk=fast near=app:web@zone near=disk:fast@zone",
        &expect![[r#"
            pod cache: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 node(s) didn't match pod affinity rules)
            pod half: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 node(s) didn't match pod affinity rules)
            bind pod first to a
        "#]],
    );
}

#[test]
fn a_pod_that_tolerates_it_may_use_a_cordoned_node() {
    check(
        "node old cordoned
         pod a
         pod agent tolerates=node.kubernetes.io/unschedulable
         pod other tolerates=other",
        &expect![[r#"
            pod a: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 node(s) were unschedulable)
            pod other: not PodScheduled(Unschedulable: 0/1 nodes are available: 1 node(s) were unschedulable)
            bind pod agent to old
        "#]],
    );
}

#[test]
fn pods_that_must_be_spread_go_where_there_are_fewest() {
    let zones = "node a label:zone=a cpu=8 pods=20
         node b label:zone=b cpu=2
         node nowhere cpu=8
    ";
    let pods: String = (0..5).map(|index| format!("pod p{index} label:app=x spread=app:x@zone\n")).collect();
    check(
        &format!("{zones} {pods}"),
        &expect![[r#"
        bind pod p0 to a
        bind pod p1 to b
        bind pod p2 to a
        bind pod p3 to b
        bind pod p4 to a
    "#]],
    );
    check(
        &format!("{zones} {}", pods.replace("spread=", "max-skew=2 spread=")),
        &expect![[r#"
        bind pod p0 to a
        bind pod p1 to b
        bind pod p2 to a
        bind pod p3 to a
        bind pod p4 to b
    "#]],
    );
    check(
        &format!("{zones} {}", pods.replace("spread=", "min-domains=3 spread=")),
        &expect![[r#"
        pod p2: not PodScheduled(Unschedulable: 0/3 nodes are available: 2 node(s) didn't match pod topology spread constraints, 1 node(s) didn't match pod topology spread constraints (missing required label))
        pod p3: not PodScheduled(Unschedulable: 0/3 nodes are available: 2 node(s) didn't match pod topology spread constraints, 1 node(s) didn't match pod topology spread constraints (missing required label))
        pod p4: not PodScheduled(Unschedulable: 0/3 nodes are available: 2 node(s) didn't match pod topology spread constraints, 1 node(s) didn't match pod topology spread constraints (missing required label))
        bind pod p0 to a
        bind pod p1 to b
    "#]],
    );
    // What is only a wish keeps nobody from a node.
    check(
        &format!("{zones} {}", pods.replace("spread=", "spread-if-possible=")),
        &expect![[r#"
        bind pod p0 to a
        bind pod p1 to b
        bind pod p2 to nowhere
        bind pod p3 to a
        bind pod p4 to nowhere
    "#]],
    );
}

#[test]
fn for_spreading_only_pods_count_that_are_meant_and_only_nodes_where_the_pod_may_run() {
    let cluster = |pod: &str| {
        format!(
            "node a label:zone=a label:disk=fast
             node b label:zone=b taint=gpu
             pod there on=a phase=Running label:app=x
             pod other on=b phase=Running label:app=y
             pod leaving on=b phase=Running label:app=x deleting
             pod ended on=b phase=Failed label:app=x
             pod new label:app=x spread=app:x@zone {pod}"
        )
    };
    // Zone b has none that counts, and cannot take one.
    check(
        &cluster(""),
        &expect![[r#"
        pod new: not PodScheduled(Unschedulable: 0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) had untolerated taint(s))
    "#]],
    );
    check(
        &cluster("taints-policy=Honor"),
        &expect![[r#"
        bind pod new to a
    "#]],
    );
    check(
        &cluster("node:disk=fast"),
        &expect![[r#"
        bind pod new to a
    "#]],
    );
    check(
        &cluster("node:disk=fast affinity-policy=Ignore"),
        &expect![[r#"
        pod new: not PodScheduled(Unschedulable: 0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) had untolerated taint(s))
    "#]],
    );
    check(
        &cluster("tolerates=gpu"),
        &expect![[r#"
        bind pod new to b
    "#]],
    );
    // It counts only those of its own version.
    check(
        &cluster("label:version=2 same=version"),
        &expect![[r#"
        bind pod new to a
    "#]],
    );
}

#[test]
fn of_nodes_that_will_do_the_one_is_taken_that_the_pod_likes_best() {
    let nodes = "node a
         node b label:disk=fast
         node c label:disk=fast label:zone=near
         node soft soft-taint=old
    ";
    check(
        &format!("{nodes} pod there on=c phase=Running\n pod p likes=disk:fast*10 likes=zone:near*1"),
        &expect![[r#"
            bind pod p to c
        "#]],
    );
    check(
        &format!("{nodes} pod there on=b phase=Running\n pod p likes=disk:fast*10 likes=zone:far*5"),
        &expect![[r#"
            bind pod p to c
        "#]],
    );
    // A taint that only advises against a node is heeded as long as there is another.
    check(
        &format!(
            "{nodes} pod a on=a cpu=3 phase=Running
             pod b on=b cpu=3 phase=Running
             pod c on=c cpu=3 phase=Running
             pod p
             pod q tolerates=old
             pod r cpu=2"
        ),
        &expect![[r#"
            bind pod p to a
            bind pod q to soft
            bind pod r to soft
        "#]],
    );
}
