//! How late runs are, at /metrics. Kubernetes: `pkg/controller/cronjob/metrics`.

use krafla_api::Kind;
use krafla_metrics::{Metric, MetricKind};

use super::status::scheduled_for;
use crate::controlling_keys;
use crate::measure::{Effect, Measure, Stored};

static SKEW: Metric = Metric {
    name: "cronjob_controller_job_creation_skew_duration_seconds",
    help: "How much later than they were due Jobs were created, in seconds.",
    labels: &[],
    kind: MetricKind::Histogram(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0]),
};

/// What a new Job of a CronJob does to the numbers.
pub(super) fn measure(stored: &Stored<'_>) -> Option<Measure> {
    let job = stored.after.filter(|_| stored.before.is_none() && stored.is_news)?;
    if job.kind != Kind::Job || controlling_keys(Kind::CronJob, job).is_empty() {
        return None;
    }
    let late = job.meta.created_at?.since(scheduled_for(&job.meta)?);
    Some(Measure::new(&SKEW, [], Effect::Observe(late.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Object, Objects};

    #[test]
    fn a_run_says_how_late_it_was_created() {
        let told = |owner: &str| {
            let owners = json!([{ "apiVersion": "batch/v1", "kind": owner, "name": "c", "uid": "c", "controller": true }]);
            let job = json!({ "metadata": {
                "namespace": "n", "name": "c-1", "uid": "u", "ownerReferences": owners,
                "creationTimestamp": "2027-01-15T08:00:03Z",
                "annotations": { "batch.kubernetes.io/cronjob-scheduled-timestamp": "2027-01-15T08:00:00Z" },
            } });
            let (job, objects) = (Object::decode(Kind::Job, job.to_string().as_bytes()), Objects::default());
            let stored = Stored { before: None, after: Some(&job), objects: &objects, is_news: true };
            measure(&stored).map(|measure| measure.to_string())
        };
        let late = "cronjob_controller_job_creation_skew_duration_seconds[] Observe(3.0)";
        assert_eq!(told("CronJob").as_deref(), Some(late));
        assert_eq!(told("Other"), None);
    }
}
