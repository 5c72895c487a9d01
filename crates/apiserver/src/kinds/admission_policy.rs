//! Admission policies and their bindings as objects. What they say about writes is asked in [`crate::admit`].

use krafla_admission::policy;
use krafla_api::Time;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::Value;

use super::{Rules, keep_all_but, keep_metadata};

/// Policies, which either refuse what is written or change it.
pub struct AdmissionPolicy {
    /// Whether they change it.
    pub is_mutating: bool,
}

impl Rules for AdmissionPolicy {
    fn default(&self, policy: &mut Value) {
        policy::default_policy(policy);
    }

    fn on_create(&self, policy: &mut Value, _now: Time) {
        if !self.is_mutating {
            object::remove(policy, "status");
        }
    }

    fn on_status_update(&self, policy: &mut Value, old: &Value) {
        keep_all_but(policy, old, &["metadata", "status"]);
        keep_metadata(policy, old);
    }

    fn validate(&self, policy: &Value) -> Vec<FieldError> {
        let validate = if self.is_mutating { policy::validate_mutating } else { policy::validate_validating };
        field::found(validate(policy))
    }
}

/// Bindings of policies.
pub struct PolicyBinding {
    /// Whether they bind a policy that changes what is written.
    pub is_mutating: bool,
}

impl Rules for PolicyBinding {
    fn default(&self, binding: &mut Value) {
        policy::default_binding(binding);
    }

    fn validate(&self, binding: &Value) -> Vec<FieldError> {
        let validate = match self.is_mutating {
            true => policy::validate_mutating_binding,
            false => policy::validate_validating_binding,
        };
        field::found(validate(binding))
    }
}
