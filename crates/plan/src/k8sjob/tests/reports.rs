//! What a Job reports of itself is what the API server takes, whatever its pods do.

use proptest::prelude::*;

use super::fixture::World;

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(words)
}

/// A Job of some sort, in the words of the fixture.
fn job() -> impl Strategy<Value = String> {
    let sort = one_of(&[
        "",
        "indexed",
        "indexed per-index=0",
        "indexed per-index=1",
        "indexed per-index=1 max-failed=1",
    ]);
    let size = one_of(&[
        "parallelism=2 completions=3",
        "parallelism=3 completions=3",
        "parallelism=1 completions=0",
    ]);
    let limit = one_of(&["", "backoff=0", "backoff=1", "deadline=10"]);
    let state = one_of(&["", "suspend", "going", "replace=Failed"]);
    let rule = one_of(&["", "\nrule FailJob exit=3", "\nrule Ignore exit=3", "\nrule FailIndex exit=3"]);
    (sort, size, limit, state, rule).prop_map(|(sort, size, limit, state, rule)| {
        let success = if sort.is_empty() { "" } else { "\nsuccess indexes=0,1 count=1" };
        format!("job {sort} {size} {limit} {state}{rule}{success}")
    })
}

/// A status from which the Job goes on: new, running, or suspended a while ago.
fn status() -> impl Strategy<Value = &'static str> {
    one_of(&[
        "status started=50",
        "status started=50 failed=1",
        "status not-started\ncondition Suspended reason=JobSuspended",
        "status not-started failed=1\ncondition Suspended reason=JobSuspended",
    ])
}

fn pod() -> impl Strategy<Value = String> {
    let phase = one_of(&[
        "Pending",
        "Pending node=n",
        "Running",
        "Running ready",
        "Succeeded",
        "Failed",
        "Failed exit=3",
    ]);
    let index = one_of(&["index=0", "index=1", "index=2", "index=7", ""]);
    let more = one_of(&["", "", "going", "untracked"]);
    (phase, index, more, 2..90i32)
        .prop_map(|(phase, index, more, ended)| format!("{phase} {index} {more} ended={ended}"))
}

proptest! {
    #[test]
    fn the_server_takes_every_report(
        job in job(), status in status(), pods in proptest::collection::vec(pod(), 0..6),
    ) {
        let pods: String = pods.iter().enumerate().map(|(n, pod)| format!("\npod p{n} {pod}")).collect();
        let mut world = World::parse(&format!("{job}\n{status}{pods}"));
        // Each write is checked as it is made.
        let n_writes = world.run_out().len();
        prop_assert!(n_writes < 40, "it comes to rest");
    }
}

#[test]
fn a_job_that_ends_while_it_is_suspended_has_a_start() {
    for (job, rest, end) in [
        ("indexed parallelism=1 completions=1", "status succeeded=1 completed=0", "Complete"),
        ("parallelism=1 completions=3 backoff=0", "status failed=1", "Failed"),
        ("parallelism=1 completions=3", "rule FailJob exit=143\npod a Failed exit=143 untracked", "Failed"),
    ] {
        let suspended = "status not-started\ncondition Suspended reason=JobSuspended";
        let mut world = World::parse(&format!("job suspend {job}\n{suspended}\n{rest}"));
        world.run_out();
        let status = world.status();
        assert_eq!(status["conditions"][2]["type"], end, "{job}: {status}");
        assert!(status["startTime"].is_string(), "{job}: {status}");
    }
}
