//! Creating and removing pods.

use expect_test::expect;
use krafla_cluster::Step;
use serde_json::json;

use super::fixture::{World, check, check_all};

#[test]
fn a_new_job_starts_its_pods() {
    check(
        "job new parallelism=2 completions=5",
        &expect![[r#"
        status {"active":2,"ready":0,"startTime":"2027-01-15T08:01:40Z","terminating":0,"uncountedTerminatedPods":{}}
        create a-?
        create a-?
    "#]],
    );
    check(
        "job new parallelism=2",
        &expect![[r#"
        status {"active":2,"ready":0,"startTime":"2027-01-15T08:01:40Z","terminating":0,"uncountedTerminatedPods":{}}
        create a-?
        create a-?
    "#]],
    );
    check(
        "job new",
        &expect![[r#"
        status {"active":1,"ready":0,"startTime":"2027-01-15T08:01:40Z","terminating":0,"uncountedTerminatedPods":{}}
        create a-?
    "#]],
    );
}

#[test]
fn a_job_with_its_pods_is_left_alone() {
    check(
        "job parallelism=3 completions=5
         status active=3 ready=2
         pod a Running ready
         pod b Running ready
         pod c Pending",
        &expect![""],
    );
}

#[test]
fn too_few_pods_are_filled_up() {
    check(
        "job parallelism=2 completions=5
         status active=2
         pod a Running
         pod b Succeeded",
        &expect![[r#"
            status {"uncountedTerminatedPods":{"succeeded":["b"]}}
            let go of b
            create a-?
        "#]],
    );
    check(
        "job parallelism=2
         status active=2
         pod a Running",
        &expect![[r#"
            create a-?
        "#]],
    );
}

#[test]
fn a_queue_of_work_starts_nothing_after_its_first_success() {
    check(
        "job parallelism=2
         status active=2
         pod a Running
         pod b Succeeded",
        &expect![[r#"
            status {"active":1,"uncountedTerminatedPods":{"succeeded":["b"]}}
            let go of b
        "#]],
    );
}

#[test]
fn too_many_pods_go_uncounted_the_least_missed_first() {
    check(
        "job parallelism=2 completions=5
         status active=5 ready=2
         pod a Running ready since=30
         pod b Running ready since=20
         pod c Running
         pod d Pending node=n
         pod e Pending",
        &expect![[r#"
            status {"active":2,"terminating":2}
            former pods "3"
            let go of e
            let go of d
            let go of c
            delete e
            delete d
            delete c
        "#]],
    );
    check(
        "job parallelism=3 completions=4
         status active=3
         pod a Running restarts=2
         pod b Running created=10
         pod c Running created=20
         pod d Succeeded
         pod e Succeeded",
        &expect![[r#"
            status {"active":2,"terminating":1,"uncountedTerminatedPods":{"succeeded":["d","e"]}}
            former pods "1"
            let go of d
            let go of e
            let go of a
            delete a
        "#]],
    );
}

#[test]
fn a_failed_pod_is_replaced_after_a_while() {
    check(
        "job parallelism=1 completions=1
         status active=1
         pod a Failed ended=3",
        &expect![[r#"
            status {"active":null,"uncountedTerminatedPods":{"failed":["a"]}}
            let go of a
            look again in 7 s
        "#]],
    );
    check(
        "job parallelism=2 completions=5
         status active=2
         pod a Running
         pod b Failed ended=30",
        &expect![[r#"
            status {"uncountedTerminatedPods":{"failed":["b"]}}
            let go of b
            create a-?
        "#]],
    );
}

#[test]
fn failures_together_wait_longer_and_a_success_ends_the_wait() {
    check(
        "job parallelism=4 completions=4
         status active=4
         pod a Failed ended=5
         pod b Failed ended=5
         pod c Failed ended=5
         pod d Running",
        &expect![[r#"
            status {"active":1,"uncountedTerminatedPods":{"failed":["a","b","c"]}}
            let go of a
            let go of b
            let go of c
            look again in 35 s
        "#]],
    );
    check(
        "job parallelism=2 completions=5
         status active=2
         pod a Failed ended=5
         pod b Succeeded ended=4",
        &expect![[r#"
            status {"uncountedTerminatedPods":{"failed":["a"],"succeeded":["b"]}}
            let go of a
            let go of b
            create a-?
            create a-?
        "#]],
    );
}

#[test]
fn the_real_number_of_active_pods_is_shown_during_the_wait() {
    check(
        "job parallelism=2 completions=2
         status active=2 ready=1
         pod a Running ready
         pod b Failed ended=5",
        &expect![[r#"
            status {"active":1,"uncountedTerminatedPods":{"failed":["b"]}}
            let go of b
            look again in 5 s
        "#]],
    );
}

#[test]
fn who_waits_for_the_end_of_a_pod_does_not_wait_for_a_node_that_is_gone() {
    for job in ["job replace=Failed", "job\nrule FailJob exit=42"] {
        let mut world = World::parse(&format!("{job}\nstatus active=1\npod b Running going node=gone"));
        world.run_out();
        assert_eq!(world.status()["failed"], json!(null), "{job}");
        world.collect_pods();
        let written = world.run_out();
        assert_eq!(world.status()["failed"], 1, "{job}");
        let lets_go = written.iter().any(|step| matches!(step, Step::Patch { key, .. } if *key.name == *"b"));
        assert!(lets_go, "{job}: {written:?}");
    }
}

#[test]
fn who_waits_for_the_end_does_not_replace_a_pod_that_is_going() {
    check(
        "job parallelism=2 completions=5 replace=Failed
         status active=2
         pod a Running
         pod b Running going",
        &expect![[r#"
            status when convenient {"active":1,"terminating":1}
        "#]],
    );
    check(
        "job parallelism=2 completions=5 replace=TerminatingOrFailed
         status active=2
         pod a Running
         pod b Running going",
        &expect![[r#"
            status {"terminating":1,"uncountedTerminatedPods":{"failed":["b"]}}
            let go of b
            create a-?
        "#]],
    );
}

#[test]
fn a_pod_without_a_node_that_is_deleted_has_ended() {
    check(
        "job parallelism=1 completions=1 replace=Failed
         status active=1
         pod a Pending going",
        &expect![[r#"
            status {"uncountedTerminatedPods":{"failed":["a"]}}
            let go of a
            create a-?
        "#]],
    );
}

#[test]
fn parallelism_zero_runs_nothing_and_stays_open() {
    check("job parallelism=0 completions=3", &expect![""]);
}

#[test]
fn a_suspended_job_runs_nothing_and_has_no_start() {
    check(
        "job new suspend parallelism=2 completions=4",
        &expect![[r#"
        status {"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job suspended","reason":"JobSuspended","status":"True","type":"Suspended"}],"ready":0,"terminating":0,"uncountedTerminatedPods":{}}
        Normal Suspended: Job suspended
    "#]],
    );
    check(
        "job suspend parallelism=2 completions=4
         status active=2 ready=1 failed=1
         pod a Running ready
         pod b Pending",
        &expect![[r#"
            status {"active":null,"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job suspended","reason":"JobSuspended","status":"True","type":"Suspended"}],"ready":0,"startTime":null,"terminating":1}
            former pods "2"
            let go of a
            let go of b
            delete a
            delete b
            Normal Suspended: Job suspended
        "#]],
    );
}

#[test]
fn a_resumed_job_starts_anew() {
    check(
        "job parallelism=2 completions=4 deadline=50
         status not-started failed=1
         condition Suspended reason=JobSuspended",
        &expect![[r#"
            status {"active":2,"conditions":[{"lastProbeTime":"2027-01-15T08:01:40Z","lastTransitionTime":"2027-01-15T08:01:40Z","message":"Job resumed","reason":"JobResumed","status":"False","type":"Suspended"}],"startTime":"2027-01-15T08:01:40Z"}
            create a-?
            create a-?
            look again in 50 s
            Normal Resumed: Job resumed
        "#]],
    );
}

#[test]
fn a_job_that_is_going_lets_go_of_everything() {
    check(
        "job going parallelism=2 completions=5
         status active=2
         pod a Pending
         pod b Running
         pod c Succeeded",
        &expect![[r#"
            status {"uncountedTerminatedPods":{"succeeded":["c"]}}
            let go of a
            let go of b
            let go of c
        "#]],
    );
    check(
        "job going suspend parallelism=2 completions=5
         status active=2
         pod a Running
         pod b Running",
        &expect![[r#"
            let go of a
            let go of b
        "#]],
    );
}

#[test]
fn a_job_of_another_manager_or_an_unknown_mode_is_left_alone() {
    check("job new managed-by=acme.io/jobs", &expect![""]);
    check(
        "job new managed-by=kubernetes.io/job-controller",
        &expect![[r#"
        status {"active":1,"ready":0,"startTime":"2027-01-15T08:01:40Z","terminating":0,"uncountedTerminatedPods":{}}
        create a-?
    "#]],
    );
    check(
        "job new mode=Sideways",
        &expect![[r#"
        Warning UnknownCompletionMode: Skipped Job sync because completion mode is unknown
    "#]],
    );
}

#[test]
fn pods_that_match_are_taken_in_and_pods_that_do_not_are_let_go() {
    check_all(
        "job parallelism=1 completions=1
         status active=1
         pod a Running orphan
         pod b Running stranger
         pod c Running owner=other",
        &expect![[r#"
            status null
            patch b {"metadata":{"finalizers":[],"ownerReferences":[]}}
            patch a {"metadata":{"finalizers":["batch.kubernetes.io/job-tracking"],"ownerReferences":[{"apiVersion":"batch/v1","blockOwnerDeletion":true,"controller":true,"kind":"Job","name":"a","uid":"u"}]}}
            --
        "#]],
    );
}

#[test]
fn pods_that_the_job_sent_away_delay_nobody() {
    check(
        "job parallelism=3 completions=5
         status active=3 terminating=2
         pod a Running
         pod b Running going asked=1 untracked
         pod c Running going asked=1 untracked",
        &expect![[r#"
            create a-?
            create a-?
        "#]],
    );
    check(
        "job parallelism=1 completions=5
         status active=1
         pod a Running going asked=1",
        &expect![[r#"
            status when convenient {"active":null,"terminating":1}
            look again in 0 s
        "#]],
    );
}

#[test]
fn a_large_job_starts_in_parts_and_says_so_once() {
    for mode in ["", "indexed"] {
        let job = format!("job new {mode} parallelism=700 completions=900");
        let mut world = super::fixture::World::parse(&job);
        assert_eq!(world.plan().steps.len(), 500, "{mode}");
        let writes = world.run_out();
        assert_eq!(writes.len(), 1 + 700, "{mode}: one status write, and the pods");
        assert_eq!(world.status()["active"], 700, "{mode}");
    }
}

#[test]
fn no_pod_is_made_twice() {
    let world = super::fixture::World::parse("job new parallelism=2 completions=2");
    let names = |plan: crate::Plan| plan.steps.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(world.plan()), names(world.plan()));
}

#[test]
fn no_name_is_given_twice_in_the_life_of_a_job() {
    let ended = |condition: &str| {
        let status = json!({
            "phase": "Failed", "conditions": [{ "type": condition, "status": "True" }],
            "containerStatuses": [{
                "name": "c", "state": { "terminated": { "exitCode": 1, "finishedAt": "2027-01-15T08:00:01Z" } },
            }],
        });
        json!({ "metadata": { "deletionTimestamp": "2027-01-15T08:01:39Z" }, "spec": { "nodeName": "" }, "status": status })
    };
    let ignore = "rule Ignore condition=DisruptionTarget";
    for (job, rule) in [
        ("job new parallelism=2 completions=9 backoff=99", ""),
        ("job new parallelism=2 completions=9 backoff=99", ignore),
        ("job new parallelism=2 completions=9 backoff=99 replace=Failed", ""),
        ("job new indexed parallelism=2 completions=9 backoff=99", ""),
        ("job new indexed parallelism=2 completions=9 backoff=99", ignore),
        ("job new indexed parallelism=2 completions=9 per-index=99", ignore),
    ] {
        let mut world = World::parse(&format!("{job}\n{rule}"));
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..12 {
            let made = world.run_out().into_iter().filter_map(|step| match step {
                Step::Create { object, .. } => Some(object["metadata"]["name"].as_str().unwrap().to_owned()),
                _ => None,
            });
            let made: Vec<String> = made.collect();
            assert!(!made.is_empty(), "{job} {rule}, round {round}: nothing new");
            for name in made {
                assert!(seen.insert(name.clone()), "{job} {rule}, round {round}: {name} comes again");
            }
            let pods = world.pods();
            match round % 4 {
                // Evicted, all of them: nothing is left that knows their names.
                0 | 1 => pods.iter().for_each(|pod| world.change(pod, &ended("DisruptionTarget"))),
                2 => world.change(&pods[0], &ended("Ready")),
                _ => {
                    world.change("u", &json!({ "spec": { "suspend": true } }));
                    world.run_out();
                    for pod in world.pods() {
                        world.change(&pod, &json!({ "spec": { "nodeName": "" } }));
                    }
                    world.change("u", &json!({ "spec": { "suspend": false } }));
                }
            }
        }
    }
}

#[test]
fn a_name_does_not_change_while_its_creation_is_not_confirmed() {
    // One of two pods was made, and nobody knows of the other, whatever happens to the first.
    let names = |text: &str| {
        let plan = World::parse(text).plan();
        let created = plan.steps.iter().filter_map(|step| match step {
            Step::Create { object, .. } => Some(object["metadata"]["name"].as_str().unwrap().to_owned()),
            _ => None,
        });
        created.collect::<Vec<_>>()
    };
    let job = "job indexed parallelism=2 completions=2
               status active=2 started=5";
    let lost = names(&format!("{job}\npod a Running index=0"));
    assert_eq!(lost.len(), 1);
    for first in ["Failed index=0 ended=99", "Succeeded index=0", "Running index=0 going"] {
        assert!(names(&format!("{job}\npod a {first}")).contains(&lost[0]), "{first}");
    }
}

#[test]
fn pods_that_the_server_refuses_are_not_active() {
    // They are tried again, and what the status said before that is taken back.
    check(
        "job parallelism=3 completions=3
         status active=3 started=5
         refused
         pod a Running",
        &expect![[r#"
            status when convenient {"active":1}
            create a-?
            create a-?
        "#]],
    );
}

#[test]
fn a_pod_that_the_job_sent_away_and_that_fails_on_its_way_delays_nobody() {
    check(
        "job parallelism=1 completions=5
         pod a Failed ended=5 untracked going",
        &expect![[r#"
            status when convenient {"active":1}
            create a-?
        "#]],
    );
}

#[test]
fn a_job_that_is_going_takes_no_pods_in() {
    check(
        "job going parallelism=1 completions=5
         pod a Running orphan",
        &expect![[r#""#]],
    );
}
