//! The life of a Kubernetes CronJob (batch/v1), top to bottom in [`plan`].
//!
//! ```text
//!   CronJob --owns--> Job <cronjob>-<minutes since 1970>     one per run
//! ```
//!
//! A run is made by creating its Job, whose name follows from the time of the run: so it is made once, whoever dies on the
//! way. What status says is read off the Jobs that are there.
//!
//! Mirrors Kubernetes' `pkg/controller/cronjob`; what is deliberately different stands in DEVIATIONS.md.

mod history;
mod measure;
mod run;
mod status;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use krafla_api::batch::{CronJobSpec, CronJobStatus};
use krafla_api::{Key, Kind, Time};

pub(crate) use self::status::has_recorded;
use crate::cron::{Problem, Timetable};
use crate::object::{Body, Meta};
use crate::{Controller, Measure, Note, Object, Objects, Plan, Snapshot, Stored, controlling_keys};

/// The controller of CronJobs.
pub struct CronJobController;

impl Controller for CronJobController {
    fn name(&self) -> &'static str {
        "kubernetes-cronjob-controller"
    }

    fn queue(&self) -> &'static str {
        "cronjob"
    }

    fn event_source(&self) -> &'static str {
        "cronjob-controller"
    }

    fn refusal(&self, reason: &str, why: &str) -> String {
        match reason {
            "FailedCreate" => format!("Error creating job: {why}"),
            "FailedDelete" => format!("Error deleting job: {why}"),
            _ => why.to_owned(),
        }
    }

    fn root(&self) -> Kind {
        Kind::CronJob
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::Job]
    }

    fn keys(&self, changed: &Object, _objects: &Objects) -> Vec<Key> {
        controlling_keys(Kind::CronJob, changed)
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        plan(snapshot)
    }

    fn measure(&self, stored: &Stored<'_>) -> Vec<Measure> {
        measure::measure(stored).into_iter().collect()
    }
}

/// What should be done for one CronJob now.
pub fn plan(snapshot: &Snapshot<'_>) -> Plan {
    let Some(root) = snapshot.root() else { return Plan::nothing() };
    let cron_job = match &root.body {
        Body::CronJob(body) => {
            CronJob { meta: &root.meta, spec: &body.spec, status: &body.status, now: snapshot.now }
        }
        Body::Unreadable(why) => {
            return Plan::hold("CronJobUnreadable", format!("cannot read the CronJob: {why}"));
        }
        _ => return Plan::nothing(),
    };
    let jobs: Vec<&Arc<Object>> = snapshot.children(Kind::Job).collect();
    let mut plan = Plan::nothing();
    plan.settled = snapshot.departed.iter().map(|departed| departed.object.meta.uid.clone()).collect();
    let status = status::recount(&cron_job, &jobs, snapshot.departed, &mut plan);
    history::remove(&cron_job, &jobs, &mut plan);
    if !cron_job.meta.is_deleting() && cron_job.spec.suspend != Some(true) {
        match Timetable::new(&cron_job.spec.schedule, cron_job.spec.time_zone.as_deref()) {
            Ok(timetable) => {
                plan.notes.extend(zone_in_schedule(&cron_job));
                run::make(&cron_job, &timetable, &status, &jobs, snapshot.objects, &mut plan);
            }
            Err(why) => plan.notes.push(no_timetable(&cron_job, &why)),
        }
    }
    status::write(&cron_job, &status, &mut plan);
    plan
}

/// A schedule that was stored with its zone inside is kept, though it should not be so.
fn zone_in_schedule(cron_job: &CronJob<'_>) -> Option<Note> {
    let schedule = &cron_job.spec.schedule;
    let message = format!("the schedule {schedule:?} names a time zone; move it to spec.timeZone");
    let note = Note::warning("UnsupportedSchedule", message);
    schedule.contains("TZ").then_some(note)
}

fn no_timetable(cron_job: &CronJob<'_>, why: &Problem) -> Note {
    let (reason, message) = match why {
        Problem::Schedule(why) => {
            ("UnparseableSchedule", format!("unparseable schedule: {:?} : {why}", cron_job.spec.schedule))
        }
        Problem::Zone(zone) => {
            ("UnknownTimeZone", format!("invalid timeZone: {zone:?}; use a name such as Europe/Berlin"))
        }
    };
    Note::warning(reason, message)
}

/// One CronJob as all modules see it.
struct CronJob<'a> {
    meta: &'a Meta,
    spec: &'a CronJobSpec,
    status: &'a CronJobStatus,
    now: Time,
}
