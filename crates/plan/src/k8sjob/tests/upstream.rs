//! The cases by which Kubernetes tests one sync of a Job and the counting of its pods (`TestControllerSyncJob`,
//! `TestTrackJobStatusAndRemoveFinalizers`), and those of its other tests that look at a Job in the same way, in one table. Each runs until nothing is left to do at once.
//!
//! Writes of pods that fail stand in a table of their own, and the simulator plays them at every write; those of unmet
//! expectations have no counterpart.

use expect_test::{Expect, expect};
use krafla_cluster::Step;

use super::fixture::World;

/// What becomes of a Job and of its pods, a row for each case. Pods are written `3*Running,ready Succeeded,index=0`.
fn check(rows: &[(&str, &str, &str)], expected: &Expect) {
    let row = |(name, job, pods): &(&str, &str, &str)| format!("{name}: {}\n", outcome(job, pods));
    expected.assert_eq(&rows.iter().map(row).collect::<String>());
}

fn outcome(job: &str, pods: &str) -> String {
    let mut text = job.to_owned();
    let groups = pods.split_whitespace().map(|group| group.split_once('*').unwrap_or(("1", group)));
    let lines = groups.flat_map(|(n, words)| vec![words.replace(',', " "); n.parse().unwrap()]);
    for (n, words) in lines.enumerate() {
        text += &format!("\npod p{n:03} {words}");
    }
    let mut world = World::parse(&text);
    let writes = world.run_out();
    let count = |is_one: fn(&Step) -> bool| writes.iter().filter(|step| is_one(step)).count() as i64;
    let status = world.status();
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    let mut said: Vec<String> = [
        ("create", count(|step| matches!(step, Step::Create { .. }))),
        ("delete", count(|step| matches!(step, Step::Delete { .. }))),
        ("let go of", count(|step| matches!(step, Step::Patch { of_status: false, .. }))),
        ("active", number("active")),
        ("ready", number("ready")),
        ("terminating", number("terminating")),
        ("succeeded", number("succeeded")),
        ("failed", number("failed")),
    ]
    .iter()
    .filter(|(_, n)| *n != 0)
    .map(|(what, n)| format!("{what} {n}"))
    .collect();
    said.extend(status["completedIndexes"].as_str().map(|indexes| format!("indexes {indexes}")));
    said.extend(status["failedIndexes"].as_str().map(|indexes| format!("failed indexes {indexes:?}")));
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let word = |field: &str| condition[field].as_str().unwrap_or_default();
        said.push(format!("{}={} {}", word("type"), word("status"), word("reason")).trim_end().to_owned());
    }
    if status["startTime"].is_null() {
        said.push("not started".to_owned());
    }
    said.join(", ")
}

