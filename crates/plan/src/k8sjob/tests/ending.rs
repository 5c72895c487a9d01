//! How Jobs end: decided first, then emptied, then over.

use expect_test::expect;

use super::fixture::{World, check, check_all};

#[test]
fn a_job_completes_when_enough_pods_have_succeeded() {
    check_all(
        "job parallelism=2 completions=2
         pod a Succeeded
         pod b Succeeded",
        &expect![[r#"
            status {"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"SuccessCriteriaMet"}],"uncountedTerminatedPods":{"succeeded":["a","b"]}}
            let go of a
            let go of b
            --
            status {"completionTime":"2027-01-15T08:01:40Z","conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"SuccessCriteriaMet"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"Complete"}],"succeeded":2,"uncountedTerminatedPods":{"succeeded":null}}
            Normal Completed: Job completed
            --
        "#]],
    );
}

#[test]
fn a_queue_of_work_completes_when_nothing_runs_despite_a_failure() {
    check_all(
        "job parallelism=2
         pod a Succeeded
         pod b Failed",
        &expect![[r#"
            status {"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"SuccessCriteriaMet"}],"uncountedTerminatedPods":{"failed":["b"],"succeeded":["a"]}}
            let go of a
            let go of b
            --
            status {"completionTime":"2027-01-15T08:01:40Z","conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"SuccessCriteriaMet"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"Complete"}],"failed":1,"succeeded":1,"uncountedTerminatedPods":{"failed":null,"succeeded":null}}
            Normal Completed: Job completed
            --
        "#]],
    );
}

#[test]
fn nothing_to_do_is_done_at_once_even_when_suspended() {
    check(
        "job new parallelism=1 completions=0",
        &expect![[r#"
        status {"completionTime":"2027-01-15T08:01:40Z","conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"SuccessCriteriaMet"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"Complete"}],"ready":0,"startTime":"2027-01-15T08:01:40Z","terminating":0,"uncountedTerminatedPods":{}}
        Normal Completed: Job completed
    "#]],
    );
    check(
        "job new suspend parallelism=1 completions=0",
        &expect![[r#"
        status {"completionTime":"2027-01-15T08:01:40Z","conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"SuccessCriteriaMet"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"Complete"}],"ready":0,"terminating":0,"uncountedTerminatedPods":{}}
        Normal Completed: Job completed
    "#]],
    );
}

#[test]
fn one_failure_more_than_allowed_fails_the_job_and_all_that_runs() {
    check_all(
        "job parallelism=3 completions=3 backoff=1
         status active=2 ready=1
         pod a Failed
         pod b Failed
         pod c Pending
         pod d Running ready",
        &expect![[r#"
            status {"active":null,"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has reached the specified backoff limit","reason":"BackoffLimitExceeded","status":"True","type":"FailureTarget"}],"ready":0,"terminating":1,"uncountedTerminatedPods":{"failed":["a","b","c","d"]}}
            let go of a
            let go of b
            let go of c
            let go of d
            delete c
            delete d
            --
            status when convenient {"failed":4,"uncountedTerminatedPods":{"failed":null}}
            --
        "#]],
    );
    check(
        "job parallelism=2 completions=3 backoff=1
         status active=2
         pod a Failed
         pod b Running",
        &expect![[r#"
            status {"uncountedTerminatedPods":{"failed":["a"]}}
            let go of a
            create a-?
        "#]],
    );
}

#[test]
fn the_end_waits_for_pods_that_are_still_going() {
    check(
        "job parallelism=1 completions=1
         status failed=7 terminating=1
         condition FailureTarget reason=BackoffLimitExceeded message=limit
         pod a Running going untracked",
        &expect![""],
    );
    check(
        "job parallelism=1 completions=1
         status failed=7 terminating=1
         condition FailureTarget reason=BackoffLimitExceeded message=limit
         pod a Failed going untracked",
        &expect![[r#"
            status {"conditions":[{"lastProbeTime":"2027-01-15T08:00:50Z","lastTransitionTime":"2027-01-15T08:00:50Z","message":"limit","reason":"BackoffLimitExceeded","status":"True","type":"FailureTarget"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"limit","reason":"BackoffLimitExceeded","status":"True","type":"Failed"}],"terminating":0}
            Warning BackoffLimitExceeded: limit
        "#]],
    );
}

#[test]
fn restarts_in_place_count_against_the_limit() {
    check(
        "job parallelism=2 completions=2 backoff=3 restart=OnFailure
         status active=2
         pod a Running restarts=2
         pod b Running restarts=1",
        &expect![[r#"
            status {"active":null,"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has reached the specified backoff limit","reason":"BackoffLimitExceeded","status":"True","type":"FailureTarget"}],"terminating":2,"uncountedTerminatedPods":{"failed":["a","b"]}}
            let go of a
            let go of b
            delete a
            delete b
        "#]],
    );
    check(
        "job parallelism=2 completions=2 backoff=3 restart=OnFailure
         status active=2
         pod a Running restarts=2
         pod b Running",
        &expect![""],
    );
    check(
        "job parallelism=1 completions=1 backoff=0 restart=OnFailure
         status active=1
         pod a Running",
        &expect![""],
    );
}

#[test]
fn time_runs_out_from_the_start_on() {
    check(
        "job parallelism=1 completions=1 deadline=10
         status active=1 started=9
         pod a Running",
        &expect![[r#"
            look again in 1 s
        "#]],
    );
    check(
        "job parallelism=1 completions=1 deadline=10
         status active=1 started=10
         pod a Running",
        &expect![[r#"
            status {"active":null,"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job was active longer than specified deadline","reason":"DeadlineExceeded","status":"True","type":"FailureTarget"}],"terminating":1,"uncountedTerminatedPods":{"failed":["a"]}}
            let go of a
            delete a
        "#]],
    );
    check(
        "job new parallelism=1 completions=1 deadline=0",
        &expect![[r#"
        status {"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job was active longer than specified deadline","reason":"DeadlineExceeded","status":"True","type":"FailureTarget"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job was active longer than specified deadline","reason":"DeadlineExceeded","status":"True","type":"Failed"}],"ready":0,"startTime":"2027-01-15T08:01:40Z","terminating":0,"uncountedTerminatedPods":{}}
        Warning DeadlineExceeded: Job was active longer than specified deadline
    "#]],
    );
    check(
        "job new suspend parallelism=1 completions=1 deadline=0",
        &expect![[r#"
        status {"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job suspended","reason":"JobSuspended","status":"True","type":"Suspended"}],"ready":0,"terminating":0,"uncountedTerminatedPods":{}}
        Normal Suspended: Job suspended
    "#]],
    );
}

#[test]
fn the_limit_goes_before_the_deadline() {
    check(
        "job parallelism=1 completions=1 deadline=10 backoff=0
         status started=20
         pod a Failed",
        &expect![[r#"
            status {"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has reached the specified backoff limit","reason":"BackoffLimitExceeded","status":"True","type":"FailureTarget"}],"uncountedTerminatedPods":{"failed":["a"]}}
            let go of a
        "#]],
    );
}

#[test]
fn a_rule_fails_the_job_and_says_why() {
    for (rule, pod) in [
        ("rule FailJob exit=42", "pod a Failed exit=42"),
        ("rule FailJob not-exit=1,2", "pod a Failed exit=42"),
        ("rule FailJob condition=DisruptionTarget", "pod a Failed condition=DisruptionTarget"),
    ] {
        let plan =
            super::fixture::World::parse(&format!("job completions=1 parallelism=1\n{rule}\n{pod}")).plan();
        let text = plan.to_string();
        assert!(text.contains("matching FailJob rule at index 0"), "{text}");
    }
    check(
        "job parallelism=2 completions=2
         rule FailJob exit=42
         status active=1
         pod a Failed exit=42
         pod b Pending",
        &expect![[r#"
            status {"active":null,"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Container c for pod ns/a failed with exit code 42 matching FailJob rule at index 0","reason":"PodFailurePolicy","status":"True","type":"FailureTarget"}],"uncountedTerminatedPods":{"failed":["a","b"]}}
            let go of a
            let go of b
            delete b
        "#]],
    );
}

#[test]
fn a_rule_that_does_not_fit_fails_nothing() {
    for (rule, pod) in [
        ("rule FailJob exit=42", "pod a Failed exit=1"),
        ("rule FailJob not-exit=42", "pod a Failed exit=42"),
        ("rule FailJob not-exit=1", "pod a Failed exit=0"),
        ("rule FailJob exit=42 container=other", "pod a Failed exit=42"),
        ("rule FailJob condition=DisruptionTarget", "pod a Failed condition=Other"),
        ("rule FailJob exit=42", "pod a Running exit=42"),
        ("rule FailJob exit=42", "pod a Running going exit=42"),
        ("rule Explode exit=42", "pod a Failed exit=42"),
        ("rule Ignore exit=42\nrule FailJob exit=42", "pod a Failed exit=42"),
    ] {
        let plan =
            super::fixture::World::parse(&format!("job completions=1 parallelism=1\n{rule}\n{pod}")).plan();
        assert!(!plan.to_string().contains("FailureTarget"), "{rule} {pod}: {plan}");
    }
}

#[test]
fn what_is_decided_stays_decided() {
    check(
        "job parallelism=1 completions=1
         status succeeded=1
         condition FailureTarget reason=PodFailurePolicy message=why",
        &expect![[r#"
            status {"conditions":[{"lastProbeTime":"2027-01-15T08:00:50Z","lastTransitionTime":"2027-01-15T08:00:50Z","message":"why","reason":"PodFailurePolicy","status":"True","type":"FailureTarget"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"why","reason":"PodFailurePolicy","status":"True","type":"Failed"}]}
            Warning PodFailurePolicy: why
        "#]],
    );
    check(
        "job parallelism=1 completions=1 backoff=0
         status failed=1
         condition SuccessCriteriaMet reason=SuccessPolicy message=why",
        &expect![[r#"
            status {"completionTime":"2027-01-15T08:01:40Z","conditions":[{"lastProbeTime":"2027-01-15T08:00:50Z","lastTransitionTime":"2027-01-15T08:00:50Z","message":"why","reason":"SuccessPolicy","status":"True","type":"SuccessCriteriaMet"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"why","reason":"SuccessPolicy","status":"True","type":"Complete"}]}
            Normal Completed: Job completed
        "#]],
    );
}

#[test]
fn a_condition_that_does_not_hold_decides_nothing_and_is_not_doubled() {
    check(
        "job parallelism=1 completions=1
         status active=1
         condition FailureTarget status=False
         condition SuccessCriteriaMet status=False
         pod a Running",
        &expect![""],
    );
    check(
        "job parallelism=1 completions=1 backoff=0
         status failed=1
         condition FailureTarget status=False
         condition Failed status=False",
        &expect![[r#"
            status {"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has reached the specified backoff limit","reason":"BackoffLimitExceeded","status":"True","type":"FailureTarget"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has reached the specified backoff limit","reason":"BackoffLimitExceeded","status":"True","type":"Failed"}]}
            Warning BackoffLimitExceeded: Job has reached the specified backoff limit
        "#]],
    );
}

#[test]
fn a_finished_job_is_left_alone() {
    check(
        "job parallelism=1 completions=1
         condition Complete
         pod a Running",
        &expect![""],
    );
    check("job parallelism=1 completions=1\ncondition Failed\npod a Running", &expect![""]);
    for end in ["Complete", "Failed"] {
        // Only what holds is an end.
        let job = format!("job parallelism=1 completions=1\nstatus active=1\ncondition {end} status=False");
        check(&job, &expect!["create a-?\n"]);
    }
}

#[test]
fn nothing_is_done_for_a_job_that_is_gone() {
    check("pod a Running\npod b Failed", &expect![""]);
}

#[test]
fn a_job_fails_only_above_its_limit_of_failed_pods() {
    for (limit, n_failed, fails) in
        [(0, 0, false), (0, 1, true), (1, 1, false), (1, 2, true), (6, 6, false), (6, 7, true)]
    {
        let mut text = format!("job parallelism=1 completions=1 backoff={limit}\n");
        for n in 0..n_failed {
            text += &format!("pod p{n} Failed ended=2000\n");
        }
        let plan = super::fixture::World::parse(&text).plan().to_string();
        assert_eq!(plan.contains("BackoffLimitExceeded"), fails, "{n_failed} failures of {limit}: {plan}");
    }
}

#[test]
fn a_job_has_not_ended_while_it_still_has_to_remove_a_pod() {
    // The program died after it had let the pod go. The pod has no node, so nobody will be waited for.
    check(
        "job indexed parallelism=2 completions=2
         success indexes=0
         status succeeded=1 completed=0
         condition SuccessCriteriaMet reason=SuccessPolicy
         pod a Succeeded index=0 untracked
         pod b Pending index=1 untracked",
        &expect![[r#"
            delete b
        "#]],
    );
}

#[test]
fn a_job_never_ends_before_it_has_started_even_if_the_clock_was_set_back() {
    let mut world = World::parse(
        "job parallelism=1 completions=1
         status started=-50
         pod a Succeeded",
    );
    world.run_out();
    let status = world.status();
    assert_eq!(status["completionTime"], status["startTime"], "{status}");
    assert_eq!(status["completionTime"], "2027-01-15T08:02:30Z");
}
