//! What counts as done: pods that the job wants and that succeeded, whoever removed them since.

use expect_test::expect;
use krafla_api::Kind;
use krafla_cluster::Step;
use serde_json::Value;

use super::check_without_podgroup as check;
use super::fixture;
use crate::Plan;

/// The names of the pods that a plan creates.
fn created(plan: &Plan) -> Vec<&str> {
    let created = plan.steps.iter().filter_map(|step| match step {
        Step::Create { kind: Kind::Pod, object } => object.pointer("/metadata/name").and_then(Value::as_str),
        _ => None,
    });
    created.collect()
}

/// What a plan writes of the status, at this place.
fn written<'a>(plan: &'a Plan, pointer: &str) -> Option<&'a Value> {
    match &plan.status {
        Some(Step::Patch { patch, .. }) => patch["status"].pointer(pointer),
        _ => None,
    }
}

#[test]
fn pods_that_a_smaller_job_no_longer_wants_do_not_complete_it() {
    check(
        "job phase=Running min=2 counted=work:Succeeded*2 counted=work:Running*2
         task work replicas=2
         group Running
         pod work-0 Running
         pod work-1 Running
         pod work-2 Succeeded
         pod work-3 Succeeded",
        expect![[r#"
            patch job status a {"status":{"running":2,"taskStatusCount":{"work":{"phase":{"Succeeded":null}}},"terminating":2}}
            patch pod a-work-2 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            patch pod a-work-3 {"metadata":{"annotations":{"volcano.sh/controller-out-of-sync":"true"}}}
            delete pod a-work-2
            delete pod a-work-3
        "#]],
    );
    for min_success in ["", "min-success=2"] {
        let plan = fixture::plan(&format!(
            "job phase=Running min=2 {min_success} counted=work:Succeeded*2
             task work replicas=2
             group Running
             pod work-0 Running
             pod work-1 Running
             pod work-3 Succeeded going marked"
        ));
        assert_eq!(written(&plan, "/state/phase"), None, "{plan}");
    }
}

#[test]
fn a_smaller_job_forgets_surplus_pods_before_they_go() {
    let world = "job phase=Running min=1 counted=work:Succeeded*2
                 task work replicas=2
                 group Running
                 pod work-0 Running
                 pod work-2 Succeeded
                 pod work-3 Succeeded";
    let plan = fixture::plan(world);
    assert!(!plan.status_may_wait, "or it would be on record that pods succeeded that are not there: {plan}");
    assert_eq!(created(&plan), ["a-work-1"]);
}

#[test]
fn what_is_left_of_a_task_that_a_job_no_longer_has_holds_up_its_end_but_not_more() {
    let with_leftover = |job: &str, leftover: &str| {
        fixture::plan(&format!(
            "job {job} min=1
             task work replicas=1
             group Running
             pod work-0 Succeeded
             pod former-0 {leftover}"
        ))
    };
    let running = with_leftover("phase=Running", "Running");
    assert_eq!(written(&running, "/state/phase"), Some(&"Completed".into()), "{running}");
    assert_eq!(written(&with_leftover("phase=Aborting", "Running"), "/state/phase"), None);
    let aborting = with_leftover("phase=Aborting", "Succeeded");
    assert_eq!(written(&aborting, "/state/phase"), Some(&"Aborted".into()), "{aborting}");
}

#[test]
fn volcano_b13_a_completed_index_is_remembered_and_the_missing_one_is_run() {
    // As soon as somebody removes the pod, and when it is gone.
    for removed in
        ["pod work-2 Succeeded going=95", "gone work-2 Succeeded", "gone work-2 Succeeded going=95"]
    {
        let plan = fixture::plan(&format!(
            "job phase=Running min=3 counted=work:Succeeded*1 counted=work:Running*2
             task work replicas=3
             group Running
             pod work-0 Running
             pod work-1 Running
             {removed}"
        ));
        assert_eq!(written(&plan, "/controlledResources/completed-work"), Some(&"2".into()), "{plan}");
        assert!(!plan.status_may_wait);
    }
    // Then another one is evicted.
    let plan = fixture::plan(
        "job phase=Running min=3 counted=work:Succeeded*1 counted=work:Running*2 completed=work:2
         task work replicas=3
         group Running
         pod work-1 Running
         gone work-0 Running",
    );
    assert_eq!(created(&plan), ["a-work-0"]);
    assert_eq!(written(&plan, "/succeeded"), Some(&1.into()));
}

#[test]
fn volcano_b13_an_index_that_completed_but_was_never_counted_is_remembered_too() {
    let plan = fixture::plan(
        "job phase=Running min=2
         task work replicas=2
         group Running
         pod work-0 Running
         gone work-1 Succeeded",
    );
    assert_eq!(written(&plan, "/succeeded"), Some(&1.into()));
    assert_eq!(created(&plan), [""; 0]);
}

#[test]
fn a_pod_that_ends_well_because_it_is_asked_to_go_has_not_done_its_work() {
    let plan = fixture::plan(
        "job phase=Running min=2 counted=work:Running*2
         task work replicas=2
         group Running
         pod work-0 Running
         gone work-1 Succeeded going=85",
    );
    assert_eq!(created(&plan), ["a-work-1"]);
}

#[test]
fn volcano_b13_a_pod_that_ends_well_because_it_is_asked_to_go_is_evicted() {
    let world = |pod: &str| {
        format!(
            "job phase=Running min=2 policy=PodEvicted:RestartJob counted=work:Running*2
             task work replicas=2
             group Running
             pod work-0 Running
             {pod}"
        )
    };
    let plan = fixture::plan(&world("gone work-1 Succeeded going=85"));
    assert_eq!(written(&plan, "/state/message"), Some(&"pod a-work-1 was evicted".into()), "{plan}");
    // While it goes it stays counted as what it was: who looks only when it is gone knows by that.
    let plan = fixture::plan(&world("pod work-1 Succeeded going=85"));
    assert_eq!(written(&plan, "/taskStatusCount"), None, "{plan}");
    let plan = fixture::plan(&world("gone work-1 Succeeded going=95"));
    assert_eq!(written(&plan, "/state"), None, "it had done its work before: {plan}");
}

#[test]
fn volcano_b13_what_a_pod_was_when_it_was_asked_to_go_decides_whether_it_succeeded() {
    // How the pod was last seen, and whether it had done its work.
    let rows = [
        // It was asked to go in the second in which it ended, as the last request of a node's agent shows it.
        ("Succeeded ended=90 going=90 was=asked", false),
        ("Succeeded ended=90 going=90 was=ended", true),
        ("Succeeded ended=90 going=90", false),
        // Nobody gives a finished pod time.
        ("Succeeded ended=90 going=90 grace=30", false),
        ("Succeeded ended=90 going=85 grace=30", false),
        ("Succeeded ended=90 going=85 grace=1", false),
        // It ended after it was asked, and it was known to have ended before.
        ("Succeeded ended=90 going=85 was=ended", true),
        ("Succeeded ended=90 going=85 was=asked", false),
        ("Succeeded ended=90 going=85", false),
        // It had ended, and its node could not say so before.
        ("Succeeded ended=90 going=92 grace=30", true),
        ("Succeeded ended=90 going=92 was=asked", true),
        ("Succeeded ended=90 going=91", true),
        // A second may be between two clocks.
        ("Succeeded ended=90 going=91 grace=30", false),
        ("Succeeded ended=90 going=91 was=asked", false),
        // Nobody says when it ended.
        ("Succeeded no-end started=10 going=90 grace=30", false),
        ("Succeeded no-end started=10 going=90", false),
        ("Succeeded no-end started=10 going=90 was=ended", true),
        // Failed is never done.
        ("Failed ended=90 going=90 was=asked", false),
        ("Failed ended=90 going=95", false),
    ];
    for (pod, has_completed) in rows {
        let world = |policy: &str, line: &str| {
            format!(
                "job phase=Running min=2 {policy} counted=work:Running*2
                 task work replicas=2
                 group Running
                 pod work-0 Running
                 {line} work-1 {pod}"
            )
        };
        let policy = "policy=PodEvicted:RestartJob";
        let restarts = |plan: &Plan| written(plan, "/state/phase") == Some(&"Restarting".into());
        let gone = fixture::plan(&world(policy, "gone"));
        assert_eq!(restarts(&gone), !has_completed, "{pod}: {gone}");
        let gone = fixture::plan(&world("", "gone"));
        let expected: &[&str] = if has_completed { &[] } else { &["a-work-1"] };
        assert_eq!(created(&gone), expected, "{pod}: {gone}");
        let succeeded = written(&gone, "/succeeded").cloned().unwrap_or(0.into());
        assert_eq!(succeeded, Value::from(i32::from(has_completed)), "{pod}: {gone}");
        // While it goes, it is on record as done, or counted as what it was.
        let going = fixture::plan(&world(policy, "pod"));
        assert!(!restarts(&going), "{pod}: {going}");
        let recorded = written(&going, "/controlledResources/completed-work");
        assert_eq!(recorded.is_some(), has_completed, "{pod}: {going}");
        assert_eq!(written(&going, "/taskStatusCount").is_none(), !has_completed, "{pod}: {going}");
    }
}

#[test]
fn the_only_pod_of_a_job_that_ends_well_because_it_is_asked_to_go_does_not_complete_it() {
    for pod in ["Succeeded ended=90 going=90 was=asked", "Succeeded ended=92 going=90 grace=30"] {
        for line in ["pod", "gone"] {
            let plan = fixture::plan(&format!(
                "job phase=Running min=1 counted=work:Running*1
                 task work replicas=1
                 group Running
                 {line} work-0 {pod}"
            ));
            assert_eq!(written(&plan, "/state/phase"), None, "{line} {pod}: {plan}");
        }
    }
}

#[test]
fn a_pod_that_ends_well_because_it_is_asked_to_go_does_not_stand_for_one_that_went_unseen() {
    let plan = fixture::plan(
        "job phase=Running min=2 policy=PodEvicted:RestartJob counted=work:Succeeded*1 counted=work:Running*1
         task work replicas=2
         group Running
         pod work-1 Succeeded ended=90 going=85 grace=30
         first-look",
    );
    assert_eq!(written(&plan, "/controlledResources/completed-work"), Some(&"0".into()), "{plan}");
    assert_eq!((written(&plan, "/state/phase"), created(&plan)), (None, vec![]), "{plan}");
}

#[test]
fn volcano_b13_completed_indexes_outlive_a_restart_of_other_parts_and_a_suspension() {
    let stands = "counted=work:Succeeded*1 counted=work:Running*1 completed=work:0 completed=lead:0";
    for (job, expected) in [
        ("phase=Restarting retry=1 reason=RestartPod", &["a-work-1"][..]),
        ("phase=Restarting retry=1 reason=RestartTask about=task+lead", &["a-work-1"]),
        ("phase=Restarting version=2 reason=ResumeJob", &["a-work-1"]),
        ("phase=Pending version=2", &["a-work-1"]),
        ("phase=Aborting version=1", &[]),
        ("phase=Aborted version=1", &[]),
    ] {
        let plan = fixture::plan(&format!(
            "job {job} min=1 max-retry=5 {stands}
             task lead replicas=1
             task work replicas=2
             group Running version=2"
        ));
        assert_eq!(created(&plan), expected, "{job}");
        assert_eq!(written(&plan, "/succeeded"), Some(&2.into()), "{job}: {plan}");
        assert_eq!(written(&plan, "/controlledResources"), None, "{job}: it stays on record");
    }
    // Somebody removes it while the job is suspended or restarts in part.
    for job in
        ["phase=Aborting version=1", "phase=Aborted version=1", "phase=Restarting retry=1 reason=RestartPod"]
    {
        let plan = fixture::plan(&format!(
            "job {job} min=1
             task work replicas=2
             gone work-1 Succeeded"
        ));
        assert_eq!(written(&plan, "/controlledResources/completed-work"), Some(&"1".into()), "{job}: {plan}");
    }
}

#[test]
fn what_is_restarted_is_no_longer_completed() {
    let with = |policy: &str, more: &str| {
        fixture::plan(&format!(
            "job phase=Running min=5 policy=PodFailed:{policy} completed=work:0,1,3 completed=lead:0
             task lead replicas=1
             task work replicas=5 partitions=2x2
             group Running
             pod work-2 Running partition=1
             pod work-4 Failed partition=2
             {more}"
        ))
    };
    let controlled = |policy: &str| {
        let plan = with(policy, "");
        written(&plan, "/controlledResources").map_or("kept".to_owned(), Value::to_string)
    };
    assert_eq!(controlled("RestartJob"), "null");
    assert_eq!(controlled("RestartTask"), r#"{"completed-work":null}"#);
    assert_eq!(controlled("RestartPod"), "kept");
    assert_eq!(controlled("RestartPartition"), "kept");
    let plan = fixture::plan(
        "job phase=Running min=4 policy=PodFailed:RestartPartition completed=work:0-2
         task work replicas=4 partitions=2x2
         group Running
         pod work-3 Failed partition=1",
    );
    assert_eq!(written(&plan, "/controlledResources/completed-work"), Some(&"0,1".into()));
    // Somebody removes a pod of the last try before it is marked: it is not done.
    let plan = fixture::plan(
        "job phase=Restarting min=1 version=1 retry=1 reason=RestartJob
         task work replicas=2
         gone work-0 Succeeded",
    );
    assert_eq!(written(&plan, "/controlledResources"), None);
}

#[test]
fn what_a_smaller_job_does_not_want_is_not_remembered() {
    let plan = fixture::plan(
        "job phase=Running min=1 completed=work:1-9
         task work replicas=3
         group Running
         pod work-0 Running
         gone work-5 Succeeded",
    );
    assert_eq!(written(&plan, "/controlledResources/completed-work"), Some(&"1,2".into()));
    assert_eq!(created(&plan), [""; 0]);
}

#[test]
fn volcano_b13_what_completed_and_went_while_no_controller_ran_is_known_by_number() {
    let world = "job phase=Running min=3 counted=work:Succeeded*2 counted=work:Running*1
                 task work replicas=3
                 group Running
                 pod work-1 Running";
    let plan = fixture::plan(world);
    assert_eq!((created(&plan), written(&plan, "/succeeded")), (vec![], Some(&2.into())));
    assert_eq!(written(&plan, "/controlledResources"), None, "the pods may not have been seen yet");
    let plan = fixture::plan(&format!("{world}\nfirst-look"));
    assert_eq!(written(&plan, "/controlledResources/completed-work"), Some(&"0,2".into()));
    // A pod that is there is what it is, whatever is on record.
    let plan = fixture::plan(
        "job phase=Running min=2 counted=work:Succeeded*2 completed=work:0-1
         task work replicas=2
         group Running
         pod work-1 Running",
    );
    assert_eq!(
        (written(&plan, "/succeeded"), written(&plan, "/running")),
        (Some(&1.into()), Some(&1.into()))
    );
    // However much a status says.
    let plan = fixture::plan(
        "job phase=Running min=1 counted=work:Succeeded*2147483647
         task work replicas=2147483647
         group Running
         pod work-5 Running
         first-look",
    );
    assert_eq!(written(&plan, "/controlledResources/completed-work"), Some(&"0-4,6-2147483646".into()));
}

#[test]
fn volcano_b13_what_completed_and_went_unseen_while_other_pods_restart_is_known_by_number_too() {
    let plan = fixture::plan(
        "job phase=Restarting retry=1 max-retry=3 reason=RestartPod min=1 counted=work:Succeeded*1 counted=work:Failed*1
         task work replicas=3
         group Running
         pod work-2 Running
         first-look",
    );
    assert_eq!(written(&plan, "/controlledResources/completed-work"), Some(&"0".into()), "{plan}");
    assert_eq!(created(&plan), ["a-work-1"]);
    // One that is restarted although it succeeded is not taken for done when it is gone.
    let world = "job phase=Running min=1 policy=TaskCompleted:RestartPod counted=work:Succeeded*2
                 task work replicas=2
                 group Running
                 pod work-0 Succeeded
                 pod work-1 Succeeded";
    let plan = fixture::plan(world);
    assert_eq!(written(&plan, "/state/reason"), Some(&"RestartPod".into()), "{plan}");
    assert_eq!(written(&plan, "/taskStatusCount/work/phase/Succeeded"), Some(&1.into()), "{plan}");
}

#[test]
fn a_pod_that_finished_while_no_controller_ran_was_not_evicted_because_another_completed_before() {
    let plan = fixture::plan(
        "job phase=Running min=3 policy=PodEvicted:RestartJob counted=work:Succeeded*1 counted=work:Running*2 completed=work:2
         task work replicas=3
         group Running
         pod work-0 Succeeded
         pod work-1 Running
         first-look",
    );
    assert_eq!(written(&plan, "/state/phase"), None, "{plan}");
}

#[test]
fn the_counters_of_a_finished_job_stay_when_its_pods_are_collected() {
    check(
        "job phase=Failed min=2 counted=work:Succeeded*1 counted=work:Failed*1
         task work replicas=2
         gone work-0 Succeeded
         gone work-1 Failed",
        expect![[r#"
            patch job status a {"status":{"failed":1,"succeeded":1}}
        "#]],
    );
}
