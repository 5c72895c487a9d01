//! Which policy answers what, row by row, and until when a policy with a time-out waits.

use expect_test::expect;
use krafla_api::Kind;
use krafla_cluster::Step;
use serde_json::json;

use super::fixture;

/// What is done about a running job with a task `lead` of one pod and a task `work` of two: the action that begins, or until
/// when one is waited for.
fn answer(job: &str, task: &str, happened: &str) -> String {
    let plan = fixture::plan(&format!(
        "job phase=Running min=1 {job}
         task lead replicas=1
         task work replicas=2 {task}
         group Running
         {}",
        happened.replace(", ", "\n")
    ));
    let mut begun = plan.notes.iter().filter(|note| note.reason == "ExecuteAction");
    let begun = begun.find(|note| !note.message.contains(" after "));
    let action = begun.and_then(|note| note.message.split_once(": "));
    match (action, plan.wake_at) {
        (Some((action, _)), _) => action.to_owned(),
        (None, Some(at)) => format!("waits until {at}"),
        (None, None) => "nothing".to_owned(),
    }
}

fn check(rows: &[(&str, &str, &str, &str)]) {
    for (job, task, happened, expected) in rows {
        assert_eq!(answer(job, task, happened), *expected, "{job} | {task} | {happened}");
    }
}

#[test]
fn what_a_user_asks_for_goes_before_what_policies_say() {
    check(&[
        ("policy=PodFailed:RestartJob", "", "pod work-0 Failed, command AbortJob", "AbortJob"),
        ("", "policy=PodFailed:RestartTask", "pod work-0 Failed, command TerminateJob", "TerminateJob"),
        // What has no effect keeps no policy from acting.
        ("policy=PodFailed:RestartJob", "", "pod work-0 Failed, command EnqueueJob", "RestartJob"),
    ]);
}

#[test]
fn the_controllers_own_events_answer_to_no_policy() {
    let own = ["OutOfSync", "PodRunning", "CommandIssued", "JobUpdated"];
    for policy in own.map(|event| format!("policy={event}:TerminateJob")) {
        let happened = "pod work-0 Running, pod work-1 Running marked, command SyncJob";
        check(&[(&policy, "", happened, "nothing"), ("", &policy, happened, "nothing")]);
    }
    check(&[
        ("policy=*:TerminateJob", "", "pod work-0 Running, pod work-1 Running marked", "nothing"),
        ("policy=*:TerminateJob", "", "group Inqueue, pod work-0 Running", "nothing"),
    ]);
}

#[test]
fn what_happened_to_another_job_or_an_earlier_version_answers_to_no_policy() {
    check(&[
        ("policy=PodFailed:TerminateJob", "", "pod work-0 Failed owner=u0", "nothing"),
        ("policy=Unknown:TerminateJob", "", "group Unknown owner=u0", "nothing"),
        ("version=1 policy=PodFailed:TerminateJob", "", "pod work-0 Failed version=0", "nothing"),
        ("version=1 policy=PodEvicted:TerminateJob", "", "gone work-0 Running version=0", "nothing"),
        ("version=1 policy=PodFailed:TerminateJob", "", "pod work-0 Failed version=1", "TerminateJob"),
    ]);
}

#[test]
fn a_task_s_policies_go_first_event_by_event() {
    check(&[
        ("policy=PodFailed:AbortJob", "policy=PodFailed:RestartTask", "pod work-0 Failed", "RestartTask"),
        ("policy=PodFailed:AbortJob", "policy=PodFailed:RestartTask", "pod lead-0 Failed", "AbortJob"),
        ("policy=PodFailed:AbortJob", "policy=3:RestartTask", "pod work-0 Failed exit=3", "RestartTask"),
        ("policy=PodFailed:AbortJob", "policy=3:RestartTask", "pod work-0 Failed exit=4", "AbortJob"),
        ("policy=PodEvicted:AbortJob", "policy=PodFailed:RestartTask", "gone work-0 Running", "AbortJob"),
        ("", "policy=PodFailed:RestartTask", "pod lead-0 Failed", "nothing"),
        // A job's event belongs to no task.
        ("", "policy=Unknown:AbortJob", "group Unknown", "nothing"),
        ("policy=Unknown:AbortJob", "", "group Unknown", "AbortJob"),
    ]);
}

