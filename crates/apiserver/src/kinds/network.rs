//! Network policies, and where services end.

use krafla_admission::builtin::network;
use serde_json::Value;

use super::Rules;
use crate::field::{self, FieldError};

/// Network policies.
pub struct NetworkPolicy;

impl Rules for NetworkPolicy {
    fn default(&self, policy: &mut Value) {
        network::default_policy(policy);
    }

    fn validate(&self, policy: &Value) -> Vec<FieldError> {
        field::found(network::validate_policy(policy))
    }
}

/// Endpoint slices.
pub struct EndpointSlice;

impl Rules for EndpointSlice {
    fn default(&self, slice: &mut Value) {
        network::default_slice(slice);
    }

    fn validate(&self, slice: &Value) -> Vec<FieldError> {
        field::found(network::validate_slice(slice))
    }
}

/// Endpoints.
pub struct Endpoints;

impl Rules for Endpoints {
    fn default(&self, endpoints: &mut Value) {
        network::default_endpoints(endpoints);
    }
}
