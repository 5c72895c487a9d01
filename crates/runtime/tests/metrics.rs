//! What is counted follows what is stored, but for the numbers that are about attempts.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use krafla_api::{Kind, Time};
use krafla_cluster::{ClientError, Event, EventType, Listed};
use krafla_plan::Controller;
use krafla_plan::jobflow::JobFlowController;
use krafla_plan::vcjob::JobController;
use krafla_runtime::apply::{Applied, Failure};
use krafla_runtime::metrics::Metrics;
use krafla_runtime::{Engine, Expectation, Outcome};
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
    engine.observed(Kind::VcJob, &Event::new(event_type, revision, object), now());
}

fn now() -> Time {
    Time::from_seconds(0)
}

/// The lines of one metric on the page.
fn lines(metrics: &Metrics, name: &str) -> Vec<String> {
    metrics.page(now()).lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
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

/// A flow whose only job has completed.
fn flow(phase: &str, revision: u64) -> bytes::Bytes {
    let completed = json!([{ "name": "f-x", "state": "Completed" }]);
    let flow = json!({
        "metadata": { "namespace": "n", "name": "f", "uid": "f1", "resourceVersion": revision.to_string() },
        "spec": { "flows": [{ "name": "x" }] },
        "status": { "state": { "phase": phase }, "jobStatusList": completed, "completedJobs": ["f-x"] },
    });
    flow.to_string().into()
}

#[test]
fn volcano_6_and_7_a_success_that_could_not_be_stored_is_neither_believed_nor_counted() {
    const SUCCEEDED: &str = "volcano_jobflow_succeed_phase_count";
    let metrics = Arc::<Metrics>::default();
    let mut engine = Engine::new(vec![Box::new(JobFlowController)]).counting_in(metrics.clone(), "test");
    let listed = Listed { revision: 1, items: vec![flow("Running", 1)] };
    engine.listed(Kind::JobFlow, &listed, now()).unwrap();
    for kind in JobFlowController.watches() {
        engine.listed(*kind, &Listed { revision: 1, items: Vec::new() }, now()).unwrap();
    }
    let mut decided = Vec::new();
    for minutes in 0..3 {
        let at = now().after(Duration::from_secs(60 * minutes));
        let work = engine.next(at).expect("the success is to be stored");
        decided.push(work.plan.to_string());
        let error = ClientError::Unknown("no answer".to_owned());
        let failure = Failure { step: String::new(), refusal_reason: "FailedUpdate", error };
        let applied = Applied { writes: 1, failure: Some(failure), ..Applied::default() };
        engine.finished(work, Outcome::Applied(applied), at);
        assert!(lines(&metrics, SUCCEEDED).is_empty(), "nothing has been stored");
    }
    assert!(decided.iter().all(|plan| plan == &decided[0] && plan.contains("Succeed")), "{decided:?}");
    let (event_type, revision) = (EventType::Modified, 2);
    for _ in 0..2 {
        let event = Event::new(event_type, revision, flow("Succeed", revision));
        engine.observed(Kind::JobFlow, &event, now());
        let counted = [r#"volcano_jobflow_succeed_phase_count{jobflow_namespace="n"} 1"#];
        assert_eq!(lines(&metrics, SUCCEEDED), counted);
    }
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
    let applied = Applied { expectations, writes: 3, creations_failed: 1, ..Applied::default() };
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
    assert_eq!(
        lines(&metrics, "job_controller_job_pods_creation_total"),
        [r#"job_controller_job_pods_creation_total{reason="new",status="failed"} 1"#]
    );

    // The Job changes before the pod is seen: there is nothing to decide yet.
    let changed = job.to_string().replace(r#""1""#, r#""2""#).into();
    let event = Event::new(EventType::Modified, 2, changed);
    engine.observed(Kind::Job, &event, later);
    assert!(engine.next(later).is_none());
    assert_eq!(
        lines(&metrics, "job_controller_stale_sync_skips_total"),
        [r#"job_controller_stale_sync_skips_total{group="",resource="pods"} 1"#]
    );
}

/// The numbers of the work queues, without those of single bounds.
fn queue_lines(metrics: &Metrics, at: Time) -> String {
    let page = metrics.page(at);
    let lines = page.lines().filter(|line| line.starts_with("workqueue_") && !line.contains("_bucket"));
    lines.map(|line| line.trim_start_matches("workqueue_").to_owned() + "\n").collect()
}

#[test]
fn a_queue_shows_how_long_roots_wait_and_are_worked_on_and_how_often_that_fails() {
    let metrics = Arc::<Metrics>::default();
    let mut engine = Engine::new(vec![Box::new(JobFlowController)]).counting_in(metrics.clone(), "test");
    let later = |seconds| now().after(Duration::from_secs(seconds));
    engine.listed(Kind::JobFlow, &Listed { revision: 1, items: vec![flow("Running", 1)] }, now()).unwrap();
    for kind in JobFlowController.watches() {
        engine.listed(*kind, &Listed { revision: 1, items: Vec::new() }, now()).unwrap();
    }
    let work = engine.next(later(2)).expect("the success is to be stored");
    expect![[r#"
        adds_total{name="jobflow-controller"} 1
        depth{name="jobflow-controller"} 0
        longest_running_processor_seconds{name="jobflow-controller"} 5
        queue_duration_seconds_sum{name="jobflow-controller"} 2
        queue_duration_seconds_count{name="jobflow-controller"} 1
        retries_total{name="jobflow-controller"} 0
        unfinished_work_seconds{name="jobflow-controller"} 5
        work_duration_seconds_sum{name="jobflow-controller"} 0
        work_duration_seconds_count{name="jobflow-controller"} 0
    "#]]
    .assert_eq(&queue_lines(&metrics, later(7)));

    let event = Event::new(EventType::Modified, 2, flow("Running", 2));
    engine.observed(Kind::JobFlow, &event, later(8));
    engine.finished(work, Outcome::Dropped, later(9));
    expect![[r#"
        adds_total{name="jobflow-controller"} 2
        depth{name="jobflow-controller"} 1
        longest_running_processor_seconds{name="jobflow-controller"} 0
        queue_duration_seconds_sum{name="jobflow-controller"} 2
        queue_duration_seconds_count{name="jobflow-controller"} 1
        retries_total{name="jobflow-controller"} 1
        unfinished_work_seconds{name="jobflow-controller"} 0
        work_duration_seconds_sum{name="jobflow-controller"} 7
        work_duration_seconds_count{name="jobflow-controller"} 1
    "#]]
    .assert_eq(&queue_lines(&metrics, later(9)));
}

#[test]
fn the_queues_of_kubernetes_controllers_have_the_names_that_dashboards_ask_for() {
    let metrics = Arc::<Metrics>::default();
    let _engine = Engine::new(krafla_plan::controllers()).counting_in(metrics.clone(), "test");
    let depths = lines(&metrics, "workqueue_depth");
    for name in ["job", "job_orphan_pod", "ttl_jobs_to_delete", "cronjob"] {
        let idle = format!(r#"workqueue_depth{{name="{name}"}} 0"#);
        assert!(depths.contains(&idle), "{name}: {depths:?}");
    }
    assert_eq!(depths.len(), krafla_plan::controllers().len(), "no two share one: {depths:?}");
}
