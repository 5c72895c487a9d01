//! Which numbers an attempt to take a Job further goes under.

use std::time::Duration;

use krafla_api::Kind;

use super::fixture::World;
use crate::k8sjob::JobController;
use crate::{Attempt, Controller};

/// What looking at a Job does to the numbers.
fn measures(text: &str, is_success: bool) -> Vec<String> {
    measures_with(text, is_success, 0)
}

/// The same, if so many pods could not be created.
fn measures_with(text: &str, is_success: bool, n_creations_failed: usize) -> Vec<String> {
    let world = World::parse(text);
    let took = Duration::from_millis(20);
    let (root, plan) = (&world.job(), &world.plan());
    let attempt = Attempt::Made { root, plan, is_success, n_creations_failed, took };
    JobController::default().measure_attempt(&attempt).iter().map(ToString::to_string).collect()
}

#[test]
fn a_look_is_counted_by_what_was_done_about_pods() {
    for (text, action) in [
        ("job parallelism=2 completions=2", "pods_created"),
        ("job parallelism=1 completions=2 \n pod a Running \n pod b Running", "pods_deleted"),
        ("job suspend \n pod a Running", "pods_deleted"),
        ("job \n pod a Running", "tracking"),
        ("job \n pod a Succeeded", "tracking"),
        ("job going \n pod a Running", "reconciling"),
        ("job backoff=0 parallelism=2 completions=2 \n pod a Failed \n pod b Running", "reconciling"),
        ("job \n condition FailureTarget reason=DeadlineExceeded \n pod a Running", "reconciling"),
        (
            "job indexed parallelism=2 completions=2 \n success indexes=0 \n pod a Succeeded index=0 \n pod b Running index=1",
            "reconciling",
        ),
    ] {
        let mode = if text.contains("indexed") { "Indexed" } else { "NonIndexed" };
        for (is_success, result) in [(true, "success"), (false, "error")] {
            let labels = format!(r#"["{mode}", "{result}", "{action}"]"#);
            let expected = [
                format!("job_controller_job_syncs_total{labels} Add(1.0)"),
                format!("job_controller_job_sync_duration_seconds{labels} Observe(0.02)"),
            ];
            assert_eq!(measures(text, is_success), expected, "{text}");
        }
    }
}

#[test]
fn pods_that_could_not_be_created_are_counted_by_what_they_were_wanted_for() {
    for (text, reason) in [
        ("job parallelism=2 completions=2", "new"),
        // The failure is long past, and put on record by the plan that asks for the next pod.
        (
            "job parallelism=2 completions=5 \n pod a Running \n pod b Failed",
            "recreate_terminating_or_failed",
        ),
        (
            "job parallelism=2 completions=5 replace=Failed \n pod a Running \n pod b Failed",
            "recreate_failed",
        ),
    ] {
        let created = format!(r#"job_controller_job_pods_creation_total["{reason}", "failed"] Add(3.0)"#);
        assert_eq!(measures_with(text, false, 3).last(), Some(&created), "{text}");
    }
}

#[test]
fn a_job_that_has_ended_is_not_looked_at() {
    assert!(measures("job \n condition Complete reason=CompletionsReached", true).is_empty());
}

#[test]
fn a_look_that_is_put_off_names_the_resource_that_is_behind() {
    for (unseen, labels) in [(Kind::Pod, r#"["", "pods"]"#), (Kind::Job, r#"["batch", "jobs"]"#)] {
        let measures = JobController::default().measure_attempt(&Attempt::Skipped { unseen });
        let measures: Vec<String> = measures.iter().map(ToString::to_string).collect();
        assert_eq!(measures, [format!("job_controller_stale_sync_skips_total{labels} Add(1.0)")]);
    }
}
