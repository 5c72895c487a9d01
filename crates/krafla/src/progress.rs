//! How jobs and flows are doing: in one line each for people, and whether they have ended.

use krafla_api::volcano::{JobFlowPhase, JobPhase};
use krafla_api::{Key, Kind, Time};
use krafla_plan::Object;
use krafla_plan::cron::Timetable;
use krafla_plan::cronjob::VcCronJob;
use krafla_plan::jobflow::JobFlow;
use krafla_plan::object::{CronJob, Job, VcJob};
use serde_json::{Value, json};

use crate::steps;

/// The kinds that a run waits for. Of a CronJob it waits for the first Job, and for that one's end.
pub(crate) const FOLLOWED: [Kind; 5] =
    [Kind::VcJob, Kind::Job, Kind::JobFlow, Kind::CronJob, Kind::VcCronJob];

/// The kind of the Jobs that a CronJob makes.
pub(crate) fn made_by(kind: Kind) -> Option<Kind> {
    match kind {
        Kind::CronJob => Some(Kind::Job),
        Kind::VcCronJob => Some(Kind::VcJob),
        _ => None,
    }
}

/// Up to so many steps of a flow are named; of more only the number in each state is told.
const STEPS_NAMED_MAX: usize = 12;

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As it should.
    Well,
    /// Otherwise.
    Badly,
}

/// How a job or flow ended, if it has.
pub(crate) fn end(object: &Object) -> Option<End> {
    if let Some(job) = object.as_vcjob() {
        return match &job.status.state.phase {
            JobPhase::Completed => Some(End::Well),
            JobPhase::Failed | JobPhase::Terminated | JobPhase::Aborted => Some(End::Badly),
            _ => None,
        };
    }
    if let Some(job) = object.as_job() {
        let end = job.status.finished()?;
        return Some(if end.condition_type == "Complete" { End::Well } else { End::Badly });
    }
    if let Some(cron_job) = object.as_cron_job() {
        return cron_job.status.last_schedule_time.map(|_| End::Well);
    }
    if let Some(cron_job) = object.as_vccronjob() {
        return cron_job.status.last_schedule_time.map(|_| End::Well);
    }
    match &object.as_jobflow()?.status.state.phase {
        JobFlowPhase::Succeed => Some(End::Well),
        JobFlowPhase::Failed => Some(End::Badly),
        _ => None,
    }
}

/// One line about a job or flow. When it is no other than before, or only counts differ, it need not be said again.
pub(crate) fn line(object: &Object) -> String {
    let key = &object.meta.key;
    let of_vcjob = object.as_vcjob().map(|job| of_vcjob(key, job));
    let of_job = || object.as_job().map(|job| of_job(key, job));
    let of_flow = || object.as_jobflow().map(|flow| of_flow(key, flow));
    let of_cron_job = || timing(object).map(|timing| of_cron_job(object, &timing));
    of_vcjob.or_else(of_job).or_else(of_flow).or_else(of_cron_job).unwrap_or_default()
}

/// The first words of a line about a job: its phase, and why. How its pods are, a bar shows.
pub(crate) fn title(object: &Object) -> String {
    let name = &object.meta.key.name;
    if let Some(job) = object.as_job() {
        let message = job.status.condition("Failed").map_or("", |failed| &failed.message);
        return told(&format!("{name}: {}", phase_of_job(job)), &[], message);
    }
    match object.as_vcjob().map(|job| &job.status.state) {
        Some(state) if state.phase.is_unset() => format!("{name}: Pending"),
        Some(state) => told(&format!("{name}: {}", state.phase), &[], &state.message),
        None => line(object),
    }
}

/// What of a line is news.
pub(crate) fn news(object: &Object) -> String {
    if let Some(job) = object.as_job() {
        let status = &job.status;
        return format!("{} {} {}", phase_of_job(job), status.succeeded, status.failed);
    }
    match object.as_vcjob() {
        Some(job) => job.status.state.phase.to_string(),
        None => line(object),
    }
}

/// The job's phase, its pods, and why.
fn of_vcjob(key: &Key, job: &VcJob) -> String {
    let status = &job.status;
    let counts = [
        (status.pending, "pending"),
        (status.running, "running"),
        (status.succeeded, "succeeded"),
        (status.failed, "failed"),
        (status.terminating, "terminating"),
    ];
    told(&format!("{}: {}", key.name, status.state.phase), &counts, &status.state.message)
}

