//! Admission: what the cluster as a whole says about a write, beyond the rules of the object's own kind.
//!
//! A policy may change the object (`mutate`, after defaulting and before validation) or refuse it (`validate`, when
//! everything else is settled). Policies run in this process; webhooks, which are asked after them, are the only part of
//! a write that may wait for the network.

mod account;
mod kept;
mod limits;
mod not_enforced;
mod pod_security;
pub(crate) mod policy;
mod priority;
mod runtime_class;
mod storage;
mod volcano;
pub mod webhooks;
mod workloads;

use std::sync::Arc;

use krafla_admission::rbac::User;
use parking_lot::Mutex;
use serde_json::Value;

pub use account::ServiceAccounts;
pub use not_enforced::NotEnforced;
pub use storage::StorageProtection;
pub(crate) use storage::{CLAIM_PROTECTION, VOLUME_PROTECTION};
pub use volcano::Volcano;
pub use webhooks::{Caller, Connection};
pub use workloads::WorkloadControllers;

use crate::ops::Api;
use crate::registry::Resource;
use crate::status::Status;

/// What is being done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is new.
    Create,
    /// It changes.
    Update,
    /// It is to go. There is nothing to mutate, and the object is the stored one.
    Delete,
}

/// A write that policies look at.
pub struct Request<'a> {
    /// Where other objects can be looked up.
    pub api: &'a Api,
    /// Of what resource.
    pub resource: &'a Resource,
    /// What is being done.
    pub operation: Operation,
    /// The object as it is stored.
    pub old: Option<&'a Value>,
    /// The part that is written; empty for the object itself.
    pub subresource: &'a str,
    /// Whether nothing will be stored.
    pub is_dry_run: bool,
    /// Where warnings go.
    pub warnings: &'a Warnings,
    /// The user who writes. None for Krafla's own components.
    pub user: Option<&'a User>,
}

/// What a client should know about a write that may well succeed. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Adds warnings; what was said already is not said again.
    pub fn extend(&self, warnings: impl IntoIterator<Item = String>) {
        let mut list = self.0.lock();
        for warning in warnings {
            if !list.contains(&warning) {
                list.push(warning);
            }
        }
    }

    /// All of them so far.
    pub fn list(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

/// One rule of the cluster.
pub trait Policy: Send + Sync {
    /// Changes the object.
    fn mutate(&self, _request: &Request<'_>, _object: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    /// Refuses the object.
    fn validate(&self, _request: &Request<'_>, _object: &Value) -> Result<(), Status> {
        Ok(())
    }

    /// What the author of the object should know, though it is allowed.
    fn warnings(&self, _request: &Request<'_>, _object: &Value) -> Vec<String> {
        Vec::new()
    }
}

/// All rules of the cluster, in order.
#[derive(Clone)]
pub struct Admission {
    policies: Vec<Arc<dyn Policy>>,
    mutating: Arc<policy::Mutating>,
    caller: Arc<dyn Caller>,
    configured: Arc<webhooks::Configured>,
}

impl Default for Admission {
    /// The rules without which Kubernetes' own kinds would not work.
    fn default() -> Admission {
        Admission {
            policies: vec![
                Arc::new(runtime_class::RuntimeClass),
                Arc::new(priority::PodPriority::default()),
                Arc::new(limits::LimitRanges),
                Arc::new(pod_security::PodSecurity),
                Arc::new(policy::Validating::default()),
            ],
            mutating: Arc::default(),
            caller: Arc::new(webhooks::Https),
            configured: Arc::default(),
        }
    }
}

impl Admission {
    /// One rule more.
    pub fn with(mut self, policy: impl Policy + 'static) -> Admission {
        self.policies.push(Arc::new(policy));
        self
    }

    /// Webhooks are asked through another caller.
    pub fn calling(mut self, caller: impl Caller + 'static) -> Admission {
        self.caller = Arc::new(caller);
        self
    }

    /// Who brings questions to webhooks.
    pub(crate) fn caller(&self) -> &dyn Caller {
        &*self.caller
    }

    /// The webhooks as they are stored.
    pub(crate) fn webhooks(&self) -> &webhooks::Configured {
        &self.configured
    }

    /// Whether anybody is asked about writes who is not part of this program, and may look at everything in an object.
    pub(crate) fn asks_others(&self, api: &Api) -> bool {
        webhooks::are_asked(api) || policy::are_asked(api)
    }

    pub(crate) fn mutate(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Status> {
        self.policies.iter().try_for_each(|policy| policy.mutate(request, object))
    }

    /// What the author of a new object should know.
    pub(crate) fn warnings(&self, request: &Request<'_>, object: &Value) -> Vec<String> {
        self.policies.iter().flat_map(|policy| policy.warnings(request, object)).collect()
    }

    /// Has the MutatingAdmissionPolicies change an object. Says whether one did, and which of them look again if webhooks
    /// change it afterwards.
    pub(crate) fn mutate_by_policies(
        &self,
        request: &Request<'_>,
        object: &mut Value,
    ) -> Result<(bool, policy::Again), Status> {
        self.mutating.mutate(request, object)
    }

    pub(crate) fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Status> {
        self.policies.iter().try_for_each(|policy| policy.validate(request, object))
    }
}
