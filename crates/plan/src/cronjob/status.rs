//! The CronJob's status: which jobs are active, which run was the last, and when one last succeeded.

use std::collections::BTreeSet;

use krafla_api::volcano::{CronJobStatus, ObjectReference};
use krafla_api::{Kind, Time};
use serde_json::json;

use super::{View, note, warn};
use crate::merge_patch::difference;
use crate::{Object, Plan, Step};

/// Puts the status write into the plan, if there is anything to write, and says what left the active jobs.
pub(super) fn write(cronjob: &View<'_>, last_run: Option<Time>, plan: &mut Plan) {
    let before = cronjob.status;
    let completed_at =
        cronjob.finished(true).filter_map(|job| job.as_vcjob()?.status.state.last_transition_time);
    let after = CronJobStatus {
        active: active(cronjob, plan),
        last_schedule_time: last_run.or(before.last_schedule_time),
        last_successful_time: completed_at.chain(before.last_successful_time).max(),
    };
    let Some(patch) = difference(&json!(before), &json!(after)) else { return };
    plan.status = Some(Step::patch_status(Kind::VcCronJob, cronjob.meta, &patch));
}

/// The jobs that have not finished: first those that were listed, in their order, then the new ones.
fn active(cronjob: &View<'_>, plan: &mut Plan) -> Vec<ObjectReference> {
    let unfinished: BTreeSet<&str> = cronjob.active().map(|job| job.meta.uid.0.as_ref()).collect();
    let mut active = Vec::new();
    for reference in &cronjob.status.active {
        if unfinished.contains(reference.uid.as_str()) {
            active.push(reference.clone());
        } else if cronjob.jobs.iter().any(|job| *job.meta.uid.0 == *reference.uid) {
            note(plan, "SawCompletedJob", format!("job {} has finished", reference.name));
        } else {
            warn(plan, "StaleReference", format!("job {} is gone before it finished", reference.name));
        }
    }
    let is_listed = |job: &Object| cronjob.status.active.iter().any(|listed| *listed.uid == *job.meta.uid.0);
    let mut new: Vec<&Object> = cronjob.active().filter(|job| !is_listed(job)).map(AsRef::as_ref).collect();
    new.sort_by_key(|job| (job.meta.created_at, &job.meta.key));
    active.extend(new.into_iter().map(reference));
    active
}

fn reference(job: &Object) -> ObjectReference {
    let info = Kind::VcJob.info();
    ObjectReference {
        api_version: info.api_version(),
        kind: info.kind.to_owned(),
        name: job.meta.key.name.to_string(),
        namespace: job.meta.key.namespace.to_string(),
        uid: job.meta.uid.0.to_string(),
        resource_version: job.meta.revision.to_string(),
        ..ObjectReference::default()
    }
}
