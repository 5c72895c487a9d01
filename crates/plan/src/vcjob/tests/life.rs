//! The whole life: partial restarts, evictions, commands, volumes, time-outs.

use expect_test::expect;
use krafla_cluster::Step;

use super::check_without_podgroup as check;
use super::fixture;

#[test]
fn restart_task_charges_once_and_kills_only_its_task() {
    check(
        "job phase=Running min=3 policy=PodFailed:RestartTask
         task lead replicas=1
         task work replicas=2
         group Running
         pod lead-0 Running
         pod work-0 Running
         pod work-1 Failed exit=3",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"retryCount":1,"running":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"task work: pod a-work-1 failed with exit code 3","phase":"Restarting","reason":"RestartTask"},"taskStatusCount":{"lead":{"phase":{"Running":1}}},"terminating":2}}
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            patch pod a-work-1 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            delete pod a-work-1
            note Normal ExecuteAction: RestartTask: task work: pod a-work-1 failed with exit code 3
        "#]],
    );
}

#[test]
fn a_task_restart_goes_on_after_a_crash_and_spares_the_new_pods() {
    check(
        "job phase=Restarting retry=1 reason=RestartTask about=task+work min=3 policy=PodFailed:RestartTask
         task lead replicas=1
         task work replicas=2
         group Running
         pod lead-0 Running
         pod work-0 Running retry=0 marked
         pod work-1 Pending retry=1",
        expect![[r#"
            patch job status a {"status":{"pending":1,"running":1,"taskStatusCount":{"lead":{"phase":{"Running":1}},"work":{"phase":{"Pending":1}}},"terminating":1}}
            delete pod a-work-0
        "#]],
    );
}

#[test]
fn a_restart_of_a_part_that_the_job_does_not_have_stops_nothing() {
    for part in ["task+nobody", "partition+work/7", "partition+nobody/0"] {
        let plan = fixture::plan(&format!(
            "job phase=Restarting retry=1 reason=RestartTask about={part} min=1
             task work replicas=1
             group Running
             pod work-0 Running partition=0"
        ));
        let deleted = plan.steps.iter().filter(|step| matches!(step, Step::Delete { .. })).count();
        assert_eq!(deleted, 0, "{part}: {plan}");
    }
}

#[test]
fn a_part_that_fails_during_a_partial_restart_joins_it_without_a_charge() {
    check(
        "job phase=Restarting retry=1 reason=RestartTask about=task+work min=3 policy=PodFailed:RestartTask
         task lead replicas=1
         task work replicas=1
         group Running
         pod lead-0 Failed retry=0
         pod work-0 Running retry=0 going",
        expect![[r#"
            patch job status a {"status":{"state":{"message":"task lead, task work: pod a-lead-0 failed with exit code 1"},"terminating":2}}
            patch pod a-lead-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-lead-0
            note Normal ExecuteAction: RestartTask: task lead: pod a-lead-0 failed with exit code 1
        "#]],
    );
}

#[test]
fn a_pod_of_the_new_try_that_fails_is_charged_again() {
    check(
        "job phase=Restarting retry=1 max-retry=5 reason=RestartPod min=2 policy=PodFailed:RestartPod
         task work replicas=2
         group Running
         pod work-0 Failed retry=1
         pod work-1 Running retry=0 going",
        expect![[r#"
            patch job status a {"status":{"retryCount":2,"state":{"message":"pod a-work-0 failed with exit code 1"},"terminating":2}}
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            note Normal ExecuteAction: RestartPod: pod a-work-0 failed with exit code 1
        "#]],
    );
}

#[test]
fn pods_that_fail_together_are_one_restart() {
    check(
        "job phase=Running min=2 policy=PodFailed:RestartPod
         task work replicas=3
         group Running
         pod work-0 Failed
         pod work-1 Failed
         pod work-2 Running",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"retryCount":1,"running":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-0 failed with exit code 1","phase":"Restarting","reason":"RestartPod"},"taskStatusCount":{"work":{"phase":{"Running":1}}},"terminating":2}}
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            patch pod a-work-1 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            delete pod a-work-1
            note Normal ExecuteAction: RestartPod: pod a-work-0 failed with exit code 1
        "#]],
    );
}

#[test]
fn a_partition_restarts_as_one() {
    check(
        "job phase=Running min=4 policy=PodFailed:RestartPartition
         task work replicas=4
         group Running
         pod work-0 Running partition=0
         pod work-1 Running partition=0
         pod work-2 Running partition=1
         pod work-3 Failed partition=1",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"retryCount":1,"running":2,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"partition work/1: pod a-work-3 failed with exit code 1","phase":"Restarting","reason":"RestartPartition"},"taskStatusCount":{"work":{"phase":{"Running":2}}},"terminating":2}}
            patch pod a-work-2 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            patch pod a-work-3 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-2
            delete pod a-work-3
            note Normal ExecuteAction: RestartPartition: partition work/1: pod a-work-3 failed with exit code 1
        "#]],
    );
}

#[test]
fn an_evicted_pod_is_replaced_and_its_policy_carried_out() {
    check(
        "job phase=Running min=2 policy=PodEvicted:RestartTask
         task work replicas=2
         group Running
         pod work-0 Running
         gone work-1 Running",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"retryCount":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"task work: pod a-work-1 was evicted","phase":"Restarting","reason":"RestartTask"},"terminating":1}}
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            note Normal ExecuteAction: RestartTask: task work: pod a-work-1 was evicted
        "#]],
    );
}

#[test]
fn an_eviction_without_a_policy_only_replaces_the_pod() {
    check(
        "job phase=Running min=2
         task work replicas=2
         group Running
         pod work-0 Running
         gone work-1 Running",
        expect![[r#"
            patch job status a {"status":{"running":1,"taskStatusCount":{"work":{"phase":{"Running":1}}}}}
            create pod a-work-1
        "#]],
    );
}

#[test]
fn volcano_b4_own_deletions_are_not_evictions() {
    check(
        "job phase=Running min=1 policy=PodEvicted:TerminateJob
         task work replicas=1
         group Running
         pod work-0 Running
         gone work-1 Running marked
         gone work-0 Running marked",
        expect![[r#"
            patch job status a {"status":{"running":1,"taskStatusCount":{"work":{"phase":{"Running":1}}}}}
        "#]],
    );
}

#[test]
fn volcano_b13_a_finished_pod_that_is_removed_was_not_evicted_and_is_not_run_again() {
    check(
        "job phase=Running min=2 policy=PodEvicted:TerminateJob counted=work:Succeeded*1
         task work replicas=2
         group Running
         pod work-0 Running
         gone work-1 Succeeded",
        expect![[r#"
            patch job status a {"status":{"controlledResources":{"completed-work":"1"},"running":1,"succeeded":1,"taskStatusCount":{"work":{"phase":{"Running":1}}}}}
        "#]],
    );
}

#[test]
fn volcano_b13_a_pod_that_fails_while_it_is_removed_was_evicted() {
    check(
        "job phase=Running min=2 policy=PodFailed:AbortJob policy=PodEvicted:RestartJob
         task work replicas=2
         group Running
         pod work-0 Running
         gone work-1 Failed going",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"retryCount":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-1 was evicted","phase":"Restarting","reason":"RestartJob"},"terminating":1,"version":1}}
            delete podgroup a-u1
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            note Normal ExecuteAction: RestartJob: pod a-work-1 was evicted
        "#]],
    );
}

#[test]
fn a_pod_evicted_while_no_controller_ran_is_missed_at_the_first_look() {
    let world = "job phase=Running min=2 policy=PodEvicted:RestartJob counted=work:Running*2
                 task work replicas=2
                 group Running
                 pod work-0 Running";
    check(
        world,
        expect![[r#"
        patch job status a {"status":{"running":1,"taskStatusCount":{"work":{"phase":{"Running":1}}}}}
        create pod a-work-1
    "#]],
    );
    check(
        &format!("{world}\nfirst-look"),
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"retryCount":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"a pod of task work was evicted while no controller ran","phase":"Restarting","reason":"RestartJob"},"taskStatusCount":null,"terminating":1,"version":1}}
            delete podgroup a-u1
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            note Normal ExecuteAction: RestartJob: a pod of task work was evicted while no controller ran
        "#]],
    );
}

#[test]
fn a_pod_that_somebody_removes_stays_on_record_until_it_is_gone() {
    let world = "job phase=Running min=2 policy=PodEvicted:RestartJob
                 task work replicas=3
                 group Running
                 pod work-0 Running
                 pod work-1 Failed going
                 pod work-2 Running going marked";
    check(
        world,
        expect![[r#"
            patch job status a {"status":{"running":1,"taskStatusCount":{"work":{"phase":{"Running":2}}},"terminating":2}}
        "#]],
    );
}

#[test]
fn a_pod_that_we_removed_is_no_reason_to_hurry_and_one_that_was_evicted_is() {
    let after = |job: &str, gone: &str| {
        let world = format!(
            "job {job} min=2 counted=work:Running*3\n task work replicas=3\n pod work-0 Running\n gone {gone}"
        );
        let plan = fixture::plan(&world);
        assert_eq!(plan.settled.len(), 1, "{world}");
        plan.status_may_wait
    };
    assert!(after("phase=Aborting version=1 terminating=2", "work-1 Running marked"));
    assert!(after("phase=Running terminating=1", "work-1 Running marked"));
    assert!(!after("phase=Running", "work-1 Running"));
}

#[test]
fn an_eviction_policy_with_a_timeout_keeps_its_evidence_and_replaces_the_pod() {
    check(
        "job phase=Running min=2 policy=PodEvicted:RestartJob@1m
         task work replicas=2
         group Running
         pod work-0 Running
         gone work-1 Running at=90",
        expect![[r#"
            patch job status a {"status":{"running":1,"taskStatusCount":{"work":{"phase":{"Running":2}}}}}
            create pod a-work-1
            wake at 2027-01-15T08:02:30Z
            note Normal ExecuteAction: RestartJob after 1m0s of PodEvicted
        "#]],
    );
    assert!(
        fixture::plan(
            "job phase=Running min=2 policy=PodEvicted:RestartJob@1m
         task work replicas=2
         gone work-1 Running at=90"
        )
        .settled
        .is_empty()
    );
}

#[test]
fn an_eviction_that_nobody_saw_is_kept_until_its_time_is_over_or_something_has_its_place() {
    let world = |job: &str, more: &str| {
        format!(
            "job phase=Running min=2 policy=PodEvicted:TerminateJob@1m counted=work:Running*2 {job}
             task work replicas=2
             group Running
             pod work-0 Running
             {more}"
        )
    };
    // It is written down first: that another is made may be refused for long, and who looks next knows nothing.
    check(
        &world("", "first-look"),
        expect![[r#"
            patch job status a {"status":{"running":1}}
            patch job a {"metadata":{"annotations":{"krafla.dev/holds-since":"{\"PodEvicted/work/1\":\"2027-01-15T08:01:40.000000Z\"}"}}}
            create pod a-work-1
            wake at 2027-01-15T08:02:40Z
            note Normal ExecuteAction: TerminateJob after 1m0s of PodEvicted
        "#]],
    );
    let outcome = |job: &str, more: &str| {
        let plan = fixture::plan(&world(job, more));
        let phase = plan.status.iter().map(ToString::to_string).any(|status| status.contains("Terminating"));
        let forgets = plan.steps.iter().any(|step| step.to_string().contains("holds-since"));
        (phase, plan.wake_at.is_some(), forgets)
    };
    let nothing = (false, false, true);
    assert_eq!(outcome("since=PodEvicted/work/1:80", ""), (false, true, false), "its time has not come");
    assert_eq!(outcome("since=PodEvicted/work/1:80", "first-look"), (false, true, false), "it is known once");
    assert_eq!(outcome("since=PodEvicted/work/1:30", ""), (true, false, false), "its time is over");
    assert_eq!(outcome("since=PodEvicted/work/1:30", "pod work-1 Running evicted=30"), nothing);
    assert_eq!(outcome("since=PodEvicted/work/5:30", "pod work-1 Running"), nothing, "the job is smaller");
    assert_eq!(outcome("since=PodEvicted/work/0-9:30", ""), (true, false, true), "places are kept together");
    assert_eq!(outcome("since=PodEvicted/work/0-4294967294:30", ""), (true, false, true), "whatever is said");
}

#[test]
fn thousands_of_evictions_that_nobody_saw_are_kept_in_a_few_words() {
    let plan = fixture::plan(
        "job phase=Running min=1 policy=PodEvicted:TerminateJob@1m counted=work:Running*5000
         task work replicas=5000
         group Running
         pod work-2 Running
         first-look",
    );
    let kept = plan.steps.first().map(ToString::to_string).unwrap_or_default();
    assert!(kept.contains(r#"{\"PodEvicted/work/0,1,3-4999\":"#), "{kept}");
}

#[test]
fn a_pending_pod_is_a_trigger_only_for_a_policy_with_a_timeout() {
    check(
        "job phase=Pending min=1 policy=*:AbortJob
         task work replicas=1
         group Inqueue
         pod work-0 Pending",
        expect![[r#"
            patch job status a {"status":{"pending":1,"taskStatusCount":{"work":{"phase":{"Pending":1}}}}}
        "#]],
    );
    check(
        "job phase=Pending min=1 policy=PodPending:AbortJob@30s
         task work replicas=1
         group Inqueue
         pod work-0 Pending",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Aborting"}],"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-0 is pending","phase":"Aborting","reason":"AbortJob"},"terminating":1,"version":1}}
            delete podgroup a-u1
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            note Normal ExecuteAction: AbortJob: pod a-work-0 is pending
        "#]],
    );
}

#[test]
fn restarts_in_place_fail_the_task() {
    check(
        "job phase=Running min=1 policy=TaskFailed:TerminateJob
         task work replicas=2
         group Running
         pod work-0 Running restarts=2
         pod work-1 Running restarts=1",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Terminating"}],"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"containers of task work restarted 3 times, 3 are allowed","phase":"Terminating","reason":"TerminateJob"},"terminating":2,"version":1}}
            delete podgroup a-u1
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            patch pod a-work-1 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            delete pod a-work-1
            note Normal ExecuteAction: TerminateJob: containers of task work restarted 3 times, 3 are allowed
        "#]],
    );
}

#[test]
fn a_completed_task_completes_the_job() {
    check(
        "job phase=Running min=2 policy=TaskCompleted:CompleteJob
         task lead replicas=1
         task work replicas=1
         group Running
         pod lead-0 Succeeded
         pod work-0 Running",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Completing"}],"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"all pods of task lead succeeded","phase":"Completing","reason":"CompleteJob"},"succeeded":1,"taskStatusCount":{"lead":{"phase":{"Succeeded":1}}},"terminating":1,"version":1}}
            delete podgroup a-u1
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            note Normal ExecuteAction: CompleteJob: all pods of task lead succeeded
        "#]],
    );
}

#[test]
fn volcano_b6_an_unknown_podgroup_is_a_trigger_also_after_a_restart() {
    check(
        "job phase=Running min=1 version=4 retry=1 policy=Unknown:RestartJob
         task work replicas=1
         group Unknown
         pod work-0 Running version=4 retry=1",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"retryCount":2,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"the PodGroup lost members and is Unknown","phase":"Restarting","reason":"RestartJob"},"terminating":1,"version":5}}
            delete podgroup a-u1
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            note Normal ExecuteAction: RestartJob: the PodGroup lost members and is Unknown
        "#]],
    );
}

#[test]
fn a_command_is_stored_then_taken_away_then_carried_out() {
    check(
        "job phase=Running min=1
         task work replicas=1
         group Running
         pod work-0 Running
         command AbortJob",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Aborting"}],"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"command do-it was issued","phase":"Aborting","reason":"AbortJob"},"terminating":1,"version":1}}
            delete command do-it
            delete podgroup a-u1
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            note Normal CommandIssued: AbortJob by command do-it, which is now used up
            note Normal ExecuteAction: AbortJob: command do-it was issued
        "#]],
    );
}

#[test]
fn commands_of_one_second_work_in_the_order_in_which_they_were_stored() {
    let plan = fixture::plan(
        "job phase=Running version=1
         task work
         group Running
         command ResumeJob name=a revision=12
         command AbortJob name=z revision=11",
    );
    assert!(plan.to_string().contains("delete command z\n"), "{plan}");
}

#[test]
fn a_command_that_is_already_carried_out_is_taken_away_before_the_job_goes_on() {
    check(
        "job phase=Restarting min=1 version=1 retry=1 reason=RestartJob
         task work replicas=1
         command RestartJob",
        expect![[r#"
            delete command do-it
            note Normal CommandIssued: RestartJob by command do-it, which is now used up
        "#]],
    );
}

#[test]
fn a_command_for_a_job_that_nobody_has_looked_at_yet_is_carried_out() {
    check(
        "job min=1
         task work replicas=1
         command AbortJob",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Aborting"}],"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"command do-it was issued","phase":"Aborting","reason":"AbortJob"},"version":1}}
            delete command do-it
            note Normal CommandIssued: AbortJob by command do-it, which is now used up
            note Normal ExecuteAction: AbortJob: command do-it was issued
        "#]],
    );
    check(
        "job min=1
         task work replicas=1
         group Inqueue
         command ResumeJob",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Pending"}}}
            delete command do-it
            create pod a-work-0
            note Normal CommandIssued: ResumeJob by command do-it, which is now used up
        "#]],
    );
}

#[test]
fn volcano_b22_a_restarting_job_can_be_aborted() {
    check(
        "job phase=Restarting min=1 version=1 retry=1 reason=RestartJob
         task work replicas=1
         pod work-0 Running version=0 going
         command AbortJob",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Aborting"}],"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"command do-it was issued","phase":"Aborting","reason":"AbortJob"},"terminating":1,"version":2}}
            delete command do-it
            note Normal CommandIssued: AbortJob by command do-it, which is now used up
            note Normal ExecuteAction: AbortJob: command do-it was issued
        "#]],
    );
}

