//! What a flow says about why a step of it is not made, or goes no further.

use krafla_api::volcano::JobPhase;
use krafla_plan::jobflow::{Hindrance, JobFlow};

use super::Why;
use crate::doctor::{Cause, Means};
use crate::steps;

/// What keeps the first step that is kept from going on, and what to do about it.
pub(super) fn reason(name: &str, flow: &JobFlow, means: Means) -> Option<Why> {
    let reasons = flow.spec.flows.iter().filter_map(|step| {
        let phase = steps::phase(name, flow, &step.name)?;
        match Hindrance::of(phase) {
            Some(hindrance) => of_hindrance(name, &step.name, hindrance, means),
            None => (*phase == JobPhase::Aborted).then(|| of_aborted(&step.name, means)),
        }
    });
    reasons.map(Why::lasting).next()
}

/// Whether the server did not take the job of a step. What it said is an Event.
pub(super) fn is_refused(name: &str, flow: &JobFlow) -> bool {
    let phases = flow.spec.flows.iter().filter_map(|step| steps::phase(name, flow, &step.name));
    phases.filter_map(Hindrance::of).any(|it| it == Hindrance::Refused)
}

fn of_hindrance(flow: &str, step: &str, hindrance: Hindrance, means: Means) -> Option<String> {
    let (why, remedy) = match hindrance {
        Hindrance::TemplateMissing => {
            let cause = Cause::TemplateMissing { step: step.to_owned() };
            (cause.to_string(), means.make(&format!("the JobTemplate {step}")))
        }
        Hindrance::TemplateUnreadable => {
            (format!("cannot read the JobTemplate {step}"), "correct it, or create it again".to_owned())
        }
        Hindrance::ForeignJob => {
            let why =
                format!("job {flow}-{step}, which is not of this flow, has the name of its step {step}");
            let rename = "give it or the flow another name";
            let remedy = match means {
                Means::Cluster => format!("delete it, or {rename}"),
                Means::Files => rename.to_owned(),
            };
            (why, remedy)
        }
        Hindrance::DependencyUnknown => {
            let why = format!("step {step} waits for an unknown step");
            (why, "correct its dependsOn.targets".to_owned())
        }
        Hindrance::DependencyRing => {
            let why = format!("step {step} and others wait for each other");
            (why, "remove one of their dependsOn.targets".to_owned())
        }
        // The first is told as an Event; the second keeps nothing from going on.
        Hindrance::Refused | Hindrance::NamedTwice => return None,
    };
    Some(format!("{why}; fix: {remedy}"))
}

fn of_aborted(step: &str, means: Means) -> String {
    let remedy = match means {
        Means::Cluster => "resume its job with a Command ResumeJob, or end the flow",
        Means::Files => "use another action than AbortJob in the policies of its JobTemplate",
    };
    format!("step {step} was aborted; fix: {remedy}")
}
