//! Volumes of a job: each has one path and one claim.

use std::collections::BTreeSet;

use krafla_api::volcano::VolumeSpec;

use crate::{Path, Reason, Verdict, names};

/// Checks the volumes of a job.
pub(super) fn validate(volumes: &[VolumeSpec], path: &Path, verdict: &mut Verdict) {
    let mut mount_paths = BTreeSet::new();
    for (index, volume) in volumes.iter().enumerate() {
        let path = path.index(index);
        let mount_path = path.field("mountPath");
        if volume.mount_path.is_empty() {
            verdict.refuse(&mount_path, Reason::Required, "mountPath is required");
        } else if !mount_paths.insert(volume.mount_path.as_str()) {
            verdict.refuse(
                &mount_path,
                Reason::Duplicate,
                format!("duplicated mountPath: {}", volume.mount_path),
            );
        }
        validate_claim(volume, &path, verdict);
    }
}

fn validate_claim(volume: &VolumeSpec, path: &Path, verdict: &mut Verdict) {
    let name = &volume.volume_claim_name;
    match (&volume.volume_claim, name.is_empty()) {
        (None, true) => {
            verdict.refuse(path, Reason::Required, "either VolumeClaim or VolumeClaimName must be specified");
        }
        (Some(_), false) => {
            let message = "conflict: If you want to use an existing PVC, just specify VolumeClaimName.\
                If you want to create a new PVC, you do not need to specify VolumeClaimName";
            verdict.refuse(path, Reason::Forbidden, message);
        }
        (None, false) => {
            let wrong = names::dns_subdomain(name);
            if !wrong.is_empty() {
                let message = format!("invalid VolumeClaimName {name} : [{}]", wrong.join(" "));
                verdict.refuse(&path.field("volumeClaimName"), Reason::Invalid, message);
            }
        }
        (Some(_), true) => {}
    }
}
