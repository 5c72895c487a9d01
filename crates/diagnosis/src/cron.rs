//! Why a CronJob starts no run.

use std::time::Duration;

use krafla_api::Time;
use krafla_plan::cron::{Problem, Timetable};
use krafla_why::Reason;
use serde_json::Value;

use crate::facts::{Facts, list, number, text, time};
use crate::resource::Resource;
use crate::{Link, Subject};

/// Within this time a controller starts a run that is due.
const OVERDUE_AFTER_SECONDS: u64 = 60;

/// The state of a CronJob in one word.
pub(crate) fn phase(cron_job: &Value) -> &'static str {
    match cron_job.pointer("/spec/suspend") {
        Some(Value::Bool(true)) => "Suspended",
        _ if list(cron_job, "status.active").next().is_some() => "Active",
        _ => "Scheduled",
    }
}

fn timetable(cron_job: &Value) -> Result<Timetable, Problem> {
    let zone = Some(text(cron_job, "spec.timeZone")).filter(|zone| !zone.is_empty());
    Timetable::new(text(cron_job, "spec.schedule"), zone)
}

/// The next run, and the same moment as its time zone shows it.
pub(crate) fn next_run(facts: &Facts, cron_job: &Value) -> Option<(Time, String)> {
    let timetable = timetable(cron_job).ok()?;
    let next = timetable.next(facts.now)?;
    Some((next, timetable.on_the_wall(next)))
}

/// The causes of a CronJob's state.
pub(crate) fn chain(facts: &Facts, resource: Resource, cron_job: &Value) -> Vec<Link> {
    let about = Subject::new(resource, cron_job);
    let link = |reason: Reason, since: Option<Time>| Link { about: about.clone(), reason, since };
    let made = time(cron_job, "metadata.creationTimestamp");
    if phase(cron_job) == "Suspended" {
        return vec![link(Reason::CronSuspended, None)];
    }
    let timetable = match timetable(cron_job) {
        Ok(timetable) => timetable,
        Err(Problem::Zone(zone)) => return vec![link(Reason::ZoneUnknown { zone }, made)],
        Err(Problem::Schedule(why)) => return vec![link(Reason::ScheduleInvalid { why }, made)],
    };
    let Some(next) = timetable.next(facts.now) else {
        let schedule = text(cron_job, "spec.schedule").to_owned();
        return vec![link(Reason::NeverDue { schedule }, made)];
    };
    let earliest = time(cron_job, "status.lastScheduleTime").or(made);
    let due = earliest.and_then(|earliest| timetable.due(earliest, facts.now));
    let running = list(cron_job, "status.active").map(|it| text(it, "name")).find(|name| !name.is_empty());
    let job_kind = if resource == Resource::CronJob { Resource::Job } else { Resource::VcJob };
    let below = |name: &str| {
        let job = facts.get(job_kind, &about.namespace, name);
        job.map(|job| crate::chain(facts, job_kind, job)).unwrap_or_default()
    };
    if let (Some(due), Some(running), "Forbid") = (due, running, text(cron_job, "spec.concurrencyPolicy")) {
        let first = link(Reason::RunActive { job: running.into() }, Some(due.at));
        return std::iter::once(first).chain(below(running)).collect();
    }
    let deadline = number(cron_job, "spec.startingDeadlineSeconds").and_then(|it| u64::try_from(it).ok());
    if let (Some(due), Some(seconds)) = (due, deadline)
        && due.at.after(Duration::from_secs(seconds)) < facts.now
    {
        let at = timetable.on_the_wall(due.at);
        let reason = Reason::RunMissed { at, seconds: u32::try_from(seconds).unwrap_or(u32::MAX) };
        return vec![link(reason, Some(due.at))];
    }
    // A run that is overdue was refused, or no controller is at work.
    if let Some(due) = due {
        let is_overdue = facts.now.since(due.at).as_secs() > OVERDUE_AFTER_SECONDS;
        let refused = facts.warning(cron_job, Some(due.at)).map(|it| Reason::parse(&it.message));
        let idle = is_overdue.then(|| Reason::NoController { lease: facts.lease.clone() });
        if let Some(reason) = refused.or(idle) {
            return vec![link(reason, Some(due.at))];
        }
    }
    let first = link(Reason::NextRun { at: timetable.on_the_wall(next) }, None);
    match running.map(below).filter(|links| !links.is_empty()) {
        Some(links) => links,
        None => last_run_failed(facts, cron_job, job_kind).unwrap_or_else(|| vec![first]),
    }
}

/// The last run, if it failed.
fn last_run_failed(facts: &Facts, cron_job: &Value, job_kind: Resource) -> Option<Vec<Link>> {
    let last = facts.owned(cron_job, job_kind).max_by_key(|it| time(it, "metadata.creationTimestamp"))?;
    let links = crate::chain(facts, job_kind, last);
    (!links.is_empty()).then_some(links)
}
