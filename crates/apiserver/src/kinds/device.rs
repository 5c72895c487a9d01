//! Devices and their claims.

use krafla_admission::builtin::device;
use krafla_api::Time;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::{Value, json};

use super::Rules;

/// Classes of devices.
pub struct DeviceClass;

impl Rules for DeviceClass {
    fn validate(&self, class: &Value) -> Vec<FieldError> {
        field::found(device::validate_class(class))
    }
}

/// Claims of devices.
pub struct ResourceClaim;

impl Rules for ResourceClaim {
    fn default(&self, claim: &mut Value) {
        device::default_claim(claim);
    }

    fn on_create(&self, claim: &mut Value, _now: Time) {
        object::remove(claim, "status");
    }

    fn validate(&self, claim: &Value) -> Vec<FieldError> {
        field::found(device::validate_claim(claim))
    }

    fn validate_update(&self, claim: &Value, old: &Value) -> Vec<FieldError> {
        field::found(device::validate_spec_stays(claim, old, "resource.ResourceClaimSpec"))
    }

    fn validate_status(&self, claim: &Value, old: &Value) -> Vec<FieldError> {
        field::found(device::validate_claim_status(claim, old))
    }
}

/// What claims of pods are made from.
pub struct ResourceClaimTemplate;

impl Rules for ResourceClaimTemplate {
    fn default(&self, template: &mut Value) {
        device::default_template(template);
    }

    fn validate(&self, template: &Value) -> Vec<FieldError> {
        field::found(device::validate_template(template))
    }

    fn validate_update(&self, template: &Value, old: &Value) -> Vec<FieldError> {
        field::found(device::validate_spec_stays(template, old, "resource.ResourceClaimTemplateSpec"))
    }
}

/// Devices that a driver offers.
pub struct ResourceSlice;

impl Rules for ResourceSlice {
    fn on_create(&self, slice: &mut Value, now: Time) {
        device::default_slice(slice, &json!(now));
    }

    fn validate(&self, slice: &Value) -> Vec<FieldError> {
        field::found(device::validate_slice(slice))
    }

    fn validate_update(&self, slice: &Value, old: &Value) -> Vec<FieldError> {
        field::found(device::validate_slice_update(slice, old))
    }
}
