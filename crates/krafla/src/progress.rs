//! How jobs and flows are doing: in one line each for people, and whether they have ended.

use krafla_api::volcano::{JobFlowPhase, JobPhase, JobState};
use krafla_api::{Key, Kind, Time};
use krafla_plan::cron::Timetable;
use krafla_plan::cronjob::VcCronJob;
use krafla_plan::jobflow::JobFlow;
use krafla_plan::object::{CronJob, Job, PodPhase, VcJob};
use krafla_plan::{Object, vcjob};
use serde_json::{Value, json};

use crate::steps;

/// The kinds that a run waits for. Of a CronJob it waits for the first Job, and for that one's end.
pub(crate) const FOLLOWED: [Kind; 6] =
    [Kind::VcJob, Kind::Job, Kind::JobFlow, Kind::CronJob, Kind::VcCronJob, Kind::Pod];

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

/// A job, flow, CronJob or pod: two of them may have one name if they are of two kinds.
pub(crate) type JobKey = (Kind, Key);

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
    if let Some(pod) = object.as_pod() {
        return match pod.status.phase {
            PodPhase::Succeeded => Some(End::Well),
            PodPhase::Failed => Some(End::Badly),
            _ => None,
        };
    }
    match &object.as_jobflow()?.status.state.phase {
        JobFlowPhase::Succeed => Some(End::Well),
        JobFlowPhase::Failed => Some(End::Badly),
        _ => None,
    }
}

/// One line about what happened to a job or flow: at its beginning and its end all of it, in between what changed. None if
/// nothing worth telling did.
pub(crate) fn change(before: Option<&Object>, now: &Object) -> Option<String> {
    if let (Some(before), Some(flow), None) = (before, now.as_jobflow(), end(now))
        && let Some(flow_before) = before.as_jobflow().filter(|flow| !flow.status.state.phase.is_unset())
    {
        return of_change(&now.meta.key, flow_before, flow);
    }
    let is_news = before.is_none_or(|before| news(before) != news(now));
    is_news.then(|| line(now))
}

/// One line about a job or flow.
fn line(object: &Object) -> String {
    let key = &object.meta.key;
    let of_vcjob = object.as_vcjob().map(|job| of_vcjob(key, job));
    let of_job = || object.as_job().map(|job| of_job(key, job));
    let of_flow = || object.as_jobflow().map(|flow| of_flow(key, flow));
    let of_cron_job = || timing(object).map(|timing| of_cron_job(object, &timing));
    let of_pod = || object.as_pod().map(|pod| format!("{}: {}", key.name, pod.status.phase.as_str()));
    of_vcjob.or_else(of_job).or_else(of_flow).or_else(of_cron_job).or_else(of_pod).unwrap_or_default()
}

/// Whether a CronJob will make no Job unless somebody changes it.
pub(crate) fn is_never_due(object: &Object) -> bool {
    timing(object).is_some_and(|timing| timing.is_suspended || next_run(object, &timing).is_none())
}

/// The first words of a line about a job: its phase, and why, unless that is what it waits for, which is told below. How its
/// pods are, a bar shows.
pub(crate) fn title(object: &Object, told_below: Option<&str>) -> String {
    let name = &object.meta.key.name;
    if let Some(job) = object.as_job() {
        let message = job.status.condition("Failed").map_or("", |failed| &failed.message);
        return told(&format!("{name}: {}", phase_of_job(job)), &[], message);
    }
    match object.as_vcjob().map(|job| &job.status.state) {
        Some(state) => {
            let is_told = told_below.map_or(waits(state), |below| below.contains(&state.message));
            told(&format!("{name}: {}", phase(object)), &[], if is_told { "" } else { &state.message })
        }
        None => line(object),
    }
}

/// Whether a job's state says what it waits for. That is told besides, with what to do about it, if it lasts.
fn waits(state: &JobState) -> bool {
    vcjob::waits_for(state).is_some() || vcjob::has_no_room(state)
}

/// What of a line is news.
fn news(object: &Object) -> String {
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
    let message = if waits(&status.state) { "" } else { &status.state.message };
    told(&format!("{}: {}", key.name, status.state.phase), &counts, message)
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
    match next_run(object, timing) {
        Some(next) => format!("{name}: waits for its next run at {next}"),
        None => format!("{name}: is never due; change spec.schedule"),
    }
}

/// When a CronJob is due next, as the clock on the wall shows it.
fn next_run(object: &Object, timing: &Timing<'_>) -> Option<String> {
    let since = timing.last.or(object.meta.created_at)?;
    let timetable = Timetable::new(timing.schedule, timing.time_zone).ok()?;
    Some(timetable.on_the_wall(timetable.next(since)?))
}

