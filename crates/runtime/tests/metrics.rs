//! What is counted follows what is stored, but for the numbers that are about attempts.

use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Kind, Time};
use krafla_plan::vcjob::JobController;
use krafla_runtime::apply::Applied;
use krafla_runtime::metrics::Metrics;
use krafla_runtime::{Engine, Event, EventType, Expectation, Listed, Outcome};
use serde_json::json;

fn job(uid: &str, phase: &str, revision: u64) -> bytes::Bytes {
    let job = json!({
        "metadata": { "namespace": "n", "name": "a", "uid": uid, "resourceVersion": revision.to_string() },
        "spec": { "queue": "q" },
        "status": { "state": { "phase": phase } },
    });
    job.to_string().into()
}

fn observe(engine: &mut Engine, event_type: EventType, revision: u64, object: bytes::Bytes) {
    engine.observed(Kind::VcJob, &Event { event_type, revision, object }, now());
}

fn now() -> Time {
    Time::from_seconds(0)
}

/// The lines of one metric on the page.
fn lines(metrics: &Metrics, name: &str) -> Vec<String> {
    metrics.page().lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
}

#[test]
fn volcano_b37_an_end_is_counted_once_however_it_is_seen() {
    const COMPLETED: &str = "volcano_job_completed_phase_count";
    let counted = [r#"volcano_job_completed_phase_count{job_name="n/a",queue_name="q"} 1"#];
    let metrics = Arc::<Metrics>::default();
    let mut engine = Engine::new(vec![Box::new(JobController)]).counting_in(metrics.clone(), "test");
    let listed = Listed { revision: 1, items: vec![job("one", "Running", 1)] };
    engine.listed(Kind::VcJob, &listed, now()).unwrap();
    assert!(lines(&metrics, COMPLETED).is_empty());

    observe(&mut engine, EventType::Modified, 2, job("one", "Completed", 2));
    assert_eq!(lines(&metrics, COMPLETED), counted);
    observe(&mut engine, EventType::Modified, 2, job("one", "Completed", 2));
    let listed = Listed { revision: 3, items: vec![job("one", "Completed", 3)] };
    engine.listed(Kind::VcJob, &listed, now()).unwrap();
    assert_eq!(lines(&metrics, COMPLETED), counted, "seen again, it is not counted again");

    let listed = Listed { revision: 5, items: vec![job("two", "Pending", 5)] };
    engine.listed(Kind::VcJob, &listed, now()).unwrap();
    assert!(lines(&metrics, COMPLETED).is_empty(), "a namesake begins with nothing");
    observe(&mut engine, EventType::Modified, 6, job("two", "Completed", 6));
    assert_eq!(lines(&metrics, COMPLETED), counted);
    observe(&mut engine, EventType::Deleted, 7, job("two", "Completed", 7));
    assert!(lines(&metrics, COMPLETED).is_empty(), "what is gone is forgotten");
}

#[test]
fn attempts_are_counted_with_how_long_they_took_and_how_often_they_were_put_off() {
    let metrics = Arc::<Metrics>::default();
    let controller = krafla_plan::k8sjob::JobController::default();
    let mut engine = Engine::new(vec![Box::new(controller)]).counting_in(metrics.clone(), "test");
    let job = json!({
        "metadata": { "namespace": "n", "name": "a", "uid": "u", "resourceVersion": "1" },
        "spec": { "template": { "spec": { "containers": [] } } },
    });
    let listed = Listed { revision: 1, items: vec![job.to_string().into()] };
    engine.listed(Kind::Job, &listed, now()).unwrap();
    engine.listed(Kind::Pod, &Listed { revision: 1, items: Vec::new() }, now()).unwrap();
    assert!(lines(&metrics, "job_controller_job_sync").is_empty(), "nothing has been tried");

    let work = engine.next(now()).expect("a pod is to be created");
    let expectations = vec![Expectation::Revision { kind: Kind::Pod, revision: 2 }];
    let applied = Applied { expectations, writes: 2, failure: None };
    let later = now().after(Duration::from_millis(1500));
    engine.finished(work, Outcome::Applied(applied), later);
    let labels = r#"{completion_mode="NonIndexed",result="success",action="pods_created"}"#;
    assert_eq!(
        lines(&metrics, "job_controller_job_syncs_total"),
        [format!("job_controller_job_syncs_total{labels} 1")]
    );
    assert_eq!(
        lines(&metrics, "job_controller_job_sync_duration_seconds_sum"),
        [format!("job_controller_job_sync_duration_seconds_sum{labels} 1.5")]
    );

    // The Job changes before the pod is seen: there is nothing to decide yet.
    let event = Event {
        event_type: EventType::Modified,
        revision: 2,
        object: job.to_string().replace(r#""1""#, r#""2""#).into(),
    };
    engine.observed(Kind::Job, &event, later);
    assert!(engine.next(later).is_none());
    assert_eq!(
        lines(&metrics, "job_controller_stale_sync_skips_total"),
        [r#"job_controller_stale_sync_skips_total{group="",resource="pods"} 1"#]
    );
}
