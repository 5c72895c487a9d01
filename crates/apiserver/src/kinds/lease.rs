//! Leases.

use krafla_schema::field::FieldError;
use serde_json::Value;

use super::Rules;

/// Leases.
pub struct Lease;

impl Rules for Lease {
    fn validate(&self, lease: &Value) -> Vec<FieldError> {
        let number = |field: &str| lease.pointer(&format!("/spec/{field}")).and_then(Value::as_i64);
        let mut errors = Vec::new();
        if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
            errors.push(FieldError::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
        }
        if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid("spec.leaseTransitions", count, why));
        }
        errors
    }
}
