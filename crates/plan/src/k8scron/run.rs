//! Making the run that is due.

use std::sync::Arc;
use std::time::Duration;

use krafla_api::batch::{CRONJOB_SCHEDULED_TIMESTAMP, CronJobStatus};
use krafla_api::{Key, Kind, Time};
use krafla_cluster::{Step, Verb};
use serde_json::json;

use super::{CronJob, history};
use crate::cron::Timetable;
use crate::{Note, Object, Objects, Plan};

/// Beyond this many missed runs somebody should look at the clock, or at the deadline.
const MISSED_MAX: u64 = 100;

/// Makes the run that is due, unless one before stands in its way, and looks again at the next.
pub(super) fn make(
    cron_job: &CronJob<'_>,
    timetable: &Timetable,
    status: &CronJobStatus,
    jobs: &[&Arc<Object>],
    objects: &Objects,
    plan: &mut Plan,
) {
    let (now, spec) = (cron_job.now, cron_job.spec);
    let Some(earliest) = status.last_schedule_time.or(cron_job.meta.created_at) else { return };
    let due = timetable.due(earliest, now);
    plan.wake_at = timetable.next(due.map_or(earliest, |due| due.at));
    if due.is_none() && plan.wake_at.is_none() {
        return warn(
            "InvalidSchedule",
            format!("{:?} is never due; change spec.schedule", spec.schedule),
            plan,
        );
    }
    let Some(due) = due else { return };
    let run = due.at;
    let allowed =
        spec.starting_deadline_seconds.map(|seconds| Duration::from_secs(seconds.max(0).unsigned_abs()));
    if allowed.is_some_and(|allowed| run.after(allowed) < now) {
        let message = format!("Missed scheduled time to start a job: {}", timetable.on_the_wall(run));
        return warn("MissSchedule", message, plan);
    }
    if timetable.n_missed(earliest, allowed, now) > MISSED_MAX {
        let message =
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        warn("TooManyMissedTimes", message.to_owned(), plan);
    }
    let key = Key::new(&cron_job.meta.key.namespace, &name(cron_job, run));
    // Of another owner, or of an earlier CronJob of this name: the run can not be made.
    if objects.get(Kind::Job, &key).is_some() {
        return;
    }
    match spec.concurrency_policy.as_str() {
        "Forbid" if !status.active.is_empty() => {
            let message =
                "Not starting job because prior execution is running and concurrency policy is Forbid";
            plan.notes.push(Note::normal("JobAlreadyActive", message.to_owned()));
            return;
        }
        "Replace" => {
            let is_active = |job: &Object| status.active.iter().any(|listed| listed.uid == job.meta.uid);
            for job in jobs.iter().filter(|job| is_active(job) && !job.meta.is_deleting()) {
                plan.steps.push(history::delete(job));
                plan.notes.push(history::deleted(job));
            }
        }
        _ => {}
    }
    plan.steps.push(create(cron_job, timetable, run, &key));
    let message = format!("Created job {}", key.name);
    plan.notes.push(Note::normal("SuccessfulCreate", message).of(Verb::Create, Kind::Job, &key));
}

fn warn(reason: &'static str, message: String, plan: &mut Plan) {
    plan.notes.push(Note::warning(reason, message));
}

/// The name of the Job of a run: runs within one minute share it, so there is at most one a minute.
fn name(cron_job: &CronJob<'_>, run: Time) -> String {
    format!("{}-{}", cron_job.meta.key.name, run.0.as_second().div_euclid(60))
}

fn create(cron_job: &CronJob<'_>, timetable: &Timetable, run: Time, key: &Key) -> Step {
    let template = &cron_job.spec.job_template;
    let mut annotations = template.metadata.annotations.clone();
    annotations.insert(CRONJOB_SCHEDULED_TIMESTAMP.to_owned(), timetable.on_the_wall(run));
    let object = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": key.name.as_ref(), "namespace": key.namespace.as_ref(), "labels": template.metadata.labels,
            "annotations": annotations, "ownerReferences": [cron_job.meta.as_controller(Kind::CronJob)],
        },
        "spec": *template.spec,
    });
    Step::Create { kind: Kind::Job, object }
}
