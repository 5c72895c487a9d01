//! ValidatingAdmissionPolicies as objects. What they say about writes is asked in [`crate::admit`].

use krafla_api::Time;
use krafla_cel::Type;
use serde_json::{Value, json};

use super::{Rules, default_to};
use crate::admit::policy;
use crate::field::FieldError;
use crate::object;

/// ValidatingAdmissionPolicies.
pub struct ValidatingAdmissionPolicy;

impl Rules for ValidatingAdmissionPolicy {
    fn default(&self, policy: &mut Value) {
        let spec = object::part(policy, "spec");
        default_to(spec, "failurePolicy", "Fail");
        let Some(Value::Object(matched)) = spec.get_mut("matchConstraints") else { return };
        default_to(matched, "matchPolicy", "Equivalent");
        default_to(matched, "namespaceSelector", json!({}));
        default_to(matched, "objectSelector", json!({}));
        for word in ["resourceRules", "excludeResourceRules"] {
            for rule in matched.get_mut(word).and_then(Value::as_array_mut).into_iter().flatten() {
                default_to(object::fields(rule), "scope", "*");
            }
        }
    }

    fn on_create(&self, policy: &mut Value, _now: Time) {
        object::remove(policy, "status");
    }

    fn validate(&self, policy: &Value) -> Vec<FieldError> {
        let lists = [
            ("validations", "expression", true),
            ("validations", "messageExpression", false),
            ("matchConditions", "expression", true),
            ("variables", "expression", false),
        ];
        lists
            .into_iter()
            .flat_map(|(list, name, is_condition)| check(policy, list, name, is_condition))
            .collect()
    }
}

/// What is wrong with the expressions of one list.
fn check(policy: &Value, list: &str, name: &str, is_condition: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let items = object::at(policy, &format!("/spec/{list}")).as_array().into_iter().flatten();
    for (at, item) in items.enumerate() {
        let field = format!("spec.{list}[{at}].{name}");
        let source = item[name].as_str().unwrap_or_default();
        if source.trim().is_empty() {
            if name == "expression" {
                errors.push(FieldError::required(field, "expression is not specified"));
            }
            continue;
        }
        match policy::compile(source) {
            Err(error) => {
                errors.push(FieldError::invalid(field, source, format!("compilation failed: {error}")));
            }
            Ok(program) if is_condition && !matches!(program.result_type(), Type::Bool | Type::Dyn) => {
                let why = format!("must evaluate to bool but got {}", program.result_type());
                errors.push(FieldError::invalid(field, source, why));
            }
            Ok(_) => {}
        }
    }
    errors
}