/// The same of a Job of Kubernetes.
fn of_job(key: &Key, job: &Job) -> String {
    let status = &job.status;
    let counts = [
        (status.active, "active"),
        (status.succeeded, "succeeded"),
        (status.failed, "failed"),
        (status.terminating.unwrap_or(0), "terminating"),
    ];
    let message = status.condition("Failed").map_or("", |failed| &failed.message);
    told(&format!("{}: {}", key.name, phase_of_job(job)), &counts, message)
}

/// When a CronJob, of Kubernetes or of Volcano, makes Jobs.
struct Timing<'a> {
    schedule: &'a str,
    time_zone: Option<&'a str>,
    is_suspended: bool,
    last: Option<Time>,
}

fn timing(object: &Object) -> Option<Timing<'_>> {
    if let Some(CronJob { spec, status }) = object.as_cron_job() {
        return Some(Timing {
            schedule: &spec.schedule,
            time_zone: spec.time_zone.as_deref(),
            is_suspended: spec.suspend == Some(true),
            last: status.last_schedule_time,
        });
    }
    let VcCronJob { spec, status } = object.as_vccronjob()?;
    Some(Timing {
        schedule: &spec.schedule,
        time_zone: spec.time_zone.as_deref(),
        is_suspended: spec.suspend == Some(true),
        last: status.last_schedule_time,
    })
}

/// What a CronJob waits for. How its Jobs fare, they say themselves.
fn of_cron_job(object: &Object, timing: &Timing<'_>) -> String {
    let name = &object.meta.key.name;
    if timing.is_suspended {
        return format!("{name}: Suspended, waits for spec.suspend to be false");
    }
    let since = timing.last.or(object.meta.created_at);
    let timetable = Timetable::new(timing.schedule, timing.time_zone).ok();
    let next = timetable.and_then(|it| Some(it.on_the_wall(it.next(since?)?)));
    match next {
        Some(next) => format!("{name}: waits for its next run at {next}"),
        None => format!("{name}: is never due; change spec.schedule"),
    }
}

/// A Job of Kubernetes has no phase: this is the word that its conditions come to.
fn phase_of_job(job: &Job) -> &str {
    match job.status.finished() {
        Some(end) => &end.condition_type,
        None if job.status.condition("Suspended").is_some() => "Suspended",
        None if job.status.start_time.is_some() => "Running",
        None => "Pending",
    }
}

/// Nor has a CronJob: this is what `krafla run` waits for.
fn phase_of_cron_job(cron_job: &CronJob) -> &'static str {
    match cron_job.status.last_schedule_time {
        _ if cron_job.spec.suspend == Some(true) => "Suspended",
        Some(_) => "Scheduled",
        None => "Pending",
    }
}

fn told(start: &str, counts: &[(i32, &str)], message: &str) -> String {
    let counts: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let parts = [counts.join(", "), message.to_owned()];
    let parts = parts.iter().filter(|part| !part.is_empty());
    parts.fold(start.to_owned(), |line, part| format!("{line}, {part}"))
}

/// The flow's phase, and that of each of its steps in the order of the spec.
fn of_flow(key: &Key, flow: &JobFlow) -> String {
    let state = |step: &str| {
        let phase = steps::phase(&key.name, flow, step);
        phase.map_or("waits".to_owned(), ToString::to_string)
    };
    let steps: Vec<(&str, String)> =
        flow.spec.flows.iter().map(|step| (step.name.as_str(), state(&step.name))).collect();
    let told: Vec<String> = if steps.len() <= STEPS_NAMED_MAX {
        steps.iter().map(|(name, state)| format!("{name} {state}")).collect()
    } else {
        let mut counts = std::collections::BTreeMap::<&str, usize>::new();
        steps.iter().for_each(|(_, state)| *counts.entry(state).or_default() += 1);
        counts.iter().map(|(state, n)| format!("{n} {state}")).collect()
    };
    let told = told.iter().map(String::as_str);
    let phase = flow.status.state.phase.to_string();
    std::iter::once(format!("{}: {phase}", key.name).as_str()).chain(told).collect::<Vec<_>>().join(", ")
}

/// The jobs of a flow that did not end well.
pub(crate) fn failed_jobs(object: &Object) -> Vec<Key> {
    let Some(flow) = object.as_jobflow() else { return vec![object.meta.key.clone()] };
    let names = flow.status.failed_jobs.iter().chain(&flow.status.terminated_jobs);
    names.map(|name| Key::new(&object.meta.key.namespace, name)).collect()
}

