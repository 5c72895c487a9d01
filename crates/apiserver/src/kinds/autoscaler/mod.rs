//! Autoscalers: one kind in two versions. They are stored as `autoscaling/v2` has them. Nobody here acts on them.

mod conversion;

use krafla_admission::builtin::autoscaler;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::{Map, Value, json};

use super::{Rules, default_to};

pub use conversion::{FIELDS, conversion, to_stored};

/// Autoscalers of one of the two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Autoscaler {
    /// `autoscaling/v1`, which knows only the load of the CPU.
    V1,
    /// `autoscaling/v2`.
    V2,
}

impl Rules for Autoscaler {
    fn default(&self, autoscaler: &mut Value) {
        let spec = object::part(autoscaler, "spec");
        default_to(spec, "minReplicas", 1);
        if *self == Autoscaler::V1 {
            return;
        }
        if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            spec.insert("metrics".into(), json!([conversion::cpu_metric(80)]));
        }
        if let Some(Value::Object(behavior)) = spec.get_mut("behavior") {
            default_behavior(behavior);
        }
    }

    fn on_create(&self, autoscaler: &mut Value, _now: krafla_api::Time) {
        object::remove(autoscaler, "status");
    }

    fn validate(&self, autoscaler: &Value) -> Vec<FieldError> {
        self.validate_update(autoscaler, &Value::Null)
    }

    fn validate_update(&self, autoscaler: &Value, old: &Value) -> Vec<FieldError> {
        field::found(autoscaler::validate(autoscaler, old))
    }

    fn validate_status(&self, autoscaler: &Value, _old: &Value) -> Vec<FieldError> {
        field::found(autoscaler::validate_status(autoscaler))
    }
}

/// How fast it goes when an author says something about it, but not everything.
fn default_behavior(behavior: &mut Map<String, Value>) {
    let double = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let four_more = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    for (direction, policies) in
        [("scaleUp", json!([four_more, double.clone()])), ("scaleDown", json!([double]))]
    {
        let rules = object::fields(behavior.entry(direction).or_insert(Value::Null));
        default_to(rules, "selectPolicy", "Max");
        default_to(rules, "policies", policies);
        if direction == "scaleUp" {
            default_to(rules, "stabilizationWindowSeconds", 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(of: Autoscaler, spec: Value, expected: Expect) {
        let mut autoscaler = json!({"spec": spec});
        of.default(&mut autoscaler);
        let errors: Vec<String> = of.validate(&autoscaler).iter().map(ToString::to_string).collect();
        expected.assert_eq(&format!("{}\n{}", autoscaler["spec"], errors.join("\n")));
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        let target = json!({"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"});
        check(
            Autoscaler::V2,
            json!({"scaleTargetRef": target, "maxReplicas": 3}),
            expect![[r#"
                {"maxReplicas":3,"metrics":[{"resource":{"name":"cpu","target":{"averageUtilization":80,"type":"Utilization"}},"type":"Resource"}],"minReplicas":1,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}
            "#]],
        );
        check(
            Autoscaler::V1,
            json!({"scaleTargetRef": target, "maxReplicas": 3}),
            expect![[r#"
                {"maxReplicas":3,"minReplicas":1,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}
            "#]],
        );
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let metrics = json!([{"type": "Resource"}, {"type": "Odd"}]);
        check(
            Autoscaler::V2,
            json!({"minReplicas": 0, "maxReplicas": -1, "metrics": metrics, "behavior": {}}),
            expect![[r#"
                {"behavior":{"scaleDown":{"policies":[{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max"},"scaleUp":{"policies":[{"periodSeconds":15,"type":"Pods","value":4},{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max","stabilizationWindowSeconds":0}},"maxReplicas":-1,"metrics":[{"type":"Resource"},{"type":"Odd"}],"minReplicas":0}
                spec.minReplicas: Invalid value: 0: must be greater than or equal to 1
                spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1
                spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`
                spec.scaleTargetRef.kind: Required value
                spec.scaleTargetRef.name: Required value
                spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group
                spec.metrics[0].resource: Required value: must populate information for the given metric source
                spec.metrics[1].type: Unsupported value: "Odd": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"
                spec.metrics[1].type: Unsupported value: "Odd": supported values: "ContainerResource", "External", "Object", "Pods", "Resource""#]],
        );
    }
}
