//! The properties of Kubernetes' CronJobs over the store's history: one run at a time where they must not overlap, and each
//! run once.

use std::collections::{BTreeMap, BTreeSet};

use krafla_api::Uid;
use krafla_api::batch::CRONJOB_SCHEDULED_TIMESTAMP;
use krafla_plan::Object;

use super::{Broken, Change};
use crate::Property;

/// What has been seen of CronJobs and their runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    cron_jobs: BTreeMap<Uid, CronJob>,
}

#[derive(Clone, Debug, Default)]
struct CronJob {
    /// Whether it has never said anything else than that its runs must not overlap.
    never_overlaps: bool,
    /// The moments for which a Job has been made.
    made: BTreeSet<String>,
    /// The Jobs that have neither finished nor gone.
    active: BTreeSet<Uid>,
}

impl Runs {
    /// The next revision of a CronJob.
    pub(super) fn see_cron_job(&mut self, change: Change, object: &Object) {
        let Some(body) = object.as_cron_job() else { return };
        let forbids = body.spec.concurrency_policy == "Forbid";
        let known = self.cron_jobs.entry(object.meta.uid.clone()).or_default();
        known.never_overlaps = forbids && (known.never_overlaps || change == Change::Created);
        if change == Change::Removed {
            self.cron_jobs.remove(&object.meta.uid);
        }
    }

    /// The next revision of a Job, and what it breaks if it is a run.
    pub(super) fn see_job(&mut self, change: Change, object: &Object) -> Vec<Broken> {
        let cron_job = object.meta.controller_uid().and_then(|owner| self.cron_jobs.get_mut(owner));
        let (Some(cron_job), Some(job)) = (cron_job, object.as_job()) else { return Vec::new() };
        // What somebody makes from the template by hand is no run.
        let Some(moment) = object.meta.annotations.get(CRONJOB_SCHEDULED_TIMESTAMP) else {
            return Vec::new();
        };
        let mut broken = Vec::new();
        if change == Change::Created {
            if !cron_job.made.insert(moment.to_owned()) {
                broken.push(Some((Property::P9, format!("the run of {moment} was made before"))));
            }
            if cron_job.never_overlaps && !cron_job.active.is_empty() {
                broken
                    .push(Some((Property::P1, "runs beside another although that is forbidden".to_owned())));
            }
        }
        if change == Change::Removed || job.status.finished().is_some() {
            cron_job.active.remove(&object.meta.uid);
        } else {
            cron_job.active.insert(object.meta.uid.clone());
        }
        broken
    }
}

#[cfg(test)]
mod tests {
    use krafla_api::Kind;
    use serde_json::{Value, json};

    use super::super::History;
    use super::*;

    fn see(history: &mut History, change: Change, (kind, json): &(Kind, Value)) -> Vec<String> {
        let object = Object::decode(*kind, json.to_string().as_bytes());
        history.see(change, &object).iter().map(ToString::to_string).collect()
    }

    fn cron_job(policy: &str) -> (Kind, Value) {
        let metadata = json!({ "namespace": "n", "name": "c", "uid": "cron" });
        let spec = json!({ "schedule": "* * * * *", "concurrencyPolicy": policy, "jobTemplate": {} });
        (Kind::CronJob, json!({ "metadata": metadata, "spec": spec }))
    }

    fn run(uid: &str, moment: &str, status: &Value) -> (Kind, Value) {
        let owners = json!([{ "apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "cron", "controller": true }]);
        let metadata = json!({
            "namespace": "n", "name": uid, "uid": uid, "ownerReferences": owners,
            "annotations": { CRONJOB_SCHEDULED_TIMESTAMP: moment },
        });
        (Kind::Job, json!({ "metadata": metadata, "spec": {}, "status": status }))
    }

    #[test]
    fn p9_a_run_is_made_once_also_when_its_job_is_gone() {
        let mut history = History::default();
        see(&mut history, Change::Created, &cron_job("Allow"));
        assert_eq!(see(&mut history, Change::Created, &run("a", "one", &json!({}))), Vec::<String>::new());
        see(&mut history, Change::Removed, &run("a", "one", &json!({})));
        assert_eq!(
            see(&mut history, Change::Created, &run("b", "one", &json!({}))),
            ["P9: n/b: the run of one was made before"]
        );
    }

    #[test]
    fn jobs_that_somebody_makes_from_the_template_are_no_runs() {
        let mut history = History::default();
        see(&mut history, Change::Created, &cron_job("Forbid"));
        for uid in ["a", "b"] {
            let mut by_hand = run(uid, "", &json!({}));
            by_hand.1["metadata"]["annotations"] = json!({});
            assert_eq!(see(&mut history, Change::Created, &by_hand), Vec::<String>::new());
        }
    }

    #[test]
    fn p1_runs_that_must_not_overlap_do_not() {
        let mut history = History::default();
        see(&mut history, Change::Created, &cron_job("Forbid"));
        see(&mut history, Change::Created, &run("a", "one", &json!({})));
        assert_eq!(
            see(&mut history.clone(), Change::Created, &run("b", "two", &json!({}))),
            ["P1: n/b: runs beside another although that is forbidden"]
        );
        let mut going = run("a", "one", &json!({}));
        going.1["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
        see(&mut history, Change::Updated, &going);
        assert_eq!(
            see(&mut history.clone(), Change::Created, &run("b", "two", &json!({}))),
            ["P1: n/b: runs beside another although that is forbidden"],
            "what goes still runs"
        );
        let finished = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
        see(&mut history, Change::Updated, &run("a", "one", &finished));
        assert_eq!(see(&mut history, Change::Created, &run("b", "two", &json!({}))), Vec::<String>::new());
    }
}
