//! What Volcano gets wrong, by the tags of DEVIATIONS.md: each row shows what is done instead.

use expect_test::expect;
use krafla_api::Kind;
use krafla_cluster::Step;

use super::{check, check_without_podgroup, fixture};

#[test]
fn volcano_b1_a_kill_that_failed_half_way_is_finished_without_a_new_charge() {
    check_without_podgroup(
        "job phase=Terminating version=1 reason=TerminateJob min=2 policy=PodFailed:TerminateJob
         task work replicas=2
         pod work-0 Failed
         pod work-1 Running marked",
        expect![[r#"
            patch job status a {"status":{"failed":1,"taskStatusCount":{"work":{"phase":{"Failed":1}}},"terminating":1}}
            delete pod a-work-1
        "#]],
    );
}

#[test]
fn volcano_b2_a_decision_changes_nothing_that_the_next_one_reads() {
    for action in ["RestartJob", "RestartTask", "AbortJob", "TerminateJob", "CompleteJob"] {
        let world = fixture::parse(&format!(
            "job phase=Running min=2 policy=PodFailed:{action} policy=PodEvicted:{action} plugin=svc
             task work replicas=3
             group Running
             volume /data made
             pod work-0 Failed
             pod work-1 Running
             gone work-2 Running"
        ));
        let before = format!("{:?}", world.observed());
        let first = world.plan();
        assert!(first.status.is_some(), "{action} is begun: {first}");
        assert_eq!(before, format!("{:?}", world.observed()), "{action}");
        // Its writes may all have failed: whoever decides next sees the same, and decides the same.
        assert_eq!(world.plan(), first, "{action}");
    }
}

#[test]
fn volcano_b3_a_pod_that_failed_while_nobody_looked_is_a_trigger_at_the_first_look() {
    check_without_podgroup(
        "job phase=Running min=1 counted=work:Running*1 policy=PodFailed:AbortJob
         task work replicas=1
         group Running
         pod work-0 Failed exit=3
         first-look",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Aborting"}],"failed":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-0 failed with exit code 3","phase":"Aborting","reason":"AbortJob"},"taskStatusCount":{"work":{"phase":{"Failed":1,"Running":null}}},"version":1}}
            delete podgroup a-u1
            note Normal ExecuteAction: AbortJob: pod a-work-0 failed with exit code 3
        "#]],
    );
}

#[test]
fn volcano_b5_pods_that_are_kept_through_a_kill_are_counted() {
    check_without_podgroup(
        "job phase=Aborting version=1 reason=AbortJob min=2
         task work replicas=3
         pod work-0 Succeeded
         pod work-1 Failed
         pod work-2 Running going",
        expect![[r#"
            patch job status a {"status":{"failed":1,"succeeded":1,"taskStatusCount":{"work":{"phase":{"Failed":1,"Succeeded":1}}},"terminating":1}}
        "#]],
    );
}

#[test]
fn volcano_b8_pods_are_counted_while_the_podgroup_waits() {
    check_without_podgroup(
        "job phase=Restarting retry=1 version=1 reason=RestartJob min=2
         task work replicas=2
         group Pending version=1
         pod work-0 Running version=0 going",
        expect![[r#"
            patch job status a {"status":{"terminating":1}}
        "#]],
    );
}

#[test]
fn volcano_b10_counters_do_not_move_the_time_of_the_last_transition() {
    check_without_podgroup(
        "job phase=Running min=1
         task work replicas=2
         group Running
         pod work-0 Running
         pod work-1 Running",
        expect![[r#"
            patch job status a {"status":{"running":2,"taskStatusCount":{"work":{"phase":{"Running":2}}}}}
        "#]],
    );
}

#[test]
fn volcano_b12_the_exit_code_of_any_container_is_matched() {
    check_without_podgroup(
        "job phase=Running min=1 policy=3:AbortJob
         task work replicas=1
         group Running
         pod work-0 Failed exit=0 second=3",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Aborting"}],"failed":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-0 failed with exit code 3","phase":"Aborting","reason":"AbortJob"},"taskStatusCount":{"work":{"phase":{"Failed":1}}},"version":1}}
            delete podgroup a-u1
            note Normal ExecuteAction: AbortJob: pod a-work-0 failed with exit code 3
        "#]],
    );
}

#[test]
fn volcano_b15_what_a_pod_of_a_namesake_did_starts_no_clock() {
    let plan = fixture::plan(
        "job phase=Running min=1 policy=PodFailed:AbortJob@1h
         task work replicas=1
         group Running
         pod other-0 Failed owner=u0",
    );
    assert_eq!(plan.wake_at, None);
}

#[test]
fn volcano_b16_a_pending_time_out_ends_when_the_pod_succeeds_without_having_been_seen_running() {
    let at = |phase: &str| {
        fixture::plan(&format!(
            "job phase=Running min=1 policy=PodPending:AbortJob@150s
             task work replicas=1
             group Running
             pod work-0 {phase}"
        ))
        .wake_at
    };
    assert_eq!(at("Pending").map(|at| at.to_string()).as_deref(), Some("2027-01-15T08:02:30Z"));
    assert_eq!(at("Succeeded"), None);
}

#[test]
fn volcano_b17_each_pod_has_its_own_clock() {
    let plan = fixture::plan(
        "job phase=Running min=1 policy=PodPending:RestartPod@150s
         task work replicas=2
         group Running
         pod work-0 Pending created=60
         pod work-1 Pending created=20",
    );
    assert_eq!(plan.wake_at.map(|at| at.to_string()).as_deref(), Some("2027-01-15T08:02:50Z"));
}

#[test]
fn volcano_b18_a_time_out_that_has_passed_is_acted_on_like_any_other_trigger() {
    check_without_podgroup(
        "job phase=Pending min=2 policy=PodPending:TerminateJob@30s
         task work replicas=2
         group Inqueue
         pod work-0 Pending
         pod work-1 Running",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Terminating"}],"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-0 is pending","phase":"Terminating","reason":"TerminateJob"},"terminating":2,"version":1}}
            delete podgroup a-u1
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            patch pod a-work-1 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            delete pod a-work-1
            note Normal ExecuteAction: TerminateJob: pod a-work-0 is pending
        "#]],
    );
}

