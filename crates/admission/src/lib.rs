//! Defaults and validation, pure; shared by the embedded server and the controllers.
//!
//! ```text
//!   a request ──> default ──> (the CRD's schema) ──> validate ──> stored
//!                   │                                   │
//!                   │ the object, completed             │ Verdict: everything that is wrong at once,
//!                   v                                   v          and what its author should know
//!   job queue podgroup pod                 job queue podgroup jobflow cronjob hypernode pod
//!
//!   builtin                                Kubernetes' own kinds around jobs
//!   webhook                                which webhooks a request concerns, and what their answers mean
//!   rbac                                   who may do what
//!   pod_security                           what the labels of namespaces ask of pods
//!   names graph cron patch pattern finding path json look   what the rules are made of
//! ```
//!
//! Nothing here asks a server: the few rules that need other objects ask the [`Cluster`] that the caller brings. The
//! controllers read objects through the same defaults ([`job::default_spec`]), so that a job that skipped admission
//! behaves like one that did not.
//!
//! Where Volcano's own webhooks are known to be wrong, these rules differ; each such case is listed in the tests that
//! replay the recorded answers (`tests/admission`).

pub mod batch;
pub mod builtin;
pub mod cron;
pub mod cronjob;
mod finding;
pub mod graph;
pub mod hypernode;
pub mod internal;
pub mod job;
pub mod jobflow;
mod json;
mod look;
pub mod names;
pub mod patch;
mod path;
pub mod pattern;
pub mod pod;
pub mod pod_security;
pub mod podgroup;
pub mod policy;
pub mod queue;
pub mod rbac;
mod read;
pub mod webhook;

use std::sync::Arc;

use krafla_api::Kind;
use krafla_api::volcano::Queue;
use serde_json::Value;

pub use finding::{Finding, Reason, Verdict};
pub use path::Path;
pub use read::locate;

use read::read;

/// The most pods that one job may have at a time: as many as Kubernetes allows an Indexed Job. Every pod that waits takes
/// memory of the server, so that without a limit one manifest could bring down the machine on which it runs.
pub(crate) const PODS_MAX: i64 = 100_000;

/// What is asked of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Store a new object.
    Create,
    /// Change a stored object.
    Update,
    /// Remove a stored object.
    Delete,
}

/// One request, as far as admission looks at it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The kind of the object.
    pub kind: Kind,
    /// What is asked.
    pub operation: Operation,
    /// The name in the request; an object to be deleted is known by it.
    pub name: &'a str,
    /// The object as it is to be stored; null when it is to be deleted.
    pub object: &'a Value,
    /// The object as it is stored; null when it is new.
    pub old: &'a Value,
}

/// What the rules look up in other objects.
pub trait Cluster {
    /// A queue by its name.
    fn queue(&self, name: &str) -> Option<Arc<Queue>>;

    /// All queues.
    fn queues(&self) -> Vec<Arc<Queue>>;

    /// The queues whose `spec.parent` is this one, in the order of their names.
    fn children(&self, parent: &str) -> Vec<Arc<Queue>> {
        self.queues().into_iter().filter(|queue| queue.spec.parent == parent).collect()
    }

    /// An annotation of a namespace.
    fn namespace_annotation(&self, namespace: &str, key: &str) -> Option<String>;

    /// Whether there is a time zone of this name.
    fn has_time_zone(&self, name: &str) -> bool;
}

/// What an administrator can set. The defaults are those of Volcano's flags.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The schedulers whose pods are checked; the first is the default of jobs.
    pub scheduler_names: Vec<String>,
    /// How deep a tree of queues may be.
    pub queue_depth_max: usize,
    /// Whether the resources of the queue `root` cannot be changed.
    pub protects_root_queue: bool,
    /// Whether a queue whose pods still run cannot be deleted.
    pub checks_allocated_pods: bool,
    /// Whether pods that ask for it get a scheduling gate until their queue admits them.
    pub gates_pods: bool,
    /// What pods get by their namespace or annotation.
    pub resource_groups: Vec<pod::ResourceGroup>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            scheduler_names: vec!["volcano".to_owned()],
            queue_depth_max: 5,
            protects_root_queue: true,
            checks_allocated_pods: false,
            gates_pods: false,
            resource_groups: Vec::new(),
        }
    }
}

impl Settings {
    /// The scheduler of jobs that name none.
    pub fn scheduler_name(&self) -> &str {
        self.scheduler_names.first().map_or("volcano", String::as_str)
    }
}

/// Fills in what a new object leaves out. Fields that this program does not know stay as they are.
pub fn default(kind: Kind, object: &mut Value, settings: &Settings, cluster: &dyn Cluster) {
    match kind {
        Kind::VcJob => job::default(object, settings),
        Kind::Queue => queue::default(object),
        Kind::PodGroup => podgroup::default(object, cluster),
        Kind::Pod => pod::default(object, settings),
        _ => {}
    }
}

/// Says everything that is wrong with a request.
pub fn validate(request: Request<'_>, settings: &Settings, cluster: &dyn Cluster) -> Verdict {
    match request.kind {
        Kind::VcJob => job::validate(request, cluster),
        Kind::Queue => queue::validate(request, settings, cluster),
        Kind::PodGroup => podgroup::validate(request, cluster),
        Kind::JobFlow => jobflow::validate(request),
        Kind::VcCronJob => cronjob::validate(request, cluster),
        Kind::HyperNode => hypernode::validate(request),
        Kind::Pod => pod::validate(request, settings),
        _ => Verdict::default(),
    }
}
