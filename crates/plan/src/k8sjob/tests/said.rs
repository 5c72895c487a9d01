//! What a Job says in Events.

use super::fixture::World;
use crate::{Note, Severity};

/// What the next decision says, one line each. The drawn part of a name is not shown.
fn said(text: &str) -> Vec<String> {
    let line = |Note { severity, reason, message, .. }: &Note| {
        let severity = if *severity == Severity::Warning { "Warning " } else { "" };
        let drawn = message.rsplit_once("a-").filter(|(_, drawn)| drawn.len() == 5);
        let message = drawn.map_or(message.clone(), |(start, _)| format!("{start}a-?"));
        format!("{severity}{reason}: {message}")
    };
    World::parse(text).plan().notes.iter().map(line).collect()
}

#[test]
fn pods_that_come_and_go_are_named_and_of_a_crowd_the_first_ten() {
    let created = "SuccessfulCreate: Created pod: a-?";
    assert_eq!(said("job new parallelism=2 completions=5"), [created; 2]);
    let crowd = said("job new parallelism=13 completions=13");
    assert_eq!(crowd[..10], [created; 10]);
    assert_eq!(crowd[10..], ["SuccessfulCreate: Created 3 more pods"]);
    let surplus =
        "job parallelism=1 completions=5\nstatus active=3\npod x Pending\npod y Pending\npod z Running";
    assert_eq!(said(surplus), ["SuccessfulDelete: Deleted pod: x", "SuccessfulDelete: Deleted pod: y"]);
}

#[test]
fn more_successes_than_were_wanted_are_worth_a_warning() {
    let done = "job parallelism=1 completions=1\nstatus succeeded=2";
    assert_eq!(
        said(done),
        [
            "Warning TooManySucceededPods: Too many succeeded pods running after completion count reached",
            "Completed: Job completed",
        ]
    );
    assert_eq!(said("job parallelism=1 completions=1\nstatus succeeded=1"), ["Completed: Job completed"]);
}

#[test]
fn a_failure_is_told_with_the_words_of_its_condition_and_only_at_the_end() {
    let pending = "job parallelism=1 completions=1 backoff=0\nstatus active=1\npod f Failed\npod r Running";
    assert!(said(pending).iter().all(|line| line.starts_with("SuccessfulDelete")), "its pods have yet to go");
    for (job, expected) in [
        ("backoff=0\nstatus failed=1", "BackoffLimitExceeded: Job has reached the specified backoff limit"),
        ("deadline=10\nstatus started=20", "DeadlineExceeded: Job was active longer than specified deadline"),
        ("indexed per-index=0\nstatus failed=1 failed-indexes=0", "FailedIndexes: Job has failed indexes"),
        (
            "indexed per-index=0 max-failed=0\nstatus failed=1 failed-indexes=0",
            "MaxFailedIndexesExceeded: Job has exceeded the specified maximal number of failed indexes",
        ),
    ] {
        let told = said(&format!("job parallelism=1 completions=1 {job}"));
        assert_eq!(told, [format!("Warning {expected}")], "{job}");
    }
}
