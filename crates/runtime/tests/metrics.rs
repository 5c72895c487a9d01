//! What is counted follows what is stored.

use std::sync::Arc;

use krafla_api::{Kind, Time};
use krafla_plan::vcjob::JobController;
use krafla_runtime::metrics::Metrics;
use krafla_runtime::{Engine, Event, EventType, Listed};
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
