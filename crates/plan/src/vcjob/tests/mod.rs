//! Decision tables: a world in, the printed plan out.

mod absurd;
mod built;
mod completed;
mod concerned;
mod dependencies;
mod fixture;
mod laws;
mod life;
mod phases;
mod policies;
mod refused;
mod resources;
mod volcano;

use expect_test::{Expect, expect};

fn check(world: &str, expected: Expect) {
    expected.assert_eq(&fixture::plan(world).to_string());
}

/// The plan without what it writes of the PodGroup's spec, for tables that are about something else.
fn check_without_podgroup(world: &str, expected: Expect) {
    let plan = fixture::plan(world).to_string();
    let lines = plan.lines().filter(|line| !line.starts_with("patch podgroup"));
    expected.assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
}

#[test]
fn a_new_job_becomes_pending_and_gets_its_podgroup() {
    check(
        "job min=2
         task work replicas=2",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Pending"}}}
            create podgroup a-u1
        "#]],
    );
}

#[test]
fn no_pod_is_created_before_the_podgroup_is_admitted() {
    check_without_podgroup(
        "job phase=Pending min=2
         task work replicas=2
         group Pending",
        expect![[r#""#]],
    );
}

#[test]
fn pods_are_created_once_the_podgroup_is_admitted() {
    check_without_podgroup(
        "job phase=Pending min=2
         task work replicas=2
         group Inqueue
         pod work-1 Pending",
        expect![[r#"
            patch job status a {"status":{"pending":1,"taskStatusCount":{"work":{"phase":{"Pending":1}}}}}
            create pod a-work-0
        "#]],
    );
}

#[test]
fn a_podgroup_on_its_way_out_admits_nothing() {
    check_without_podgroup(
        "job phase=Pending min=1
         task work replicas=1
         group Inqueue going",
        expect![[r#""#]],
    );
}

#[test]
fn enough_started_pods_make_the_job_running() {
    check_without_podgroup(
        "job phase=Pending min=2
         task work replicas=2
         group Running
         pod work-0 Running
         pod work-1 Succeeded",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Running"}],"running":1,"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Running"},"succeeded":1,"taskStatusCount":{"work":{"phase":{"Running":1,"Succeeded":1}}}}}
        "#]],
    );
}

#[test]
fn all_succeeded_completes_the_job_and_removes_the_podgroup() {
    check(
        "job phase=Running min=2
         task work replicas=2
         group Running
         pod work-0 Succeeded
         pod work-1 Succeeded",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Completed"}],"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Completed"},"succeeded":2,"taskStatusCount":{"work":{"phase":{"Succeeded":2}}}}}
            delete podgroup a-u1
        "#]],
    );
}

#[test]
fn too_few_successes_fail_the_job() {
    check(
        "job phase=Running min=2
         task work replicas=2
         group Running
         pod work-0 Succeeded
         pod work-1 Failed",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Failed"}],"failed":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"1 of 2 pods succeeded, the job needs 2","phase":"Failed","reason":"TooFewSucceeded"},"succeeded":1,"taskStatusCount":{"work":{"phase":{"Failed":1,"Succeeded":1}}}}}
            delete podgroup a-u1
        "#]],
    );
}

#[test]
fn min_success_completes_the_job_early_and_kills_the_rest() {
    check(
        "job phase=Running min=2 min-success=1
         task work replicas=2
         group Running
         pod work-0 Succeeded
         pod work-1 Running",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Completed"}],"running":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Completed"},"succeeded":1,"taskStatusCount":{"work":{"phase":{"Running":1,"Succeeded":1}}}}}
            delete podgroup a-u1
            patch pod a-work-1 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-1
        "#]],
    );
}

#[test]
fn a_restart_is_charged_before_the_first_kill() {
    check(
        "job phase=Running min=2 policy=PodFailed:RestartJob
         task work replicas=2
         group Running
         pod work-0 Running
         pod work-1 Failed",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"retryCount":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-1 failed with exit code 1","phase":"Restarting","reason":"RestartJob"},"terminating":2,"version":1}}
            delete podgroup a-u1
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            patch pod a-work-1 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            delete pod a-work-1
            note Normal ExecuteAction: RestartJob: pod a-work-1 failed with exit code 1
        "#]],
    );
}

