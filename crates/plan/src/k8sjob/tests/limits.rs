//! The limits of a Job, case by case as Kubernetes tests them: restarts, waits, indexes, and which rule goes first.

use std::fmt::Write;

use expect_test::expect;
use krafla_cluster::Step;

use super::fixture::World;

/// What is decided about a Job in a few words: the condition that it gets, the pods that come, and when it looks again.
fn decided(text: &str) -> String {
    let plan = World::parse(text).plan();
    let mut said = Vec::new();
    if let Some(Step::Patch { patch, .. }) = &plan.status {
        let conditions = patch["status"]["conditions"].as_array().into_iter().flatten();
        let words = conditions.map(|it| format!("{} {}", it["type"], it["reason"]).replace('"', ""));
        said.extend(words);
    }
    for step in &plan.steps {
        if let Step::Create { object, .. } = step {
            said.push(object["metadata"]["generateName"].as_str().unwrap().trim_end_matches('-').to_owned());
        }
    }
    said.extend(plan.wake_at.map(|at| format!("in {} s", at.since(super::fixture::now()).as_secs())));
    said.join(", ")
}

#[test]
fn restarts_in_place_are_summed_over_the_pods_that_run_or_wait() {
    let mut table = String::new();
    for phase in ["Running", "Pending node=n"] {
        for (limit, restarts) in
            [(0, "0"), (0, "1"), (1, "0"), (1, "1"), (2, "1"), (2, "2"), (2, "1+1"), (3, "1+1"), (3, "2+1")]
        {
            let mut job = format!(
                "job parallelism=2 completions=2 backoff={limit} restart=OnFailure\nstatus active=2\n"
            );
            for (n, count) in restarts.split('+').enumerate() {
                writeln!(job, "pod p{n} {phase} restarts={count}").unwrap();
            }
            let fails = decided(&job).contains("FailureTarget BackoffLimitExceeded");
            writeln!(
                table,
                "{phase}, limit {limit}, {restarts} restarts: {}",
                if fails { "fails" } else { "runs on" }
            )
            .unwrap();
        }
    }
    expect![[r#"
        Running, limit 0, 0 restarts: runs on
        Running, limit 0, 1 restarts: fails
        Running, limit 1, 0 restarts: runs on
        Running, limit 1, 1 restarts: fails
        Running, limit 2, 1 restarts: runs on
        Running, limit 2, 2 restarts: fails
        Running, limit 2, 1+1 restarts: fails
        Running, limit 3, 1+1 restarts: runs on
        Running, limit 3, 2+1 restarts: fails
        Pending node=n, limit 0, 0 restarts: runs on
        Pending node=n, limit 0, 1 restarts: fails
        Pending node=n, limit 1, 0 restarts: runs on
        Pending node=n, limit 1, 1 restarts: fails
        Pending node=n, limit 2, 1 restarts: runs on
        Pending node=n, limit 2, 2 restarts: fails
        Pending node=n, limit 2, 1+1 restarts: fails
        Pending node=n, limit 3, 1+1 restarts: runs on
        Pending node=n, limit 3, 2+1 restarts: fails
    "#]]
    .assert_eq(&table);
    let never =
        "job parallelism=1 completions=1 backoff=1 restart=Never\nstatus active=1\npod a Running restarts=5";
    assert_eq!(decided(never), "", "restarts count only where containers are started again");
    let ended = "job parallelism=1 completions=2 backoff=1 restart=OnFailure\npod a Succeeded restarts=5";
    assert!(!decided(ended).contains("FailureTarget"), "a pod that has ended restarts no more");
}

#[test]
fn a_suspended_job_fails_by_its_limit_as_well() {
    let job = "job suspend parallelism=1 completions=1 backoff=0\nstatus not-started failed=1";
    assert_eq!(decided(job), "FailureTarget BackoffLimitExceeded, Failed BackoffLimitExceeded");
    let restarting =
        |suspend: &str| format!("job {suspend} parallelism=1 completions=1 backoff=2 restart=OnFailure\n");
    for (suspend, pods, expected) in [
        ("suspend", "status active=1\npod a Running restarts=2", "FailureTarget BackoffLimitExceeded"),
        ("suspend", "status active=1\npod a Running restarts=1", "Suspended JobSuspended"),
        ("", "pod a Succeeded restarts=20", "SuccessCriteriaMet CompletionsReached"),
    ] {
        assert_eq!(decided(&(restarting(suspend) + pods)), expected, "{pods}");
    }
}

#[test]
fn the_wait_follows_from_the_failures_since_the_last_success() {
    let job = "job parallelism=4 completions=9";
    let after =
        |pods: &str| decided(&format!("{job}\npod run Running\npod run2 Running\npod run3 Running\n{pods}"));
    assert_eq!(after("pod f Failed ended=3"), "in 7 s");
    assert_eq!(after("pod f Failed ended=12"), "a");
    assert_eq!(after("pod f Failed ended=3\npod g Failed ended=12"), "in 17 s", "twice as long after two");
    assert_eq!(after("pod f Failed ended=5\npod s Succeeded ended=5"), "a", "they ended at the same time");
    assert_eq!(after("pod f Failed ended=5\npod s Succeeded ended=6"), "in 5 s", "the success came before");
    assert_eq!(after("pod f Failed ended=5\npod g Failed ended=9\npod s Succeeded ended=7"), "in 5 s");
}

#[test]
fn a_job_that_is_made_anew_does_not_wait_for_its_namesake() {
    let job = "job new parallelism=1 completions=1\npod old Failed ended=1 owner=before";
    assert_eq!(decided(job), "a");
}

#[test]
fn a_failure_that_a_rule_ignores_delays_the_next_pod_all_the_same() {
    let job = "job parallelism=1 completions=1\nrule Ignore exit=7\npod a Failed exit=7 ended=3";
    assert_eq!(decided(job), "in 7 s");
}

#[test]
fn each_index_waits_for_itself_and_the_shortest_wait_counts() {
    let job = "job indexed parallelism=2 completions=2 per-index=5\nstatus failed-indexes=\n";
    let failed = |zero: u32, one: u32| {
        decided(&format!(
            "{job}pod a Failed index=0 failures=0 ended={zero}\npod b Failed index=1 failures=0 ended={one}"
        ))
    };
    assert_eq!(failed(0, 0), "in 10 s");
    assert_eq!(failed(0, 1), "in 9 s");
    assert_eq!(failed(0, 10), "a-1, in 10 s");
    assert_eq!(failed(10, 11), "a-0, a-1");
}

#[test]
fn a_count_of_failures_that_is_none_reads_as_nought() {
    for count in ["x", "-3", "99999999999"] {
        let job = format!(
            "job indexed parallelism=1 completions=1 per-index=1\nstatus failed-indexes=\npod a Failed index=0 failures={count}"
        );
        assert_eq!(decided(&job), "a-0", "{count}: it is tried again");
    }
}

#[test]
fn free_indexes_are_taken_from_below() {
    let job = "job indexed parallelism=8 completions=20\nstatus active=3 succeeded=4 completed=2-4,9\n\
        pod a Running index=3\npod b Running index=5\npod c Running index=8";
    assert_eq!(decided(job), "a-0, a-1, a-6, a-7, a-10");
}

#[test]
fn of_many_pods_with_one_index_one_stays() {
    let text = "job indexed parallelism=3 completions=3\nstatus active=4\n\
        pod a Running index=0 created=9\npod b Running index=0 created=8\npod c Pending index=0\npod d Running index=1";
    let plan = World::parse(text).plan();
    let deleted: Vec<String> =
        plan.steps.iter().map(ToString::to_string).filter(|it| it.starts_with("delete")).collect();
    assert_eq!(deleted, ["delete pod c", "delete pod b"], "the oldest of those that run");
}

#[test]
fn which_rule_goes_first() {
    let mut table = String::new();
    for (name, job) in [
        (
            "FailJob goes before the index's own limit",
            "per-index=1 completions=2 parallelism=2\nrule FailJob exit=42\npod a Failed index=0 exit=42 failures=0",
        ),
        (
            "the Job's limit goes before that of failed indexes",
            "per-index=0 max-failed=0 backoff=0 completions=2 parallelism=2\npod a Failed index=0 failures=0",
        ),
        (
            "the deadline goes before failed indexes",
            "per-index=0 max-failed=0 deadline=10 completions=2 parallelism=2\nstatus started=20 failed-indexes=\npod a Failed index=0 failures=0",
        ),
        (
            "too many failed indexes go before all of them being done",
            "per-index=0 max-failed=0 completions=2 parallelism=2\npod a Failed index=0 failures=0\npod b Succeeded index=1",
        ),
        (
            "failed indexes go before a success policy",
            "per-index=0 completions=2 parallelism=2\nsuccess count=1\npod a Failed index=0 failures=0\npod b Succeeded index=1",
        ),
        (
            "a success policy goes on while an index is left to try",
            "per-index=1 completions=2 parallelism=2\nsuccess count=1\npod a Failed index=0 failures=0\npod b Succeeded index=1",
        ),
        (
            "FailJob goes before a success policy",
            "completions=2 parallelism=2\nrule FailJob exit=42\nsuccess count=1\npod a Failed index=0 exit=42\npod b Succeeded index=1",
        ),
        (
            "an ignored failure leaves a success policy alone",
            "completions=2 parallelism=2 backoff=0\nrule Ignore exit=42\nsuccess count=1\npod a Failed index=0 exit=42\npod b Succeeded index=1",
        ),
        (
            "success waits for what is still going",
            "completions=2 parallelism=2\nsuccess count=1\npod a Running index=0 going\npod b Succeeded index=1",
        ),
        (
            "without a policy all indexes are wanted",
            "completions=2 parallelism=2\npod a Succeeded index=0\npod b Succeeded index=1",
        ),
    ] {
        writeln!(table, "{name}: {}", decided(&format!("job indexed {job}"))).unwrap();
    }
    expect![[r#"
        FailJob goes before the index's own limit: FailureTarget PodFailurePolicy
        the Job's limit goes before that of failed indexes: FailureTarget BackoffLimitExceeded
        the deadline goes before failed indexes: FailureTarget DeadlineExceeded
        too many failed indexes go before all of them being done: FailureTarget MaxFailedIndexesExceeded
        failed indexes go before a success policy: FailureTarget FailedIndexes
        a success policy goes on while an index is left to try: SuccessCriteriaMet SuccessPolicy
        FailJob goes before a success policy: FailureTarget PodFailurePolicy
        an ignored failure leaves a success policy alone: SuccessCriteriaMet SuccessPolicy
        success waits for what is still going: SuccessCriteriaMet SuccessPolicy
        without a policy all indexes are wanted: SuccessCriteriaMet CompletionsReached
    "#]]
    .assert_eq(&table);
}
