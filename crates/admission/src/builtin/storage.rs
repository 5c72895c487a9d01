//! Volumes that stand on their own.

use krafla_api::Quantity;
use serde_json::{Map, Value};

use super::findings;
use crate::json::At;
use crate::look::findings_of_change;
use crate::pod::claim::validate_access_modes;
use crate::pod::{self, check, scheduling, volume};
use crate::{Finding, Path, Reason, Verdict, internal, names};

type Check = fn(&At<'_>, &mut Verdict);

/// What a volume may be made of, in the order in which upstream looks, and what each needs.
const SOURCES: [(&str, Check); 22] = [
    ("hostPath", volume::host_path),
    ("gcePersistentDisk", volume::gce_disk),
    ("awsElasticBlockStore", |at, verdict| volume::disk(at, "volumeID", verdict)),
    ("glusterfs", glusterfs),
    ("flocker", volume::flocker),
    ("nfs", volume::nfs),
    ("rbd", volume::rbd),
    ("quobyte", volume::quobyte),
    ("cephfs", |at, verdict| check::list(&at.get("monitors"), verdict)),
    // Its rules look at the name of the volume, too.
    ("iscsi", |_, _| {}),
    ("cinder", |at, verdict| {
        check::texts(at, &["volumeID"], verdict);
        secret_by_namespace(at, verdict);
    }),
    ("fc", volume::fibre_channel),
    ("flexVolume", volume::flex_volume),
    ("azureFile", azure_file),
    ("vsphereVolume", |at, verdict| check::texts(at, &["volumePath"], verdict)),
    ("photonPersistentDisk", |at, verdict| check::texts(at, &["pdID"], verdict)),
    ("portworxVolume", |at, verdict| check::texts(at, &["volumeID"], verdict)),
    ("azureDisk", volume::azure_disk),
    ("scaleIO", |at, verdict| check::texts(at, &["gateway", "system", "volumeName"], verdict)),
    ("local", local),
    ("storageos", storage_os),
    ("csi", csi),
];

/// Says what is wrong with a PersistentVolume.
pub fn validate_volume(volume: &Value) -> Vec<Finding> {
    findings(volume, validate_whole)
}

/// What the author of a PersistentVolume should know.
pub fn warnings_of_volume(volume: &Value) -> Vec<String> {
    const ANNOTATIONS: [(&str, &str); 2] = [
        (
            "volume.beta.kubernetes.io/storage-class",
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (
            "volume.beta.kubernetes.io/mount-options",
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ];
    const PLUGINS: [(&str, &str, &str); 6] = [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    let volume = At::new(volume, Path::default());
    let (annotations, spec) = (volume.get("metadata").get("annotations"), volume.get("spec"));
    let mut warnings = Vec::new();
    for (key, text) in ANNOTATIONS {
        if annotations.value().get(key).is_some() {
            warnings.push(format!("{}: {text}", annotations.path().key(key)));
        }
    }
    if spec.str("persistentVolumeReclaimPolicy") == "Recycle" {
        let text = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic \
            provisioning.";
        warnings.push(format!("{}: {text}", spec.get("persistentVolumeReclaimPolicy").path()));
    }
    for term in spec.get("nodeAffinity").get("required").items("nodeSelectorTerms") {
        warnings.extend(pod::warnings_of_node_term(&term, false));
    }
    for (field, name, text) in PLUGINS {
        if spec.get(field).is_set() {
            warnings.push(format!("{}: {text}", spec.path().field(name)));
        }
    }
    warnings
}

/// Says what is wrong with a changed PersistentVolume. What it is made of stays.
pub fn validate_volume_update(volume: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(volume, old, |volume, old, verdict| {
        // Upstream checks it twice, and says all of it twice.
        validate_whole(volume, verdict);
        validate_whole(volume, verdict);
        let (spec, old_spec) = (volume.get("spec"), old.get("spec"));
        let (source, was) = (source_of(&spec), source_of(&old_spec));
        let source = without_new_secret(source, &was);
        if source != was {
            let changes = internal::difference("core.PersistentVolumeSource", &was, &source);
            let rule = format!("spec.persistentvolumesource is immutable after creation\n{changes}");
            verdict.forbidden(&spec.path().field("persistentvolumesource"), &rule);
        }
        let mode = spec.get("volumeMode");
        if mode.value() != old_spec.get("volumeMode").value() {
            verdict.invalid(&Path::new("volumeMode"), mode.value(), "field is immutable");
        }
        let affinity = spec.get("nodeAffinity");
        let was = old_spec.get("nodeAffinity");
        if was.is_set() && affinity.value() != was.value() {
            let rule = "field is immutable, except for updating from beta label to GA";
            let path = Path::new("nodeAffinity");
            verdict.invalid_object(&path, "*core.VolumeNodeAffinity", affinity.value(), rule);
        }
        let class = spec.get("volumeAttributesClassName");
        if old_spec.get("volumeAttributesClassName").is_set() && !class.is_set() {
            verdict.forbidden(class.path(), "update from non-nil value to nil is forbidden");
        }
    })
}

fn validate_whole(volume: &At<'_>, verdict: &mut Verdict) {
    let spec = volume.get("spec");
    if spec.get("accessModes").is_empty() {
        verdict.required(spec.get("accessModes").path(), "");
    }
    validate_access_modes(&spec.get("accessModes"), verdict);
    validate_capacity(&spec.get("capacity"), verdict);
    check::word_or_default(
        &spec.get("persistentVolumeReclaimPolicy"),
        &["Delete", "Recycle", "Retain"],
        verdict,
    );
    let affinity = spec.get("nodeAffinity");
    if affinity.is_set() {
        let required = affinity.get("required");
        if required.is_set() {
            scheduling::node_selector(&required, verdict);
        } else {
            verdict.required(required.path(), "must specify required node constraints");
        }
    }
    validate_source(volume, &spec, verdict);
    let path = spec.get("hostPath").str("path");
    let is_root = !path.is_empty() && path.split('/').all(|part| part.is_empty() || part == ".");
    if is_root && spec.str("persistentVolumeReclaimPolicy") == "Recycle" {
        let rule = "may not be 'recycle' for a hostPath mount of '/'";
        verdict.forbidden(spec.get("persistentVolumeReclaimPolicy").path(), rule);
    }
    check::name(&spec.get("storageClassName"), names::dns_subdomain, verdict);
    check::word(&spec.get("volumeMode"), &["Block", "Filesystem"], verdict);
    validate_attributes_class(&spec, verdict);
}

/// A volume has an amount of storage, and of nothing else.
fn validate_capacity(capacity: &At<'_>, verdict: &mut Verdict) {
    if capacity.is_empty() {
        verdict.required(capacity.path(), "");
    }
    if !capacity.get("storage").is_set() || capacity.entries().len() > 1 {
        let shown = internal::quoted("{}quantity", capacity.value());
        let message = format!("Unsupported value: {shown}: supported values: \"storage\"");
        verdict.refuse(capacity.path(), Reason::NotSupported, message);
    }
    for (_, amount) in capacity.entries() {
        let Some(quantity) = amount.quantity() else { continue };
        if quantity.is_negative() {
            verdict.invalid(amount.path(), quantity.to_string(), "must be greater than or equal to 0");
        }
        if quantity <= Quantity::ZERO {
            verdict.invalid(amount.path(), quantity.to_string(), "must be greater than zero");
        }
    }
}

/// A volume has one source.
fn validate_source(volume: &At<'_>, spec: &At<'_>, verdict: &mut Verdict) {
    let mut is_given = false;
    for (name, check) in SOURCES {
        let source = spec.get(name);
        if !source.is_set() {
            continue;
        }
        if is_given && name != "flexVolume" {
            let name = if name == "cephfs" { "cephFS" } else { name };
            verdict.forbidden(spec.get(name).path(), "may not specify more than 1 volume type");
            continue;
        }
        is_given = true;
        check(&source, verdict);
        if name == "local" && !spec.get("nodeAffinity").is_set() {
            verdict.required(spec.get("nodeAffinity").path(), "Local volume requires node affinity");
        }
        if name == "iscsi" {
            iscsi(&volume.get("metadata"), &source, verdict);
        }
    }
    if !is_given {
        verdict.required(spec.path(), "must specify a volume type");
    }
}

fn validate_attributes_class(spec: &At<'_>, verdict: &mut Verdict) {
    let class = spec.get("volumeAttributesClassName");
    if !class.is_set() {
        return;
    }
    if class.text().is_empty() {
        verdict.required(class.path(), "an empty string is disallowed");
    }
    check::name(&class, names::dns_subdomain, verdict);
    if !spec.get("csi").is_set() {
        let rule = "has to be specified when using volumeAttributesClassName";
        verdict.required(spec.get("csi").path(), rule);
    }
}

fn glusterfs(source: &At<'_>, verdict: &mut Verdict) {
    check::texts(source, &["endpoints", "path"], verdict);
    let namespace = source.get("endpointsNamespace");
    if namespace.is_set() && namespace.text().is_empty() {
        let rule = "if the endpointnamespace is set, it must be a valid namespace name";
        verdict.invalid(namespace.path(), "", rule);
    }
    check::name(&namespace, names::dns_label, verdict);
}

fn iscsi(metadata: &At<'_>, source: &At<'_>, verdict: &mut Verdict) {
    check::texts(source, &["targetPortal"], verdict);
    validate_portal(metadata, source, verdict);
    let secret = |verdict: &mut Verdict| {
        let secret = source.get("secretRef");
        if secret.is_set() {
            check::texts(&secret, &["name"], verdict);
        }
    };
    volume::iscsi_names(source, "must be valid format", secret, verdict);
}

/// The names of a volume and of its portal together are the name of a session.
fn validate_portal(metadata: &At<'_>, source: &At<'_>, verdict: &mut Verdict) {
    let portal = source.str("targetPortal");
    if source.get("initiatorName").is_set() && metadata.str("name").len() + 1 + portal.len() > 64 {
        let rule = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
            iscsi.initiatorName is specified.";
        verdict.invalid(&source.path().field("targetportal"), portal, rule);
    }
}

fn azure_file(source: &At<'_>, verdict: &mut Verdict) {
    check::texts(source, &["secretName", "shareName"], verdict);
    let namespace = source.get("secretNamespace");
    if namespace.is_set() {
        check::text(&namespace, verdict);
    }
}

fn local(source: &At<'_>, verdict: &mut Verdict) {
    if check::text(&source.get("path"), verdict) {
        check::no_backsteps(&source.get("path"), verdict);
    }
}

fn storage_os(source: &At<'_>, verdict: &mut Verdict) {
    check::required_name(&source.get("volumeName"), names::dns_label, verdict);
    check::name(&source.get("volumeNamespace"), names::dns_label, verdict);
    secret_by_namespace(source, verdict);
}

fn secret_by_namespace(source: &At<'_>, verdict: &mut Verdict) {
    let secret = source.get("secretRef");
    if secret.is_set() {
        check::texts(&secret, &["name", "namespace"], verdict);
    }
}

fn csi(source: &At<'_>, verdict: &mut Verdict) {
    volume::driver_name(&source.get("driver"), verdict);
    check::texts(source, &["volumeHandle"], verdict);
    for name in CSI_SECRETS {
        let secret = source.get(name);
        if secret.is_set() {
            check::required_name(&secret.get("name"), names::dns_subdomain, verdict);
            check::required_name(&secret.get("namespace"), names::dns_label, verdict);
        }
    }
}

const CSI_SECRETS: [&str; 4] = [
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
];

/// What a volume is made of, without the rest of its spec.
fn source_of(spec: &At<'_>) -> Value {
    let sources = SOURCES.iter().map(|(name, _)| (*name, spec.get(name)));
    let given = sources.filter(|(_, source)| source.is_set());
    Value::Object(
        given.map(|(name, source)| (name.to_owned(), source.value().clone())).collect::<Map<_, _>>(),
    )
}

/// The secret for growing a volume may be named later.
fn without_new_secret(mut source: Value, was: &Value) -> Value {
    let secret = "controllerExpandSecretRef";
    if was.get("csi").is_some_and(|csi| csi.get(secret).is_none())
        && let Some(csi) = source.get_mut("csi").and_then(Value::as_object_mut)
    {
        csi.remove(secret);
    }
    source
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::super::said;
    use super::*;

    fn check(spec: Value, expected: Expect) {
        expected.assert_eq(&said(&validate_volume(&json!({"spec": spec}))));
    }

    #[test]
    fn a_volume_is_made_of_one_thing() {
        check(
            json!({"hostPath": {"path": "/a"}, "nfs": {}, "accessModes": ["Odd"]}),
            expect![[r#"
                spec.accessModes: Unsupported value: "Odd": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"
                spec.capacity: Required value
                spec.capacity: Unsupported value: null: supported values: "storage"
                spec.nfs: Forbidden: may not specify more than 1 volume type"#]],
        );
    }

    #[test]
    fn a_local_volume_says_where_it_is() {
        check(
            json!({"local": {"path": "../a"}, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "-1", "cpu": "1"}}),
            expect![[r#"
                spec.capacity: Unsupported value: {"cpu":"1","storage":"-1"}: supported values: "storage"
                spec.capacity[storage]: Invalid value: "-1": must be greater than or equal to 0
                spec.capacity[storage]: Invalid value: "-1": must be greater than zero
                spec.local.path: Invalid value: "../a": must not contain '..'
                spec.nodeAffinity: Required value: Local volume requires node affinity"#]],
        );
    }

    #[test]
    fn what_a_volume_is_made_of_stays() {
        let volume = |path: &str| {
            json!({"spec": {"hostPath": {"path": path, "type": ""}, "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"}}})
        };
        assert_eq!(said(&validate_volume_update(&volume("/a"), &volume("/a"))), "");
        let found = said(&validate_volume_update(&volume("/b"), &volume("/a")));
        assert!(found.contains("-  \"Path\": \"/a\",\n+  \"Path\": \"/b\",\n"), "{found}");
    }
}
