//! Removes jobs that have been finished for long enough: `ttlSecondsAfterFinished`.
//!
//! The moment is exact and survives restarts: it is computed from what is stored, and the deletion carries the UID and the
//! revision it was computed from. A job whose time was extended meanwhile, or a new job of the same name, is not touched.
//!
//! Mirrors Volcano's `pkg/controllers/garbagecollector`.

use std::time::Duration;

use krafla_api::volcano::JobStatus;
use krafla_api::{Key, Kind, Time};
use krafla_cluster::{Propagation, Step};

use crate::cronjob::has_recorded;
use crate::object::Body;
use crate::{Controller, Object, Objects, Plan, Snapshot, controlling_keys};

/// The controller that removes finished Volcano Jobs.
pub struct TtlController;

impl Controller for TtlController {
    fn name(&self) -> &'static str {
        "gc-controller"
    }

    fn root(&self) -> Kind {
        Kind::VcJob
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::JobFlow, Kind::VcCronJob]
    }

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        match changed.kind {
            Kind::JobFlow | Kind::VcCronJob => {
                objects.children(&changed.meta.uid, Kind::VcJob).map(|job| job.meta.key.clone()).collect()
            }
            _ => vec![changed.meta.key.clone()],
        }
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        let Some(job) = snapshot.root() else { return Plan::nothing() };
        match &job.body {
            Body::VcJob(_) if is_awaited_by_its_maker(job, snapshot.objects) => Plan::nothing(),
            Body::VcJob(body) if body.status.state.phase.is_finished() => {
                plan(job, finished_at(&body.status), body.spec.ttl_seconds_after_finished, snapshot.now)
            }
            _ => Plan::nothing(),
        }
    }
}

/// What should become of a finished job of any kind.
pub fn plan(job: &Object, finished_at: Option<Time>, ttl_seconds: Option<i32>, now: Time) -> Plan {
    let Some(ttl_seconds) = ttl_seconds else { return Plan::nothing() };
    if job.meta.is_deleting() {
        return Plan::nothing();
    }
    let Some(finished_at) = finished_at else {
        let message = "status does not say when the job finished, so spec.ttlSecondsAfterFinished cannot be applied; \
                       delete the job by hand";
        return Plan::hold("TTLUnknownStart", message.to_owned());
    };
    let ttl = Duration::from_secs(u64::try_from(ttl_seconds).unwrap_or(0));
    let expires_at = finished_at.after(ttl);
    if now < expires_at {
        // A clock that is behind the one that wrote the status waits longer: never is a job removed too early.
        return Plan { wake_at: Some(expires_at), ..Plan::nothing() };
    }
    let delete = Step::Delete {
        kind: job.kind,
        key: job.meta.key.clone(),
        uid: job.meta.uid.clone(),
        revision: Some(job.meta.revision),
        propagation: Propagation::Foreground,
        grace_seconds: None,
    };
    Plan { steps: vec![delete], ..Plan::nothing() }
}

/// Whether the JobFlow or CronJob that made the job has yet to write down that it ran, and how it ended. Until then the job is the
/// only one who knows: were it removed while nobody looks, it would be run again, or its success forgotten.
fn is_awaited_by_its_maker(job: &Object, objects: &Objects) -> bool {
    let makers = [Kind::JobFlow, Kind::VcCronJob].into_iter().flat_map(|kind| {
        controlling_keys(kind, job).into_iter().filter_map(move |key| objects.get(kind, &key))
    });
    let mut living = makers
        .filter(|maker| Some(&maker.meta.uid) == job.meta.controller_uid() && !maker.meta.is_deleting());
    living.any(|maker| match &maker.body {
        Body::JobFlow(flow) => {
            let mut recorded = flow.status.job_status_list.iter().filter(|entry| entry.state.is_finished());
            !recorded.any(|entry| *entry.name == *job.meta.key.name)
        }
        Body::VcCronJob(cronjob) => !has_recorded(&cronjob.status, job),
        _ => false,
    })
}

