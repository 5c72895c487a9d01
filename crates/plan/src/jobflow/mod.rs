//! The life of a JobFlow, top to bottom in [`plan`].
//!
//! ```text
//!   JobFlow f --reads--> JobTemplate x             what a job is; it may come later than the flow
//!      |
//!      +------owns-----> Job f-x                   one per flow, made once all that it waits for is ready
//!                          |
//!                          +--owns--> Pod          seen, and asked if `dependsOn.probe` says so
//! ```
//!
//! A job that has finished stays finished for the flow, also when it is gone: what is in `status.jobStatusList` counts as
//! much as what is seen, and a job that went away is judged by how it was last seen before it is forgotten. So no step
//! runs twice, and none is waited for in vain.
//!
//! Mirrors Volcano's `pkg/controllers/jobflow`; what is deliberately different stands in DEVIATIONS.md.

mod build;
mod deploy;
mod hindrance;
mod jobs;
mod measure;
mod object;
mod patch;
mod ready;
mod status;

use krafla_api::volcano::{JobFlowPhase, JobFlowStatus, JobPhase, JobRetainPolicy};
use krafla_api::{Key, Kind};
use krafla_cluster::Step;
use serde_json::json;

pub use self::hindrance::Hindrance;
pub use self::object::{Flow, JobFlow, JobTemplate, Spec};

use self::deploy::Hindrances;
use self::jobs::Jobs;
use crate::object::{Body, Meta};
use crate::{Controller, Measure, Object, Objects, Plan, Snapshot, Stored, controlling_keys};

/// The controller of JobFlows.
pub struct JobFlowController;

impl Controller for JobFlowController {
    fn name(&self) -> &'static str {
        "jobflow-controller"
    }

    fn root(&self) -> Kind {
        Kind::JobFlow
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::VcJob, Kind::JobTemplate, Kind::Pod]
    }

    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key> {
        match changed.kind {
            Kind::VcJob => {
                let mut keys = controlling_keys(Kind::JobFlow, changed);
                keys.extend(waiting_for_name(&changed.meta.key, objects));
                keys
            }
            Kind::Pod => asking(changed, objects).into_iter().collect(),
            Kind::JobTemplate => waiting_for_template(&changed.meta.key, objects),
            _ => controlling_keys(Kind::JobFlow, changed),
        }
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        plan(snapshot)
    }

    fn measure(&self, stored: &Stored<'_>) -> Vec<Measure> {
        measure::measure(stored).into_iter().collect()
    }
}

/// The flows that want a job of this name, whoever owns it now: they are `a` and `a-b` for a job `a-b-c`.
fn waiting_for_name(job: &Key, objects: &Objects) -> Vec<Key> {
    let names = job.name.match_indices('-').filter_map(|(at, _)| job.name.get(..at));
    let keys = names.map(|name| Key::new(&job.namespace, name));
    keys.filter(|key| objects.get(Kind::JobFlow, key).is_some()).collect()
}

/// The unfinished flow that asks pods of the job to which this one belongs.
fn asking(pod: &Object, objects: &Objects) -> Option<Key> {
    let [job] = controlling_keys(Kind::VcJob, pod).try_into().ok()?;
    let [flow] = controlling_keys(Kind::JobFlow, objects.get(Kind::VcJob, &job)?).try_into().ok()?;
    let body = objects.get(Kind::JobFlow, &flow)?.as_jobflow()?;
    let is_asking = !is_final(&body.status.state.phase) && body.spec.flows.iter().any(ready::asks_pods);
    is_asking.then_some(flow)
}

/// The unfinished flows that name this template.
fn waiting_for_template(template: &Key, objects: &Objects) -> Vec<Key> {
    let flows = objects.all(Kind::JobFlow).filter(|flow| {
        flow.meta.key.namespace == template.namespace
            && flow.as_jobflow().is_some_and(|body| {
                !is_final(&body.status.state.phase)
                    && body.spec.flows.iter().any(|flow| *flow.name == *template.name)
            })
    });
    flows.map(|flow| flow.meta.key.clone()).collect()
}

