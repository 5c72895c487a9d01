//! Disruption budgets.

use krafla_admission::builtin::disruption;
use krafla_api::Time;
use serde_json::Value;

use super::Rules;
use crate::field::{self, FieldError};
use crate::object;

/// Disruption budgets.
pub struct PodDisruptionBudget;

impl Rules for PodDisruptionBudget {
    fn on_create(&self, budget: &mut Value, _now: Time) {
        object::remove(budget, "status");
    }

    fn validate(&self, budget: &Value) -> Vec<FieldError> {
        field::found(disruption::validate_budget(budget))
    }

    fn validate_status(&self, budget: &Value, _old: &Value) -> Vec<FieldError> {
        field::found(disruption::validate_budget_status(budget))
    }
}
