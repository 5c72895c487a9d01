//! Jobs whose pods have indexes.

use expect_test::expect;

use super::fixture::{check, check_all};

#[test]
fn the_lowest_free_indexes_are_started() {
    check(
        "job new indexed parallelism=2 completions=5",
        &expect![[r#"
        status {"active":2,"ready":0,"startTime":"2027-01-15T08:01:40Z","terminating":0,"uncountedTerminatedPods":{}}
        create a-0-?
        create a-1-?
    "#]],
    );
    check(
        "job indexed parallelism=8 completions=20
         status active=2
         pod a Running index=0
         pod b Succeeded index=2
         pod c Pending index=3
         pod d Succeeded index=4
         pod e Succeeded index=5
         pod f Succeeded index=7
         pod g Succeeded index=8
         pod h Succeeded index=9",
        &expect![[r#"
            status {"active":8,"completedIndexes":"2,4,5,7-9","succeeded":6}
            let go of b
            let go of d
            let go of e
            let go of f
            let go of g
            let go of h
            create a-1-?
            create a-6-?
            create a-10-?
            create a-11-?
            create a-12-?
            create a-13-?
        "#]],
    );
    check(
        "job indexed parallelism=3 completions=4
         status active=3
         pod a Failed index=0
         pod b Pending index=1
         pod c Failed index=2",
        &expect![[r#"
            status {"uncountedTerminatedPods":{"failed":["a","c"]}}
            former pods "0:1,2:1"
            let go of a
            let go of c
            create a-0-?
            create a-2-?
        "#]],
    );
}

#[test]
fn an_index_completes_once() {
    check_all(
        "job indexed parallelism=2 completions=3
         pod a Succeeded index=0
         pod b Succeeded index=1
         pod c Succeeded index=1",
        &expect![[r#"
            status {"active":1,"completedIndexes":"0,1","succeeded":2}
            let go of a
            let go of b
            let go of c
            create a-2-?
            --
        "#]],
    );
}

#[test]
fn a_completed_indexed_job_ends() {
    check_all(
        "job indexed parallelism=2 completions=3
         pod a Succeeded index=0
         pod b Failed index=1
         pod c Succeeded index=1
         pod d Succeeded index=2",
        &expect![[r#"
            status {"completedIndexes":"0-2","conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"SuccessCriteriaMet"}],"succeeded":3,"uncountedTerminatedPods":{"failed":["b"]}}
            let go of a
            let go of b
            let go of c
            let go of d
            --
            status {"completionTime":"2027-01-15T08:01:40Z","conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"SuccessCriteriaMet"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"Complete"}],"failed":1,"uncountedTerminatedPods":{"failed":null}}
            Normal Completed: Job completed
            --
        "#]],
    );
}

#[test]
fn pods_without_an_index_of_the_job_go_uncounted() {
    check(
        "job indexed parallelism=2 completions=5
         status active=7
         pod a Running
         pod b Succeeded
         pod c Failed
         pod d Running index=x
         pod e Running index=7
         pod f Failed index=8
         pod g Succeeded index=0
         pod h Running index=1
         pod i Running index=2",
        &expect![[r#"
            status {"active":2,"completedIndexes":"0","succeeded":1,"terminating":3}
            let go of b
            let go of c
            let go of f
            let go of g
            let go of a
            let go of d
            let go of e
            delete a
            delete d
            delete e
        "#]],
    );
}

#[test]
fn of_two_pods_with_one_index_the_better_stays() {
    check(
        "job indexed parallelism=5 completions=5
         status active=3
         pod a Running index=1
         pod b Running index=2
         pod c Pending index=2",
        &expect![[r#"
            status {"active":2}
            former pods "2:1"
            let go of c
            delete c
        "#]],
    );
}

#[test]
fn an_index_whose_pod_is_going_is_taken_or_free() {
    check(
        "job indexed parallelism=2 completions=5 replace=Failed
         status active=1
         pod a Running index=0 going",
        &expect![[r#"
            status when convenient {"terminating":1}
            create a-1-?
        "#]],
    );
    check(
        "job indexed parallelism=2 completions=5
         status active=1
         pod a Running index=0 going",
        &expect![[r#"
            status {"active":2,"terminating":1,"uncountedTerminatedPods":{"failed":["a"]}}
            former pods "0:1"
            let go of a
            create a-0-?
            create a-1-?
        "#]],
    );
}

#[test]
fn a_job_that_shrinks_forgets_the_indexes_that_it_lost() {
    check(
        "job indexed parallelism=3 completions=3
         status active=2 succeeded=5 completed=0,2,4-6 failed=1
         pod a Running index=1
         pod b Running index=3
         pod c Succeeded index=4",
        &expect![[r#"
            status {"active":1,"completedIndexes":"0,2","succeeded":2,"terminating":1}
            let go of c
            let go of b
            delete b
        "#]],
    );
    check_all(
        "job indexed parallelism=0 completions=0
         status active=1 succeeded=1 completed=0
         pod a Running index=1",
        &expect![[r#"
            status {"active":null,"completedIndexes":null,"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Reached expected number of succeeded pods","reason":"CompletionsReached","status":"True","type":"SuccessCriteriaMet"}],"succeeded":null,"terminating":1}
            let go of a
            delete a
            --
        "#]],
    );
}

#[test]
fn each_index_has_its_own_tries_and_its_own_wait() {
    check(
        "job indexed parallelism=3 completions=3 per-index=1
         status active=3 failed-indexes=
         pod a Failed index=0 failures=0 ended=30
         pod b Failed index=1 failures=0 ended=5
         pod c Running index=2 failures=0",
        &expect![[r#"
            status when convenient {"active":2}
            create a-0-? after 1 failures
            look again in 5 s
        "#]],
    );
    check(
        "job indexed parallelism=3 completions=3 per-index=1
         status active=1 failed-indexes=
         pod a Failed index=0 failures=0 ended=30
         pod b Running index=0 failures=1",
        &expect![[r#"
            status {"active":3,"uncountedTerminatedPods":{"failed":["a"]}}
            former pods "0:1"
            let go of a
            create a-1-? after 0 failures
            create a-2-? after 0 failures
        "#]],
    );
    check(
        "job indexed parallelism=1 completions=3 per-index=3
         status failed-indexes=
         pod a Failed index=0 failures=2 ended=30",
        &expect![[r#"
            look again in 10 s
        "#]],
    );
}

#[test]
fn an_index_that_fails_too_often_is_given_up() {
    check_all(
        "job indexed parallelism=2 completions=3 per-index=1
         status active=1 failed=1 failed-indexes=
         pod a Failed index=0 failures=1
         pod b Running index=1 failures=0
         pod c Running index=2 failures=0",
        &expect![[r#"
            status {"active":2,"failedIndexes":"0","uncountedTerminatedPods":{"failed":["a"]}}
            let go of a
            --
            status when convenient {"failed":2,"uncountedTerminatedPods":{"failed":null}}
            --
        "#]],
    );
}

#[test]
fn a_job_with_failed_indexes_fails_when_all_others_are_done() {
    check_all(
        "job indexed parallelism=2 completions=3 per-index=0
         status failed-indexes= completed=0
         pod a Failed index=1 failures=0
         pod b Succeeded index=2 failures=0",
        &expect![[r#"
            status {"completedIndexes":"0,2","conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has failed indexes","reason":"FailedIndexes","status":"True","type":"FailureTarget"}],"failedIndexes":"1","succeeded":2,"uncountedTerminatedPods":{"failed":["a"]}}
            let go of a
            let go of b
            --
            status {"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has failed indexes","reason":"FailedIndexes","status":"True","type":"FailureTarget"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has failed indexes","reason":"FailedIndexes","status":"True","type":"Failed"}],"failed":1,"uncountedTerminatedPods":{"failed":null}}
            Warning FailedIndexes: Job has failed indexes
            --
        "#]],
    );
}

#[test]
fn too_many_failed_indexes_end_the_job() {
    check_all(
        "job indexed parallelism=2 completions=9 per-index=0 max-failed=1
         status active=1 failed-indexes=0
         pod a Failed index=1 failures=0
         pod b Pending index=2 failures=0",
        &expect![[r#"
            status {"active":null,"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has exceeded the specified maximal number of failed indexes","reason":"MaxFailedIndexesExceeded","status":"True","type":"FailureTarget"}],"failedIndexes":"0,1","uncountedTerminatedPods":{"failed":["a","b"]}}
            let go of a
            let go of b
            delete b
            --
            status {"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has exceeded the specified maximal number of failed indexes","reason":"MaxFailedIndexesExceeded","status":"True","type":"FailureTarget"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has exceeded the specified maximal number of failed indexes","reason":"MaxFailedIndexesExceeded","status":"True","type":"Failed"}],"failed":2,"uncountedTerminatedPods":{"failed":null}}
            Warning MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes
            --
        "#]],
    );
}

#[test]
fn a_rule_gives_an_index_up_at_once_or_forgives_it() {
    check(
        "job indexed parallelism=2 completions=3 per-index=5
         rule FailIndex exit=42
         rule Ignore exit=7
         status failed-indexes=
         pod a Failed index=0 failures=0 exit=42
         pod b Failed index=1 failures=2 exit=7 ended=95",
        &expect![[r#"
            status {"active":2,"failedIndexes":"0","uncountedTerminatedPods":{"failed":["a"]}}
            let go of a
            create a-1-? after 2 failures and 1 ignored
            create a-2-? after 0 failures
        "#]],
    );
}

#[test]
fn what_a_rule_forgives_is_counted_apart() {
    let job = "job indexed parallelism=1 completions=1 per-index=3\nrule Ignore exit=7\nstatus active=1 failed-indexes=\n";
    for (pod, expected) in [
        ("failures=0 exit=1", expect!["create a-0-? after 1 failures\n"]),
        ("failures=0 exit=7", expect!["create a-0-? after 0 failures and 1 ignored\n"]),
        ("failures=1 ignored=1 exit=1 ended=1000", expect!["create a-0-? after 2 failures and 1 ignored\n"]),
        ("failures=1 ignored=1 exit=7 ended=1000", expect!["create a-0-? after 1 failures and 2 ignored\n"]),
        ("failures=3 ignored=x exit=7 ended=1000", expect!["create a-0-? after 3 failures and 1 ignored\n"]),
    ] {
        check(&format!("{job}pod a Failed index=0 {pod}"), &expected);
    }
}

#[test]
fn a_success_policy_ends_the_job_early_and_its_other_pods_uncounted() {
    check_all(
        "job indexed parallelism=3 completions=5
         success indexes=0-1
         success count=2
         status active=1
         pod a Succeeded index=3
         pod b Succeeded index=4
         pod c Pending index=0
         pod d Failed index=1",
        &expect![[r#"
            status {"active":null,"completedIndexes":"3,4","conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Matched rules at index 1","reason":"SuccessPolicy","status":"True","type":"SuccessCriteriaMet"}],"succeeded":2,"uncountedTerminatedPods":{"failed":["d"]}}
            let go of a
            let go of b
            let go of c
            let go of d
            delete c
            --
            status {"completionTime":"2027-01-15T08:01:40Z","conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Matched rules at index 1","reason":"SuccessPolicy","status":"True","type":"SuccessCriteriaMet"},{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Matched rules at index 1","reason":"SuccessPolicy","status":"True","type":"Complete"}],"failed":1,"uncountedTerminatedPods":{"failed":null}}
            Normal Completed: Job completed
            --
        "#]],
    );
}

#[test]
fn failure_goes_before_success() {
    check(
        "job indexed parallelism=3 completions=5 backoff=0
         success count=1
         pod a Succeeded index=3
         pod b Failed index=4",
        &expect![[r#"
            status {"completedIndexes":"3","conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job has reached the specified backoff limit","reason":"BackoffLimitExceeded","status":"True","type":"FailureTarget"}],"succeeded":1,"uncountedTerminatedPods":{"failed":["b"]}}
            let go of a
            let go of b
        "#]],
    );
}

#[test]
fn a_pod_is_made_from_the_template() {
    let world = super::fixture::World::parse("job new indexed parallelism=1 completions=1 per-index=1");
    let plan = world.plan();
    let Some(krafla_cluster::Step::Create { object, .. }) = plan.steps.first() else { panic!("no pod") };
    expect![[r#"
        {
          "apiVersion": "v1",
          "kind": "Pod",
          "metadata": {
            "annotations": {
              "batch.kubernetes.io/job-completion-index": "0",
              "batch.kubernetes.io/job-index-failure-count": "0"
            },
            "finalizers": [
              "batch.kubernetes.io/job-tracking"
            ],
            "generateName": "a-0-",
            "labels": {
              "batch.kubernetes.io/controller-uid": "u",
              "batch.kubernetes.io/job-completion-index": "0"
            },
            "name": "a-0-z66hx",
            "namespace": "ns",
            "ownerReferences": [
              {
                "apiVersion": "batch/v1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "Job",
                "name": "a",
                "uid": "u"
              }
            ]
          },
          "spec": {
            "containers": [
              {
                "env": [
                  {
                    "name": "JOB_COMPLETION_INDEX",
                    "valueFrom": {
                      "fieldRef": {
                        "fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"
                      }
                    }
                  }
                ],
                "image": "i",
                "name": "c"
              }
            ],
            "hostname": "a-0",
            "restartPolicy": "Never"
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(object).unwrap());
}

#[test]
fn an_index_on_record_as_failed_stays_failed() {
    check_all(
        "job indexed parallelism=2 completions=3 per-index=0
         status active=1 failed=1 failed-indexes=0
         pod a Succeeded index=0 failures=0
         pod b Running index=1 failures=0
         pod c Running index=2 failures=0",
        &expect![[r#"
            status {"active":2}
            let go of a
            --
        "#]],
    );
}

#[test]
fn a_crowd_of_indexes_with_tries_of_their_own_is_announced_at_once() {
    let plan =
        super::fixture::World::parse("job new indexed parallelism=1200 completions=1200 per-index=1").plan();
    let Some(krafla_cluster::Step::Patch { patch, .. }) = &plan.status else { panic!("no status") };
    assert_eq!((patch["status"]["active"].as_i64(), plan.steps.len()), (Some(1200), 500));
}
