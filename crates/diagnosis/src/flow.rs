//! Why a JobFlow does not go on.

use krafla_api::Time;
use krafla_why::Reason;
use serde_json::Value;

use crate::facts::{Facts, field, list, text, time};
use crate::resource::Resource;
use crate::{Link, Subject};

fn link(flow: &Value, reason: Reason, since: Option<Time>) -> Link {
    Link { about: Subject::new(Resource::JobFlow, flow), reason, since }
}

fn job_of<'a>(facts: &'a Facts, flow: &Value, step: &str) -> Option<&'a Value> {
    let name = format!("{}-{step}", text(flow, "metadata.name"));
    facts.get(Resource::VcJob, text(flow, "metadata.namespace"), &name)
}

fn phase_of<'a>(facts: &'a Facts, flow: &'a Value, step: &str) -> &'a str {
    let name = format!("{}-{step}", text(flow, "metadata.name"));
    let recorded = || {
        let entry = list(flow, "status.jobStatusList").find(|it| text(it, "name") == name)?;
        Some(text(entry, "state"))
    };
    job_of(facts, flow, step).map(|job| text(job, "status.state.phase")).or_else(recorded).unwrap_or_default()
}

fn targets(step: &Value) -> impl Iterator<Item = &str> {
    list(step, "dependsOn.targets").filter_map(Value::as_str)
}

/// The causes of a flow's state.
pub(crate) fn chain(facts: &Facts, flow: &Value) -> Vec<Link> {
    let made = time(flow, "metadata.creationTimestamp");
    let namespace = text(flow, "metadata.namespace");
    let steps: Vec<&Value> = list(flow, "spec.flows").collect();
    if text(flow, "status.state.phase") == "Succeed" {
        return Vec::new();
    }
    let names: Vec<&str> = steps.iter().map(|step| text(step, "name")).collect();
    let has_job = |step: &str| !phase_of(facts, flow, step).is_empty() || job_of(facts, flow, step).is_some();
    // A job that failed or was aborted holds all that depend on it.
    let broken =
        names.iter().find(|step| matches!(phase_of(facts, flow, step), "Failed" | "Terminated" | "Aborted"));
    if let Some(step) = broken {
        let reason = match phase_of(facts, flow, step) {
            "Aborted" => Reason::StepAborted { step: (*step).into() },
            _ => Reason::StepFailed { step: (*step).into() },
        };
        let below = job_of(facts, flow, step).map(|job| crate::chain(facts, Resource::VcJob, job));
        return std::iter::once(link(flow, reason, None)).chain(below.unwrap_or_default()).collect();
    }
    let open: Vec<&Value> = steps.iter().copied().filter(|step| !has_job(text(step, "name"))).collect();
    for step in &open {
        let name = text(step, "name");
        if let Some(target) = targets(step).find(|target| !names.contains(target)) {
            let reason = Reason::StepUnknown { step: name.into(), target: target.into() };
            return vec![link(flow, reason, made)];
        }
        if facts.is_missing(Resource::JobTemplate, namespace, name) {
            return vec![link(
                flow,
                Reason::TemplateMissing { step: name.into(), template: name.into() },
                made,
            )];
        }
    }
    if text(flow, "status.state.phase").is_empty() {
        let is_new = facts.age_seconds(flow).is_some_and(|age| age < crate::vcjob::TAKEN_UP_WITHIN_SECONDS);
        let reason = Reason::NoController { lease: facts.lease.clone() };
        return if is_new { Vec::new() } else { vec![link(flow, reason, made)] };
    }
    // A job of a step that waits.
    let waiting = names.iter().find_map(|step| {
        let job = job_of(facts, flow, step).filter(|job| text(job, "status.state.phase") != "Completed")?;
        let below = crate::chain(facts, Resource::VcJob, job);
        (!below.is_empty()).then_some((*step, below))
    });
    let dependent = open.iter().find_map(|step| dependency(facts, flow, step));
    match (dependent, waiting) {
        (first, Some((_, below))) => first.into_iter().chain(below).collect(),
        (Some(link), None) => vec![link],
        (None, None) => {
            let warning = facts.warning(flow, None).filter(|_| !open.is_empty());
            warning.map(|it| link(flow, Reason::parse(&it.message), it.at)).into_iter().collect()
        }
    }
}

/// Why a step may not start yet.
fn dependency(facts: &Facts, flow: &Value, step: &Value) -> Option<Link> {
    let name = text(step, "name");
    let open = |target: &&str| phase_of(facts, flow, target) != "Completed";
    let on = targets(step).filter(open).map(|target| match phase_of(facts, flow, target) {
        "" => target.to_owned(),
        phase => format!("{target} ({phase})"),
    });
    let on: Vec<String> = on.collect();
    if field(step, "dependsOn.probe").is_object() {
        let about = |it: &crate::facts::Happening| {
            matches!(it.reason.as_str(), "WaitingForProbe" | "SyncJobFlow")
                && it.message.starts_with(&format!("flow {name} "))
        };
        if let Some(event) = facts.events(flow).into_iter().rfind(about) {
            return Some(link(flow, Reason::parse(&event.message), event.at));
        }
    }
    (!on.is_empty()).then(|| link(flow, Reason::StepDependsOn { step: name.into(), on }, None))
}
