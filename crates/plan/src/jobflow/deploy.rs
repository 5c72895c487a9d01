//! Creates the jobs of steps that may start, and reports why the others wait.

use std::collections::{BTreeMap, BTreeSet};

use krafla_admission::graph;
use krafla_api::{Key, Kind};
use krafla_cluster::{Step, Verb};

use super::hindrance::Hindrance;
use super::jobs::Jobs;
use super::ready::is_ready;
use super::{Flow, View, build};
use crate::object::Body;
use crate::{Note, Plan, Snapshot};

/// What keeps jobs from being made: by the name of the job, or the place in the spec that is wrong. The whole sentence is an
/// Event.
pub(super) type Hindrances = BTreeMap<String, Hindrance>;

/// Makes every job that waits for nothing any more. A job that can not be made keeps no other from being made.
pub(super) fn create_what_is_ready(
    flow: &View<'_>,
    jobs: &Jobs<'_>,
    snapshot: &Snapshot<'_>,
    plan: &mut Plan,
) -> Hindrances {
    let mut hindrances = Hindrances::new();
    let mut names = BTreeSet::new();
    for (index, step) in flow.spec.flows.iter().enumerate() {
        if !names.insert(step.name.as_str()) {
            let message = format!("flow {} is named twice in spec.flows; only the first counts", step.name);
            warn(plan, message);
            hindrances.insert(format!("spec.flows[{index}]"), Hindrance::NamedTwice);
            continue;
        }
        if jobs.phase(&step.name).is_none() && is_ready(step, jobs, snapshot, plan) {
            let hindrance = create(flow, step, snapshot, plan);
            hindrances.extend(hindrance.map(|it| (flow.job_name(&step.name), it)));
        }
    }
    explain_what_never_starts(flow, &names, plan, &mut hindrances);
    hindrances
}

/// Makes the job of a step, unless something is in the way: then that is said, and returned.
fn create(flow: &View<'_>, step: &Flow, snapshot: &Snapshot<'_>, plan: &mut Plan) -> Option<Hindrance> {
    let name = flow.job_name(&step.name);
    let key = Key::new(flow.namespace(), &name);
    if let Some(other) = snapshot.objects.get(Kind::VcJob, &key) {
        // The job of a deleted flow of the same name is on its way out, and is waited for without a word.
        let of_predecessor = other
            .meta
            .owners
            .iter()
            .any(|owner| owner.kind == Kind::JobFlow.info().kind && owner.name == *flow.meta.key.name);
        if of_predecessor {
            return None;
        }
        let message = format!(
            "job {name} exists and does not belong to this flow; delete it, or rename it or the flow {}",
            step.name
        );
        warn(plan, message);
        return Some(Hindrance::ForeignJob);
    }
    let template = snapshot.objects.get(Kind::JobTemplate, &Key::new(flow.namespace(), &step.name));
    let template = match template.map(|template| &template.body) {
        Some(Body::JobTemplate(template)) => template,
        Some(Body::Unreadable(why)) => {
            let message = format!(
                "cannot read JobTemplate {}: {why}; fix the template, and job {name} is created",
                step.name
            );
            warn(plan, message);
            return Some(Hindrance::TemplateUnreadable);
        }
        _ => {
            let message = format!(
                "JobTemplate {} does not exist in namespace {}; job {name} is made as soon as it does",
                step.name,
                flow.namespace()
            );
            warn(plan, message);
            return Some(Hindrance::TemplateMissing);
        }
    };
    plan.steps.push(Step::Create { kind: Kind::VcJob, object: build::job(flow, step, template) });
    let message = format!("job {name} is made from JobTemplate {}", step.name);
    plan.notes.push(Note::normal("Created", message).of(Verb::Create, Kind::VcJob, &key));
    // It is tried again. Why the server refused it is an Event.
    snapshot.refusal.map(|_| Hindrance::Refused)
}

/// Admission refuses flows that can never start. One that was stored all the same says why it waits.
fn explain_what_never_starts(
    flow: &View<'_>,
    names: &BTreeSet<&str>,
    plan: &mut Plan,
    hindrances: &mut Hindrances,
) {
    for step in &flow.spec.flows {
        for target in step.targets().filter(|target| !names.contains(target)) {
            let message =
                format!("flow {} waits for {target}, which is no flow; correct dependsOn.targets", step.name);
            warn(plan, message);
            hindrances.insert(flow.job_name(&step.name), Hindrance::DependencyUnknown);
        }
    }
    let waits_for: BTreeMap<&str, Vec<&str>> =
        flow.spec.flows.iter().map(|step| (step.name.as_str(), step.targets().collect())).collect();
    let ring = graph::ring(&waits_for);
    if !ring.is_empty() {
        let message = format!(
            "flows wait for each other in a ring: {}; take one of these dependencies out",
            graph::describe(&ring)
        );
        warn(plan, message);
        hindrances.extend(ring.iter().map(|step| (flow.job_name(step), Hindrance::DependencyRing)));
    }
}

fn warn(plan: &mut Plan, message: String) {
    plan.notes.push(Note::warning("SyncJobFlow", message));
}
