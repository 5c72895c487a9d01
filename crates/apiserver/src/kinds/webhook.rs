//! Webhook configurations.

use krafla_admission::webhook;
use krafla_cel::Type;
use serde_json::Value;

use super::Rules;
use crate::admit::webhooks::conditions;
use crate::field::{self, FieldError};

/// Configurations of webhooks, which either change objects or only look at them.
pub struct Configuration {
    /// Whether they change objects.
    pub is_mutating: bool,
}

impl Rules for Configuration {
    fn default(&self, configuration: &mut Value) {
        webhook::default(configuration, self.is_mutating);
    }

    fn validate(&self, configuration: &Value) -> Vec<FieldError> {
        let mut errors = field::found(webhook::validate(configuration));
        errors.extend(check_conditions(configuration));
        errors
    }
}

/// What is wrong with conditions as expressions.
fn check_conditions(configuration: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, hook) in webhook::hooks(configuration).iter().enumerate() {
        for (place, condition) in hook.match_conditions.iter().enumerate() {
            let field = format!("webhooks[{at}].matchConditions[{place}].expression");
            let source = condition.expression.as_str();
            match conditions::compile(source) {
                _ if source.trim().is_empty() => {}
                Err(error) => {
                    errors.push(FieldError::invalid(field, source, format!("compilation failed: {error}")));
                }
                Ok(program) if !matches!(program.result_type(), Type::Bool | Type::Dyn) => {
                    let why = format!("must evaluate to bool but got {}", program.result_type());
                    errors.push(FieldError::invalid(field, source, why));
                }
                Ok(_) => {}
            }
        }
    }
    errors
}
