//! Removes Jobs that have been finished for long enough: `ttlSecondsAfterFinished`.
//!
//! Mirrors Kubernetes' `pkg/controller/ttlafterfinished`. Whoever manages a Job, this applies to it.

use std::time::Duration;

use krafla_api::{Key, Kind};
use krafla_metrics::{Metric, MetricKind};

use crate::measure::Effect;
use crate::object::Body;
use crate::{Controller, Measure, Object, Objects, Plan, Snapshot, Stored, controlling_keys, k8scron, ttl};

static LATENESS: Metric = Metric {
    name: "ttl_after_finished_controller_job_deletion_duration_seconds",
    help: "How long after their time was over Jobs were deleted, in seconds.",
    labels: &[],
    kind: MetricKind::Histogram(&[
        0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6, 819.2,
    ]),
};

/// The controller that removes finished Jobs.
pub struct TtlController;

impl Controller for TtlController {
    fn name(&self) -> &'static str {
        "ttl-after-finished-controller"
    }

    fn queue(&self) -> &'static str {
        "ttl_jobs_to_delete"
    }

    fn event_source(&self) -> &'static str {
        "job-controller"
    }

    fn refusal(&self, reason: &str, why: &str) -> String {
        super::refusal(reason, why)
    }

    fn root(&self) -> Kind {
        Kind::Job
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::CronJob]
    }

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        if changed.kind == Kind::Job {
            return vec![changed.meta.key.clone()];
        }
        objects.children(&changed.meta.uid, Kind::Job).map(|job| job.meta.key.clone()).collect()
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        let Some((root, job)) = snapshot.root().and_then(|root| Some((root, root.as_job()?))) else {
            return Plan::nothing();
        };
        match job.status.finished() {
            Some(_) if is_awaited_by_its_maker(root, snapshot.objects) => Plan::nothing(),
            Some(end) => {
                ttl::plan(root, end.last_transition_time, job.spec.ttl_seconds_after_finished, snapshot.now)
            }
            None => Plan::nothing(),
        }
    }

    fn measure(&self, stored: &Stored<'_>) -> Vec<Measure> {
        let observed = lateness(stored).map(|late| Effect::Observe(late.as_secs_f64()));
        observed.map(|observed| Measure::new(&LATENESS, [], observed)).into_iter().collect()
    }
}

/// How long after a Job's time was over its deletion was asked for, once that is stored.
fn lateness(stored: &Stored<'_>) -> Option<Duration> {
    let (before, after) = (stored.before?, stored.after?);
    let asked_at = after.meta.deletion_asked_at().filter(|_| !before.meta.is_deleting())?;
    let job = after.as_job()?;
    let ttl_seconds = u64::try_from(job.spec.ttl_seconds_after_finished?).unwrap_or(0);
    let over_at = job.status.finished()?.last_transition_time?.after(Duration::from_secs(ttl_seconds));
    // Before its time, it is a person who deletes it.
    (over_at <= asked_at).then(|| asked_at.since(over_at))
}

