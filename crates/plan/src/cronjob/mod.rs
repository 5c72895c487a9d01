//! The life of a Volcano CronJob, top to bottom in [`plan`].
//!
//! ```text
//!   CronJob c --owns--> Job c-<minutes since 1970>     one for each due time; the name says which, so none is made twice
//! ```
//!
//! A job is made first and put on record next: a crash in between finds the job by its name and makes no other. Which jobs
//! are active follows from the jobs themselves; `status.active` is only how that is shown.
//!
//! Mirrors Volcano's `pkg/controllers/cronjob`; what is deliberately different stands in DEVIATIONS.md.

mod build;
mod object;
mod status;

use std::sync::Arc;
use std::time::Duration;

use krafla_api::volcano::{ConcurrencyPolicy, CronJobStatus, JobPhase};
use krafla_api::{Key, Kind, Time};
use krafla_cluster::{Step, Verb};

pub use self::object::{Spec, VcCronJob};
pub(crate) use self::status::has_recorded;

use crate::cron::{Problem, Timetable};
use crate::object::{Body, Meta};
use crate::{Controller, Note, Object, Objects, Plan, Snapshot, controlling_keys};

/// Beyond this many missed runs somebody should look at the clock, or at the deadline.
const MISSED_MAX: u64 = 100;

/// The controller of Volcano CronJobs.
pub struct CronJobController;

impl Controller for CronJobController {
    fn name(&self) -> &'static str {
        "cronjob-controller"
    }

    fn root(&self) -> Kind {
        Kind::VcCronJob
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::VcJob]
    }

    fn keys(&self, changed: &Object, _objects: &Objects) -> Vec<Key> {
        controlling_keys(Kind::VcCronJob, changed)
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        plan(snapshot)
    }
}

/// What should be done for one CronJob now.
pub fn plan(snapshot: &Snapshot<'_>) -> Plan {
    let mut plan = Plan {
        settled: snapshot.departed.iter().map(|departed| departed.object.meta.uid.clone()).collect(),
        ..Plan::nothing()
    };
    let Some(root) = snapshot.root() else { return plan };
    if root.meta.is_deleting() {
        return plan;
    }
    let cronjob = match &root.body {
        Body::VcCronJob(body) => View {
            meta: &root.meta,
            spec: &body.spec,
            status: &body.status,
            jobs: snapshot.children(Kind::VcJob).collect(),
            now: snapshot.now,
        },
        Body::Unreadable(why) => {
            return Plan::hold("InvalidSchedule", format!("cannot read the CronJob: {why}"));
        }
        _ => return plan,
    };
    // A job that is gone again already still was a run.
    let departed: Vec<&Object> = snapshot.departed.iter().map(|departed| departed.object.as_ref()).collect();
    let last_run = cronjob.last_run(&departed);
    status::write(&cronjob, last_run, &departed, &mut plan);
    remove_old_jobs(&cronjob, &mut plan);
    let timetable = match Timetable::new(&cronjob.spec.schedule, cronjob.spec.time_zone.as_deref()) {
        Ok(timetable) => timetable,
        Err(problem) => {
            explain(&problem, &mut plan);
            return plan;
        }
    };
    if cronjob.spec.suspend != Some(true) {
        run(&cronjob, &timetable, last_run, snapshot, &mut plan);
    }
    plan
}

/// Starts the run that is due, if there is one and nothing speaks against it, and looks again when the next is.
fn run(
    cronjob: &View<'_>,
    timetable: &Timetable,
    last_run: Option<Time>,
    snapshot: &Snapshot<'_>,
    plan: &mut Plan,
) {
    if cronjob.spec.schedule.contains("TZ") {
        let message =
            "a time zone within spec.schedule goes before spec.timeZone; better use spec.timeZone alone";
        warn(plan, "UnsupportedSchedule", message.to_owned());
    }
    let Some(earliest) = last_run.or(cronjob.meta.created_at) else { return };
    let due = timetable.due(earliest, cronjob.now);
    let next = timetable.next(due.map_or(earliest, |due| due.at));
    plan.wake_at = next;
    if due.is_none() && next.is_none() {
        return warn(plan, "InvalidSchedule", format!("{:?} is never due", cronjob.spec.schedule));
    }
    let Some(due) = due else { return };
    let deadline = cronjob.deadline().map(|allowed| due.at.after(allowed));
    if let Some(deadline) = deadline.filter(|deadline| *deadline <= cronjob.now) {
        let message = format!("the run of {} was not started by {deadline}, its deadline", due.at);
        return warn(plan, "MissSchedule", message);
    }
    let name = build::job_name(cronjob, due.at);
    let key = Key::new(&cronjob.meta.key.namespace, &name);
    if snapshot.objects.get(Kind::VcJob, &key).is_some() {
        // The CronJob's own job would have counted as its last run.
        let message = format!(
            "job {name} exists and does not belong to this CronJob; delete it, or the run is left out"
        );
        return warn(plan, "ForeignJob", message);
    }
    let n_missed = timetable.n_missed(earliest, cronjob.deadline(), cronjob.now);
    if n_missed > MISSED_MAX {
        let message = format!(
            "about {n_missed} runs were missed; set spec.startingDeadlineSeconds, or check the clock"
        );
        warn(plan, "TooManyMissedTimes", message);
    }
    if make_room(cronjob, plan) {
        plan.steps.push(Step::Create { kind: Kind::VcJob, object: build::job(cronjob, timetable, due.at) });
        let message = format!("job {name} is made for {}", due.at);
        plan.notes.push(Note::normal("SuccessfulCreate", message).of(Verb::Create, Kind::VcJob, &key));
    }
}

