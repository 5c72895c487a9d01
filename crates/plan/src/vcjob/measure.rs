//! What jobs do to the numbers at /metrics. Volcano: `pkg/controllers/metrics/job.go`.

use krafla_api::Kind;
use krafla_api::volcano::JobPhase;
use krafla_metrics::{Metric, MetricKind};

use crate::measure::{Effect, Measure, Stored};
use crate::{Object, controlling_keys};

const OF_JOB: &[&str] = &["job_name", "queue_name"];

static COMPLETED: Metric =
    Metric::counter("volcano_job_completed_phase_count", "How often the job was completed.", OF_JOB);

static FAILED: Metric =
    Metric::counter("volcano_job_failed_phase_count", "How often the job failed.", OF_JOB);

static CREATION_LATENCY: Metric = Metric {
    name: "volcano_controller_job_to_pod_creation_latency_milliseconds",
    help: "How much later than their job pods were created, in milliseconds.",
    labels: &[],
    kind: MetricKind::Histogram(&LATENCY_BOUNDS),
};

/// From 50 to 60,000 in thirty steps, each larger than the one before by the same factor.
const LATENCY_BOUNDS: [f64; 30] = [
    50.0,
    63.8482014397776,
    81.53185654188836,
    104.11324800491073,
    132.9488726233413,
    169.77092800892854,
    216.791368202641,
    276.8347789481444,
    353.50805463634845,
    451.4170696601096,
    576.443359940256,
    736.0974352817536,
    939.9699465434612,
    1200.3078098848778,
    1532.7498967053589,
    1957.266483232841,
    2499.3588938555104,
    3191.591402503727,
    4075.547415610405,
    5204.3274473851625,
    6645.738944384228,
    8486.369576744382,
    10836.78868456751,
    13838.189337851376,
    17670.870008098344,
    22565.065357863747,
    28814.776769412634,
    36795.433432313635,
    46986.44491700576,
    59999.99999999996,
];

/// What a stored change of a job or a pod does to the numbers.
pub(super) fn measure(stored: &Stored<'_>) -> Vec<Measure> {
    match stored.after.or(stored.before).map(|object| object.kind) {
        Some(Kind::VcJob) if stored.after.is_none() => forgotten(stored),
        Some(Kind::VcJob) => ended(stored).into_iter().collect(),
        Some(Kind::Pod) => created(stored).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn ended(stored: &Stored<'_>) -> Option<Measure> {
    let (_, phase) = stored.changed(|object| Some(&object.as_vcjob()?.status.state.phase))?;
    let metric = match phase {
        JobPhase::Completed => &COMPLETED,
        JobPhase::Failed => &FAILED,
        _ => return None,
    };
    of_job(metric, stored.after?, Effect::Add(1.0))
}

fn forgotten(stored: &Stored<'_>) -> Vec<Measure> {
    let of_gone = |metric| of_job(metric, stored.before?, Effect::Forget);
    [&COMPLETED, &FAILED].into_iter().filter_map(of_gone).collect()
}

fn of_job(metric: &'static Metric, object: &Object, effect: Effect) -> Option<Measure> {
    let queue = &object.as_vcjob()?.spec.queue;
    Some(Measure::new(metric, [&object.meta.key.to_string(), queue], effect))
}

/// A pod that is new says how long after its job it came.
fn created(stored: &Stored<'_>) -> Option<Measure> {
    let pod = stored.after.filter(|_| stored.before.is_none() && stored.is_news)?;
    let jobs = controlling_keys(Kind::VcJob, pod);
    let job = jobs.first().and_then(|key| stored.objects.get(Kind::VcJob, key))?;
    if pod.meta.controller_uid() != Some(&job.meta.uid) {
        return None;
    }
    let after = pod.meta.created_at?.since(job.meta.created_at?);
    Some(Measure::new(&CREATION_LATENCY, [], Effect::Observe(after.as_secs_f64() * 1000.0)))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::Objects;

    fn job(phase: &str) -> Object {
        let job = json!({
            "metadata": {
                "namespace": "n", "name": "a", "uid": "job", "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": { "queue": "q" },
            "status": { "state": { "phase": phase } },
        });
        Object::decode(Kind::VcJob, job.to_string().as_bytes())
    }

    fn pod(owner_uid: &str) -> Object {
        let owner = json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a", "uid": owner_uid, "controller": true,
        });
        let pod = json!({ "metadata": {
            "namespace": "n", "name": "a-work-0", "uid": "pod", "creationTimestamp": "2026-01-01T00:00:03Z",
            "ownerReferences": [owner],
        } });
        Object::decode(Kind::Pod, pod.to_string().as_bytes())
    }

    fn check(before: Option<Object>, after: Option<Object>, is_news: bool, expected: Expect) {
        let mut objects = Objects::default();
        objects.insert(job("Running").into());
        let stored = Stored { before: before.as_ref(), after: after.as_ref(), objects: &objects, is_news };
        let measures: Vec<String> = measure(&stored).iter().map(ToString::to_string).collect();
        expected.assert_eq(&measures.join("\n"));
    }

    #[test]
    fn an_end_is_counted_when_it_is_stored_and_only_then() {
        let completed = expect![[r#"volcano_job_completed_phase_count["n/a", "q"] Add(1.0)"#]];
        check(Some(job("Running")), Some(job("Completed")), true, completed);
        let completed = expect![[r#"volcano_job_completed_phase_count["n/a", "q"] Add(1.0)"#]];
        check(Some(job("Completing")), Some(job("Completed")), true, completed);
        let failed = expect![[r#"volcano_job_failed_phase_count["n/a", "q"] Add(1.0)"#]];
        check(Some(job("Restarting")), Some(job("Failed")), true, failed);
        let failed = expect![[r#"volcano_job_failed_phase_count["n/a", "q"] Add(1.0)"#]];
        check(Some(job("Running")), Some(job("Failed")), true, failed);
        for (before, after) in [
            ("Completed", "Completed"),
            ("Pending", "Running"),
            ("Aborting", "Aborted"),
            ("Terminating", "Terminated"),
        ] {
            check(Some(job(before)), Some(job(after)), true, expect![""]);
        }
        // It ended while nobody looked, and was counted by whoever wrote it.
        check(None, Some(job("Completed")), false, expect![""]);
    }

    #[test]
    fn a_job_that_is_gone_is_forgotten() {
        let forgotten = expect![[r#"
            volcano_job_completed_phase_count["n/a", "q"] Forget
            volcano_job_failed_phase_count["n/a", "q"] Forget"#]];
        check(Some(job("Completed")), None, true, forgotten);
    }

    #[test]
    fn a_new_pod_says_how_long_after_its_job_it_came() {
        let observed =
            expect!["volcano_controller_job_to_pod_creation_latency_milliseconds[] Observe(3000.0)"];
        check(None, Some(pod("job")), true, observed);
        check(None, Some(pod("job")), false, expect![""]);
        check(None, Some(pod("namesake")), true, expect![""]);
        check(Some(pod("job")), Some(pod("job")), true, expect![""]);
    }
}