/// What should be done for one flow now.
pub fn plan(snapshot: &Snapshot<'_>) -> Plan {
    let Some(root) = snapshot.root() else { return Plan::nothing() };
    let mut plan = Plan {
        settled: snapshot.departed.iter().map(|departed| departed.object.meta.uid.clone()).collect(),
        ..Plan::nothing()
    };
    // The garbage collector removes what a deleted flow owns; nothing new must come meanwhile.
    if root.meta.is_deleting() {
        plan.status = going(root, snapshot);
        return plan;
    }
    let flow = match &root.body {
        Body::JobFlow(body) => View { meta: &root.meta, spec: &body.spec, status: &body.status },
        Body::Unreadable(why) => {
            return Plan::hold("SyncJobFlow", format!("cannot read the flow: {why}"));
        }
        _ => return plan,
    };
    let jobs = Jobs::observe(&flow, snapshot);
    let phase = decide(&flow, &jobs);
    // No step runs twice, also when a controller that was replaced makes its job once more.
    plan.aside.extend(jobs.late().filter(|job| !job.meta.is_deleting()).map(|job| job.deletion()));
    let mut hindrances = Hindrances::new();
    match &phase {
        JobFlowPhase::Unset | JobFlowPhase::Pending | JobFlowPhase::Running => {
            hindrances = deploy::create_what_is_ready(&flow, &jobs, snapshot, &mut plan);
        }
        JobFlowPhase::Succeed if flow.spec.job_retain_policy == JobRetainPolicy::Delete => {
            // Only once the success is on record, so that a crash in between does not lose it.
            if flow.status.state.phase == JobFlowPhase::Succeed {
                plan.steps
                    .extend(jobs.live().filter(|job| !job.meta.is_deleting()).map(|job| job.deletion()));
            }
        }
        JobFlowPhase::Succeed | JobFlowPhase::Failed | JobFlowPhase::Terminating => {}
        JobFlowPhase::Other(phase) => {
            let message = format!("the flow's phase {phase} is not known to this version");
            return Plan::hold("SyncJobFlow", message);
        }
    }
    let after = status::recount(&flow, &jobs, &phase, &hindrances, snapshot.now.whole_seconds());
    status::write(&flow, &after, &mut plan);
    plan
}

/// A flow that is deleted before its end says so for as long as its jobs are still there; one that has ended keeps its end.
fn going(root: &Object, snapshot: &Snapshot<'_>) -> Option<Step> {
    let phase = &root.as_jobflow()?.status.state.phase;
    let is_unfinished = matches!(phase, JobFlowPhase::Unset | JobFlowPhase::Pending | JobFlowPhase::Running);
    let has_jobs = snapshot.children(Kind::VcJob).next().is_some();
    let state = json!({ "state": { "phase": JobFlowPhase::Terminating } });
    (is_unfinished && has_jobs).then(|| root.meta.status_patch(Kind::JobFlow, &state))
}

/// Where the flow stands: only the jobs that its spec names now decide.
fn decide(flow: &View<'_>, jobs: &Jobs<'_>) -> JobFlowPhase {
    let before = &flow.status.state.phase;
    if is_final(before) || matches!(before, JobFlowPhase::Terminating | JobFlowPhase::Other(_)) {
        return before.clone();
    }
    let phases = || flow.spec.flows.iter().map(|step| jobs.phase(&step.name));
    if phases().any(|phase| matches!(phase, Some(JobPhase::Failed | JobPhase::Terminated))) {
        JobFlowPhase::Failed
    } else if phases().all(|phase| phase == Some(&JobPhase::Completed)) {
        JobFlowPhase::Succeed
    } else if *before == JobFlowPhase::Running
        || phases().any(|phase| matches!(phase, Some(JobPhase::Running | JobPhase::Completed)))
    {
        JobFlowPhase::Running
    } else {
        JobFlowPhase::Pending
    }
}

fn is_final(phase: &JobFlowPhase) -> bool {
    matches!(phase, JobFlowPhase::Succeed | JobFlowPhase::Failed)
}

/// One flow as all its modules see it.
struct View<'a> {
    meta: &'a Meta,
    spec: &'a Spec,
    status: &'a JobFlowStatus,
}

impl View<'_> {
    fn namespace(&self) -> &str {
        &self.meta.key.namespace
    }

    /// The name of the job that a flow of this name gets.
    fn job_name(&self, flow: &str) -> String {
        format!("{}-{flow}", self.meta.key.name)
    }

    /// `<namespace>.<name>` of the flow, as its jobs are labelled.
    fn label(&self) -> String {
        format!("{}.{}", self.namespace(), self.meta.key.name)
    }
}

#[cfg(test)]
mod tests;