#[test]
fn volcano_b23_resuming_costs_no_retry_and_keeps_what_had_finished() {
    check(
        "job phase=Aborted min=2 version=1 retry=2
         task work replicas=2
         pod work-0 Succeeded
         command ResumeJob",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"command do-it was issued","phase":"Restarting","reason":"ResumeJob"},"succeeded":1,"taskStatusCount":{"work":{"phase":{"Succeeded":1}}},"version":2}}
            delete command do-it
            note Normal CommandIssued: ResumeJob by command do-it, which is now used up
            note Normal ExecuteAction: ResumeJob: command do-it was issued
        "#]],
    );
    check(
        "job phase=Restarting min=2 version=2 retry=2 reason=ResumeJob
         task work replicas=2
         pod work-0 Succeeded",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Pending"},"succeeded":1,"taskStatusCount":{"work":{"phase":{"Succeeded":1}}}}}
            create podgroup a-u1
        "#]],
    );
}

#[test]
fn volcano_b28_a_command_for_a_namesake_is_not_ours() {
    check(
        "job phase=Running min=1
         task work replicas=1
         group Running
         pod work-0 Running
         command AbortJob uid=u0",
        expect![[r#"
            patch job status a {"status":{"running":1,"taskStatusCount":{"work":{"phase":{"Running":1}}}}}
        "#]],
    );
}

#[test]
fn a_command_without_effect_is_taken_away() {
    check(
        "job phase=Completed min=1
         task work replicas=1
         command AbortJob",
        expect![[r#"
            delete command do-it
            note Normal CommandIssued: AbortJob by command do-it, which is now used up
        "#]],
    );
}

#[test]
fn volcano_b11_a_missing_queue_is_said_and_waited_for() {
    check(
        "job min=1
         task work replicas=1
         no-queue",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"queue default does not exist; create it, or name another in spec.queue","phase":"Pending","reason":"QueueNotFound"}}}
            note Warning QueueNotFound: queue default does not exist; create it, or name another in spec.queue
        "#]],
    );
}

#[test]
fn a_job_that_waits_no_longer_does_not_say_so_any_more() {
    check(
        "job phase=Pending min=1 reason=QueueNotFound
         task work replicas=1
         group Pending",
        expect![[r#"
            patch job status a {"status":{"state":{"message":null,"reason":null}}}
        "#]],
    );
}

#[test]
fn what_a_restarting_job_lacks_does_not_take_the_place_of_what_was_begun() {
    let lacking = |lack: &str| {
        format!(
            "job phase=Restarting min=2 version=2 retry=3 reason=ResumeJob
             task work replicas=2
             pod work-0 Succeeded version=0
             pod work-1 Running version=0 going marked
             {lack}"
        )
    };
    for (lack, reason) in [("no-queue", "QueueNotFound"), ("volume /in claim=in", "PVCError")] {
        let plan = fixture::plan(&lacking(lack));
        assert_eq!(plan.notes.iter().map(|note| note.reason).collect::<Vec<_>>(), [reason]);
        assert!(!plan.status.unwrap().to_string().contains("\"reason\""));
        assert!(plan.steps.is_empty(), "what had finished stays");
    }
}

#[test]
fn what_the_scheduler_complains_of_stands_in_the_status_of_a_job_that_waits_and_is_not_hurried() {
    let waiting = "job phase=Pending min=10000 reason={} \n task work replicas=10000 \n group Pending {}";
    let planned = |reason: &str, says: &str| {
        let plan = fixture::plan(&waiting.replacen("{}", reason, 1).replacen("{}", says, 1));
        let status = plan.status.as_ref().map(ToString::to_string);
        (status.unwrap_or_default(), plan.status_may_wait)
    };
    let said = r#"patch job status a {"status":{"state":{"message":"Insufficient cpu","reason":"PodGroupPending"}}}"#;
    assert_eq!(planned("", "says=Insufficient+cpu"), (said.to_owned(), true));
    let taken_back = r#"patch job status a {"status":{"state":{"message":null,"reason":null}}}"#;
    assert_eq!(planned("PodGroupPending", ""), (taken_back.to_owned(), true));
    // Why it was restarted says more of its life.
    assert_eq!(planned("RestartJob", "says=Insufficient+cpu"), (String::new(), false));
}

#[test]
fn volcano_b14_a_claim_has_its_name_before_it_exists() {
    check(
        "job phase=Pending min=1
         task work replicas=1
         volume /data made
         volume /in claim=in
         claim in",
        expect![[r#"
            patch job status a {"status":{"controlledResources":{"volume-pvc-in":"in"}}}
            patch job a {"spec":{"volumes":[{"mountPath":"/data","volumeClaim":{"accessModes":["ReadWriteOnce"]},"volumeClaimName":"a-pvc-4q8p9w5tl8h9"},{"mountPath":"/in","volumeClaimName":"in"}]}}
            create persistentvolumeclaim a-pvc-4q8p9w5tl8h9
            create podgroup a-u1
        "#]],
    );
}

#[test]
fn a_field_of_a_volume_that_is_newer_than_this_program_survives() {
    let plan = fixture::plan("job phase=Pending\n task work\n volume /data made newer=subPaths");
    let named = plan.steps.first().map(ToString::to_string).unwrap_or_default();
    assert!(named.contains(r#""subPaths":{"says":"much"}"#), "{named}");
}

#[test]
fn a_missing_claim_is_said_and_waited_for() {
    check(
        "job phase=Pending min=1
         task work replicas=1
         volume /in claim=in",
        expect![[r#"
            patch job status a {"status":{"controlledResources":{"volume-pvc-in":"in"},"state":{"message":"the claim in of volume /in does not exist; create it","reason":"PVCError"}}}
            note Warning PVCError: the claim in of volume /in does not exist; create it
        "#]],
    );
}

#[test]
fn volcano_b39_a_dependency_that_failed_for_good_fails_the_job() {
    check(
        "job phase=Running min=1
         task lead replicas=1
         task work replicas=2 after=lead
         task last replicas=1 after=work
         group Running
         pod lead-0 Failed",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Failed"}],"failed":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"what these tasks depend on has failed for good: last, work","phase":"Failed","reason":"DependencyFailed"},"taskStatusCount":{"lead":{"phase":{"Failed":1}}}}}
            delete podgroup a-u1
        "#]],
    );
}

#[test]
fn volcano_b39_a_dependency_that_succeeded_is_met_and_one_that_goes_is_not() {
    let comes = |lead: &str| {
        let world = format!(
            "job phase=Running min=1
             task lead replicas=1 min=1
             task work replicas=2 after=lead
             group Running
             pod lead-0 {lead}
             pod work-0 Running"
        );
        fixture::plan(&world).to_string().contains("create pod a-work-1")
    };
    assert!(comes("Succeeded"));
    assert!(comes("Running"));
    assert!(!comes("Running going"));
    assert!(!comes("Running unready"));
}

#[test]
fn volcano_b39_a_dependency_that_failed_for_good_fails_the_job_though_others_are_enough() {
    let world = |min_success: &str| {
        format!(
            "job phase=Running min=2 {min_success}
             task side replicas=2
             task lead replicas=1
             task work replicas=2 after=lead
             group Running
             pod side-0 Succeeded
             pod side-1 Succeeded
             pod lead-0 Failed"
        )
    };
    let phase = |min_success: &str| {
        let plan = fixture::plan(&world(min_success)).to_string();
        ["Failed", "Completed"].into_iter().find(|phase| plan.contains(&format!("\"phase\":\"{phase}\"")))
    };
    assert_eq!(phase(""), Some("Failed"));
    // A user who says how many successes are enough is believed.
    assert_eq!(phase("min-success=2"), Some("Completed"));
}

#[test]
fn what_plugins_want_is_made_before_the_podgroup() {
    check(
        "job min=1 plugin=svc plugin=ssh
         task work replicas=1",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"controlledResources":{"plugin-ssh":"ssh","plugin-svc":"svc"},"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Pending"}}}
            create configmap a-svc
            create service a
            create networkpolicy a
            create secret a-ssh
            create podgroup a-u1
        "#]],
    );
}

#[test]
fn what_plugins_wrote_of_the_pods_follows_a_job_that_is_scaled() {
    check(
        "job phase=Running min=1 plugin=svc
         task work replicas=2
         group Running
         child configmap a-svc
         child service a
         child networkpolicy a
         pod work-0 Running",
        expect![[r#"
            patch job status a {"status":{"controlledResources":{"plugin-svc":"svc"},"running":1,"taskStatusCount":{"work":{"phase":{"Running":1}}}}}
            patch configmap a-svc {"data":{"VC_WORK_HOSTS":"a-work-0.a,a-work-1.a","VC_WORK_NUM":"2","work.host":"a-work-0.a\na-work-1.a"}}
            create pod a-work-1
        "#]],
    );
}

#[test]
fn volcano_b7_a_restart_of_the_whole_job_keeps_its_ssh_key() {
    check(
        "job phase=Running min=1 plugin=svc plugin=ssh policy=PodFailed:RestartJob
         task work replicas=1
         group Running
         child configmap a-svc
         child service a
         child networkpolicy a
         child secret a-ssh
         pod work-0 Failed",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"controlledResources":{"plugin-ssh":"ssh","plugin-svc":"svc"},"retryCount":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-0 failed with exit code 1","phase":"Restarting","reason":"RestartJob"},"terminating":1,"version":1}}
            delete service a
            delete configmap a-svc
            delete networkpolicy a
            delete podgroup a-u1
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            note Normal ExecuteAction: RestartJob: pod a-work-0 failed with exit code 1
        "#]],
    );
}

#[test]
fn volcano_b7_a_partial_restart_leaves_what_plugins_made_alone() {
    check(
        "job phase=Running min=1 plugin=ssh policy=PodFailed:RestartPod
         task work replicas=1
         group Running
         child secret a-ssh
         pod work-0 Failed",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Restarting"}],"controlledResources":{"plugin-ssh":"ssh"},"retryCount":1,"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"pod a-work-0 failed with exit code 1","phase":"Restarting","reason":"RestartPod"},"terminating":1}}
            patch pod a-work-0 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-0
            note Normal ExecuteAction: RestartPod: pod a-work-0 failed with exit code 1
        "#]],
    );
}

#[test]
fn volcano_b24_what_plugins_made_goes_by_ownership_when_the_job_ends() {
    check(
        "job phase=Aborting min=1 plugin=svc plugin=ssh
         task work replicas=1
         child service a
         child secret a-ssh
         child secret other owner=u0",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Aborted"}],"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Aborted"}}}
            delete service a
        "#]],
    );
    check(
        "job phase=Terminating min=1 plugin=ssh
         task work replicas=1
         child secret a-ssh",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Terminated"}],"runningDuration":"1m40s","state":{"lastTransitionTime":"2027-01-15T08:01:40Z","phase":"Terminated"}}}
            delete secret a-ssh
        "#]],
    );
}

