//! Volumes and claims.

use krafla_admission::builtin::storage;
use krafla_admission::pod;
use krafla_api::Time;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::{Map, Value, json};

use super::workload::default_source;
use super::{Rules, default_to};

/// Since when a volume has its phase.
const SINCE: &str = "lastPhaseTransitionTime";

/// Claims.
pub struct PersistentVolumeClaim;

impl Rules for PersistentVolumeClaim {
    fn default(&self, claim: &mut Value) {
        default_to(object::part(claim, "spec"), "volumeMode", "Filesystem");
        default_to(object::part(claim, "status"), "phase", "Pending");
    }

    fn on_create(&self, claim: &mut Value, _now: Time) {
        object::set(claim, "status", json!({"phase": "Pending"}));
        settle_sources(object::part(claim, "spec"), &Value::Null);
    }

    fn on_update(&self, claim: &mut Value, old: &Value) {
        settle_sources(object::part(claim, "spec"), old.get("spec").unwrap_or(&Value::Null));
    }

    fn warnings(&self, claim: &Value) -> Vec<String> {
        pod::warnings_of_claim(claim)
    }

    fn warnings_of_change(&self, claim: &Value, _old: &Value) -> Vec<String> {
        pod::warnings_of_claim(claim)
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

/// The older field and the newer one for the source of a claim's data say the same.
fn settle_sources(spec: &mut Map<String, Value>, old: &Value) {
    let had = |name: &str| old.get(name).is_some();
    let namespace = |spec: &Map<String, Value>| {
        let namespace = spec.get("dataSourceRef").and_then(|source| source.get("namespace"));
        namespace.and_then(Value::as_str).is_some_and(|namespace| !namespace.is_empty())
    };
    // Kubernetes 1.36 does not serve sources in other namespaces unless it is told to.
    if namespace(spec) && !had("dataSourceRef") {
        spec.remove("dataSourceRef");
    }
    if !had("dataSource") && !had("dataSourceRef") && !spec.contains_key("dataSourceRef") {
        let text = |name: &str| {
            spec.get("dataSource")
                .and_then(|source| source.get(name))
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let is_known = matches!(
            (text("apiGroup"), text("kind")),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        );
        if !is_known {
            spec.remove("dataSource");
        }
    }
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => {
            spec.insert("dataSourceRef".into(), source);
        }
        (None, Some(source)) if !namespace(spec) => {
            spec.insert("dataSource".into(), source);
            object::fields(spec.entry("dataSource").or_insert(Value::Null)).remove("namespace");
        }
        _ => {}
    }
}

/// Volumes.
pub struct PersistentVolume;

impl Rules for PersistentVolume {
    fn default(&self, volume: &mut Value) {
        let spec = object::part(volume, "spec");
        default_to(spec, "persistentVolumeReclaimPolicy", "Retain");
        default_to(spec, "volumeMode", "Filesystem");
        default_source(spec);
        default_to(object::part(volume, "status"), "phase", "Pending");
    }

    /// A volume keeps the time of its last change of phase.
    fn stamp_status(&self, volume: &mut Value, old: &Value, now: Time) {
        let at = |volume: &Value, name: &str| volume.pointer(&format!("/status/{name}")).cloned();
        let (time, was) = (at(volume, SINCE), at(old, SINCE));
        let is_same_phase = at(volume, "phase") == at(old, "phase");
        let wanted = match (is_same_phase, time) {
            (true, None) => was,
            (false, time) if time.is_none() || time == was => Some(now.to_string().into()),
            (_, time) => time,
        };
        if let Some(time) = wanted {
            object::part(volume, "status").insert(SINCE.into(), time);
        }
    }

    fn warnings(&self, volume: &Value) -> Vec<String> {
        storage::warnings_of_volume(volume)
    }

    fn warnings_of_change(&self, volume: &Value, _old: &Value) -> Vec<String> {
        self.warnings(volume)
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
