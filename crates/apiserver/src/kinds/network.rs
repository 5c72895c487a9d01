//! Network policies, and where services end.

use krafla_admission::builtin::{ingress, network};
use krafla_api::Time;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::Value;

use super::Rules;

/// Network policies.
pub struct NetworkPolicy;

impl Rules for NetworkPolicy {
    fn default(&self, policy: &mut Value) {
        network::default_policy(policy);
    }

    fn validate(&self, policy: &Value) -> Vec<FieldError> {
        field::found(network::validate_policy(policy))
    }

    fn validate_update(&self, policy: &Value, old: &Value) -> Vec<FieldError> {
        field::found(network::validate_policy_update(policy, old))
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

    fn validate_update(&self, slice: &Value, old: &Value) -> Vec<FieldError> {
        field::found(network::validate_slice_update(slice, old))
    }

    fn warnings(&self, slice: &Value) -> Vec<String> {
        network::warnings_of_slice(slice)
    }
}

/// Endpoints.
pub struct Endpoints;

impl Rules for Endpoints {
    fn default(&self, endpoints: &mut Value) {
        network::default_endpoints(endpoints);
    }

    fn validate(&self, endpoints: &Value) -> Vec<FieldError> {
        field::found(network::validate_endpoints(endpoints))
    }

    fn validate_update(&self, endpoints: &Value, old: &Value) -> Vec<FieldError> {
        field::found(network::validate_endpoints_update(endpoints, old))
    }
}

/// Ingresses.
pub struct Ingress;

impl Rules for Ingress {
    fn on_create(&self, ingress: &mut Value, _now: Time) {
        object::remove(ingress, "status");
    }

    fn validate(&self, ingress: &Value) -> Vec<FieldError> {
        field::found(ingress::validate(ingress))
    }

    fn warnings(&self, ingress: &Value) -> Vec<String> {
        ingress::warnings(ingress)
    }

    fn validate_update(&self, ingress: &Value, _old: &Value) -> Vec<FieldError> {
        field::found(ingress::validate_update(ingress))
    }

    fn validate_status(&self, ingress: &Value, old: &Value) -> Vec<FieldError> {
        field::found(ingress::validate_status(ingress, old))
    }
}

/// Classes of Ingresses.
pub struct IngressClass;

impl Rules for IngressClass {
    fn default(&self, class: &mut Value) {
        ingress::default_class(class);
    }

    fn validate(&self, class: &Value) -> Vec<FieldError> {
        field::found(ingress::validate_class(class))
    }

    fn validate_update(&self, class: &Value, old: &Value) -> Vec<FieldError> {
        field::found(ingress::validate_class_update(class, old))
    }
}