#[test]
fn a_charged_restart_goes_on_after_a_crash_without_a_second_charge() {
    check(
        "job phase=Restarting min=2 version=1 retry=1 policy=PodFailed:RestartJob
         task work replicas=2
         group Running
         pod work-0 Running going
         pod work-1 Failed",
        expect![[r#"
            patch job status a {"status":{"terminating":2}}
            delete podgroup a-u1
            patch pod a-work-1 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-1
        "#]],
    );
}

#[test]
fn a_restart_that_was_cut_short_still_removes_the_podgroup_of_the_last_try() {
    check(
        "job phase=Restarting min=2 version=1 retry=1 policy=PodFailed:RestartJob
         task work replicas=2
         group Running
         pod work-0 Succeeded
         pod work-1 Failed",
        expect![[r#"
            patch job status a {"status":{"terminating":2}}
            delete podgroup a-u1
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            patch pod a-work-1 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            delete pod a-work-1
        "#]],
    );
}

#[test]
fn the_next_try_starts_once_the_last_one_is_gone() {
    check(
        "job phase=Restarting min=2 version=1 retry=1 policy=PodFailed:RestartJob
         task work replicas=2",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Pending"}}}
            create podgroup a-u1
        "#]],
    );
}

#[test]
fn a_spent_budget_fails_the_job_and_keeps_its_failed_pods() {
    check(
        "job phase=Running min=2 version=2 retry=2 max-retry=3 policy=PodFailed:RestartJob
         task work replicas=2
         group Running
         pod work-0 Running version=2
         pod work-1 Failed version=2",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"failed":1,"retryCount":3,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-1 failed with exit code 1","phase":"Restarting","reason":"RestartJob"},"taskStatusCount":{"work":{"phase":{"Failed":1}}},"terminating":1,"version":3}}
            delete podgroup a-u1
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            note Normal ExecuteAction: RestartJob: pod a-work-1 failed with exit code 1
        "#]],
    );
    check(
        "job phase=Restarting min=2 version=3 retry=3 max-retry=3 policy=PodFailed:RestartJob
         task work replicas=2
         pod work-1 Failed version=2",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Failed"}],"failed":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"all 3 retries are used up; the last: ","phase":"Failed","reason":"RetriesExhausted"},"taskStatusCount":{"work":{"phase":{"Failed":1}}}}}
        "#]],
    );
}

#[test]
fn a_failed_pod_of_an_earlier_version_is_no_trigger() {
    check_without_podgroup(
        "job phase=Running min=1 version=1 retry=1 policy=PodFailed:RestartJob
         task work replicas=2
         group Running
         pod work-0 Failed version=0
         pod work-1 Running version=1",
        expect![[r#"
            patch job status a {"status":{"failed":1,"running":1,"taskStatusCount":{"work":{"phase":{"Failed":1,"Running":1}}}}}
        "#]],
    );
}

#[test]
fn a_policy_of_the_task_goes_before_one_of_the_job() {
    check_without_podgroup(
        "job phase=Running min=1 policy=PodFailed:RestartJob
         task work replicas=1 policy=3:AbortJob
         group Running
         pod work-0 Failed exit=3",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Aborting"}],"failed":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-0 failed with exit code 3","phase":"Aborting","reason":"AbortJob"},"taskStatusCount":{"work":{"phase":{"Failed":1}}},"version":1}}
            delete podgroup a-u1
            note Normal ExecuteAction: AbortJob: pod a-work-0 failed with exit code 3
        "#]],
    );
}

#[test]
fn a_policy_with_a_timeout_waits_from_the_end_of_the_pod() {
    check_without_podgroup(
        "job phase=Running min=2 policy=PodFailed:RestartJob@1m
         task work replicas=2
         group Running
         pod work-0 Failed
         pod work-1 Running",
        expect![[r#"
            patch job status a {"status":{"failed":1,"running":1,"taskStatusCount":{"work":{"phase":{"Failed":1,"Running":1}}}}}
            wake at 2027-01-15T08:02:30Z
            note Normal ExecuteAction: RestartJob after 1m0s of PodFailed
        "#]],
    );
}

#[test]
fn volcano_b46_a_finished_job_is_counted_once_more_and_then_left_alone() {
    let world = "job phase=Completed min=1
                 task work replicas=1
                 pod work-0 Succeeded";
    check(
        world,
        expect![[r#"
            patch job status a {"status":{"succeeded":1,"taskStatusCount":{"work":{"phase":{"Succeeded":1}}}}}
        "#]],
    );
    expect![[r#""#]].assert_eq(&fixture::plan_after_status(world).to_string());
}

#[test]
fn surplus_pods_go_and_missing_ones_come() {
    check_without_podgroup(
        "job phase=Running min=1
         task work replicas=2
         group Running
         pod work-0 Running
         pod work-2 Running
         pod work-3 Running going",
        expect![[r#"
            patch job status a {"status":{"running":1,"taskStatusCount":{"work":{"phase":{"Running":1}}},"terminating":2}}
            patch pod a-work-2 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-2
            create pod a-work-1
        "#]],
    );
}

#[test]
fn a_task_waits_for_the_task_it_depends_on() {
    let lead_is = |phase| {
        format!(
            "job phase=Running min=1
             task lead replicas=1
             task work replicas=1 after=lead
             group Running
             pod lead-0 {phase}"
        )
    };
    check_without_podgroup(
        &lead_is("Pending"),
        expect![[r#"
        patch job status a {"status":{"pending":1,"taskStatusCount":{"lead":{"phase":{"Pending":1}}}}}
    "#]],
    );
    check_without_podgroup(
        &lead_is("Running"),
        expect![[r#"
        patch job status a {"status":{"running":1,"taskStatusCount":{"lead":{"phase":{"Running":1}}}}}
        create pod a-work-0
    "#]],
    );
}

#[test]
fn a_pod_of_a_namesake_is_not_touched_and_its_name_is_respected() {
    check_without_podgroup(
        "job phase=Pending min=1
         task work replicas=1
         group Inqueue
         pod work-0 Running owner=u0",
        expect![[r#"
            patch job status a {"status":{"state":{"message":"pod a-work-0 exists and does not belong to this job; delete it to let the job go on","reason":"PodNameTaken"}}}
            note Warning PodNameTaken: pod a-work-0 exists and does not belong to this job; delete it to let the job go on
        "#]],
    );
}
