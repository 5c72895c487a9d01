//! What a CronJob's status says: which of its Jobs run, when the last was made, and when one last succeeded.

use std::sync::Arc;

use krafla_api::batch::{CRONJOB_SCHEDULED_TIMESTAMP, CronJobStatus, JobReference};
use krafla_api::{Kind, Time};
use krafla_cluster::Verb;
use serde_json::json;

use super::CronJob;
use crate::object::Meta;
use crate::{Departed, Note, Object, Plan, merge_patch};

/// The status as the Jobs show it. A Job that is gone already still tells when it was made.
pub(super) fn recount(
    cron_job: &CronJob<'_>,
    jobs: &[&Arc<Object>],
    departed: &[Departed],
    plan: &mut Plan,
) -> CronJobStatus {
    let before = cron_job.status;
    let mut status = before.clone();
    status.active.retain(|listed| jobs.iter().any(|job| job.meta.uid == listed.uid && is_unfinished(job)));
    for job in jobs.iter().filter(|job| is_unfinished(job)) {
        if status.active.iter().any(|listed| listed.uid == job.meta.uid) {
            continue;
        }
        if scheduled_for(&job.meta).is_some() {
            status.active.push(reference(&job.meta));
        } else {
            plan.notes.push(not_a_run(&job.meta));
        }
    }
    note_ends(cron_job, jobs, plan);
    let made = jobs.iter().copied().chain(departed.iter().map(|departed| &departed.object));
    let made_for = made.filter_map(|job| scheduled_for(&job.meta));
    status.last_schedule_time = made_for.chain(before.last_schedule_time).max();
    let succeeded_at = jobs.iter().filter_map(|job| job.as_job()?.status.completion_time);
    status.last_successful_time = succeeded_at.chain(before.last_successful_time).max();
    status
}

/// Whether the status says all that it will ever say about a finished Job.
pub(crate) fn has_recorded(status: &CronJobStatus, job: &Object) -> bool {
    let is_listed = status.active.iter().any(|listed| listed.uid == job.meta.uid);
    let completed_at = job.as_job().and_then(|job| job.status.completion_time);
    !is_listed
        && scheduled_for(&job.meta) <= status.last_schedule_time
        && completed_at <= status.last_successful_time
}

/// Whether a Job may still run: one that is on its way out does until it is gone.
fn is_unfinished(job: &Object) -> bool {
    job.as_job().is_some_and(|job| job.status.finished().is_none())
}

/// A Job that somebody made from the template, as `kubectl create job --from` does, is nobody's run: it neither keeps one
/// waiting nor makes room for one.
fn not_a_run(job: &Meta) -> Note {
    let message = format!("Saw a job that the controller did not create or forgot: {}", job.key.name);
    Note::warning("UnexpectedJob", message)
}

/// The run for which a Job was made.
pub(super) fn scheduled_for(job: &Meta) -> Option<Time> {
    let text = job.annotations.get(CRONJOB_SCHEDULED_TIMESTAMP)?;
    text.parse().ok().map(Time)
}

fn reference(job: &Meta) -> JobReference {
    let info = Kind::Job.info();
    JobReference {
        kind: info.kind.to_owned(),
        namespace: job.key.namespace.to_string(),
        name: job.key.name.to_string(),
        uid: job.uid.clone(),
        api_version: info.api_version(),
        resource_version: job.revision.to_string(),
    }
}

/// Says which Jobs of the list have ended, and which have gone.
fn note_ends(cron_job: &CronJob<'_>, jobs: &[&Arc<Object>], plan: &mut Plan) {
    for listed in &cron_job.status.active {
        let job = jobs.iter().find(|job| job.meta.uid == listed.uid);
        let end = job.and_then(|job| job.as_job()?.status.finished());
        let (reason, message) = match (job, end) {
            (None, _) => ("MissingJob", format!("Active job went missing: {}", listed.name)),
            (Some(_), Some(end)) => (
                "SawCompletedJob",
                format!("Saw completed job: {}, condition: {}", listed.name, end.condition_type),
            ),
            (Some(_), None) => continue,
        };
        plan.notes.push(Note::normal(reason, message).of(Verb::Report, Kind::CronJob, &cron_job.meta.key));
    }
}

/// Puts the status write into the plan, if there is anything to write.
pub(super) fn write(cron_job: &CronJob<'_>, status: &CronJobStatus, plan: &mut Plan) {
    let Some(patch) = merge_patch::difference(&json!(cron_job.status), &json!(status)) else { return };
    plan.status = Some(cron_job.meta.status_patch(Kind::CronJob, &patch));
}
