//! Volumes of a pod: each has a name of its own and one source.

use std::collections::BTreeMap;

use krafla_api::Quantity;

use crate::json::At;
use crate::{Path, Verdict, names};

use super::{check, claim, projected};

type Check = fn(&At<'_>, &mut Verdict);

/// Every source of a volume, and what it needs.
const SOURCES: [(&str, Check); 30] = [
    ("emptyDir", empty_dir),
    ("hostPath", host_path),
    ("gitRepo", git_repo),
    ("gcePersistentDisk", gce_disk),
    ("awsElasticBlockStore", |at, verdict| disk(at, "volumeID", verdict)),
    ("secret", |at, verdict| files(at, "secretName", verdict)),
    ("nfs", nfs),
    ("iscsi", iscsi),
    ("glusterfs", |at, verdict| check::texts(at, &["endpoints", "path"], verdict)),
    ("flocker", flocker),
    ("persistentVolumeClaim", |at, verdict| check::texts(at, &["claimName"], verdict)),
    ("rbd", rbd),
    ("cinder", cinder),
    ("cephfs", |at, verdict| check::list(&at.get("monitors"), verdict)),
    ("quobyte", quobyte),
    ("downwardAPI", projected::downward_api_volume),
    ("fc", fibre_channel),
    ("flexVolume", flex_volume),
    ("configMap", |at, verdict| files(at, "name", verdict)),
    ("azureFile", |at, verdict| check::texts(at, &["secretName", "shareName"], verdict)),
    ("vsphereVolume", |at, verdict| check::texts(at, &["volumePath"], verdict)),
    ("photonPersistentDisk", |at, verdict| check::texts(at, &["pdID"], verdict)),
    ("portworxVolume", |at, verdict| check::texts(at, &["volumeID"], verdict)),
    ("azureDisk", azure_disk),
    ("storageos", storage_os),
    ("projected", projected::volume),
    ("scaleIO", |at, verdict| check::texts(at, &["gateway", "system", "volumeName"], verdict)),
    ("csi", csi),
    ("ephemeral", claim::ephemeral),
    ("image", |at, verdict| {
        check::text(&at.get("reference"), verdict);
        check::word_or_default(&at.get("pullPolicy"), &["Always", "IfNotPresent", "Never"], verdict)
    }),
];

/// Checks the volumes of a pod, and returns those with which nothing is wrong: a mount of any other would only be
/// reported twice.
pub(super) fn validate<'a>(volumes: &At<'a>, verdict: &mut Verdict) -> BTreeMap<&'a str, At<'a>> {
    let mut good = BTreeMap::new();
    for volume in volumes.list() {
        let n_before = verdict.refusals.len();
        validate_source(&volume, verdict);
        let name = volume.get("name");
        check::required_name(&name, names::dns_label, verdict);
        if good.contains_key(name.text()) {
            verdict.duplicate(name.path(), name.text());
        }
        if verdict.refusals.len() == n_before {
            good.insert(name.text(), volume);
        }
    }
    good
}

/// A volume without a source is an empty directory.
fn validate_source(volume: &At<'_>, verdict: &mut Verdict) {
    let mut is_given = false;
    for (name, check) in SOURCES {
        let source = volume.get(name);
        if !source.is_set() {
            continue;
        }
        if is_given {
            // Upstream has a name of its own for two of them here.
            let name = match name {
                "cephfs" => "cephFS",
                "downwardAPI" => "downwarAPI",
                name => name,
            };
            verdict.forbidden(volume.get(name).path(), "may not specify more than 1 volume type");
        } else {
            is_given = true;
            check(&source, verdict);
        }
    }
}

fn empty_dir(source: &At<'_>, verdict: &mut Verdict) {
    let limit = source.get("sizeLimit");
    if limit.quantity().is_some_and(Quantity::is_negative) {
        verdict.forbidden(limit.path(), "SizeLimit field must be a valid resource quantity");
    }
}

pub(crate) fn host_path(source: &At<'_>, verdict: &mut Verdict) {
    if check::text(&source.get("path"), verdict) {
        check::no_backsteps(&source.get("path"), verdict);
        let types = [
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ];
        check::word(&source.get("type"), &types, verdict);
    }
}

fn git_repo(source: &At<'_>, verdict: &mut Verdict) {
    check::texts(source, &["repository"], verdict);
    check::local_path(&source.get("directory"), verdict);
}

