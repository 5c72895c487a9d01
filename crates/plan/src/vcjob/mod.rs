//! The life of a Volcano Job, top to bottom in [`plan`].
//!
//! ```text
//!   Job --owns--> PodGroup <jobname>-<uid>        the gang, admitted by the scheduler
//!    |
//!    +---owns---> Pod <jobname>-<task>-<index>    one per task and index; carries the job's version
//! ```
//!
//! A restart is a new *version*: it is written to status together with the charged retry, and from then on every pod of an
//! older version is one to remove. So a crash between the status and the last kill loses nothing and repeats nothing.
//!
//! Mirrors Volcano's `pkg/controllers/job`; what is deliberately different stands in DEVIATIONS.md.

mod phase;
mod podgroup;
mod pods;
mod policy;
mod resources;
mod status;

use krafla_api::volcano::{JobPhase, JobSpec, JobStatus};
use krafla_api::{Key, Kind, OwnerReference, Time};
use serde_json::{Value, json};

use crate::object::{Body, Meta};
use crate::{Controller, Object, Objects, Plan, Snapshot, controlling_keys};

/// The controller of Volcano Jobs.
pub struct JobController;

impl Controller for JobController {
    fn name(&self) -> &'static str {
        "job-controller"
    }

    fn root(&self) -> Kind {
        Kind::VcJob
    }

    fn watches(&self) -> &'static [Kind] {
        &[Kind::Pod, Kind::PodGroup, Kind::PriorityClass]
    }

    fn keys(&self, changed: &Object, _objects: &Objects) -> Vec<Key> {
        controlling_keys(Kind::VcJob, changed)
    }

    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan {
        plan(snapshot)
    }
}

/// What should be done for one job now.
pub fn plan(snapshot: &Snapshot<'_>) -> Plan {
    let Some(root) = snapshot.root() else { return Plan::nothing() };
    // The garbage collector removes what a deleted job owns.
    if root.meta.is_deleting() {
        return Plan::nothing();
    }
    let job = match &root.body {
        Body::VcJob(job) => Job::new(&root.meta, &job.spec, &job.status, snapshot.now),
        Body::Unreadable(why) => {
            return Plan::hold("JobUnreadable", format!("the job can not be read: {why}"));
        }
        _ => return Plan::nothing(),
    };

    let pods = pods::observe(&job, snapshot);
    let group = podgroup::observe(&job, snapshot);
    let decision = policy::decide(&job, &pods);
    let next = phase::next(&job, &pods, &group, decision.action);

    let mut plan = Plan { wake_at: decision.look_again_at, ..Plan::nothing() };
    status::write(&job, &pods, &next, &mut plan);
    match next.phase {
        JobPhase::Unset | JobPhase::Pending | JobPhase::Running => {
            podgroup::ensure(&job, &group, snapshot, &mut plan);
            pods::grow(&job, &next, &pods, &group, snapshot, &mut plan);
        }
        JobPhase::Restarting
        | JobPhase::Aborting
        | JobPhase::Aborted
        | JobPhase::Completing
        | JobPhase::Completed
        | JobPhase::Terminating
        | JobPhase::Terminated
        | JobPhase::Failed => {
            pods::kill(&job, &next, &pods, &mut plan);
            podgroup::remove(&group, &mut plan);
        }
        JobPhase::Other(phase) => {
            return Plan::hold(
                "UnknownPhase",
                format!("the job's phase {phase:?} is not known to this version"),
            );
        }
    }
    plan
}

/// One job as all its modules see it.
struct Job<'a> {
    meta: &'a Meta,
    /// With admission's defaults filled in, so that a job that skipped admission behaves the same.
    spec: JobSpec,
    status: &'a JobStatus,
    now: Time,
}

impl<'a> Job<'a> {
    fn new(meta: &'a Meta, spec: &JobSpec, status: &'a JobStatus, now: Time) -> Job<'a> {
        let mut spec = spec.clone();
        krafla_admission::default_job(&mut spec);
        Job { meta, spec, status, now }
    }

    fn phase(&self) -> &JobPhase {
        &self.status.state.phase
    }

    fn replicas(&self) -> i32 {
        self.spec.tasks.iter().fold(0i32, |sum, task| sum.saturating_add(task.replicas.max(0)))
    }

    fn namespace(&self) -> &str {
        &self.meta.key.namespace
    }

    fn name(&self) -> &str {
        &self.meta.key.name
    }

    fn podgroup_name(&self) -> String {
        format!("{}-{}", self.name(), self.meta.uid)
    }

    fn owner_reference(&self) -> Value {
        let info = Kind::VcJob.info();
        let owner = OwnerReference {
            api_version: info.api_version(),
            kind: info.kind.to_owned(),
            name: self.name().to_owned(),
            uid: self.meta.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        json!(owner)
    }
}

#[cfg(test)]
mod tests;
