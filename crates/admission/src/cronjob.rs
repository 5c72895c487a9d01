//! CronJobs: a schedule that can be read, a time zone that exists, a name that leaves room for its jobs'.

use krafla_api::volcano::CronJob;

use crate::cron::Schedule;
use crate::{Cluster, Operation, Path, Reason, Request, Verdict, names, read};

/// Each job's name is the CronJob's plus eleven characters, and becomes a label value of at most 63.
const NAME_LENGTH_MAX: usize = 52;

/// Everything that is wrong with a new or changed CronJob.
pub fn validate(request: Request<'_>, cluster: &dyn Cluster) -> Verdict {
    let mut verdict = Verdict::default();
    if request.operation == Operation::Delete {
        return verdict;
    }
    let Some(cronjob) = read::<CronJob>(request.object, &mut verdict) else { return verdict };
    let path = Path::new("spec");
    validate_schedule(&cronjob.spec.schedule, &path.field("schedule"), &mut verdict);
    if let Some(zone) = &cronjob.spec.time_zone {
        validate_time_zone(zone, &path.field("timeZone"), cluster, &mut verdict);
    }
    validate_name(&cronjob.metadata.name, &Path::new("metadata.name"), &mut verdict);
    verdict
}

fn validate_schedule(schedule: &str, path: &Path, verdict: &mut Verdict) {
    if schedule.is_empty() {
        verdict.refuse(path, Reason::Required, "schedule is required, but got empty");
    } else if schedule.contains("TZ") {
        let message =
            "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field";
        verdict.refuse(path, Reason::Invalid, message);
    } else if let Err(error) = schedule.parse::<Schedule>() {
        verdict.refuse(path, Reason::Invalid, format!("schedule is not a valid cron expression: {error}"));
    }
}

fn validate_time_zone(zone: &str, path: &Path, cluster: &dyn Cluster, verdict: &mut Verdict) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
    let is_part = |part: &str| {
        (1..=14).contains(&part.len())
            && part.chars().all(is_plain)
            && ![".", ".."].contains(&part)
            && !part.starts_with('-')
    };
    if zone.is_empty() {
        let message = "timeZone must be nil or non-empty string, got empty string";
        verdict.refuse(path, Reason::Required, message);
        return;
    }
    if zone.eq_ignore_ascii_case("local") {
        let message = "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones";
        verdict.refuse(path, Reason::Invalid, message);
        return;
    }
    if !zone.split('/').all(is_part) {
        verdict.refuse(path, Reason::Invalid, format!("unknown timeZone: {zone:?}"));
    }
    if !cluster.has_time_zone(zone) {
        let message = format!("invalid timeZone: {zone:?}; use a name such as Europe/Berlin");
        verdict.refuse(path, Reason::Invalid, message);
    }
}

fn validate_name(name: &str, path: &Path, verdict: &mut Verdict) {
    if name.len() > NAME_LENGTH_MAX {
        let message =
            "cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total)";
        verdict.refuse(path, Reason::TooLong, message);
    }
    let wrong = names::qualified_name(name);
    if !wrong.is_empty() {
        verdict.refuse(path, Reason::Invalid, format!("invalid cronJob name {name:?}: {}", wrong.join("; ")));
    }
}