#[test]
fn pods_come_and_go() {
    let p2c5 = "job parallelism=2 completions=5";
    check(
        &[
            ("job start", "job new parallelism=2 completions=5", ""),
            ("WQ job start", "job new parallelism=2", ""),
            ("pending pods", p2c5, "2*Pending"),
            ("correct # of pods", "job parallelism=3 completions=5", "2*Running,ready Running"),
            ("WQ job: correct # of pods", "job parallelism=2", "2*Running"),
            ("too few active pods", p2c5, "Running Succeeded"),
            (
                "WQ job: recreate pods when failed",
                "job parallelism=1 replace=Failed",
                "Running Failed Running,going",
            ),
            (
                "WQ job: recreate pods when terminating or failed",
                "job parallelism=1 replace=TerminatingOrFailed",
                "Running Failed Running,going",
            ),
            ("replacement policy not set", "job parallelism=1 completions=1", "Running Failed Running,going"),
            (
                "more terminating pods than parallelism",
                "job parallelism=1 completions=1 replace=Failed",
                "2*Running 4*Running,going",
            ),
            (
                "more terminating pods than parallelism; failure policy",
                "job parallelism=1 completions=1\nrule Ignore exit=77",
                "2*Running 4*Running,going",
            ),
            (
                "too few active pods and active back-off",
                "job parallelism=1 completions=1\nstatus failed=1",
                "Failed,ended=5,untracked",
            ),
            (
                "too few active pods and active back-off, with running pods",
                "job parallelism=2 completions=2\nstatus failed=1",
                "Running,ready Failed,ended=5,untracked",
            ),
            ("too few active pods and no back-offs", "job parallelism=1 completions=1", ""),
            ("too few active pods with a dynamic job", "job parallelism=2", "Running"),
            ("too many active pods", p2c5, "3*Running"),
            ("count ready pods when too many active pods", p2c5, "3*Running,ready"),
            ("failed + succeed pods: reset backoff delay", p2c5, "Running Succeeded,ended=1 Failed,ended=2"),
            ("new failed pod", p2c5, "Running Failed"),
            (
                "no new pod; possible finalizer update of failed pod",
                "job parallelism=1 completions=1\nstatus failed=1",
                "Running Failed,untracked",
            ),
            ("more active pods than parallelism", p2c5, "10*Running"),
            (
                "more active pods than remaining completions",
                "job parallelism=3 completions=4",
                "3*Running 2*Succeeded",
            ),
            ("status change", p2c5, "2*Running 2*Succeeded"),
            ("WQ job: failures are replaced", "job parallelism=5", "3*Running 2*Failed"),
            ("WQ job: none after the first success", "job parallelism=5", "3*Running Succeeded Failed"),
            (
                "deleted pods that were counted and others",
                "job parallelism=1 completions=5",
                "Running Running,going Pending,going Running,going,untracked Pending,going,untracked",
            ),
            ("deleting job", "job going parallelism=2 completions=5", "Pending Running Succeeded"),
        ],
        &expect![[r#"
            job start: create 2, active 2
            WQ job start: create 2, active 2
            pending pods: active 2
            correct # of pods: active 3, ready 2
            WQ job: correct # of pods: active 2
            too few active pods: create 1, let go of 1, active 2, succeeded 1
            WQ job: recreate pods when failed: let go of 1, active 1, terminating 1, failed 1
            WQ job: recreate pods when terminating or failed: let go of 2, active 1, terminating 1, failed 2
            replacement policy not set: let go of 2, active 1, terminating 1, failed 2
            more terminating pods than parallelism: delete 1, let go of 1, active 1, terminating 5
            more terminating pods than parallelism; failure policy: delete 1, let go of 1, active 1, terminating 5
            too few active pods and active back-off: failed 1
            too few active pods and active back-off, with running pods: active 1, ready 1, failed 1
            too few active pods and no back-offs: create 1, active 1
            too few active pods with a dynamic job: create 1, active 2
            too many active pods: delete 1, let go of 1, active 2, terminating 1
            count ready pods when too many active pods: delete 1, let go of 1, active 2, ready 2, terminating 1
            failed + succeed pods: reset backoff delay: create 1, let go of 2, active 2, succeeded 1, failed 1
            new failed pod: create 1, let go of 1, active 2, failed 1
            no new pod; possible finalizer update of failed pod: active 1, failed 1
            more active pods than parallelism: delete 8, let go of 8, active 2, terminating 8
            more active pods than remaining completions: delete 1, let go of 3, active 2, terminating 1, succeeded 2
            status change: let go of 2, active 2, succeeded 2
            WQ job: failures are replaced: create 2, let go of 2, active 5, failed 2
            WQ job: none after the first success: let go of 2, active 3, succeeded 1, failed 1
            deleted pods that were counted and others: let go of 2, active 1, terminating 2, failed 2
            deleting job: let go of 3, active 2, succeeded 1
        "#]],
    );
}

#[test]
fn jobs_end() {
    check(
        &[
            ("job finish", "job parallelism=2 completions=5", "5*Succeeded"),
            ("WQ job finishing", "job parallelism=2", "Running Succeeded"),
            ("WQ job all finished", "job parallelism=2", "2*Succeeded"),
            ("WQ job all finished despite one failure", "job parallelism=2", "Succeeded Failed"),
            ("too many job failures", "job going parallelism=1 completions=1 backoff=0", "Failed"),
            ("limit 1, first failure", "job parallelism=1 completions=1 backoff=1", "Failed"),
            (
                "limit 1, second failure",
                "job parallelism=1 completions=1 backoff=1\nstatus failed=1",
                "Failed",
            ),
            ("limit 6, sixth failure", "job parallelism=1 completions=1\nstatus failed=5", "Failed"),
            ("limit 6, seventh failure", "job parallelism=1 completions=1\nstatus failed=6", "Failed"),
            (
                "count ready pods when job fails",
                "job parallelism=2 completions=3 backoff=0",
                "2*Running,ready Failed",
            ),
            (
                "one failure among successes",
                "job parallelism=10 completions=10 backoff=0",
                "9*Succeeded Failed",
            ),
            (
                "one of a hundred pods beyond the limit",
                "job parallelism=100 completions=100 backoff=0",
                "99*Running Failed",
            ),
            (
                "suspending a job",
                "job suspend parallelism=2 completions=4\nstatus active=2",
                "2*Running,ready",
            ),
            (
                "resuming a suspended job",
                "job parallelism=2 completions=4\nstatus not-started\ncondition Suspended reason=JobSuspended",
                "",
            ),
            ("suspending a deleted job", "job going suspend parallelism=2 completions=4", "2*Running"),
            (
                "FailureTarget=False, SuccessCriteriaMet=False",
                "job parallelism=1 completions=1\ncondition FailureTarget status=False\ncondition SuccessCriteriaMet status=False",
                "Running,ready",
            ),
        ],
        &expect![[r#"
            job finish: let go of 5, succeeded 5, SuccessCriteriaMet=True CompletionsReached, Complete=True CompletionsReached
            WQ job finishing: let go of 1, active 1, succeeded 1
            WQ job all finished: let go of 2, succeeded 2, SuccessCriteriaMet=True CompletionsReached, Complete=True CompletionsReached
            WQ job all finished despite one failure: let go of 2, succeeded 1, failed 1, SuccessCriteriaMet=True CompletionsReached, Complete=True CompletionsReached
            too many job failures: let go of 1, failed 1, FailureTarget=True BackoffLimitExceeded, Failed=True BackoffLimitExceeded
            limit 1, first failure: create 1, let go of 1, active 1, failed 1
            limit 1, second failure: let go of 1, failed 2, FailureTarget=True BackoffLimitExceeded, Failed=True BackoffLimitExceeded
            limit 6, sixth failure: create 1, let go of 1, active 1, failed 6
            limit 6, seventh failure: let go of 1, failed 7, FailureTarget=True BackoffLimitExceeded, Failed=True BackoffLimitExceeded
            count ready pods when job fails: delete 2, let go of 3, terminating 2, failed 3, FailureTarget=True BackoffLimitExceeded
            one failure among successes: let go of 10, succeeded 9, failed 1, FailureTarget=True BackoffLimitExceeded, Failed=True BackoffLimitExceeded
            one of a hundred pods beyond the limit: delete 99, let go of 100, terminating 99, failed 100, FailureTarget=True BackoffLimitExceeded
            suspending a job: delete 2, let go of 2, terminating 2, Suspended=True JobSuspended, not started
            resuming a suspended job: create 2, active 2, Suspended=False JobResumed
            suspending a deleted job: let go of 2, active 2
            FailureTarget=False, SuccessCriteriaMet=False: active 1, ready 1, FailureTarget=False, SuccessCriteriaMet=False
        "#]],
    );
}

#[test]
fn indexes_are_kept() {
    let p2c5 = "job indexed parallelism=2 completions=5";
    check(
        &[
            ("indexed job start", "job new indexed parallelism=2 completions=5", ""),
            (
                "some pods deleted, Failed",
                "job indexed parallelism=2 completions=5 replace=Failed",
                "Running,index=1,going",
            ),
            ("some pods deleted, TerminatingOrFailed", p2c5, "Running,index=1,going"),
            (
                "indexed job completed",
                "job indexed parallelism=2 completions=3",
                "Succeeded,index=0 Failed,index=1 Succeeded,index=1 Succeeded,index=2",
            ),
            (
                "indexed job failed",
                "job indexed parallelism=2 completions=3 backoff=0",
                "Succeeded,index=0 Failed,index=1 Running,index=2",
            ),
            (
                "repeated completed index",
                "job indexed parallelism=2 completions=3",
                "Succeeded,index=0 2*Succeeded,index=1",
            ),
            (
                "some failed pods",
                "job indexed parallelism=3 completions=4",
                "Failed,index=0 Pending,index=1 Failed,index=2",
            ),
            (
                "some pods without index",
                p2c5,
                "Running Succeeded Failed Running,index=x Succeeded,index=x Failed,index=x Pending,index=x \
                 Succeeded,index=0 Running,index=1 Running,index=2",
            ),
            (
                "repeated indexes",
                "job indexed parallelism=5 completions=5",
                "Succeeded Failed Running,index=x Succeeded,index=0 Running,index=1 Running,index=2 Pending,index=2",
            ),
            (
                "indexes outside of range",
                p2c5,
                "Succeeded,index=0 Running,index=5 Succeeded,index=6 Pending,index=7 Failed,index=8",
            ),
            (
                "new successful pods",
                "job indexed parallelism=1 completions=6",
                "Succeeded,index=1 2*Succeeded,index=3 Succeeded Running,index=0",
            ),
            (
                "past and new pods, some beyond the completions",
                "job indexed parallelism=1 completions=7\nstatus succeeded=6 completed=0-2,4,6,7",
                "Succeeded,index=3 Running,index=5",
            ),
            (
                "more finished than a plan lets go of",
                "job indexed parallelism=600 completions=600\nstatus completed=0-598 succeeded=599",
                "501*Succeeded,index=0 Running,index=599",
            ),
            (
                "failed pod with delayed finalizer removal",
                "job indexed parallelism=1 completions=2 per-index=1\nstatus failed-indexes=",
                "Failed,index=0,failures=0,ended=5",
            ),
            (
                "failed pod recreated",
                "job indexed parallelism=1 completions=2 per-index=1\nstatus failed-indexes=",
                "Failed,index=0,failures=0 Running,index=0,failures=1",
            ),
            (
                "success after one failure",
                "job indexed parallelism=2 completions=2 per-index=1\nstatus failed-indexes=",
                "Failed,index=0,failures=0 Succeeded,index=0,failures=1 Succeeded,index=1,failures=0",
            ),
            (
                "more indexes than before",
                "job indexed parallelism=4 completions=4\nstatus succeeded=2 completed=0,1",
                "",
            ),
            (
                "fewer indexes than before",
                "job indexed parallelism=2 completions=2\nstatus succeeded=2 completed=1,2 failed=1",
                "Running,index=0 Running,index=3",
            ),
            (
                "no index any more",
                "job indexed parallelism=0 completions=0\nstatus succeeded=1 completed=0 failed=1",
                "Pending,index=1",
            ),
            (
                "failed index",
                "job indexed parallelism=1 completions=2 per-index=1\nstatus failed-indexes=",
                "Failed,index=0,failures=1",
            ),
        ],
        &expect![[r#"
            indexed job start: create 2, active 2
            some pods deleted, Failed: create 1, active 1, terminating 1
            some pods deleted, TerminatingOrFailed: create 2, let go of 1, active 2, terminating 1, failed 1
            indexed job completed: let go of 4, succeeded 3, failed 1, indexes 0-2, SuccessCriteriaMet=True CompletionsReached, Complete=True CompletionsReached
            indexed job failed: delete 1, let go of 3, terminating 1, succeeded 1, failed 2, indexes 0, FailureTarget=True BackoffLimitExceeded
            repeated completed index: create 1, let go of 3, active 1, succeeded 2, indexes 0,1
            some failed pods: create 2, let go of 2, active 3, failed 2
            some pods without index: delete 3, let go of 8, active 2, terminating 2, succeeded 1, indexes 0
            repeated indexes: create 2, delete 2, let go of 5, active 4, terminating 1, succeeded 1, indexes 0
            indexes outside of range: create 2, delete 2, let go of 5, active 2, terminating 1, succeeded 1, indexes 0
            new successful pods: let go of 4, active 1, succeeded 2, indexes 1,3
            past and new pods, some beyond the completions: let go of 1, active 1, succeeded 6, indexes 0-4,6
            more finished than a plan lets go of: let go of 501, active 1, succeeded 599, indexes 0-598
            failed pod with delayed finalizer removal: failed indexes ""
            failed pod recreated: let go of 1, active 1, failed 1, failed indexes ""
            success after one failure: let go of 3, succeeded 2, failed 1, indexes 0,1, failed indexes "", SuccessCriteriaMet=True CompletionsReached, Complete=True CompletionsReached
            more indexes than before: create 2, active 2, succeeded 2, indexes 0,1
            fewer indexes than before: delete 1, let go of 1, active 1, terminating 1, succeeded 1, failed 1, indexes 1
            no index any more: delete 1, let go of 1, failed 1, SuccessCriteriaMet=True CompletionsReached, Complete=True CompletionsReached
            failed index: create 1, let go of 1, active 1, failed 1, failed indexes "0"
        "#]],
    );
}

#[test]
fn a_failure_policy_is_asked() {
    let with = |rules: &str| format!("job parallelism=2 completions=4 backoff=1\nrule {rules}");
    let [by_code, by_condition] = ["exit=5", "condition=DisruptionTarget"];
    let (code, condition) = ("Running Failed,exit=5", "Running Failed,condition=DisruptionTarget");
    let jobs = [
        ("another container is meant", format!("FailJob {by_code} container=other"), code),
        ("this container is meant", format!("FailJob {by_code} container=c"), code),
        ("the container of a pod that runs", format!("FailJob {by_code}"), "Running,exit=5 Running"),
        ("the container of a pod that goes", format!("FailJob {by_code}"), "Running,exit=5,going Running"),
        ("not in, and it is", "FailJob not-exit=5".to_owned(), code),
        ("not in, and it is not", "FailJob not-exit=4".to_owned(), code),
        ("one of two failures", format!("FailJob {by_code}"), "Failed,exit=4 Failed,exit=5"),
        ("the first rule goes first", format!("Ignore {by_code}\nrule FailJob {by_code}"), code),
        ("and the other after it", format!("FailJob {by_code}\nrule Ignore {by_code}"), code),
        ("FailJob by condition", format!("FailJob {by_condition}"), condition),
        ("Ignore by code", format!("Ignore {by_code}"), "Running 3*Failed,exit=5"),
        ("Ignore by condition", format!("Ignore {by_condition}"), condition),
        ("ignored just now", format!("Ignore {by_code}"), "Running Failed,exit=5,ended=5"),
        ("Count by code", format!("Count {by_code}\nrule FailJob {by_code}"), code),
        ("Count by condition", format!("Count {by_condition}\nrule Ignore {by_condition}"), condition),
        ("Count beyond the limit", format!("Count {by_code}"), "Running 2*Failed,exit=5"),
        ("no rule fits", format!("Ignore {by_condition}"), code),
        (
            "it was decided, and the pod is there",
            format!("FailJob {by_code}\ncondition FailureTarget reason=PodFailurePolicy"),
            "Running Failed,exit=5",
        ),
        (
            "it was decided, and the pod is gone",
            format!("FailJob {by_code}\ncondition FailureTarget reason=PodFailurePolicy\nstatus failed=1"),
            "",
        ),
    ]
    .map(|(name, rules, pods)| (name, with(&rules), pods));
    let rows: Vec<_> = jobs.iter().map(|(name, job, pods)| (*name, job.as_str(), *pods)).collect();
    check(
        &rows,
        &expect![[r#"
            another container is meant: create 1, let go of 1, active 2, failed 1
            this container is meant: delete 1, let go of 2, terminating 1, failed 2, FailureTarget=True PodFailurePolicy
            the container of a pod that runs: active 2
            the container of a pod that goes: active 1, terminating 1
            not in, and it is: create 1, let go of 1, active 2, failed 1
            not in, and it is not: delete 1, let go of 2, terminating 1, failed 2, FailureTarget=True PodFailurePolicy
            one of two failures: let go of 2, failed 2, FailureTarget=True PodFailurePolicy, Failed=True PodFailurePolicy
            the first rule goes first: create 1, let go of 1, active 2
            and the other after it: delete 1, let go of 2, terminating 1, failed 2, FailureTarget=True PodFailurePolicy
            FailJob by condition: delete 1, let go of 2, terminating 1, failed 2, FailureTarget=True PodFailurePolicy
            Ignore by code: create 1, let go of 3, active 2
            Ignore by condition: create 1, let go of 1, active 2
            ignored just now: let go of 1, active 1
            Count by code: create 1, let go of 1, active 2, failed 1
            Count by condition: create 1, let go of 1, active 2, failed 1
            Count beyond the limit: delete 1, let go of 3, terminating 1, failed 3, FailureTarget=True BackoffLimitExceeded
            no rule fits: create 1, let go of 1, active 2, failed 1
            it was decided, and the pod is there: delete 1, let go of 2, terminating 1, failed 2, FailureTarget=True PodFailurePolicy
            it was decided, and the pod is gone: failed 1, FailureTarget=True PodFailurePolicy, Failed=True PodFailurePolicy
        "#]],
    );
}

/// What the status says after two looks at a Job, if the server takes only so many writes of pods of each.
fn reported(job: &str, pods: &str, n_taken: usize) -> String {
    let lines = pods.split_whitespace().enumerate();
    let text: String = lines.map(|(n, words)| format!("\npod p{n} {}", words.replace(',', " "))).collect();
    let mut world = World::parse(&(job.to_owned() + &text));
    let mut tried = 0;
    for n_taken in [n_taken, 0] {
        let plan = world.plan();
        tried += plan.steps.len().min(n_taken + 1);
        plan.status.iter().chain(plan.steps.iter().take(n_taken)).for_each(|step| world.apply(step));
        world.was_refused = true;
    }
    let number = |field: &str| world.status()[field].as_i64().unwrap_or(0);
    let [active, succeeded, failed] = ["active", "succeeded", "failed"].map(number);
    format!("{tried} tried, active {active}, succeeded {succeeded}, failed {failed}")
}

#[test]
fn what_the_server_does_not_take_is_not_reported() {
    let p2c5 = "job parallelism=2 completions=5";
    let rows = [
        ("too few active pods, with controller error", p2c5, "Running Succeeded", 0),
        ("too many active pods, with controller error", p2c5, "Running Running Running", 0),
        ("only new failed pod with controller error", p2c5, "Running Failed", 0),
        ("limited pods", "job new parallelism=100 completions=200", "", 10),
    ];
    let row =
        |(name, job, pods, n): &(&str, &str, &str, usize)| format!("{name}: {}\n", reported(job, pods, *n));
    expect![[r#"
        too few active pods, with controller error: 2 tried, active 1, succeeded 0, failed 0
        too many active pods, with controller error: 2 tried, active 2, succeeded 0, failed 0
        only new failed pod with controller error: 2 tried, active 1, succeeded 0, failed 0
        limited pods: 12 tried, active 10, succeeded 0, failed 0
    "#]]
    .assert_eq(&rows.iter().map(row).collect::<String>());
}
