//! Admission: what the cluster as a whole says about a write, beyond the rules of the object's own kind.
//!
//! A policy may change the object (`mutate`, after defaulting and before validation) or refuse it (`validate`, when
//! everything else is settled). All policies run in this process: nothing here waits for the network.

mod priority;
mod service;
mod volcano;

use std::sync::Arc;

use serde_json::Value;

pub use volcano::Volcano;

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
}

/// All rules of the cluster, in order.
#[derive(Clone)]
pub struct Admission {
    policies: Vec<Arc<dyn Policy>>,
}

impl Default for Admission {
    /// The rules without which Kubernetes' own kinds would not work.
    fn default() -> Admission {
        Admission { policies: vec![Arc::new(priority::PodPriority), Arc::new(service::Addresses)] }
    }
}

impl Admission {
    /// One rule more.
    pub fn with(mut self, policy: impl Policy + 'static) -> Admission {
        self.policies.push(Arc::new(policy));
        self
    }

    pub(crate) fn mutate(
        &self,
        api: &Api,
        resource: &Resource,
        operation: Operation,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let request = Request { api, resource, operation, old };
        self.policies.iter().try_for_each(|policy| policy.mutate(&request, object))
    }

    pub(crate) fn validate(
        &self,
        api: &Api,
        resource: &Resource,
        operation: Operation,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let request = Request { api, resource, operation, old };
        self.policies.iter().try_for_each(|policy| policy.validate(&request, object))
    }
}
