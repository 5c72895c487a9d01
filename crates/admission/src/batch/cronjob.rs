//! CronJobs.

use serde_json::Value;

use crate::cron::Schedule;
use crate::json::At;
use crate::look::findings;
use crate::{Finding, Reason, Verdict};

use super::job;

/// The longest name: what is appended for each Job must fit a host name.
const NAME_LENGTH_MAX: usize = 52;

/// Says everything that is wrong with a new CronJob, apart from its metadata. `has_time_zone` says which zones there are.
pub fn validate_cron_job(cron_job: &Value, has_time_zone: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    findings(cron_job, |cron_job, verdict| {
        let spec = cron_job.get("spec");
        validate_spec(&spec, &Value::Null, has_time_zone, verdict);
        job::validate_size(&spec.get("jobTemplate").get("spec"), None, verdict);
        let name = cron_job.get("metadata").get("name");
        if name.text().len() > NAME_LENGTH_MAX {
            let rule = format!("must be no more than {NAME_LENGTH_MAX} characters");
            verdict.invalid(name.path(), name.text(), rule);
        }
    })
}

/// Says everything that is wrong with a changed CronJob, apart from its metadata.
pub fn validate_cron_job_update(
    cron_job: &Value,
    old: &Value,
    has_time_zone: &dyn Fn(&str) -> bool,
) -> Vec<Finding> {
    let old = old.get("spec").unwrap_or(&Value::Null);
    findings(cron_job, |cron_job, verdict| {
        validate_spec(&cron_job.get("spec"), old, has_time_zone, verdict);
    })
}

fn validate_spec(spec: &At<'_>, old: &Value, has_time_zone: &dyn Fn(&str) -> bool, verdict: &mut Verdict) {
    validate_schedule(spec, old, has_time_zone, verdict);
    job::not_negative(&spec.get("startingDeadlineSeconds"), verdict);
    let zone = spec.get("timeZone");
    if zone.is_set() && old.get("timeZone") != Some(zone.value()) {
        validate_time_zone(&zone, has_time_zone, verdict);
    }
    let policy = spec.get("concurrencyPolicy");
    match policy.text() {
        "Allow" | "Forbid" | "Replace" => {}
        "" => verdict.required(policy.path(), ""),
        other => verdict.unsupported(policy.path(), other, &["Allow", "Forbid", "Replace"]),
    }
    validate_job_template(&spec.get("jobTemplate").get("spec"), verdict);
    for limit in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        job::not_negative(&spec.get(limit), verdict);
    }
}

/// The zone of a schedule has a field of its own. A stored schedule that names one may keep it.
fn validate_schedule(
    spec: &At<'_>,
    old: &Value,
    has_time_zone: &dyn Fn(&str) -> bool,
    verdict: &mut Verdict,
) {
    let schedule = spec.get("schedule");
    if schedule.text().is_empty() {
        return verdict.required(schedule.path(), "");
    }
    let zone = schedule.text().split_once("TZ=").filter(|(before, _)| ["", "CRON_"].contains(before));
    let zone = zone.and_then(|(_, rest)| Some(rest.split_once(' ')?.0));
    let is_known = |zone: &str| ["", "Local", "UTC"].contains(&zone) || has_time_zone(zone);
    if let Some(zone) = zone.filter(|zone| !is_known(zone)) {
        let why = format!("provided bad location {zone}: unknown time zone {zone}");
        verdict.invalid(schedule.path(), schedule.text(), why);
    } else if let Err(why) = schedule.text().parse::<Schedule>() {
        verdict.invalid(schedule.path(), schedule.text(), why);
    }
    if !schedule.text().contains("TZ") {
        return;
    }
    let old_names_zone = old.get("schedule").and_then(Value::as_str).is_some_and(|old| old.contains("TZ"));
    if !old_names_zone {
        let rule = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        verdict.invalid(schedule.path(), schedule.text(), rule);
    } else if spec.get("timeZone").is_set() {
        let rule = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        verdict.invalid(schedule.path(), schedule.text(), rule);
    }
}

fn validate_time_zone(zone: &At<'_>, has_time_zone: &dyn Fn(&str) -> bool, verdict: &mut Verdict) {
    let name = zone.text();
    if name.is_empty() {
        verdict.invalid(zone.path(), name, "timeZone must be nil or non-empty string");
    } else if name.eq_ignore_ascii_case("Local") {
        let rule = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        verdict.invalid(zone.path(), name, rule);
    }
    if !name.is_empty() && name != "Local" && !has_time_zone(name) {
        verdict.invalid(zone.path(), name, format!("unknown time zone {name}"));
    }
}

/// Each Job gets its own selector.
fn validate_job_template(spec: &At<'_>, verdict: &mut Verdict) {
    job::validate(spec, verdict);
    let (selector, manual) = (spec.get("selector"), spec.get("manualSelector"));
    if selector.is_set() {
        verdict.invalid(selector.path(), selector.value(), "`selector` will be auto-generated");
    }
    if manual.is_true() {
        let message = "Unsupported value: true: supported values: \"nil\", \"false\"";
        verdict.refuse(manual.path(), Reason::NotSupported, message);
    }
}
