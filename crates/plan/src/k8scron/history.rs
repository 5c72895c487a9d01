//! Removing finished Jobs beyond those that the CronJob keeps.

use std::sync::Arc;

use krafla_api::Kind;
use krafla_cluster::{Step, Verb};

use super::CronJob;
use crate::{Note, Object, Plan};

const SUCCESSFUL_KEPT: i32 = 3;
const FAILED_KEPT: i32 = 1;

/// Removes the oldest finished Jobs that are too many.
pub(super) fn remove(cron_job: &CronJob<'_>, jobs: &[&Arc<Object>], plan: &mut Plan) {
    let (spec, ended_as) = (cron_job.spec, |condition: &'static str| {
        jobs.iter().copied().filter(move |job| {
            let end = job.as_job().and_then(|job| job.status.finished());
            !job.meta.is_deleting() && end.is_some_and(|end| end.condition_type == condition)
        })
    });
    let limits = [
        ("Complete", spec.successful_jobs_history_limit.unwrap_or(SUCCESSFUL_KEPT)),
        ("Failed", spec.failed_jobs_history_limit.unwrap_or(FAILED_KEPT)),
    ];
    for (condition, limit) in limits {
        let mut ended: Vec<&Arc<Object>> = ended_as(condition).collect();
        // One that never started counts as the newest.
        ended.sort_by_key(|job| {
            let started_at = job.as_job().and_then(|job| job.status.start_time);
            (started_at.is_none(), started_at, job.meta.key.clone())
        });
        let surplus = ended.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        for job in ended.into_iter().take(surplus) {
            plan.aside.push(delete(job));
            plan.notes.push(deleted(job));
        }
    }
}

/// Removes a Job and its pods.
pub(super) fn delete(job: &Object) -> Step {
    job.deletion()
}

/// Says so.
pub(super) fn deleted(job: &Object) -> Note {
    let message = format!("Deleted job {}", job.meta.key.name);
    Note::normal("SuccessfulDelete", message).of(Verb::Delete, Kind::Job, &job.meta.key)
}