#[test]
fn the_first_policy_that_answers_counts() {
    check(&[
        ("policy=PodFailed:AbortJob policy=3:RestartJob", "", "pod work-0 Failed exit=3", "AbortJob"),
        ("policy=3:RestartJob policy=PodFailed:AbortJob", "", "pod work-0 Failed exit=3", "RestartJob"),
        ("policy=3:RestartJob policy=PodFailed:AbortJob", "", "pod work-0 Failed exit=4", "AbortJob"),
        ("policy=3:RestartJob", "", "pod work-0 Failed exit=4", "nothing"),
        ("policy=3:RestartJob", "", "gone work-0 Running", "nothing"),
        // A list means each of its events; one that stands in it twice means nothing more.
        ("policy=PodEvicted+PodFailed+PodEvicted:AbortJob", "", "pod work-0 Failed", "AbortJob"),
        ("policy=PodEvicted+PodFailed:AbortJob", "", "gone work-0 Running", "AbortJob"),
        ("policy=PodEvicted+TaskFailed:AbortJob", "", "pod work-0 Failed", "nothing"),
        // The pod that one policy restarts is not evicted for the other.
        (
            "policy=PodFailed:RestartPod policy=PodEvicted:TerminateJob@5m",
            "",
            "pod work-0 Failed",
            "RestartPod",
        ),
        (
            "policy=PodFailed:RestartPod policy=PodEvicted:TerminateJob@5m",
            "",
            "gone work-0 Failed marked",
            "nothing",
        ),
    ]);
}

#[test]
fn any_means_everything_that_can_happen_but_a_short_wait() {
    let everything = [
        "pod work-0 Failed",
        "gone work-0 Running",
        "group Unknown",
        "pod work-0 Succeeded, pod work-1 Succeeded",
        "pod work-0 Running restarts=3",
    ];
    for happened in everything {
        check(&[("policy=*:RestartJob", "", happened, "RestartJob")]);
    }
    check(&[
        ("policy=*:RestartJob", "", "pod work-0 Pending created=10", "nothing"),
        ("policy=*:RestartJob@30s", "", "pod work-0 Pending created=10", "RestartJob"),
    ]);
}

#[test]
fn an_action_that_has_no_effect_is_none() {
    check(&[
        ("policy=PodFailed:NoSuchAction", "", "pod work-0 Failed", "nothing"),
        ("policy=PodFailed:SyncJob", "", "pod work-0 Failed", "nothing"),
        ("policy=PodFailed:ResumeJob", "", "pod work-0 Failed", "nothing"),
    ]);
}

#[test]
fn a_pod_waits_too_long_only_if_a_policy_says_how_long_that_is() {
    let pending = "pod work-0 Pending created=40";
    check(&[
        ("policy=PodPending:RestartPod", "", pending, "nothing"),
        ("policy=PodPending:RestartPod@30s", "", pending, "RestartPod"),
        ("policy=PodPending:RestartPod@0s", "", pending, "RestartPod"),
        ("policy=PodPending:RestartPod@90s", "", pending, "waits until 2027-01-15T08:02:10Z"),
        ("policy=PodPending:AbortJob@30s", "policy=PodPending:RestartPod", pending, "AbortJob"),
    ]);
}

#[test]
fn a_task_has_completed_when_all_its_pods_have_succeeded() {
    let policy = "policy=TaskCompleted:CompleteJob";
    check(&[
        (policy, "", "pod work-0 Succeeded, pod work-1 Succeeded", "CompleteJob"),
        ("", policy, "pod work-0 Succeeded, pod work-1 Succeeded", "CompleteJob"),
        (policy, "", "pod work-0 Succeeded, pod work-1 Running", "nothing"),
        (policy, "", "pod work-0 Succeeded, pod work-1 Failed", "nothing"),
        ("", policy, "pod lead-0 Succeeded", "nothing"),
    ]);
}

