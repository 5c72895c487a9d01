//! Decision tables: a cluster in a few lines, and the plan for it.

mod fixture;

use expect_test::expect;

use fixture::check;

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
            patch podgroup g {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:00:00Z","reason":"tasks in gang are ready to be scheduled","status":"True","type":"Scheduled"}],"phase":"Running"}}
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
            patch podgroup g {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:00:00Z","message":"3/3 tasks in gang unschedulable: pod group is not ready, 3 Pending; 0/1 nodes are available: 1 Insufficient cpu","reason":"NotEnoughResources","status":"True","type":"Unschedulable"}]}}
        "#]],
    );
}

#[test]
fn a_pod_in_no_gang_is_placed_alone() {
    check(
        "node one cpu=2
         pod a
         pod b scheduler=default-scheduler
         pod c scheduler=other
         pod d",
        &expect![[r#"
            bind pod a to one
            bind pod b to one
        "#]],
    );
}

#[test]
fn a_pending_podgroup_is_let_in_when_its_minimum_is_there() {
    check(
        "node one cpu=4
         podgroup small min=1 needs:cpu=2
         podgroup large min=1 needs:cpu=3
         podgroup any min=1",
        &expect![[r#"
            patch podgroup any {"status":{"phase":"Inqueue"}}
            patch podgroup large {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:00:00Z","message":"not admitted: the cluster has not enough cpu left","reason":"NotEnoughResources","status":"True","type":"Unschedulable"}],"phase":"Pending"}}
            patch podgroup small {"status":{"phase":"Inqueue"}}
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
         podgroup ended min=2 phase=Running
         pod ended-0 of=ended on=one phase=Failed
         pod ended-1 of=ended on=one phase=Succeeded",
        &expect![[r#"
            patch podgroup ended {"status":{"failed":1,"phase":"Completed","succeeded":1}}
            patch podgroup runs {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:00:00Z","reason":"tasks in gang are ready to be scheduled","status":"True","type":"Scheduled"}],"phase":"Running","running":1,"succeeded":1}}
        "#]],
    );
}

#[test]
fn a_gang_of_which_a_part_runs_and_the_rest_finds_no_room_is_unknown() {
    check(
        "node one cpu=2
         podgroup g min=3 phase=Running running=3
         pod g-0 of=g on=one phase=Running
         pod g-1 of=g on=one phase=Running
         pod g-2 of=g",
        &expect![[r#"
            patch podgroup g {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:00:00Z","message":"1/3 tasks in gang unschedulable: pod group is not ready, 1 Pending, 2 Running; 0/1 nodes are available: 1 Insufficient cpu","reason":"NotEnoughResources","status":"True","type":"Unschedulable"}],"phase":"Unknown","running":2}}
        "#]],
    );
}
