//! The objects that the job's plugins want: made, owned, kept up to date and removed here, once for all plugins.

use krafla_api::{Key, Kind};
use krafla_cluster::{Step, Verb};
use serde_json::{Value, json};

use super::Job;
use super::hold::Hold;
use crate::object::Body;
use crate::plugin::{Desired, Effect, JobView, Lifetime, Plugins};
use crate::{Object, Plan, Snapshot};

/// The kinds of which plugins make objects.
const KINDS: [Kind; 4] = [Kind::Service, Kind::ConfigMap, Kind::Secret, Kind::NetworkPolicy];

/// The plugins of a job.
pub(super) fn of<'a>(job: &'a Job<'_>) -> Plugins<'a> {
    Plugins::of(JobView { name: job.name(), namespace: job.namespace(), uid: &job.meta.uid, spec: job.spec })
}

/// Makes sure that everything that the plugins want exists and is up to date, or says why it can not be.
pub(super) fn ensure(
    job: &Job<'_>,
    plugins: &Plugins<'_>,
    snapshot: &Snapshot<'_>,
    plan: &mut Plan,
) -> Result<(), Hold> {
    for finding in plugins.findings() {
        if finding.effect == Effect::HoldsJob {
            let message = format!("plugin {}: {}", finding.plugin, finding.message);
            return Err(Hold { reason: Hold::PLUGIN_ERROR, message });
        }
        // Findings hold as long as the spec does; a new job says them once.
        if job.phase().is_unset() {
            plan.notes.push(finding.note().of(Verb::Report, Kind::VcJob, &job.meta.key));
        }
    }
    for desired in plugins.desired() {
        let key = Key::new(job.namespace(), &desired.name);
        match snapshot.objects.get(desired.kind, &key) {
            None => plan.steps.push(create(job, desired)),
            Some(found) if found.meta.controller_uid() == Some(&job.meta.uid) => {
                plan.steps.extend(repair(&desired, found));
            }
            Some(found) => return Err(taken(&desired, found)),
        }
    }
    Ok(())
}

/// What is wrong with the plugins of a job that runs all the same, as reason and message of its state.
pub(super) fn remark(plugins: &Plugins<'_>) -> Option<(String, String)> {
    let findings: Vec<String> = plugins.findings().iter().map(ToString::to_string).collect();
    (!findings.is_empty()).then(|| (Hold::PLUGIN_ERROR.to_owned(), findings.join("; ")))
}

fn create(job: &Job<'_>, desired: Desired) -> Step {
    let Desired { kind, mut object, generate, .. } = desired;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), job.namespace().into());
        metadata.insert("ownerReferences".to_owned(), json!([job.owner_reference()]));
    }
    match generate {
        Some(recipe) => Step::CreateGenerated { kind, object, recipe },
        None => Step::Create { kind, object },
    }
}

fn repair(desired: &Desired, found: &Object) -> Option<Step> {
    let Body::Data(data) = &found.body else { return None };
    if found.meta.is_deleting() {
        return None;
    }
    let patch = desired.repair(&json!({ "data": data }))?;
    Some(Step::Patch {
        kind: desired.kind,
        key: found.meta.key.clone(),
        uid: found.meta.uid.clone(),
        revision: None,
        of_status: false,
        patch,
    })
}

/// An object of that name that is not ours is never taken over.
fn taken(desired: &Desired, found: &Object) -> Hold {
    let what = format!("{} {}", desired.kind.info().kind, desired.name);
    let message = match found.meta.owners.first() {
        Some(owner) => format!(
            "{what} still belongs to {} {}; it is waited for until it is gone",
            owner.kind, owner.name
        ),
        None => format!("{what} exists and does not belong to this job; delete it to let the job go on"),
    };
    Hold { reason: Hold::PLUGIN_ERROR, message }
}

/// Removes what the plugins made, by ownership: what lives for a try, and what lives as long as the job if that has finished.
pub(super) fn remove(plugins: &Plugins<'_>, is_finished: bool, snapshot: &Snapshot<'_>, plan: &mut Plan) {
    let kept: Vec<(Kind, String)> = plugins
        .desired()
        .into_iter()
        .filter(|desired| desired.lifetime == Lifetime::Job && !is_finished)
        .map(|desired| (desired.kind, desired.name))
        .collect();
    for object in KINDS.into_iter().flat_map(|kind| snapshot.children(kind)) {
        let is_kept = kept.iter().any(|(kind, name)| *kind == object.kind && **name == *object.meta.key.name);
        if !is_kept && !object.meta.is_deleting() {
            plan.steps.push(object.deletion());
        }
    }
}