/// Upstream calls the field by an older name here.
pub(crate) fn gce_disk(source: &At<'_>, verdict: &mut Verdict) {
    let path = source.path().as_str();
    let path = path.strip_suffix("gcePersistentDisk").unwrap_or(path);
    let at = source.clone().reported_at(Path::new(&format!("{path}persistentDisk")));
    disk(&at, "pdName", verdict);
}

pub(crate) fn disk(source: &At<'_>, id: &str, verdict: &mut Verdict) {
    check::texts(source, &[id], verdict);
    let partition = source.get("partition");
    if let Some(number) = partition.int().filter(|number| !(0..=255).contains(number)) {
        verdict.invalid(partition.path(), number, "must be between 1 and 255, inclusive");
    }
}

/// A Secret or ConfigMap as files.
fn files(source: &At<'_>, name: &str, verdict: &mut Verdict) {
    check::texts(source, &[name], verdict);
    check::file_mode(&source.get("defaultMode"), verdict);
    source.items("items").iter().for_each(|item| projected::key_to_path(item, verdict));
}

pub(crate) fn nfs(source: &At<'_>, verdict: &mut Verdict) {
    check::texts(source, &["server", "path"], verdict);
    let path = source.get("path");
    if !path.text().starts_with('/') {
        verdict.invalid(path.path(), path.text(), "must be an absolute path");
    }
}

fn iscsi(source: &At<'_>, verdict: &mut Verdict) {
    check::texts(source, &["targetPortal"], verdict);
    iscsi_names(source, "must be valid format starting with iqn, eui, or naa", |_| {}, verdict);
}

/// The names and the secret of an iSCSI disk, `unknown` being what is said of a name of no known sort.
pub(crate) fn iscsi_names(
    source: &At<'_>,
    unknown: &str,
    secret: impl Fn(&mut Verdict),
    verdict: &mut Verdict,
) {
    if check::text(&source.get("iqn"), verdict) {
        qualified_disk_name(&source.get("iqn"), unknown, verdict);
    }
    check::range(&source.get("lun"), 0, 255, verdict);
    let uses_chap = source.get("chapAuthDiscovery").is_true() || source.get("chapAuthSession").is_true();
    if uses_chap && !source.get("secretRef").is_set() {
        verdict.required(source.get("secretRef").path(), "");
    }
    secret(verdict);
    let initiator = source.get("initiatorName");
    if initiator.is_set() {
        let initiator = initiator.reported_at(source.path().field("initiatorname"));
        qualified_disk_name(&initiator, unknown, verdict);
    }
}

/// `iqn.2026-11.org.example:disk`, `eui.` and 16 digits, or `naa.` and 32.
fn qualified_disk_name(name: &At<'_>, unknown: &str, verdict: &mut Verdict) {
    let text = name.text();
    let is_plain = |text: &str, n: usize| text.len() == n && text.chars().all(|c| c.is_ascii_alphanumeric());
    let is_iqn = |text: &str| {
        let (date, rest) = text.split_once('.').unwrap_or_default();
        let (authority, unit) = rest.split_once(':').unwrap_or_default();
        let is_date = date.len() == 7
            && date.chars().enumerate().all(|(i, c)| if i == 4 { c == '-' } else { c.is_ascii_digit() });
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
        let is_unit = |c: char| !",;*&$|".contains(c) && !c.is_whitespace();
        is_date
            && !authority.is_empty()
            && authority.chars().all(is_name)
            && !unit.is_empty()
            && unit.chars().all(is_unit)
    };
    let wrong = if let Some(rest) = text.strip_prefix("iqn") {
        !rest.strip_prefix('.').is_some_and(is_iqn)
    } else if let Some(rest) = text.strip_prefix("eui") {
        !rest.get(1..).is_some_and(|rest| is_plain(rest, 16))
    } else if let Some(rest) = text.strip_prefix("naa") {
        !rest.get(1..).is_some_and(|rest| is_plain(rest, 32))
    } else {
        verdict.invalid(name.path(), text, unknown);
        return;
    };
    if wrong {
        verdict.invalid(name.path(), text, "must be valid format");
    }
}

pub(crate) fn flocker(source: &At<'_>, verdict: &mut Verdict) {
    let (name, uuid) = (source.get("datasetName"), source.get("datasetUUID"));
    match (name.text().is_empty(), uuid.text().is_empty()) {
        (true, true) => verdict.required(source.path(), "one of datasetName and datasetUUID is required"),
        (false, false) => {
            let rule = "datasetName and datasetUUID can not be specified simultaneously";
            verdict.invalid(source.path(), "resource", rule);
        }
        (true, false) | (false, true) => {}
    }
    if name.text().contains('/') {
        verdict.invalid(name.path(), name.text(), "must not contain '/'");
    }
}