#[test]
fn a_task_has_failed_when_its_living_pods_restarted_too_often_together() {
    let policy = "policy=TaskFailed:TerminateJob";
    check(&[
        (policy, "", "pod work-0 Running restarts=2, pod work-1 Running", "nothing"),
        (policy, "", "pod work-0 Running restarts=2, pod work-1 Running restarts=1", "TerminateJob"),
        (policy, "", "pod work-0 Pending restarts=3, pod work-1 Running", "TerminateJob"),
        (policy, "", "pod work-0 Succeeded restarts=3, pod work-1 Running", "nothing"),
        (policy, "", "pod lead-0 Running restarts=2, pod work-0 Running restarts=2", "nothing"),
        (policy, "max-retry=1", "pod work-0 Running restarts=1", "TerminateJob"),
        (policy, "max-retry=-1", "pod work-0 Running restarts=99", "nothing"),
    ]);
}

#[test]
fn a_time_out_ends_with_what_it_was_about() {
    check(&[
        // The failed pod ended at 08:01:30.
        ("policy=PodFailed:AbortJob@1m", "", "pod work-0 Failed", "waits until 2027-01-15T08:02:30Z"),
        ("policy=PodFailed:AbortJob@1m", "", "pod work-0 Running", "nothing"),
        ("policy=Unknown:AbortJob@1h", "", "group Unknown", "waits until 2027-01-15T09:01:40Z"),
        ("policy=Unknown:AbortJob@1h", "", "group Running", "nothing"),
        ("policy=PodPending:AbortJob@1h", "", "pod work-0 Running created=40", "nothing"),
        // Whoever looks for the first time does not take a pod that runs for one that has just come.
        ("policy=PodPending:AbortJob@30s", "", "pod work-0 Running created=10, first-look", "nothing"),
    ]);
}

#[test]
fn a_time_out_of_a_pod_whose_end_nobody_tells_counts_from_what_is_stored() {
    let (failed, completed) = ("policy=PodFailed:AbortJob@1m", "policy=TaskCompleted:CompleteJob@1m");
    let both = |words: &str| format!("pod work-0 Succeeded {words}, pod work-1 Succeeded {words}");
    check(&[
        (failed, "", "pod work-0 Failed no-end changed=80", "waits until 2027-01-15T08:02:20Z"),
        (failed, "", "pod work-0 Failed no-end changed=39", "AbortJob"),
        (failed, "", "pod work-0 Failed no-end started=70", "waits until 2027-01-15T08:02:10Z"),
        (failed, "", "pod work-0 Failed no-end created=60", "waits until 2027-01-15T08:02:00Z"),
        (failed, "", "pod work-0 Failed no-end created=20", "AbortJob"),
        (completed, "", &both("no-end changed=80"), "waits until 2027-01-15T08:02:20Z"),
        (completed, "", &both("no-end changed=39"), "CompleteJob"),
    ]);
}

#[test]
fn a_time_out_counts_from_the_first_sight_however_often_the_same_is_said_anew() {
    let (failed, unknown) = ("policy=TaskFailed:AbortJob@1m", "policy=Unknown:AbortJob@1m");
    let since = |policy: &str, name: &str, at: u32| format!("{policy} since={name}:{at}");
    let restarted = "pod work-0 Running restarts=4 restarted=99";
    let complaint = "group Unknown says=no+place";
    check(&[
        (failed, "", restarted, "waits until 2027-01-15T08:02:39Z"),
        (failed, "", "pod work-0 Running restarts=4", "waits until 2027-01-15T08:02:40Z"),
        (&since(failed, "TaskFailed/work", 70), "", restarted, "waits until 2027-01-15T08:02:10Z"),
        (&since(failed, "TaskFailed/work", 39), "", restarted, "AbortJob"),
        (&since(failed, "TaskFailed/lead", 39), "", restarted, "waits until 2027-01-15T08:02:39Z"),
        (unknown, "", complaint, "waits until 2027-01-15T08:02:00Z"),
        (unknown, "", "group Unknown scheduled=70", "waits until 2027-01-15T08:02:40Z"),
        (&since(unknown, "Unknown", 39), "", complaint, "AbortJob"),
    ]);
}

