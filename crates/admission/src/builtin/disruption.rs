//! How many pods of a set may be missing at once.

use serde_json::Value;

use super::{amount, findings, validate_word};
use crate::pod::check::{label_selector, not_negative};
use crate::{Finding, Reason};

/// Says what is wrong with the status of a PodDisruptionBudget.
pub fn validate_budget_status(budget: &Value) -> Vec<Finding> {
    findings(budget, |budget, verdict| {
        let status = budget.get("status");
        for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            not_negative(&status.get(field), verdict);
        }
    })
}

/// Says what is wrong with a PodDisruptionBudget.
pub fn validate_budget(budget: &Value) -> Vec<Finding> {
    findings(budget, |budget, verdict| {
        let spec = budget.get("spec");
        let (min, max) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
        if min.is_set() && max.is_set() {
            let shown = |field: &str| spec.get(field).value().to_string();
            let message = format!(
                "Invalid value: {{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\
                 \"UnhealthyPodEvictionPolicy\":{}}}: minAvailable and maxUnavailable cannot be both set",
                min.value(),
                shown("selector"),
                max.value(),
                shown("unhealthyPodEvictionPolicy"),
            );
            verdict.refuse(spec.path(), Reason::Invalid, message);
        }
        for amount in [&min, &max] {
            amount::validate(amount, verdict);
            amount::validate_at_most_all(amount, verdict);
        }
        let policies = ["AlwaysAllow", "IfHealthyBudget"];
        validate_word(&spec.get("unhealthyPodEvictionPolicy"), &policies, verdict);
        label_selector(&spec.get("selector"), verdict);
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::super::said;
    use super::*;

    #[test]
    fn an_amount_is_a_number_or_a_share() {
        let found = |spec: Value| said(&validate_budget(&json!({"spec": spec})));
        expect![""].assert_eq(&found(json!({"minAvailable": "50%"})));
        expect![[r#"spec.minAvailable: Invalid value: "101%": must not be greater than 100%"#]]
            .assert_eq(&found(json!({"minAvailable": "101%"})));
        expect!["spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"]
            .assert_eq(&found(json!({"maxUnavailable": -1})));
    }
}