pub(crate) fn rbd(source: &At<'_>, verdict: &mut Verdict) {
    check::list(&source.get("monitors"), verdict);
    check::texts(source, &["image"], verdict);
}

fn cinder(source: &At<'_>, verdict: &mut Verdict) {
    check::texts(source, &["volumeID"], verdict);
    let secret = source.get("secretRef");
    if secret.is_set() {
        check::texts(&secret, &["name"], verdict);
    }
}

pub(crate) fn fibre_channel(source: &At<'_>, verdict: &mut Verdict) {
    let (targets, ids, lun) = (source.get("targetWWNs"), source.get("wwids"), source.get("lun"));
    if targets.is_empty() && ids.is_empty() {
        verdict.required(targets.path(), "must specify either targetWWNs or wwids, but not both");
    }
    if !targets.is_empty() {
        if !ids.is_empty() {
            let rule = "targetWWNs and wwids can not be specified simultaneously";
            verdict.invalid(targets.path(), targets.value(), rule);
        }
        if !lun.is_set() {
            verdict.required(lun.path(), "lun is required if targetWWNs is specified");
        }
        check::range(&lun, 0, 255, verdict);
    }
}

pub(crate) fn flex_volume(source: &At<'_>, verdict: &mut Verdict) {
    check::texts(source, &["driver"], verdict);
    for (key, option) in source.get("options").entries() {
        let domain = format!(".{}", key.split('/').next().unwrap_or(key).to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            verdict.invalid(option.path(), key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

pub(crate) fn azure_disk(source: &At<'_>, verdict: &mut Verdict) {
    check::texts(source, &["diskName", "diskURI"], verdict);
    check::word(&source.get("cachingMode"), &["None", "ReadOnly", "ReadWrite"], verdict);
    let (kind, uri) = (source.get("kind"), source.get("diskURI"));
    check::word(&kind, &["Dedicated", "Managed", "Shared"], verdict);
    let managed =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    let blob = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    match kind.text() {
        "Managed" if !uri.text().starts_with("/subscriptions/") => {
            verdict.unsupported(uri.path(), uri.text(), &[managed]);
        }
        "Managed" => {}
        _ if kind.is_set() && !uri.text().starts_with("https://") => {
            verdict.unsupported(uri.path(), uri.text(), &[blob]);
        }
        _ => {}
    }
}

fn storage_os(source: &At<'_>, verdict: &mut Verdict) {
    check::required_name(&source.get("volumeName"), names::dns_label, verdict);
    check::name(&source.get("volumeNamespace"), names::dns_label, verdict);
    let secret = source.get("secretRef");
    if secret.is_set() {
        check::texts(&secret, &["name"], verdict);
    }
}

fn csi(source: &At<'_>, verdict: &mut Verdict) {
    driver_name(&source.get("driver"), verdict);
    let secret = source.get("nodePublishSecretRef");
    if secret.is_set() && check::text(&secret.get("name"), verdict) {
        // Upstream reports it at the volume's own name.
        let name = secret.get("name").reported_at(source.path().field("name"));
        check::name(&name, names::dns_subdomain, verdict);
    }
}

/// The name of a storage driver.
pub(crate) fn driver_name(driver: &At<'_>, verdict: &mut Verdict) {
    let name = driver.text();
    if check::text(driver, verdict) {
        if name.len() > 63 {
            verdict.too_long(driver.path(), 63);
        }
        verdict.invalid_each(driver.path(), name, names::dns_subdomain(&name.to_lowercase()));
    }
}

pub(crate) fn quobyte(source: &At<'_>, verdict: &mut Verdict) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let (registry, tenant) = (source.get("registry"), source.get("tenant"));
    let is_pair = |pair: &str| {
        pair.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'))
    };
    if registry.text().is_empty() {
        verdict.required(registry.path(), PAIRS);
    } else if tenant.text().len() > 64 {
        verdict.required(tenant.path(), "must be a UUID and may not exceed a length of 64 characters");
    } else {
        for _ in registry.text().split(',').filter(|pair| !is_pair(pair)) {
            verdict.invalid(registry.path(), registry.text(), PAIRS);
        }
    }
    check::texts(source, &["volume"], verdict);
}