/// A job or flow for a program to read.
pub(crate) fn result(object: &Object) -> Value {
    let key = &object.meta.key;
    let of_vcjob = object.as_vcjob().map(|job| (json!(job.status.state.phase), json!(job.status)));
    let of_job = || object.as_job().map(|job| (json!(phase_of_job(job)), json!(job.status)));
    let of_flow = || object.as_jobflow().map(|flow| (json!(flow.status.state.phase), json!(flow.status)));
    let of_cron_job = || object.as_cron_job().map(|it| (json!(phase_of_cron_job(it)), json!(it.status)));
    let (phase, status) = of_vcjob.or_else(of_job).or_else(of_flow).or_else(of_cron_job).unwrap_or_default();
    json!({ "namespace": key.namespace.as_ref(), "name": key.name.as_ref(), "phase": phase, "status": status })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(n_steps: usize, phase: &str) -> Object {
        let steps: Vec<Value> = (0..n_steps).map(|step| json!({ "name": format!("s{step}") })).collect();
        let jobs = json!([{ "name": "f-s0", "state": "Completed" }, { "name": "f-s1", "state": "Running" }]);
        let flow = json!({
            "metadata": { "namespace": "ns", "name": "f" },
            "spec": { "flows": steps },
            "status": { "state": { "phase": phase }, "jobStatusList": jobs, "failedJobs": ["f-s1"] },
        });
        Object::decode(Kind::JobFlow, flow.to_string().as_bytes())
    }

    #[test]
    fn a_flows_steps_are_told_in_order_and_counted_when_they_are_many() {
        assert_eq!(line(&flow(3, "Running")), "f: Running, s0 Completed, s1 Running, s2 waits");
        assert_eq!(line(&flow(1000, "Running")), "f: Running, 1 Completed, 1 Running, 998 waits");
    }

    #[test]
    fn a_cron_jobs_result_says_when_it_last_ran() {
        let shown = |spec: Value, status: Value| {
            let cron_job =
                json!({ "metadata": { "namespace": "ns", "name": "c" }, "spec": spec, "status": status });
            let result = result(&Object::decode(Kind::CronJob, cron_job.to_string().as_bytes()));
            (result["phase"].clone(), result["status"]["lastScheduleTime"].clone())
        };
        let hourly = || json!({ "schedule": "0 * * * *", "jobTemplate": {} });
        let at = "2026-07-09T10:00:00Z";
        assert_eq!(shown(hourly(), json!({})), (json!("Pending"), Value::Null));
        assert_eq!(shown(hourly(), json!({ "lastScheduleTime": at })), (json!("Scheduled"), json!(at)));
        let mut suspended = hourly();
        suspended["suspend"] = json!(true);
        assert_eq!(shown(suspended, json!({})), (json!("Suspended"), Value::Null));
    }

    #[test]
    fn what_keeps_a_step_from_starting_is_told() {
        let flow = json!({
            "metadata": { "namespace": "ns", "name": "f" }, "spec": { "flows": [{ "name": "a" }] },
            "status": { "state": { "phase": "Pending" }, "conditions": { "f-a": { "phase": "TemplateMissing" } } },
        });
        let flow = Object::decode(Kind::JobFlow, flow.to_string().as_bytes());
        assert_eq!(line(&flow), "f: Pending, a TemplateMissing");
    }

    #[test]
    fn a_cron_job_says_when_it_is_due() {
        let line_of = |spec: Value| {
            let metadata =
                json!({ "namespace": "ns", "name": "tick", "creationTimestamp": "2027-01-15T08:00:30Z" });
            let cron_job = json!({ "metadata": metadata, "spec": spec }).to_string();
            let of = |kind: Kind| line(&Object::decode(kind, cron_job.as_bytes()));
            assert_eq!(of(Kind::CronJob), of(Kind::VcCronJob));
            of(Kind::CronJob)
        };
        let hourly = json!({ "schedule": "0 * * * *", "timeZone": "Europe/Berlin" });
        assert_eq!(line_of(hourly), "tick: waits for its next run at 2027-01-15T10:00:00+01:00");
        assert_eq!(
            line_of(json!({ "schedule": "0 * * * *", "suspend": true })),
            "tick: Suspended, waits for spec.suspend to be false"
        );
        assert_eq!(line_of(json!({ "schedule": "0 0 31 2 *" })), "tick: is never due; change spec.schedule");
    }

    #[test]
    fn only_success_is_a_good_end() {
        let ends = ["Pending", "Running", "Succeed", "Failed"].map(|phase| end(&flow(1, phase)));
        assert_eq!(ends, [None, None, Some(End::Well), Some(End::Badly)]);
        assert_eq!(failed_jobs(&flow(2, "Failed")), [Key::new("ns", "f-s1")]);
    }
}
