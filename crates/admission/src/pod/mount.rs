//! Where a container sees the pod's volumes.

use std::collections::{BTreeMap, BTreeSet};

use crate::Verdict;
use crate::json::At;

use super::check;

/// Checks the mounts and block devices of a container.
pub(super) fn validate(container: &At<'_>, volumes: &BTreeMap<&str, At<'_>>, verdict: &mut Verdict) {
    let (mounts, devices) = (container.get("volumeMounts"), container.get("volumeDevices"));
    validate_mounts(container, &mounts, &devices, volumes, verdict);
    validate_devices(&mounts, &devices, volumes, verdict);
}

/// Whether an item of this list has this text in this field.
fn is_among(list: &At<'_>, field: &str, text: &str) -> bool {
    list.list().iter().any(|item| item.str(field) == text)
}

fn validate_mounts(
    container: &At<'_>,
    mounts: &At<'_>,
    devices: &At<'_>,
    volumes: &BTreeMap<&str, At<'_>>,
    verdict: &mut Verdict,
) {
    let is_privileged = container.get("securityContext").get("privileged").is_true();
    let mut paths = BTreeSet::new();
    for mount in mounts.list() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        check::text(&name, verdict);
        if !volumes.contains_key(name.text()) {
            verdict.not_found(name.path(), name.text());
        }
        check::text(&path, verdict);
        if !paths.insert(path.text()) {
            verdict.invalid(path.path(), path.text(), "must be unique");
        }
        if is_among(devices, "name", name.text()) {
            verdict.invalid(name.path(), name.text(), "must not already exist in volumeDevices");
        }
        if is_among(devices, "devicePath", path.text()) {
            verdict.invalid(path.path(), path.text(), "must not already exist as a path in volumeDevices");
        }
        validate_mount_options(&mount, mounts, is_privileged, verdict);
    }
}

/// Kubernetes reports these without saying which mount it was.
fn validate_mount_options(mount: &At<'_>, mounts: &At<'_>, is_privileged: bool, verdict: &mut Verdict) {
    let unnumbered = |field: &str| mount.get(field).reported_at(mounts.path().field(field));
    check::local_path(&unnumbered("subPath"), verdict);
    let expression = unnumbered("subPathExpr");
    if !expression.text().is_empty() {
        if !mount.str("subPath").is_empty() {
            let rule = "subPathExpr and subPath are mutually exclusive";
            verdict.invalid(mount.get("subPathExpr").path(), expression.text(), rule);
        }
        check::local_path(&expression, verdict);
    }
    let propagation = unnumbered("mountPropagation");
    check::word(&propagation, &["Bidirectional", "HostToContainer", "None"], verdict);
    if propagation.text() == "Bidirectional" && !is_privileged {
        let rule = "Bidirectional mount propagation is available only to privileged containers";
        verdict.forbidden(propagation.path(), rule);
    }
    let recursive = unnumbered("recursiveReadOnly");
    match recursive.text() {
        "Enabled" | "IfPossible" => {
            if !mount.get("readOnly").is_true() {
                verdict.forbidden(recursive.path(), "may only be specified when readOnly is true");
            }
            if !["", "None"].contains(&propagation.text()) {
                let rule = "may only be specified when mountPropagation is None or not specified";
                verdict.forbidden(recursive.path(), rule);
            }
        }
        _ => check::word(&recursive, &["Disabled", "Enabled", "IfPossible"], verdict),
    }
}

fn validate_devices(
    mounts: &At<'_>,
    devices: &At<'_>,
    volumes: &BTreeMap<&str, At<'_>>,
    verdict: &mut Verdict,
) {
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for device in devices.list() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        check::text(&name, verdict);
        if !name.text().is_empty() && !names.insert(name.text()) {
            verdict.invalid(name.path(), name.text(), "must be unique");
        }
        match volumes.get(name.text()) {
            None => verdict.not_found(name.path(), name.text()),
            Some(volume)
                if !volume.get("persistentVolumeClaim").is_set() && !volume.get("ephemeral").is_set() =>
            {
                let rule =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                verdict.invalid(name.path(), name.text(), rule);
            }
            Some(_) => {}
        }
        check::text(&path, verdict);
        if path.text().split('/').any(|part| part == "..") {
            verdict.invalid(path.path(), path.text(), "can not contain backsteps ('..')");
        } else if !paths.insert(path.text()) {
            verdict.invalid(path.path(), path.text(), "must be unique");
        }
        if is_among(mounts, "name", name.text()) {
            verdict.invalid(name.path(), name.text(), "must not already exist in volumeMounts");
        }
        if is_among(mounts, "mountPath", path.text()) {
            verdict.invalid(path.path(), path.text(), "must not already exist as a path in volumeMounts");
        }
    }
}
