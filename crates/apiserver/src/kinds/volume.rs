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
        let mut errors = self.validate(claim);
        if !is_same_but_changeable(claim, old) {
            let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName \
                for bound claims";
            errors.push(FieldError::forbidden("spec", why));
        }
        errors
    }
}

/// A claim may be given its volume and its class once; when it is bound it may ask for more.
fn is_same_but_changeable(claim: &Value, old: &Value) -> bool {
    let mut claim = claim.get("spec").cloned().unwrap_or_default();
    let mut was = old.get("spec").cloned().unwrap_or_default();
    let is_bound = old.pointer("/status/phase").is_some_and(|phase| phase == "Bound");
    for field in ["storageClassName", "volumeName"] {
        if was.get(field).is_none() {
            object::remove(&mut claim, field);
        }
    }
    if is_bound {
        for spec in [&mut claim, &mut was] {
            object::remove(spec, "volumeAttributesClassName");
            object::part(spec, "resources").remove("requests");
        }
    }
    claim == was
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

    fn on_create(&self, volume: &mut Value, now: Time) {
        object::set(volume, "status", json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
    }
}
