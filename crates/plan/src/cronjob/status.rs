//! The CronJob's status: which jobs are active, which run was the last, and when one last succeeded.

use std::collections::BTreeSet;

use krafla_api::volcano::{ConcurrencyPolicy, CronJobStatus, JobPhase, ObjectReference};
use krafla_api::{Kind, Time};
use krafla_cluster::Verb;
use serde_json::json;

use super::build::due_time;
use super::{View, phase};
use crate::merge_patch::difference;
use crate::{Note, Object, Plan};

/// Puts the status write into the plan, if there is anything to write, and says what left the active jobs. A job that has gone
/// still tells how it ended.
pub(super) fn write(cronjob: &View<'_>, last_run: Option<Time>, departed: &[&Object], plan: &mut Plan) {
    let before = cronjob.status;
    let of_departed = departed.iter().filter_map(|job| completed_at(job));
    let completed = cronjob.jobs.iter().filter_map(|job| completed_at(job)).chain(of_departed);
    let after = CronJobStatus {
        active: active(cronjob, departed, plan),
        last_schedule_time: last_run.or(before.last_schedule_time),
        last_successful_time: completed.chain(before.last_successful_time).max(),
    };
    let Some(patch) = difference(&json!(before), &json!(after)) else { return };
    plan.status = Some(cronjob.meta.status_patch(Kind::VcCronJob, &patch));
}

/// Whether the status says all that it will ever say about a finished job.
pub(crate) fn has_recorded(status: &CronJobStatus, job: &Object) -> bool {
    let is_listed = status.active.iter().any(|listed| *listed.uid == *job.meta.uid.0);
    !is_listed
        && due_time(job) <= status.last_schedule_time
        && completed_at(job) <= status.last_successful_time
}

fn completed_at(job: &Object) -> Option<Time> {
    let state = &job.as_vcjob()?.status.state;
    state.last_transition_time.filter(|_| state.phase == JobPhase::Completed)
}

/// The jobs that have not finished: first those that were listed, in their order, then the new ones.
fn active(cronjob: &View<'_>, departed: &[&Object], plan: &mut Plan) -> Vec<ObjectReference> {
    let unfinished: BTreeSet<&str> = cronjob.active().map(|job| job.meta.uid.0.as_ref()).collect();
    let has_finished = |uid: &str| {
        let mut gone = departed.iter().filter(|job| phase(job).is_finished());
        cronjob.jobs.iter().any(|job| *job.meta.uid.0 == *uid) || gone.any(|job| *job.meta.uid.0 == *uid)
    };
    let is_listed = |job: &Object| cronjob.status.active.iter().any(|listed| *listed.uid == *job.meta.uid.0);
    let mut new: Vec<&Object> = cronjob.active().filter(|job| !is_listed(job)).map(AsRef::as_ref).collect();
    new.sort_by_key(|job| (job.meta.created_at, &job.meta.key));
    // Where a run takes the place of the one before, that one is expected to go.
    let is_replaced = cronjob.spec.concurrency_policy == ConcurrencyPolicy::Replace && !new.is_empty();
    let mut say = |note: Note| plan.notes.push(note.of(Verb::Report, Kind::VcCronJob, &cronjob.meta.key));
    let mut active = Vec::new();
    for reference in &cronjob.status.active {
        if unfinished.contains(reference.uid.as_str()) {
            active.push(reference.clone());
        } else if has_finished(&reference.uid) {
            say(Note::normal("SawCompletedJob", format!("job {} has finished", reference.name)));
        } else if !is_replaced {
            say(Note::warning(
                "StaleReference",
                format!("job {} is gone before it finished", reference.name),
            ));
        }
    }
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
