//! How many pods of a set may be missing at once.

use serde_json::Value;

use super::{findings, validate_not_negative, validate_word};
use crate::json::At;
use crate::{Finding, Reason, Verdict};

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
        validate_amount(&min, verdict);
        validate_amount(&max, verdict);
        let policies = ["AlwaysAllow", "IfHealthyBudget"];
        validate_word(&spec.get("unhealthyPodEvictionPolicy"), &policies, verdict);
    })
}

/// A number of pods, or a share of them.
fn validate_amount(amount: &At<'_>, verdict: &mut Verdict) {
    validate_not_negative(amount, verdict);
    let Some(text) = amount.value().as_str() else { return };
    let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty());
    let is_percent = digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_percent {
        let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                   regex used for validation is '[0-9]+%')";
        return verdict.invalid(amount.path(), text, why);
    }
    if digits.and_then(|digits| digits.parse::<u32>().ok()).is_none_or(|percent| percent > 100) {
        verdict.invalid(amount.path(), text, "must not be greater than 100%");
    }
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
