//! Decisions of all controllers, as pure functions that return plans.
//!
//! ```text
//!   Object      one observed resource, narrowed to what decisions read
//!   Objects     all observed resources, indexed by key and by owner UID
//!   Snapshot    what one decision sees: its root, the root's children, related objects, the time
//!      |
//!      |  Controller::plan     pure, cannot fail
//!      v
//!   Plan        data: a status, steps, when to look again, notes for people
//! ```
//!
//! **Invariant:** nothing here is async, reads a clock, draws a random number or does I/O. A decision that lacks
//! something holds (`Plan::hold`) and says why; it never fails and never panics.

pub mod cron;
pub mod cronjob;
mod indexes;
pub mod jobflow;
pub mod jobtemplate;
pub mod k8scron;
pub mod k8sjob;
pub mod measure;
mod merge_patch;
pub mod object;
pub mod objects;
pub mod placement;
mod plan;
pub mod plugin;
pub mod podgc;
pub mod podgroup;
pub mod probe;
pub mod queue;
pub mod snapshot;
pub mod ttl;
pub mod vcjob;

pub use measure::{Attempt, Measure, Stored};
pub use object::{Body, Meta, Object};
pub use objects::Objects;
pub use plan::{Note, Plan, Severity};
pub use probe::{Answer, Answers, Probe};
pub use snapshot::{Departed, Snapshot};

use krafla_api::{Key, Kind};

/// One controller: which objects it looks at, whom they concern, and what should be done.
pub trait Controller: Send + Sync {
    /// The name users know from `--controllers`, metrics and logs.
    fn name(&self) -> &'static str;

    /// The name of its work queue at /metrics: what dashboards ask for, where upstream's controller has one there.
    fn queue(&self) -> &'static str {
        self.name()
    }

    /// The component that its Events name. Dashboards and scripts look for Volcano's and Kubernetes' own names.
    fn event_source(&self) -> &'static str {
        "vc-controller-manager"
    }

    /// The message of the Event with this reason about a write that the server refused. Kubernetes' own controllers begin
    /// with words that scripts look for.
    fn refusal(&self, _reason: &str, why: &str) -> String {
        why.to_owned()
    }

    /// The kind whose objects are this controller's roots: one plan per object.
    fn root(&self) -> Kind;

    /// The kinds it reads besides the root.
    fn watches(&self) -> &'static [Kind];

    /// The kinds of children of which the root's status keeps a record: at a first look, those that are missing are missed.
    fn recorded(&self) -> &'static [Kind] {
        &[]
    }

    /// Which roots a changed object concerns. Called with the object as it was last seen, also when it is gone.
    fn keys(&self, changed: &Object, objects: &Objects) -> Vec<Key>;

    /// What should be done for one root now.
    fn plan(&self, snapshot: &Snapshot<'_>) -> Plan;

    /// How many objects a decision for a root reads, about. After it the root rests in proportion to that.
    fn n_read(&self, root: &Key, objects: &Objects) -> usize {
        let Some(root) = objects.get(self.root(), root) else { return 0 };
        self.watches().iter().map(|kind| objects.n_children(&root.meta.uid, *kind)).sum()
    }

    /// What a stored change of the root's kind or of a kind that it watches does to the numbers at /metrics.
    fn measure(&self, _stored: &Stored<'_>) -> Vec<Measure> {
        Vec::new()
    }

    /// What an attempt to take a root further does to the numbers at /metrics, whatever came of it.
    fn measure_attempt(&self, _attempt: &Attempt<'_>) -> Vec<Measure> {
        Vec::new()
    }
}

/// The controllers that ship, in the order in which they start. A new controller is one file and one line here.
pub fn controllers() -> Vec<Box<dyn Controller>> {
    controllers_of(&k8sjob::Managed::default(), podgroup::PodGroupController::default())
}

/// The same, taking care of these of Kubernetes' own Jobs, and of PodGroups in this way.
pub fn controllers_of(
    jobs: &k8sjob::Managed,
    podgroups: podgroup::PodGroupController,
) -> Vec<Box<dyn Controller>> {
    vec![
        Box::new(vcjob::JobController),
        Box::new(jobflow::JobFlowController),
        Box::new(jobtemplate::JobTemplateController),
        Box::new(queue::QueueController),
        Box::new(cronjob::CronJobController),
        Box::new(podgroups),
        Box::new(ttl::TtlController),
        Box::new(k8sjob::JobController { managed: jobs.clone() }),
        Box::new(k8sjob::ReleaseController { managed: jobs.clone() }),
        Box::new(k8sjob::TtlController),
        Box::new(k8scron::CronJobController),
    ]
}

/// The roots of kind `root` that control `changed`, or `changed` itself if it is one: what most controllers answer
/// in [`Controller::keys`].
pub fn controlling_keys(root: Kind, changed: &Object) -> Vec<Key> {
    if changed.kind == root {
        return vec![changed.meta.key.clone()];
    }
    let info = root.info();
    let owner = changed.meta.owners.iter().find(|owner| owner.controller == Some(true));
    match owner {
        Some(owner) if owner.kind == info.kind && owner.api_version == info.api_version() => {
            vec![Key { namespace: changed.meta.key.namespace.clone(), name: owner.name.as_str().into() }]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn events_name_upstreams_components_and_begin_with_its_words() {
        let lines = controllers().into_iter().map(|it| {
            let (created, deleted) = (it.refusal("FailedCreate", "why"), it.refusal("FailedDelete", "why"));
            let changed = it.refusal("FailedUpdate", "why");
            format!("{}: {} | {created} | {deleted} | {changed}\n", it.name(), it.event_source())
        });
        expect![[r#"
            job-controller: vc-controller-manager | why | why | why
            jobflow-controller: vc-controller-manager | why | why | why
            jobtemplate-controller: vc-controller-manager | why | why | why
            queue-controller: vc-controller-manager | why | why | why
            cronjob-controller: vc-controller-manager | why | why | why
            pg-controller: vc-controller-manager | why | why | why
            gc-controller: vc-controller-manager | why | why | why
            kubernetes-job-controller: job-controller | Error creating: why | Error deleting: why | why
            job-pod-release-controller: vc-controller-manager | why | why | why
            ttl-after-finished-controller: job-controller | Error creating: why | Error deleting: why | why
            kubernetes-cronjob-controller: cronjob-controller | Error creating job: why | Error deleting job: why | why
        "#]].assert_eq(&lines.collect::<String>());
    }
}
