//! Job plugins: what a job gets around its pods and inside them because `spec.plugins` names a plugin.
//!
//! ```text
//!   spec.plugins: { svc: [--flag=value], env: [] }
//!        |
//!        |  Plugins::of(job)             which exist, what their arguments say
//!        v
//!   Plugins --desired--------------->    Services, ConfigMaps, Secrets, NetworkPolicies that should exist
//!           --decorate-------------->    one pod's manifest: env, volumes, mounts, ports, names, annotations
//!           --controlled_resources-->    what `status.controlledResources` says of them
//!           --findings-------------->    what is wrong with the plugins, as data; the caller decides
//! ```
//!
//! A plugin is one file: its name, its arguments, and pure functions of the job. It has no client and writes no status.
//! Creating, owning, repairing and removing the objects is the engine's work, once for all plugins; an object says which
//! part of it follows the job, how long it lives, and what must be drawn at random when it is created ([`Desired`]).
//!
//! **Invariant:** the size of every text is known before it is written down, so that no number of replicas, however
//! wrong, makes this program write a text that nobody could store.
//!
//! Mirrors Volcano's `pkg/controllers/job/plugins`. What differs is said where it does.

mod arguments;
mod desired;
mod edit;
mod env;
mod hcclrank;
mod job_view;
mod mpi;
mod pytorch;
mod ray;
mod ssh;
mod svc;
mod tensorflow;

use std::collections::BTreeMap;

use krafla_api::volcano::TaskSpec;
use serde_json::Value;

use crate::Note;
use arguments::Flags;
pub use desired::{Desired, Follows, Lifetime};
pub(crate) use edit::volume_name;
pub use job_view::JobView;

/// The plugins that ship, in the order in which they decorate a pod. A new plugin is one file and one line here.
///
/// Volcano takes them in an order that varies from pod to pod. Two things depend on it, and this order settles both:
/// pytorch may add an init container and comes first, so that the others decorate that one like any other, which is how
/// Volcano was recorded; hcclrank reads the `RANK` that pytorch sets and comes last.
fn registry() -> Vec<Box<dyn Plugin>> {
    vec![
        Box::<pytorch::Pytorch>::default(),
        Box::<svc::Svc>::default(),
        Box::<ssh::Ssh>::default(),
        Box::<env::Env>::default(),
        Box::<mpi::Mpi>::default(),
        Box::<tensorflow::Tensorflow>::default(),
        Box::<ray::Ray>::default(),
        Box::<hcclrank::HcclRank>::default(),
    ]
}

/// One plugin. Its fields are its arguments; their defaults are its `Default`.
trait Plugin {
    /// The name that users write in `spec.plugins`.
    fn name(&self) -> &'static str;

    /// The arguments that it takes.
    fn flags(&mut self) -> Flags<'_> {
        Vec::new()
    }

    /// What it can not do for this job.
    fn findings(&self, _job: &JobView<'_>) -> Vec<Finding> {
        Vec::new()
    }

    /// The objects that should exist for this job.
    fn desired(&self, _job: &JobView<'_>) -> Vec<Desired> {
        Vec::new()
    }

    /// Adds to the manifest of the pod `index` of `task`.
    fn decorate(&self, job: &JobView<'_>, task: &TaskSpec, index: i32, pod: &mut Value);

    /// Whether it has an entry in `status.controlledResources`.
    fn is_controlled_resource(&self) -> bool {
        true
    }
}

/// The plugins of one job, ready to be asked.
pub struct Plugins<'a> {
    job: JobView<'a>,
    used: Vec<Box<dyn Plugin>>,
    findings: Vec<Finding>,
}

impl<'a> Plugins<'a> {
    /// The plugins that the job's spec names, with their arguments.
    pub fn of(job: JobView<'a>) -> Plugins<'a> {
        let mut all = registry();
        let mut findings = unknown_plugins(&job, &all);
        all.retain(|plugin| job.spec.plugins.contains_key(plugin.name()));
        for plugin in &mut all {
            let name = plugin.name();
            let arguments = job.spec.plugins.get(name).map_or(&[][..], Vec::as_slice);
            let remarks = arguments::parse(arguments, plugin.flags());
            findings.extend(remarks.into_iter().map(|remark| Finding::reported(name, remark)));
            findings.extend(plugin.findings(&job));
        }
        Plugins { job, used: all, findings }
    }

    /// What is wrong with the job's plugins. It stays so as long as the spec does: report it once for a generation of the
    /// job, not with every plan. The plugins can be asked all the same.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The objects that should exist while the job may run.
    pub fn desired(&self) -> Vec<Desired> {
        self.used.iter().flat_map(|plugin| plugin.desired(&self.job)).collect()
    }

    /// Adds what the plugins have to say to the manifest of the pod `index` of `task`.
    pub fn decorate(&self, task: &TaskSpec, index: i32, pod: &mut Value) {
        for plugin in &self.used {
            plugin.decorate(&self.job, task, index, pod);
        }
    }

    /// The plugins' entries in `status.controlledResources`: `plugin-<name>`.
    pub fn controlled_resources(&self) -> BTreeMap<String, String> {
        let recorded = self.used.iter().filter(|plugin| plugin.is_controlled_resource());
        recorded.map(|plugin| (format!("plugin-{}", plugin.name()), plugin.name().to_owned())).collect()
    }
}

fn unknown_plugins(job: &JobView<'_>, known: &[Box<dyn Plugin>]) -> Vec<Finding> {
    let mut names: Vec<&str> = known.iter().map(|plugin| plugin.name()).collect();
    names.sort_unstable();
    let unknown = job.spec.plugins.keys().filter(|name| !names.contains(&name.as_str()));
    let message = format!("there is no such plugin; spec.plugins may name {}", names.join(", "));
    unknown.map(|name| Finding::holds_job(name, message.clone())).collect()
}

/// Something that is wrong with a plugin of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The plugin, as `spec.plugins` names it.
    pub plugin: String,
    /// What it means for the job.
    pub effect: Effect,
    /// What is wrong and what to do about it. It never repeats an argument that may be a secret.
    pub message: String,
}

/// What a finding means for the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The job runs; somebody should know.
    Reported,
    /// The job's pods would not find each other, or could not be created: it should wait until the spec is mended.
    HoldsJob,
}

impl Finding {
    fn reported(plugin: &str, message: String) -> Finding {
        Finding { plugin: plugin.to_owned(), effect: Effect::Reported, message }
    }

    fn holds_job(plugin: &str, message: String) -> Finding {
        Finding { plugin: plugin.to_owned(), effect: Effect::HoldsJob, message }
    }

    /// As a note of a plan. The reason is the one that Volcano's events give.
    pub fn note(&self) -> Note {
        Note::warning("PluginError", self.to_string())
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "plugin {}: {}", self.plugin, self.message)
    }
}

#[cfg(test)]
mod tests;