#[test]
fn the_job_keeps_since_when_that_holds_of_which_no_object_tells_the_beginning() {
    let kept = |job: &str, happened: &str| {
        let plan = fixture::plan(&format!(
            "job phase=Running min=1 {job}
             task work replicas=1
             {happened}"
        ));
        let plan = plan.to_string();
        plan.lines().find(|line| line.contains("holds-since")).unwrap_or_default().to_owned()
    };
    let (policy, restarted) = ("policy=TaskFailed:AbortJob@1m", "pod work-0 Running restarts=3 restarted=80");
    expect![[r#"patch job a {"metadata":{"annotations":{"krafla.dev/holds-since":"{\"TaskFailed/work\":\"2027-01-15T08:01:20.000000Z\"}"}}}"#]].assert_eq(&kept(policy, restarted));
    expect![[r#"patch job a {"metadata":{"annotations":{"krafla.dev/holds-since":"{\"Unknown\":\"2027-01-15T08:01:40.000000Z\"}"}}}"#]].assert_eq(&kept("policy=Unknown:AbortJob@1m", "group Unknown"));
    // Once is enough, and what is over is forgotten.
    expect![[r#""#]].assert_eq(&kept(&format!("{policy} since=TaskFailed/work:80"), restarted));
    expect![[r#"patch job a {"metadata":{"annotations":{"krafla.dev/holds-since":null}}}"#]]
        .assert_eq(&kept(&format!("{policy} since=TaskFailed/work:80"), "pod work-0 Running"));
    // Nobody waits, so there is nothing to count from.
    expect![[r#""#]].assert_eq(&kept("policy=TaskFailed:NoSuchAction", restarted));
    expect![[r#""#]].assert_eq(&kept("", "group Unknown"));
}

#[test]
fn volcano_b16_an_eviction_is_forgiven_when_the_replacement_runs_in_time() {
    let (late, soon) = ("policy=PodEvicted:TerminateJob@1h", "policy=PodEvicted:TerminateJob@5s");
    let evicted = "gone work-1 Running at=90";
    let replaced_by = |pod: &str| format!("{evicted}, pod work-1 {pod}");
    check(&[
        (late, "", evicted, "waits until 2027-01-15T09:01:30Z"),
        (late, "", &replaced_by("Pending"), "waits until 2027-01-15T09:01:30Z"),
        (late, "", &replaced_by("Running"), "nothing"),
        (soon, "", evicted, "TerminateJob"),
        (soon, "", &replaced_by("Pending"), "TerminateJob"),
        (soon, "", &replaced_by("Running"), "nothing"),
        // Another pod that runs forgives nothing, and a policy without a time-out does not wait to see.
        (soon, "", "gone work-1 Running at=90, pod work-0 Running", "TerminateJob"),
        ("policy=PodEvicted:TerminateJob", "", &replaced_by("Running"), "TerminateJob"),
        // Another controller has restarted the pod already.
        ("policy=PodEvicted:RestartPod", "", &replaced_by("Pending retry=1"), "nothing"),
        ("policy=PodEvicted:RestartPod", "", &replaced_by("Running retry=1"), "nothing"),
    ]);
}

#[test]
fn an_eviction_that_is_given_time_is_carried_by_the_pod_that_stands_in() {
    let (late, soon) = ("policy=PodEvicted:TerminateJob@1h", "policy=PodEvicted:TerminateJob@5s");
    let replaced_by = |pod: &str| format!("gone work-1 Running at=90, pod work-1 {pod}");
    check(&[
        (late, "", "pod work-1 Pending evicted=90", "waits until 2027-01-15T09:01:30Z"),
        (soon, "", "pod work-1 Pending evicted=90", "TerminateJob"),
        (soon, "", "pod work-1 Running evicted=90", "nothing"),
        (soon, "", "pod work-1 Succeeded evicted=90", "nothing"),
        ("policy=PodEvicted:RestartPod@5s", "", "pod work-1 Pending evicted=90", "RestartPod"),
        // What it carries is not said a second time by the one that is gone.
        (late, "", &replaced_by("Pending evicted=80"), "waits until 2027-01-15T09:01:20Z"),
        (soon, "", &replaced_by("Running evicted=90"), "nothing"),
        // A stand-in that is evicted itself before it runs gains no time by that.
        (late, "", "gone work-1 Pending evicted=70 at=90", "waits until 2027-01-15T09:01:10Z"),
        (late, "", "gone work-1 Running evicted=70 at=90", "waits until 2027-01-15T09:01:30Z"),
    ]);
}

#[test]
fn an_eviction_that_is_given_time_is_on_record_until_a_pod_stands_in() {
    let world = |policy: &str, lost: &str| {
        format!(
            "job phase=Running min=1 counted=work:Running*2 policy=PodEvicted:TerminateJob{policy}
             task work replicas=2
             group Running
             pod work-0 Running
             {lost}"
        )
    };
    let made = |policy: &str, lost: &str| {
        let plan = fixture::plan(&world(policy, lost));
        let made = plan.steps.iter().find_map(|step| match step {
            Step::Create { kind: Kind::Pod, object } => Some(object["metadata"]["annotations"].clone()),
            _ => None,
        });
        let status = plan.status.map(|status| status.to_string()).unwrap_or_default();
        (
            made.map(|annotations| annotations["krafla.dev/evicted-at"].clone()),
            status.contains("taskStatusCount"),
        )
    };
    let carried = |at: &str| (Some(json!(at)), false);
    assert_eq!(made("@1h", "gone work-1 Running at=90"), carried("2027-01-15T08:01:30.000000Z"));
    assert_eq!(made("@1h", "first-look"), carried("2027-01-15T08:01:40.000000Z"));
    // Nobody waits for one that nobody answers: it is made again, and that is all.
    assert_eq!(made("@1h", ""), (Some(json!(null)), true));
}

#[test]
fn an_eviction_that_nobody_saw_is_charged_like_any_other() {
    for action in ["RestartPod", "RestartTask", "RestartPartition", "RestartJob"] {
        let policy = format!("counted=work:Running*2 policy=PodEvicted:{action}");
        check(&[
            (&policy, "", "pod work-0 Running, first-look", action),
            (&policy, "", "pod work-0 Running, gone work-1 Running", action),
            (&policy, "", "pod work-0 Running, pod work-1 Running, first-look", "nothing"),
        ]);
    }
}

#[test]
fn an_eviction_that_nobody_saw_restarts_the_partition_that_it_tore_a_hole_into() {
    let plan = fixture::plan(
        "job phase=Running min=1 counted=work:Running*4 policy=PodEvicted:RestartPartition
         task work replicas=4 partitions=2x2
         group Running
         pod work-0 Running partition=0
         pod work-1 Running partition=0
         pod work-2 Running partition=1
         first-look",
    );
    let deleted: Vec<String> =
        plan.steps.iter().map(Step::to_string).filter(|step| step.starts_with("delete")).collect();
    assert_eq!(deleted, ["delete pod a-work-2"]);
}

#[test]
fn what_will_be_done_later_is_said_once() {
    let said = |job: &str, happened: &str| {
        let plan = fixture::plan(&format!(
            "job phase=Running min=1 {job}
             task work replicas=3
             group Running
             {}",
            happened.replace(", ", "\n")
        ));
        let said = plan.notes.iter().filter(|note| note.reason == "ExecuteAction");
        said.map(|note| note.message.clone()).collect::<Vec<String>>()
    };
    let policy = "policy=PodFailed:AbortJob@150s";
    assert_eq!(said(policy, "pod work-0 Failed, pod work-1 Failed"), ["AbortJob after 2m30s of PodFailed"]);
    assert_eq!(said(policy, "pod work-0 Running"), [""; 0]);
    assert_eq!(
        said("policy=PodFailed:AbortJob@1s", "pod work-0 Failed"),
        ["AbortJob: pod a-work-0 failed with exit code 1"]
    );
}

#[test]
fn an_exit_code_is_answered_when_its_pod_has_failed() {
    check(&[
        ("policy=3:AbortJob", "", "pod work-0 Pending second=3", "nothing"),
        ("policy=3:AbortJob", "", "pod work-0 Running second=3", "nothing"),
        ("policy=3:AbortJob", "", "pod work-0 Failed second=3", "AbortJob"),
    ]);
}