#[test]
fn volcano_b34_an_object_of_somebody_else_is_not_taken_over() {
    check(
        "job phase=Pending min=1 plugin=svc
         task work replicas=1
         child service a owner=u0",
        expect![[r#"
            patch job status a {"status":{"controlledResources":{"plugin-svc":"svc"},"state":{"message":"Service a still belongs to Job a; it is waited for until it is gone","reason":"PluginError"}}}
            create configmap a-svc
            note Warning PluginError: Service a still belongs to Job a; it is waited for until it is gone
        "#]],
    );
}

#[test]
fn an_unknown_plugin_is_said_and_holds_the_job() {
    check(
        "job min=1 plugin=sparkle
         task work replicas=1",
        expect![[r#"
            patch job status a {"status":{"conditions":[{"lastTransitionTime":"2027-01-15T08:01:40Z","status":"Pending"}],"state":{"lastTransitionTime":"2027-01-15T08:01:40Z","message":"plugin sparkle: there is no such plugin; spec.plugins may name env, hcclrank, mpi, pytorch, ray, ssh, svc, tensorflow","phase":"Pending","reason":"PluginError"}}}
            note Warning PluginError: plugin sparkle: there is no such plugin; spec.plugins may name env, hcclrank, mpi, pytorch, ray, ssh, svc, tensorflow
        "#]],
    );
}