/// When a Volcano Job finished. A status without the time of its last change still has those of its conditions.
fn finished_at(status: &JobStatus) -> Option<Time> {
    let of_conditions =
        || status.conditions.iter().filter_map(|condition| condition.last_transition_time).max();
    status.state.last_transition_time.or_else(of_conditions)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;

    /// What is planned `at` seconds after 08:00:00 for a job with this status and time to live.
    fn check(ttl: Value, status: Value, at: i64, expected: Expect) {
        let job = json!({
            "metadata": { "namespace": "ns", "name": "a", "uid": "u1", "resourceVersion": "7" },
            "spec": { "ttlSecondsAfterFinished": ttl },
            "status": status,
        });
        expected.assert_eq(&plan_for(&job, at).to_string());
    }

    fn plan_for(job: &Value, at: i64) -> Plan {
        let mut objects = Objects::default();
        objects.insert(Arc::new(Object::decode(Kind::VcJob, job.to_string().as_bytes())));
        let key = Key::new("ns", "a");
        let now = Time::from_seconds(1_800_000_000 + at);
        TtlController.plan(&Snapshot::new(Kind::VcJob, &key, now, &objects))
    }

    fn finished(phase: &str) -> Value {
        json!({ "state": { "phase": phase, "lastTransitionTime": "2027-01-15T08:00:00Z" } })
    }

    #[test]
    fn a_finished_job_is_looked_at_again_at_the_very_second_it_expires() {
        check(json!(30), finished("Completed"), 29, expect![["wake at 2027-01-15T08:00:30Z\n"]]);
        check(json!(30), finished("Completed"), 30, expect![["delete job a in the foreground\n"]]);
    }

    #[test]
    fn completed_failed_and_terminated_jobs_go_and_no_others() {
        for phase in ["Completed", "Failed", "Terminated"] {
            check(json!(0), finished(phase), 0, expect![["delete job a in the foreground\n"]]);
        }
        for phase in ["Pending", "Running", "Restarting", "Completing", "Terminating", "Aborting", "Aborted"]
        {
            check(json!(0), finished(phase), 1_000_000, expect![[""]]);
        }
    }

    #[test]
    fn a_job_without_a_time_to_live_stays() {
        check(Value::Null, finished("Completed"), 1_000_000, expect![[""]]);
    }

    #[test]
    fn a_job_that_finished_in_the_future_waits_until_its_own_clock_has_passed() {
        check(json!(5), finished("Failed"), -60, expect![["wake at 2027-01-15T08:00:05Z\n"]]);
    }

    #[test]
    fn the_deletion_names_the_revision_that_was_read() {
        let job = json!({
            "metadata": { "namespace": "ns", "name": "a", "uid": "u1", "resourceVersion": "7" },
            "spec": { "ttlSecondsAfterFinished": 1 }, "status": finished("Completed"),
        });
        let Some(Step::Delete { uid, revision, .. }) = plan_for(&job, 9).steps.pop() else {
            panic!("no deletion")
        };
        assert_eq!((uid.0.as_ref(), revision), ("u1", Some(7)));
    }

    #[test]
    fn a_job_that_is_going_is_left_alone() {
        let job = json!({
            "metadata": { "namespace": "ns", "name": "a", "uid": "u1", "deletionTimestamp": "2027-01-15T08:00:00Z" },
            "spec": { "ttlSecondsAfterFinished": 1 }, "status": finished("Completed"),
        });
        assert!(plan_for(&job, 9).is_quiet());
    }

    #[test]
    fn volcano_1_a_job_stays_until_its_flow_has_written_down_how_it_ended() {
        let owner = json!([{ "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "name": "f", "uid": "f1",
            "controller": true }]);
        let job = json!({
            "metadata": { "namespace": "ns", "name": "f-x", "uid": "u1", "ownerReferences": owner },
            "spec": { "ttlSecondsAfterFinished": 0 }, "status": finished("Completed"),
        });
        let planned = |flow_uid: &str, state: &str| {
            let flow = json!({
                "metadata": { "namespace": "ns", "name": "f", "uid": flow_uid },
                "status": { "jobStatusList": [{ "name": "f-x", "state": state }] },
            });
            let mut objects = Objects::default();
            objects.insert(Arc::new(Object::decode(Kind::VcJob, job.to_string().as_bytes())));
            objects.insert(Arc::new(Object::decode(Kind::JobFlow, flow.to_string().as_bytes())));
            let (key, now) = (Key::new("ns", "f-x"), Time::from_seconds(1_800_000_009));
            TtlController.plan(&Snapshot::new(Kind::VcJob, &key, now, &objects)).to_string()
        };
        assert_eq!(planned("f1", "Running"), "");
        assert_eq!(planned("f1", "Completed"), "delete job f-x in the foreground\n");
        assert_eq!(planned("another-flow", "Running"), "delete job f-x in the foreground\n");
    }

    #[test]
    fn a_job_stays_until_its_cronjob_has_written_down_all_about_it() {
        let owner = json!([{ "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "name": "c", "uid": "c1",
            "controller": true }]);
        let due = json!({ "volcano.sh/cronjob-scheduled-timestamp": "2027-01-15T07:00:00Z" });
        let job = json!({
            "metadata": { "namespace": "ns", "name": "c-1", "uid": "u1", "ownerReferences": owner, "annotations": due },
            "spec": { "ttlSecondsAfterFinished": 0 }, "status": finished("Completed"),
        });
        let is_removed = |status: Value| {
            let cronjob =
                json!({ "metadata": { "namespace": "ns", "name": "c", "uid": "c1" }, "status": status });
            let mut objects = Objects::default();
            objects.insert(Arc::new(Object::decode(Kind::VcJob, job.to_string().as_bytes())));
            objects.insert(Arc::new(Object::decode(Kind::VcCronJob, cronjob.to_string().as_bytes())));
            let (key, now) = (Key::new("ns", "c-1"), Time::from_seconds(1_800_000_009));
            !TtlController.plan(&Snapshot::new(Kind::VcJob, &key, now, &objects)).is_quiet()
        };
        let (due, ended) = ("2027-01-15T07:00:00Z", "2027-01-15T08:00:00Z");
        assert!(!is_removed(json!({})));
        assert!(!is_removed(json!({ "lastScheduleTime": due })));
        assert!(!is_removed(
            json!({ "lastScheduleTime": due, "lastSuccessfulTime": ended, "active": [{ "uid": "u1" }] })
        ));
        assert!(is_removed(json!({ "lastScheduleTime": due, "lastSuccessfulTime": ended })));
    }

    #[test]
    fn volcano_33_a_status_without_a_transition_time_is_counted_from_its_last_condition() {
        let status = json!({ "state": { "phase": "Failed" }, "conditions": [
            { "status": "Running", "lastTransitionTime": "2027-01-15T08:00:10Z" },
            { "status": "Failed", "lastTransitionTime": "2027-01-15T08:00:20Z" } ] });
        check(json!(5), status, 21, expect![["wake at 2027-01-15T08:00:25Z\n"]]);
        check(
            json!(5),
            json!({ "state": { "phase": "Failed" } }),
            21,
            expect![[r#"
            note Warning TTLUnknownStart: status does not say when the job finished, so spec.ttlSecondsAfterFinished cannot be applied; delete the job by hand
        "#]],
        );
    }
}