/// Whether the CronJob that made the Job has yet to write down what came of it. Until then the Job is the only one who
/// knows: were it removed while nobody looks, its run would be made again.
fn is_awaited_by_its_maker(job: &Object, objects: &Objects) -> bool {
    let mut makers = controlling_keys(Kind::CronJob, job).into_iter();
    let maker = makers.find_map(|key| objects.get(Kind::CronJob, &key));
    let maker = maker.filter(|it| Some(&it.meta.uid) == job.meta.controller_uid() && !it.meta.is_deleting());
    match maker.map(|maker| &maker.body) {
        Some(Body::CronJob(cron_job)) => !k8scron::has_recorded(&cron_job.status, job),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::{Expect, expect};
    use krafla_api::Time;
    use serde_json::{Value, json};

    use super::*;

    fn check(ttl: &Value, condition: &str, expected: &Expect) {
        let end =
            json!({ "type": condition, "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z" });
        let job = json!({
            "metadata": { "namespace": "n", "name": "a", "uid": "u", "resourceVersion": "5" },
            "spec": { "ttlSecondsAfterFinished": ttl, "managedBy": "acme.io/jobs" },
            "status": { "conditions": [end] },
        });
        let mut objects = Objects::default();
        objects.insert(Arc::new(Object::decode(Kind::Job, job.to_string().as_bytes())));
        let (key, now) = (Key::new("n", "a"), Time::from_seconds(1_800_000_010));
        expected.assert_eq(&TtlController.plan(&Snapshot::new(Kind::Job, &key, now, &objects)).to_string());
    }

    #[test]
    fn a_finished_job_goes_when_its_time_is_over() {
        check(
            &json!(10),
            "Complete",
            &expect![[r#"
            delete job a in the foreground
        "#]],
        );
        check(
            &json!(0),
            "Failed",
            &expect![[r#"
            delete job a in the foreground
        "#]],
        );
        check(
            &json!(15),
            "Complete",
            &expect![[r#"
            wake at 2027-01-15T08:00:15Z
        "#]],
        );
    }

    #[test]
    fn a_run_stays_until_its_cron_job_has_recorded_it() {
        let planned = |cron_job_uid: &str, status: Value| {
            let owner = json!([{ "apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "c1", "controller": true }]);
            let annotations =
                json!({ "batch.kubernetes.io/cronjob-scheduled-timestamp": "2027-01-15T08:00:00Z" });
            let end =
                json!({ "type": "Complete", "status": "True", "lastTransitionTime": "2027-01-15T08:00:05Z" });
            let job = json!({
                "metadata": {
                    "namespace": "n", "name": "c-1", "uid": "u", "ownerReferences": owner, "annotations": annotations,
                },
                "spec": { "ttlSecondsAfterFinished": 0 },
                "status": { "conditions": [end], "completionTime": "2027-01-15T08:00:05Z" },
            });
            let cron_job = json!({
                "metadata": { "namespace": "n", "name": "c", "uid": cron_job_uid }, "status": status,
            });
            let mut objects = Objects::default();
            objects.insert(Arc::new(Object::decode(Kind::Job, job.to_string().as_bytes())));
            objects.insert(Arc::new(Object::decode(Kind::CronJob, cron_job.to_string().as_bytes())));
            let (key, now) = (Key::new("n", "c-1"), Time::from_seconds(1_800_000_010));
            TtlController.plan(&Snapshot::new(Kind::Job, &key, now, &objects)).to_string()
        };
        let goes = "delete job c-1 in the foreground\n";
        let recorded = json!({
            "lastScheduleTime": "2027-01-15T08:00:00Z", "lastSuccessfulTime": "2027-01-15T08:00:05Z",
        });
        assert_eq!(planned("c1", recorded.clone()), goes);
        assert_eq!(planned("c1", json!({})), "");
        let mut before_its_success = recorded.clone();
        before_its_success["lastSuccessfulTime"] = json!("2027-01-15T07:00:00Z");
        assert_eq!(planned("c1", before_its_success), "");
        let mut listed = recorded;
        listed["active"] = json!([{ "kind": "Job", "namespace": "n", "name": "c-1", "uid": "u" }]);
        assert_eq!(planned("c1", listed), "");
        assert_eq!(planned("a-namesake", json!({})), goes);
    }

    #[test]
    fn a_deletion_says_how_late_it_was_asked_for() {
        let told = |ttl: Value| {
            let job = |deleted_at: Value| {
                let end = json!({ "type": "Complete", "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z" });
                let job = json!({
                    "metadata": { "namespace": "n", "name": "a", "uid": "u", "deletionTimestamp": deleted_at },
                    "spec": { "ttlSecondsAfterFinished": ttl }, "status": { "conditions": [end] },
                });
                Object::decode(Kind::Job, job.to_string().as_bytes())
            };
            let (finished, deleted) = (job(json!(null)), job(json!("2027-01-15T08:00:12Z")));
            let told = |before, after| {
                let objects = Objects::default();
                let stored =
                    Stored { before: Some(before), after: Some(after), objects: &objects, is_news: true };
                TtlController.measure(&stored).iter().map(ToString::to_string).collect::<String>()
            };
            assert_eq!(told(&deleted, &deleted), "", "it is said once");
            told(&finished, &deleted)
        };
        let late = "ttl_after_finished_controller_job_deletion_duration_seconds[] Observe(2.0)";
        assert_eq!(told(json!(10)), late);
        assert_eq!(told(json!(15)), "", "its time was not over");
        assert_eq!(told(json!(null)), "", "its time was not limited");
    }

    #[test]
    fn without_a_time_or_an_end_nothing_goes() {
        check(&json!(null), "Complete", &expect![""]);
        check(&json!(0), "SuccessCriteriaMet", &expect![""]);
    }
}