#[test]
fn volcano_b19_partitions_of_two_tasks_with_one_number_are_not_mixed_up() {
    check_without_podgroup(
        "job phase=Running min=2 policy=PodFailed:RestartPartition
         task left replicas=1
         task right replicas=1
         group Running
         pod left-0 Failed partition=0
         pod right-0 Running partition=0",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"retryCount":1,"running":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"partition left/0: pod a-left-0 failed with exit code 1","phase":"Restarting","reason":"RestartPartition"},"taskStatusCount":{"right":{"phase":{"Running":1}}},"terminating":1}}
            patch pod a-left-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-left-0
            note Normal ExecuteAction: RestartPartition: partition left/0: pod a-left-0 failed with exit code 1
        "#]],
    );
}

#[test]
fn volcano_b26_what_the_scheduler_says_is_passed_on() {
    check_without_podgroup(
        "job phase=Pending min=2
         task work replicas=2
         group Pending says=1/2+tasks+in+gang+unschedulable",
        expect![[r#"
            patch job status a {"status":{"state":{"message":"1/2 tasks in gang unschedulable","reason":"PodGroupPending"}}}
            note Warning PodGroupPending: PodGroup ns:a unschedulable, reason: 1/2 tasks in gang unschedulable
        "#]],
    );
}

#[test]
fn volcano_b27_a_container_that_only_has_limits_requests_them() {
    let world = "job phase=Pending min=2
                 task work replicas=2 limit=nvidia.com/gpu*1";
    let plan = fixture::plan(world);
    let created = plan.steps.iter().find_map(|step| match step {
        Step::Create { object, .. } => object.pointer("/spec/minResources"),
        _ => None,
    });
    expect![[r#"{"count/pods":"2","nvidia.com/gpu":"2","pods":"2","requests.nvidia.com/gpu":"2"}"#]]
        .assert_eq(&created.unwrap().to_string());
}

#[test]
fn volcano_b36_an_event_of_the_whole_job_restarts_no_task_and_costs_nothing() {
    check_without_podgroup(
        "job phase=Running min=1 counted=work:Running*1 policy=Unknown:RestartTask
         task work replicas=1
         group Unknown
         pod work-0 Running",
        expect![[r#"
            patch job status a {"status":{"running":1}}
        "#]],
    );
}

#[test]
fn volcano_b38_a_podgroup_that_somebody_deletes_is_made_again() {
    check(
        "job phase=Running min=1
         task work replicas=1
         pod work-0 Running",
        expect![[r#"
            patch job status a {"status":{"running":1,"taskStatusCount":{"work":{"phase":{"Running":1}}}}}
            create podgroup a-u1
        "#]],
    );
}

#[test]
fn volcano_b40_deletions_name_who_is_meant() {
    let plan = fixture::plan(
        "job phase=Aborting min=1
         task work replicas=1
         group Running
         pod work-0 Running",
    );
    let uids: Vec<&str> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Delete { uid, .. } => Some(&*uid.0),
            _ => None,
        })
        .collect();
    assert_eq!(uids, ["uid-a-u1", "uid-a-work-0"]);
}

#[test]
fn volcano_b41_a_partial_restart_that_can_not_be_paid_for_fails_the_job_and_keeps_the_failed_pod() {
    let running = "job phase=Running retry=2 max-retry=3 min=2 policy=PodFailed:RestartPod
                   task work replicas=2
                   group Running
                   pod work-0 Failed retry=1
                   pod work-1 Running";
    check_without_podgroup(
        running,
        expect![[r#"
        patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"failed":1,"retryCount":3,"running":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-0 failed with exit code 1","phase":"Restarting","reason":"RestartPod"},"taskStatusCount":{"work":{"phase":{"Failed":1,"Running":1}}}}}
        note Normal ExecuteAction: RestartPod: pod a-work-0 failed with exit code 1
    "#]],
    );
    let restarting =
        "job phase=Restarting retry=3 max-retry=3 reason=RestartPod min=2 policy=PodFailed:RestartPod
                      task work replicas=2
                      group Running
                      pod work-0 Failed retry=1
                      pod work-1 Running";
    check_without_podgroup(
        restarting,
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Failed"}],"failed":1,"running":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"all 3 retries are used up; the last: because","phase":"Failed","reason":"RetriesExhausted"},"taskStatusCount":{"work":{"phase":{"Failed":1,"Running":1}}}}}
            delete podgroup a-u1
            patch pod a-work-1 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-1
        "#]],
    );
}

#[test]
fn volcano_b47_an_evicted_pod_is_replaced_while_its_policy_waits() {
    check_without_podgroup(
        "job phase=Running min=1 policy=PodEvicted:TerminateJob@1h
         task work replicas=2
         group Running
         pod work-0 Running
         gone work-1 Running",
        expect![[r#"
            patch job status a {"status":{"running":1,"taskStatusCount":{"work":{"phase":{"Running":2}}}}}
            create pod a-work-1
            wake at 2027-01-15T09:01:35Z
            note Normal ExecuteAction: TerminateJob after 1h0m0s of PodEvicted
        "#]],
    );
}

#[test]
fn volcano_b48_a_partition_restart_without_a_partition_restarts_the_pod() {
    check_without_podgroup(
        "job phase=Running min=2 policy=PodFailed:RestartPartition
         task work replicas=2
         group Running
         pod work-0 Failed
         pod work-1 Running",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"retryCount":1,"running":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-0 failed with exit code 1","phase":"Restarting","reason":"RestartPartition"},"taskStatusCount":{"work":{"phase":{"Running":1}}},"terminating":1}}
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            note Normal ExecuteAction: RestartPartition: pod a-work-0 failed with exit code 1
        "#]],
    );
}

#[test]
fn volcano_b49_an_eviction_is_answered_once_and_spares_the_replacement() {
    check_without_podgroup(
        "job phase=Restarting retry=1 reason=RestartPod min=2 policy=PodEvicted:RestartPod
         task work replicas=2
         group Running
         pod work-0 Pending retry=1
         pod work-1 Running",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"pending":1,"running":1,"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Pending"},"taskStatusCount":{"work":{"phase":{"Pending":1,"Running":1}}}}}
        "#]],
    );
}

#[test]
fn volcano_b50_no_pod_is_made_under_the_podgroup_of_the_last_try() {
    check_without_podgroup(
        "job phase=Restarting retry=1 version=1 reason=RestartJob min=1
         task work replicas=1
         group Inqueue going",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Pending"}}}
        "#]],
    );
}

#[test]
fn a_pod_that_somebody_marked_goes_and_is_no_eviction() {
    check_without_podgroup(
        "job phase=Running min=2 policy=PodEvicted:TerminateJob
         task work replicas=2
         group Running
         pod work-0 Running marked
         pod work-1 Running",
        expect![[r#"
            patch job status a {"status":{"running":1,"taskStatusCount":{"work":{"phase":{"Running":1}}},"terminating":1}}
            delete pod a-work-0
        "#]],
    );
}

#[test]
fn minimums_that_are_no_longer_needed_are_taken_out_of_the_podgroup() {
    check(
        "job phase=Running min=0
         task work replicas=0
         group Running needs=cpu needs=pods",
        expect![[r#"
            patch podgroup a-u1 {"spec":{"minResources":{"cpu":null,"pods":null},"minTaskMember":{"work":0}}}
        "#]],
    );
}

#[test]
fn volcano_b32_a_task_that_is_divided_can_be_scaled() {
    check(
        "job phase=Running min=2
         task work replicas=4 min=2 partitions=2x2 min-partitions=1
         group Running
         pod work-0 Running partition=0
         pod work-1 Running partition=0",
        expect![[r#"
            patch job status a {"status":{"running":2,"taskStatusCount":{"work":{"phase":{"Running":2}}}}}
            patch podgroup a-u1 {"spec":{"minMember":2,"minResources":{"count/pods":"2","pods":"2"},"minTaskMember":{"work":2},"subGroupPolicy":[{"labelSelector":{"matchLabels":{"volcano.sh/task-spec":"work"}},"matchLabelKeys":["volcano.sh/partition-id"],"minSubGroups":1,"name":"work","subGroupSize":2}]}}
            create pod a-work-2
            create pod a-work-3
        "#]],
    );
}

#[test]
fn volcano_b9_how_long_a_job_ran_stays_and_what_did_not_change_is_not_written() {
    let idle = fixture::plan("job phase=Running min=0 ran=30s\n task work replicas=0\n group Running");
    assert_eq!(idle.status, None, "{idle}");
    check_without_podgroup(
        "job phase=Running min=1 ran=30s
         task work replicas=1
         group Running
         pod work-0 Running",
        expect![[r#"
            patch job status a {"status":{"running":1,"taskStatusCount":{"work":{"phase":{"Running":1}}}}}
        "#]],
    );
}

#[test]
fn volcano_b29_a_claim_at_two_places_is_one_volume() {
    let plan = fixture::plan(
        "job phase=Pending min=1
         task work replicas=1
         volume /one claim=data
         volume /two claim=data
         claim data
         group Inqueue",
    );
    let pod = plan.steps.iter().find_map(|step| match step {
        Step::Create { kind: Kind::Pod, object } => Some(&object["spec"]),
        _ => None,
    });
    let pod = pod.expect("the pod is made");
    expect![[r#"
        [{"name":"a-x5zg01lpo901","persistentVolumeClaim":{"claimName":"data"}}]
        [{"mountPath":"/one","name":"a-x5zg01lpo901"},{"mountPath":"/two","name":"a-x5zg01lpo901"}]"#]]
    .assert_eq(&format!("{}\n{}", pod["volumes"], pod["containers"][0]["volumeMounts"]));
}

#[test]
fn volcano_b31_a_priority_class_that_is_not_there_counts_as_none() {
    let minimum = |classes: &str| {
        let plan = fixture::plan(&format!(
            "job phase=Pending min=1
             task one replicas=1 limit=cpu*1 class=high
             task two replicas=1 limit=cpu*2
             {classes}"
        ));
        let needs = plan.steps.iter().find_map(|step| match step {
            Step::Create { kind: Kind::PodGroup, object } => {
                object.pointer("/spec/minResources/cpu").cloned()
            }
            _ => None,
        });
        needs.expect("the PodGroup is made")
    };
    assert_eq!(minimum("class high value=-5"), "2", "the other task is more important");
    assert_eq!(minimum(""), "1", "both are equally important, and the first comes first");
}

#[test]
fn volcano_b33_the_state_says_what_was_done_and_why() {
    let plan = fixture::plan(
        "job phase=Running min=1 policy=3:TerminateJob
         task work replicas=1
         group Running
         pod work-0 Failed exit=3",
    );
    let Some(Step::Patch { patch, .. }) = &plan.status else { panic!("no status") };
    expect![[r#"{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-0 failed with exit code 3","phase":"Terminating","reason":"TerminateJob"}"#]].assert_eq(&patch["status"]["state"].to_string());
}

#[test]
fn volcano_b50_the_podgroup_of_the_last_try_goes_before_the_next_though_no_pod_is_left() {
    let world = |group: &str| {
        format!(
            "job phase=Restarting reason=RestartJob min=1 version=1 retry=1 policy=Unknown:RestartJob
             task work replicas=1
             {group}"
        )
    };
    check_without_podgroup(
        &world("group Unknown"),
        expect![[r#"
        delete podgroup a-u1
    "#]],
    );
    check_without_podgroup(
        &world("group Unknown going"),
        expect![[r#"
        patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Pending"}}}
    "#]],
    );
    check_without_podgroup(
        &world("group Inqueue version=1"),
        expect![[r#"
        patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Pending"}}}
        create pod a-work-0
    "#]],
    );
    // A part that is restarted keeps the PodGroup, whoever made that.
    let part = "job phase=Restarting reason=RestartTask about=task+work min=1 version=1 retry=2
                task work replicas=1
                group Inqueue";
    check_without_podgroup(
        part,
        expect![[r#"
        patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Pending"}}}
        create pod a-work-0
    "#]],
    );
}