/// A Job of Kubernetes has no phase: this is the word that its conditions come to.
fn phase_of_job(job: &Job) -> &str {
    let status = &job.status;
    let end = status.finished().map(|end| end.condition_type.as_str());
    phase_of_conditions(end, status.condition("Suspended").is_some(), status.start_time.is_some())
}

/// The phase of a Job of Kubernetes: by the condition that it ended with, and whether it is suspended or has started.
pub(crate) fn phase_of_conditions(end: Option<&str>, is_suspended: bool, has_started: bool) -> &str {
    match end {
        Some(end) => end,
        None if is_suspended => "Suspended",
        None if has_started => "Running",
        None => "Pending",
    }
}

/// Nor has a CronJob: this is what `krafla run` waits for.
fn phase_of_timing(timing: &Timing<'_>) -> &'static str {
    match timing.last {
        _ if timing.is_suspended => "Suspended",
        Some(_) => "Scheduled",
        None => "Pending",
    }
}

/// The one word for how something is doing.
pub(crate) fn phase(object: &Object) -> String {
    let of_vcjob = object.as_vcjob().map(|job| job.status.state.phase.to_string());
    let of_job = || object.as_job().map(|job| phase_of_job(job).to_owned());
    let of_flow = || object.as_jobflow().map(|flow| flow.status.state.phase.to_string());
    let of_pod = || object.as_pod().map(|pod| pod.status.phase.as_str().to_owned());
    let of_cron_job = || timing(object).map(|timing| phase_of_timing(&timing).to_owned());
    let phase = of_vcjob.or_else(of_job).or_else(of_flow).or_else(of_pod).or_else(of_cron_job);
    // Nobody has taken it up yet.
    phase.filter(|phase| !phase.is_empty()).unwrap_or_else(|| "Pending".to_owned())
}

/// The status of what makes pods, for a program to read.
pub(crate) fn status(object: &Object) -> Option<Value> {
    let of_vcjob = object.as_vcjob().map(|job| json!(job.status));
    let of_job = || object.as_job().map(|job| json!(job.status));
    let of_flow = || object.as_jobflow().map(|flow| json!(flow.status));
    let of_cron_job = || object.as_cron_job().map(|cron_job| json!(cron_job.status));
    let of_vccronjob = || object.as_vccronjob().map(|cron_job| json!(cron_job.status));
    of_vcjob.or_else(of_job).or_else(of_flow).or_else(of_cron_job).or_else(of_vccronjob)
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
    let steps: Vec<(&str, String)> =
        flow.spec.flows.iter().map(|step| (step.name.as_str(), step_state(key, flow, &step.name))).collect();
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

/// The flow's phase and those of its steps that are not what they were.
fn of_change(key: &Key, before: &JobFlow, now: &JobFlow) -> Option<String> {
    let changed = |step: &&str| step_state(key, before, step) != step_state(key, now, step);
    let names = now.spec.flows.iter().map(|step| step.name.as_str());
    let steps: Vec<&str> = names.filter(changed).collect();
    if steps.len() > STEPS_NAMED_MAX {
        return Some(of_flow(key, now));
    }
    let steps = steps.into_iter().map(|step| format!("step {step} {}", step_state(key, now, step)));
    let (phase, phase_before) = (&now.status.state.phase, &before.status.state.phase);
    let phase = (phase != phase_before).then(|| phase.to_string());
    let told: Vec<String> = phase.into_iter().chain(steps).collect();
    (!told.is_empty()).then(|| format!("{}: {}", key.name, told.join(", ")))
}

fn step_state(key: &Key, flow: &JobFlow, step: &str) -> String {
    steps::phase(&key.name, flow, step).map_or("waits".to_owned(), ToString::to_string)
}

/// The jobs of a flow that did not end well.
pub(crate) fn failed_jobs(object: &Object) -> Vec<JobKey> {
    let Some(flow) = object.as_jobflow() else { return vec![(object.kind, object.meta.key.clone())] };
    let names = flow.status.failed_jobs.iter().chain(&flow.status.terminated_jobs);
    names.map(|name| (Kind::VcJob, Key::new(&object.meta.key.namespace, name))).collect()
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
    fn a_flow_is_told_as_a_whole_at_its_beginning_and_end_and_in_between_what_changed() {
        let flow = |phase: &str, states: &[&str]| {
            let steps: Vec<Value> = (0..3).map(|n| json!({ "name": format!("s{n}") })).collect();
            let job = |(n, state)| json!({ "name": format!("f-s{n}"), "state": state });
            let jobs: Vec<Value> = states.iter().enumerate().map(job).collect();
            let flow = json!({
                "metadata": { "namespace": "ns", "name": "f" },
                "spec": { "flows": steps },
                "status": { "state": { "phase": phase }, "jobStatusList": jobs },
            });
            Object::decode(Kind::JobFlow, flow.to_string().as_bytes())
        };
        let life = [
            flow("", &[]),
            flow("Pending", &["Pending"]),
            flow("Running", &["Running"]),
            flow("Running", &["Running"]),
            flow("Running", &["Completed", "Pending"]),
            flow("Failed", &["Completed", "Failed"]),
        ];
        let told: Vec<Option<String>> =
            life.windows(2).map(|pair| change(Some(&pair[0]), &pair[1])).collect();
        let told: Vec<&str> = told.iter().map(|it| it.as_deref().unwrap_or_default()).collect();
        let expected = [
            "f: Pending, s0 Pending, s1 waits, s2 waits",
            "f: Running, step s0 Running",
            "",
            "f: step s0 Completed, step s1 Pending",
            "f: Failed, s0 Completed, s1 Failed, s2 waits",
        ];
        assert_eq!(told, expected);
        assert_eq!(change(None, &life[2]).unwrap(), "f: Running, s0 Running, s1 waits, s2 waits");
        // So many changes at once are counted.
        let large = |state: &str| {
            let steps: Vec<Value> = (0..20).map(|n| json!({ "name": format!("s{n}") })).collect();
            let job = |n| json!({ "name": format!("f-s{n}"), "state": state });
            let jobs: Vec<Value> = (0..20).map(job).collect();
            let flow = json!({ "metadata": { "name": "f" }, "spec": { "flows": steps },
                "status": { "state": { "phase": "Running" }, "jobStatusList": jobs } });
            Object::decode(Kind::JobFlow, flow.to_string().as_bytes())
        };
        let told = change(Some(&large("Pending")), &large("Running"));
        assert_eq!(told.unwrap(), "f: Running, 20 Running");
    }

    #[test]
    fn what_a_job_waits_for_is_told_once() {
        let job = |phase: &str, reason: &str, message: &str| {
            let state = json!({ "phase": phase, "reason": reason, "message": message });
            let job = json!({ "metadata": { "namespace": "ns", "name": "j" }, "status": { "state": state } });
            Object::decode(Kind::VcJob, job.to_string().as_bytes())
        };
        let below = Some("no room for 4 cpu; fix: ask for less");
        for (state, told_below, expected_title, expected_line) in [
            // Below it, now or as soon as it lasts.
            (["Pending", "PodGroupPending", "no room for 4 cpu"], below, "j: Pending", "j: Pending"),
            (["Pending", "PodGroupPending", "no room for 4 cpu"], None, "j: Pending", "j: Pending"),
            (["Pending", "QueueNotFound", "no queue q"], None, "j: Pending", "j: Pending"),
            // Something else is told there.
            (["Pending", "QueueNotFound", "no queue q"], below, "j: Pending, no queue q", "j: Pending"),
            (["Failed", "TooFewSucceeded", "1 of 2"], None, "j: Failed, 1 of 2", "j: Failed, 1 of 2"),
            (
                ["Pending", "RestartJob", "a pod failed"],
                None,
                "j: Pending, a pod failed",
                "j: Pending, a pod failed",
            ),
        ] {
            let [phase, reason, message] = state;
            let job = job(phase, reason, message);
            assert_eq!(title(&job, told_below), expected_title, "{state:?} {told_below:?}");
            assert_eq!(line(&job), expected_line, "{state:?}");
        }
    }

    #[test]
    fn a_cron_jobs_result_says_when_it_last_ran() {
        let shown = |spec: Value, status: Value| {
            let cron_job =
                json!({ "metadata": { "namespace": "ns", "name": "c" }, "spec": spec, "status": status });
            let object = Object::decode(Kind::CronJob, cron_job.to_string().as_bytes());
            (phase(&object), super::status(&object).unwrap()["lastScheduleTime"].clone())
        };
        let hourly = || json!({ "schedule": "0 * * * *", "jobTemplate": {} });
        let at = "2026-07-09T10:00:00Z";
        assert_eq!(shown(hourly(), json!({})), ("Pending".to_owned(), Value::Null));
        assert_eq!(shown(hourly(), json!({ "lastScheduleTime": at })), ("Scheduled".to_owned(), json!(at)));
        let mut suspended = hourly();
        suspended["suspend"] = json!(true);
        assert_eq!(shown(suspended, json!({})), ("Suspended".to_owned(), Value::Null));
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
        assert_eq!(failed_jobs(&flow(2, "Failed")), [(Kind::VcJob, Key::new("ns", "f-s1"))]);
    }
}
