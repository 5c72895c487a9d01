//! What a dashboard sees of a cluster.

use std::time::{Duration, Instant};

use crate::support::{Up, job};

/// Scrapes until the page has a line.
fn wait_for_line(up: &Up, line: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let page = up.kubectl_ok(&["get", "--raw", "/metrics"]);
        if page.lines().any(|shown| shown == line) {
            return page;
        }
        assert!(Instant::now() < deadline, "{line} is not on the page:\n{page}");
    }
}

#[test]
fn a_scrape_shows_volcanos_numbers_and_our_own() {
    let up = Up::start();
    up.apply(&job("counted", 2, "true", ""));
    up.wait_for("vcjob/counted", "{.status.state.phase}", "Completed");
    let completed = r#"volcano_job_completed_phase_count{job_name="default/counted",queue_name="default"} 1"#;
    let page = wait_for_line(&up, completed);
    for line in [
        "# TYPE volcano_job_completed_phase_count counter",
        "# TYPE volcano_controller_job_to_pod_creation_latency_milliseconds histogram",
        "volcano_controller_job_to_pod_creation_latency_milliseconds_count 2",
        "# TYPE krafla_reconcile_total counter",
        "# TYPE krafla_queue_depth gauge",
        "# TYPE workqueue_queue_duration_seconds histogram",
        r#"workqueue_retries_total{name="ttl_jobs_to_delete"} 0"#,
        "# TYPE apiserver_request_total counter",
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} is not on the page:\n{page}");
    }
    // The job's PodGroup goes after its end.
    wait_for_line(&up, r#"volcano_queue_pod_group_running_count{queue_name="default"} 0"#);
    let writes =
        page.lines().find(|line| line.starts_with(r#"krafla_writes_total{controller="job-controller"}"#));
    assert!(writes.is_some(), "{page}");

    up.kubectl_ok(&["delete", "vcjob/counted"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while up.kubectl_ok(&["get", "--raw", "/metrics"]).contains("default/counted") {
        assert!(Instant::now() < deadline, "a job that is gone is still on the page");
    }
}
