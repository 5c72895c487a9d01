//! Webhook configurations.

use krafla_admission::webhook;
use krafla_schema::field::{self, FieldError};
use serde_json::Value;

use super::Rules;

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
        field::found(webhook::validate(configuration))
    }
}
