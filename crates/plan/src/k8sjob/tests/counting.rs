//! Each pod is counted once.

use expect_test::expect;

use super::fixture::{World, check, check_all};

#[test]
fn a_pod_is_put_on_record_let_go_and_counted() {
    check_all(
        "job parallelism=3 completions=9 replace=TerminatingOrFailed
         status active=1
         pod a Succeeded
         pod b Failed
         pod c Succeeded
         pod d Failed
         pod e Running going
         pod f Running",
        &expect![[r#"
            status {"active":3,"terminating":1,"uncountedTerminatedPods":{"failed":["b","d","e"],"succeeded":["a","c"]}}
            let go of a
            let go of b
            let go of c
            let go of d
            let go of e
            create a-?
            create a-?
            --
            status when convenient {"failed":3,"succeeded":2,"uncountedTerminatedPods":{"failed":null,"succeeded":null}}
            --
        "#]],
    );
}

#[test]
fn earlier_records_are_counted_with_new_ones_added() {
    check_all(
        "job parallelism=1 completions=9
         status active=1 succeeded=2 failed=3 uncounted-succeeded=a,e uncounted-failed=b,f
         pod a Succeeded
         pod b Failed
         pod c Succeeded
         pod d Failed
         pod e Succeeded untracked
         pod g Running",
        &expect![[r#"
            status {"failed":4,"succeeded":3,"uncountedTerminatedPods":{"failed":["b","d"],"succeeded":["a","c"]}}
            let go of a
            let go of b
            let go of c
            let go of d
            --
            status when convenient {"failed":6,"succeeded":5,"uncountedTerminatedPods":{"failed":null,"succeeded":null}}
            --
        "#]],
    );
}

#[test]
fn a_pod_on_record_as_failed_stays_failed() {
    check_all(
        "job parallelism=1 completions=1
         status uncounted-failed=a
         pod a Succeeded",
        &expect![[r#"
            status {"active":1}
            let go of a
            create a-?
            --
            status when convenient {"failed":1,"uncountedTerminatedPods":{"failed":null}}
            --
        "#]],
    );
}

#[test]
fn a_counted_pod_is_not_counted_again() {
    check(
        "job parallelism=1 completions=2
         status active=1 failed=1 succeeded=1
         pod a Running
         pod b Failed untracked
         pod c Succeeded untracked",
        &expect![""],
    );
}

#[test]
fn pods_that_ended_just_now_wait_for_others() {
    check(
        "job parallelism=1 completions=5
         status active=1
         pod a Running
         pod b Succeeded ended=0",
        &expect![[r#"
            look again in 1 s
        "#]],
    );
}

#[test]
fn a_status_keeps_at_most_ten_thousand_pods() {
    let mut text = "job parallelism=1 completions=20000\nstatus active=1\npod a Running\n".to_owned();
    for n in 0..10_010 {
        text += &format!("pod s{n:05} Succeeded\n");
    }
    let plan = super::fixture::World::parse(&text).plan();
    assert_eq!(plan.steps.len(), 10_000);
}

#[test]
fn a_failure_that_a_rule_ignores_is_let_go_uncounted() {
    check_all(
        "job parallelism=1 completions=1
         rule Ignore condition=DisruptionTarget
         rule Count exit=1
         status active=0
         pod a Failed condition=DisruptionTarget exit=1
         pod b Failed exit=1",
        &expect![[r#"
            status {"active":1,"uncountedTerminatedPods":{"failed":["b"]}}
            former pods "1"
            let go of a
            let go of b
            create a-?
            --
            status when convenient {"failed":1,"uncountedTerminatedPods":{"failed":null}}
            --
        "#]],
    );
}

#[test]
fn the_requests_for_a_job_are_two_per_pod_and_four() {
    for n in [1, 5, 40] {
        let mut text = format!("job parallelism={n} completions={n}\nstatus active={n} ready={n}\n");
        for pod in 0..n {
            text += &format!("pod p{pod:02} Succeeded ended=0\n");
        }
        let mut world = super::fixture::World::parse(&text);
        let n_writes = world.run_out().len();
        // Before: the pods' creation, the status with their start and the one with their readiness.
        assert_eq!(n_writes + n + 2, 2 * n + 4, "{n} pods");
    }
}

#[test]
fn a_pod_that_fails_with_its_job_is_judged_too() {
    check_all(
        "job parallelism=3 completions=3 backoff=0
         rule Ignore condition=DisruptionTarget
         status active=2
         pod a Failed exit=1
         pod b Running condition=DisruptionTarget
         pod c Running",
        &expect![[r#"
            status {"active":null,"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has reached the specified backoff limit","reason":"BackoffLimitExceeded","status":"True","type":"FailureTarget"}],"terminating":2,"uncountedTerminatedPods":{"failed":["a","c"]}}
            let go of a
            let go of b
            let go of c
            delete b
            delete c
            --
            status when convenient {"failed":2,"uncountedTerminatedPods":{"failed":null}}
            --
        "#]],
    );
}

#[test]
fn a_record_that_is_nearly_full_takes_no_more_than_it_can() {
    let mut text =
        "job parallelism=1 completions=20000\nstatus active=1 uncounted-failed=f\npod a Running\n".to_owned();
    text += "pod f Failed\n";
    for n in 0..10_010 {
        text += &format!("pod s{n:05} Succeeded\n");
    }
    let plan = super::fixture::World::parse(&text).plan();
    assert_eq!(plan.steps.len(), 10_000, "the one on record is let go of, and 9,999 others");
}

#[test]
fn only_what_was_let_go_is_counted() {
    let mut world = World::parse(
        "job parallelism=1 completions=9
         status active=1
         pod a Succeeded
         pod b Succeeded
         pod c Running",
    );
    let plan = world.plan();
    plan.writes().take(2).for_each(|step| world.apply(step));
    assert_eq!(world.status()["succeeded"], serde_json::Value::Null);
    let shown: Vec<String> = world.plan().writes().map(ToString::to_string).collect();
    expect![[r#"
        patch job status a {"status":{"succeeded":1,"uncountedTerminatedPods":{"succeeded":["b"]}}}
        patch pod b {"metadata":{"finalizers":[]}}"#]]
    .assert_eq(&shown.join("\n"));
}
