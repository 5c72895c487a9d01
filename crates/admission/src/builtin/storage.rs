//! Volumes that stand on their own.

use serde_json::Value;

use super::{findings, validate_word};
use crate::Finding;

/// What a volume may be made of.
const SOURCES: [&str; 21] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "vsphereVolume",
];
const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Says what is wrong with a PersistentVolume.
pub fn validate_volume(volume: &Value) -> Vec<Finding> {
    findings(volume, |volume, verdict| {
        let spec = volume.get("spec");
        if spec.get("accessModes").is_empty() {
            verdict.required(spec.get("accessModes").path(), "");
        }
        for mode in spec.items("accessModes") {
            validate_word(&mode, &ACCESS_MODES, verdict);
        }
        if spec.get("capacity").is_empty() {
            verdict.required(spec.get("capacity").path(), "");
        }
        let mut sources = SOURCES.iter().map(|source| spec.get(source)).filter(|source| source.is_set());
        match (sources.next(), sources.next()) {
            (None, _) => verdict.required(spec.path(), "must specify a volume type"),
            (Some(_), Some(second)) => {
                verdict.forbidden(second.path(), "may not specify more than 1 volume type");
            }
            (Some(_), None) => {}
        }
        let policies = ["Delete", "Recycle", "Retain"];
        validate_word(&spec.get("persistentVolumeReclaimPolicy"), &policies, verdict);
        validate_word(&spec.get("volumeMode"), &["Block", "Filesystem"], verdict);
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::super::said;
    use super::*;

    #[test]
    fn a_volume_is_made_of_one_thing() {
        let spec = json!({"hostPath": {}, "nfs": {}, "accessModes": ["Odd"]});
        expect![[r#"
            spec.accessModes[0]: Unsupported value: "Odd": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"
            spec.capacity: Required value
            spec.nfs: Forbidden: may not specify more than 1 volume type"#]]
        .assert_eq(&said(&validate_volume(&json!({"spec": spec}))));
    }
}
