//! Volumes and claims.

use krafla_admission::builtin::storage;
use krafla_admission::pod;
use krafla_api::Time;
use serde_json::{Value, json};

use super::{Rules, default_to};
use crate::field::{self, FieldError};
use crate::object;

/// Claims.
pub struct PersistentVolumeClaim;

impl Rules for PersistentVolumeClaim {
    fn default(&self, claim: &mut Value) {
        default_to(object::part(claim, "spec"), "volumeMode", "Filesystem");
        default_to(object::part(claim, "status"), "phase", "Pending");
    }

    fn on_create(&self, claim: &mut Value, _now: Time) {
        object::set(claim, "status", json!({"phase": "Pending"}));
    }

    fn validate(&self, claim: &Value) -> Vec<FieldError> {
        field::found(pod::validate_claim(claim))
    }

    fn validate_update(&self, claim: &Value, old: &Value) -> Vec<FieldError> {
        field::found(pod::validate_claim_update(claim, old))
    }

    fn validate_status(&self, claim: &Value, _old: &Value) -> Vec<FieldError> {
        field::found(pod::validate_claim_status(claim))
    }
}

/// Volumes.
pub struct PersistentVolume;

impl Rules for PersistentVolume {
    fn default(&self, volume: &mut Value) {
        let spec = object::part(volume, "spec");
        default_to(spec, "persistentVolumeReclaimPolicy", "Retain");
        default_to(spec, "volumeMode", "Filesystem");
        if let Some(path) = spec.get_mut("hostPath").and_then(Value::as_object_mut) {
            default_to(path, "type", "");
        }
    }

    fn validate(&self, volume: &Value) -> Vec<FieldError> {
        field::found(storage::validate_volume(volume))
    }

    fn validate_update(&self, volume: &Value, old: &Value) -> Vec<FieldError> {
        field::found(storage::validate_volume_update(volume, old))
    }

    fn on_create(&self, volume: &mut Value, now: Time) {
        object::set(volume, "status", json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
    }
}
