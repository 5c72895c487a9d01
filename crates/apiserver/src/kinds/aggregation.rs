//! APIServices.

use krafla_admission::builtin::aggregation;
use krafla_api::Time;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::{Value, json};

use super::Rules;

/// Which server answers for a group and version.
pub struct ApiService;

impl Rules for ApiService {
    fn default(&self, service: &mut Value) {
        aggregation::default_service(service);
    }

    fn on_create(&self, service: &mut Value, now: Time) {
        object::remove(service, "status");
        if service.pointer("/spec/service").is_none_or(Value::is_null) {
            let (reason, message) = aggregation::LOCAL;
            let condition = json!({
                "type": "Available", "status": "True", "lastTransitionTime": now,
                "reason": reason, "message": message,
            });
            object::set(service, "status", json!({"conditions": [condition]}));
        }
    }

    fn validate(&self, service: &Value) -> Vec<FieldError> {
        field::found(aggregation::validate_service(service))
    }

    fn validate_update(&self, service: &Value, old: &Value) -> Vec<FieldError> {
        field::found(aggregation::validate_update(service, old))
    }

    fn validate_status(&self, service: &Value, _old: &Value) -> Vec<FieldError> {
        field::found(aggregation::validate_status(service))
    }
}
