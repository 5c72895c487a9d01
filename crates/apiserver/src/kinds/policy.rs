//! Disruption budgets.

use krafla_admission::builtin::disruption;
use krafla_api::Time;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::Value;

use super::Rules;

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