/// Whether a job may start now: alone, beside others, or instead of them.
fn make_room(cronjob: &View<'_>, plan: &mut Plan) -> bool {
    // A suspended job does nothing, and nobody knows for how long.
    let mut running = cronjob.active().filter(|job| phase(job) != &JobPhase::Aborted).peekable();
    match &cronjob.spec.concurrency_policy {
        ConcurrencyPolicy::Forbid if running.peek().is_some() => {
            let message = "a run is due, but the one before it has not ended".to_owned();
            warn(plan, "ForbidConcurrent", message);
            false
        }
        ConcurrencyPolicy::Replace if cronjob.active().next().is_some() => {
            warn(plan, "ReplaceConcurrent", "a run is due; the one before it is ended".to_owned());
            let replaced = cronjob.active().filter(|job| !job.meta.is_deleting());
            for job in replaced {
                let (step, note) = removed(job, "");
                plan.steps.push(step);
                plan.notes.push(note);
            }
            true
        }
        ConcurrencyPolicy::Allow
        | ConcurrencyPolicy::Unset
        | ConcurrencyPolicy::Forbid
        | ConcurrencyPolicy::Replace => true,
        ConcurrencyPolicy::Other(policy) => {
            let message =
                format!("spec.concurrencyPolicy {policy} is not known to this version; nothing is started");
            warn(plan, "InvalidSchedule", message);
            false
        }
    }
}

/// Removes the oldest finished jobs beyond those that are to be kept.
fn remove_old_jobs(cronjob: &View<'_>, plan: &mut Plan) {
    let limits =
        [(cronjob.spec.successful_jobs_history_limit, true), (cronjob.spec.failed_jobs_history_limit, false)];
    for (limit, has_completed) in limits {
        let Some(limit) = limit else { continue };
        let mut finished: Vec<&Arc<Object>> = cronjob.finished(has_completed).collect();
        finished.sort_by_key(|job| (job.meta.created_at, &job.meta.key));
        let n_surplus = finished.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        for job in finished.into_iter().take(n_surplus).filter(|job| !job.meta.is_deleting()) {
            let (step, note) = removed(job, "; enough newer ones are kept");
            plan.aside.push(step);
            plan.notes.push(note);
        }
    }
}

fn explain(problem: &Problem, plan: &mut Plan) {
    match problem {
        Problem::Schedule(why) => warn(plan, "UnParseableCronJobSchedule", format!("spec.schedule: {why}")),
        Problem::Zone(zone) => {
            warn(plan, "InvalidTimeZone", format!("spec.timeZone: there is no time zone {zone:?}"));
        }
    }
}

fn warn(plan: &mut Plan, reason: &'static str, message: String) {
    plan.notes.push(Note::warning(reason, message));
}

/// Removes a job, and says so when it is done.
fn removed(job: &Object, why: &str) -> (Step, Note) {
    let message = format!("job {} is removed{why}", job.meta.key.name);
    (job.deletion(), Note::normal("SuccessfulDelete", message).of(Verb::Delete, Kind::VcJob, &job.meta.key))
}

fn phase(job: &Object) -> &JobPhase {
    job.as_vcjob().map_or(&JobPhase::Unset, |job| &job.status.state.phase)
}

/// One CronJob as all its modules see it.
struct View<'a> {
    meta: &'a Meta,
    spec: &'a Spec,
    status: &'a CronJobStatus,
    /// The jobs that it owns.
    jobs: Vec<&'a Arc<Object>>,
    now: Time,
}

impl<'a> View<'a> {
    /// The jobs that have not finished.
    fn active(&self) -> impl Iterator<Item = &'a Arc<Object>> {
        self.jobs.iter().copied().filter(|job| !phase(job).is_finished())
    }

    /// The jobs that have completed, or that have finished otherwise.
    fn finished(&self, has_completed: bool) -> impl Iterator<Item = &'a Arc<Object>> {
        let jobs = self.jobs.iter().copied().filter(|job| phase(job).is_finished());
        jobs.filter(move |job| (phase(job) == &JobPhase::Completed) == has_completed)
    }

    /// The latest due time for which a job was made: on record, or seen on a job.
    fn last_run(&self, departed: &[&Object]) -> Option<Time> {
        let of_jobs = self.jobs.iter().filter_map(|job| build::due_time(job));
        let of_departed = departed.iter().filter_map(|job| build::due_time(job));
        of_jobs.chain(of_departed).chain(self.status.last_schedule_time).max()
    }

    /// How late a run may start.
    fn deadline(&self) -> Option<Duration> {
        let seconds = u64::try_from(self.spec.starting_deadline_seconds?).unwrap_or(0);
        Some(Duration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests;
