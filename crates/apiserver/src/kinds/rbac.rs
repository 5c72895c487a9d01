//! Roles and their bindings. They are stored and checked; nobody here is asked for his rights.

use krafla_admission::builtin::rbac;
use krafla_schema::field::{self, FieldError};
use serde_json::Value;

use super::Rules;

/// Roles.
pub struct Role {
    /// Whether they are about one namespace.
    pub is_namespaced: bool,
}

impl Rules for Role {
    fn validate(&self, role: &Value) -> Vec<FieldError> {
        field::found(rbac::validate_role(role, self.is_namespaced))
    }
}

/// Bindings.
pub struct Binding {
    /// Whether they are about one namespace.
    pub is_namespaced: bool,
}

impl Rules for Binding {
    fn default(&self, binding: &mut Value) {
        rbac::default_binding(binding);
    }

    fn validate(&self, binding: &Value) -> Vec<FieldError> {
        field::found(rbac::validate_binding(binding, self.is_namespaced))
    }

    fn validate_update(&self, binding: &Value, old: &Value) -> Vec<FieldError> {
        field::found(rbac::validate_binding_update(binding, old, self.is_namespaced))
    }
}
