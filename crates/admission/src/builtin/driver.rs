//! Classes and drivers of storage, classes of runtimes, and revisions of sets: what may be left out, and what is refused.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{default_to, findings};
use crate::json::At;
use crate::look::findings_of_change;
use crate::pod::{check, scheduling, volume};
use crate::{Finding, Verdict, names};

const IMMUTABLE: &str = "field is immutable";
/// Most parameters of a class, and most bytes of all of them.
const PARAMETERS_MAX: usize = 512;
const PARAMETERS_SIZE_MAX: usize = 256 * 1024;
const NODE_ID_LENGTH_MAX: usize = 192;
/// Highest priority of a class that is not the system's.
const USER_PRIORITY_MAX: i64 = 1_000_000_000;
const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
const UPDATE_SECONDS_MIN: i64 = 10;
/// Most bytes of an error, and of what is known of an attached volume.
const ATTACHMENT_SIZE_MAX: usize = 256 * 1024;

/// Refuses another value of a field.
fn stays(new: &At<'_>, old: &At<'_>, verdict: &mut Verdict) {
    if new.value() != old.value() {
        verdict.invalid(new.path(), new.value(), IMMUTABLE);
    }
}

/// Fills in a StorageClass.
pub fn default_storage_class(class: &mut Value) {
    if let Some(class) = class.as_object_mut() {
        default_to(class, "reclaimPolicy", "Delete");
        default_to(class, "volumeBindingMode", "Immediate");
    }
}

/// Says what is wrong with a StorageClass.
pub fn validate_storage_class(class: &Value) -> Vec<Finding> {
    findings(class, validate_whole_storage_class)
}

/// Says what is wrong with a changed StorageClass. How volumes are made stays.
pub fn validate_storage_class_update(class: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(class, old, |class, old, verdict| {
        validate_whole_storage_class(class, verdict);
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            stays(&class.get(field), &old.get(field), verdict);
        }
    })
}

fn validate_whole_storage_class(class: &At<'_>, verdict: &mut Verdict) {
    provisioner(&class.get("provisioner"), verdict);
    parameters(&class.get("parameters"), verdict);
    check::word_or_default(&class.get("reclaimPolicy"), &["Delete", "Retain"], verdict);
    let mode = class.get("volumeBindingMode");
    if mode.is_set() {
        check::word(&mode, &["Immediate", "WaitForFirstConsumer"], verdict);
    } else {
        verdict.required(mode.path(), "");
    }
    validate_topologies(&class.get("allowedTopologies"), verdict);
}

fn provisioner(at: &At<'_>, verdict: &mut Verdict) {
    let name = at.text().to_lowercase();
    if check::text(at, verdict) {
        verdict.invalid_each(at.path(), &name, names::qualified_name(&name));
    }
}

fn parameters(at: &At<'_>, verdict: &mut Verdict) {
    let entries = at.entries();
    if entries.len() > PARAMETERS_MAX {
        return verdict.too_long(at.path(), PARAMETERS_MAX);
    }
    if entries.iter().any(|(key, _)| key.is_empty()) {
        verdict.invalid(at.path(), "", "field can not be empty.");
    }
    if size(at) > PARAMETERS_SIZE_MAX {
        verdict.too_long(at.path(), PARAMETERS_SIZE_MAX);
    }
}

/// The bytes of all keys and values of a map.
fn size(at: &At<'_>) -> usize {
    at.entries().iter().map(|(key, value)| key.len() + value.text().len()).sum()
}

/// Where volumes may be: each term once, and each key once in its term.
fn validate_topologies(topologies: &At<'_>, verdict: &mut Verdict) {
    let mut seen: Vec<BTreeSet<(&str, BTreeSet<&str>)>> = Vec::new();
    for term in topologies.list() {
        let mut expressions = BTreeSet::new();
        for expression in term.items("matchLabelExpressions") {
            let (key, values) = (expression.get("key"), expression.get("values"));
            check::list(&values, verdict);
            let mut given = BTreeSet::new();
            for value in values.list() {
                if !given.insert(value.text()) {
                    verdict.duplicate(value.path(), value.text());
                }
            }
            check::label_key(&key, verdict);
            if expressions.iter().any(|(other, _)| *other == key.text()) {
                verdict.duplicate(key.path(), key.text());
            }
            expressions.insert((key.text(), given));
        }
        if seen.contains(&expressions) {
            verdict.duplicate(term.get("matchLabelExpressions").path(), "");
        }
        seen.push(expressions);
    }
}

/// Says what is wrong with a VolumeAttributesClass.
pub fn validate_attributes_class(class: &Value) -> Vec<Finding> {
    findings(class, validate_whole_attributes_class)
}

/// Says what is wrong with a changed VolumeAttributesClass. What it asks of volumes stays.
pub fn validate_attributes_class_update(class: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(class, old, |class, old, verdict| {
        for field in ["driverName", "parameters"] {
            if class.get(field).value() != old.get(field).value() {
                verdict.forbidden(class.get(field).path(), &format!("updates to {field} are forbidden."));
            }
        }
        validate_whole_attributes_class(class, verdict);
    })
}

fn validate_whole_attributes_class(class: &At<'_>, verdict: &mut Verdict) {
    provisioner(&class.get("driverName"), verdict);
    let given = class.get("parameters");
    parameters(&given, verdict);
    if given.is_empty() {
        verdict.required(given.path(), "must contain at least one key/value pair");
    }
}

/// Fills in a CSIDriver.
pub fn default_driver(driver: &mut Value) {
    let Some(spec) = driver.get_mut("spec").and_then(Value::as_object_mut) else { return };
    default_to(spec, "attachRequired", true);
    default_to(spec, "podInfoOnMount", false);
    default_to(spec, "storageCapacity", false);
    default_to(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if spec.get("volumeLifecycleModes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert("volumeLifecycleModes".into(), json!(["Persistent"]));
    }
    default_to(spec, "requiresRepublish", false);
    default_to(spec, "seLinuxMount", false);
}

/// What the author of a CSIDriver should know.
pub fn warnings_of_driver(driver: &Value) -> Vec<String> {
    let is_set = |path: &str| driver.pointer(path).is_some_and(|value| !value.is_null());
    let asks =
        driver.pointer("/spec/tokenRequests").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if asks && !is_set("/spec/serviceAccountTokenInSecrets") {
        let text = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
            possible logging of tokens in volume attributes";
        return vec![text.to_owned()];
    }
    Vec::new()
}

/// Says what is wrong with a CSIDriver.
pub fn validate_driver(driver: &Value) -> Vec<Finding> {
    findings(driver, |driver, verdict| validate_driver_spec(&driver.get("spec"), verdict))
}

/// Says what is wrong with a changed CSIDriver.
pub fn validate_driver_update(driver: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(driver, old, |driver, old, verdict| {
        let (spec, old_spec) = (driver.get("spec"), old.get("spec"));
        validate_driver_spec(&spec, verdict);
        let attach = spec.get("attachRequired");
        // Upstream misspells the field in its messages.
        let attach = attach.reported_at(spec.path().field("attachedRequired"));
        stays(&attach, &old_spec.get("attachRequired"), verdict);
        stays(&spec.get("volumeLifecycleModes"), &old_spec.get("volumeLifecycleModes"), verdict);
    })
}

fn validate_driver_spec(spec: &At<'_>, verdict: &mut Verdict) {
    check::word(&spec.get("fsGroupPolicy"), &["File", "None", "ReadWriteOnceWithFSType"], verdict);
    let mut seen = BTreeSet::new();
    for request in spec.items("tokenRequests") {
        let audience = request.get("audience");
        if !seen.insert(audience.text()) {
            verdict.duplicate(audience.path(), audience.text());
            continue;
        }
        let seconds = request.get("expirationSeconds");
        match seconds.int() {
            Some(number) if number < TOKEN_SECONDS_MIN => {
                verdict.invalid(seconds.path(), number, "may not specify a duration less than 10 minutes");
            }
            Some(number) if number > TOKEN_SECONDS_MAX => {
                verdict.invalid(
                    seconds.path(),
                    number,
                    "may not specify a duration larger than 2^32 seconds",
                );
            }
            _ => {}
        }
    }
    let modes = spec.get("volumeLifecycleModes");
    for mode in modes.list().iter().filter(|mode| !["Persistent", "Ephemeral"].contains(&mode.text())) {
        verdict.unsupported(modes.path(), mode.text(), &["Persistent", "Ephemeral"]);
    }
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    if let Some(seconds) = period.int().filter(|seconds| *seconds < UPDATE_SECONDS_MIN) {
        verdict.invalid(period.path(), seconds, "must be greater than or equal to 10 seconds");
    }
    let in_secrets = spec.get("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && spec.get("tokenRequests").is_empty() {
        let rule = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        verdict.invalid(in_secrets.path(), in_secrets.value(), rule);
    }
}

/// Says what is wrong with a CSINode.
pub fn validate_node_drivers(node: &Value) -> Vec<Finding> {
    findings(node, validate_whole_node)
}

/// Says what is wrong with a changed CSINode. What a driver says of itself stays, but for how much it has room for.
pub fn validate_node_drivers_update(node: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(node, old, |node, old, verdict| {
        validate_whole_node(node, verdict);
        let drivers = node.get("spec").get("drivers");
        let without_room = |driver: &At<'_>| {
            let mut fields = driver.fields().cloned().unwrap_or_default();
            fields.remove("allocatable");
            Value::Object(fields)
        };
        for was in old.get("spec").items("drivers") {
            for driver in drivers.list().iter().filter(|driver| driver.str("name") == was.str("name")) {
                let kept = without_room(driver);
                if kept != without_room(&was) {
                    verdict.invalid_object(drivers.path(), "storage.CSINodeDriver", &kept, IMMUTABLE);
                }
            }
        }
    })
}

fn validate_whole_node(node: &At<'_>, verdict: &mut Verdict) {
    let mut seen = BTreeSet::new();
    for driver in node.get("spec").items("drivers") {
        let (name, id) = (driver.get("name"), driver.get("nodeID"));
        volume::driver_name(&name, verdict);
        if check::text(&id, verdict) && id.text().len() > NODE_ID_LENGTH_MAX {
            let rule = format!("must be {NODE_ID_LENGTH_MAX} characters or less");
            verdict.invalid(id.path(), id.text(), rule);
        }
        check::not_negative(&driver.get("allocatable").get("count"), verdict);
        if !seen.insert(name.text()) {
            verdict.duplicate(name.path(), name.text());
        }
        let mut keys = BTreeSet::new();
        for key in driver.items("topologyKeys") {
            if key.text().is_empty() {
                verdict.required(driver.path(), "");
            }
            if !keys.insert(key.text()) {
                verdict.duplicate(driver.path(), key.text());
            }
            verdict.invalid_each(driver.path(), key.text(), names::qualified_name(key.text()));
        }
    }
}

/// Says what is wrong with a VolumeAttachment.
pub fn validate_attachment(attachment: &Value) -> Vec<Finding> {
    findings(attachment, validate_whole_attachment)
}

/// Says what is wrong with a changed VolumeAttachment. What is attached where stays.
pub fn validate_attachment_update(attachment: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(attachment, old, |attachment, old, verdict| {
        validate_whole_attachment(attachment, verdict);
        let spec = attachment.get("spec");
        if spec.value() != old.get("spec").value() {
            verdict.invalid_object(spec.path(), "storage.VolumeAttachmentSpec", spec.value(), IMMUTABLE);
        }
    })
}

fn validate_whole_attachment(attachment: &At<'_>, verdict: &mut Verdict) {
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let spec = attachment.get("spec");
    volume::driver_name(&spec.get("attacher"), verdict);
    let source = spec.get("source");
    let (inline, name) = (source.get("inlineVolumeSpec"), source.get("persistentVolumeName"));
    match (inline.is_set(), name.is_set()) {
        (false, false) => verdict.required(source.path(), ONE),
        (true, true) => verdict.forbidden(source.path(), ONE),
        (false, true) if name.text().is_empty() => {
            verdict.required(name.path(), "must specify non empty persistentVolumeName");
        }
        (false, true) | (true, false) => {}
    }
    let node = spec.get("nodeName");
    verdict.invalid_each(node.path(), node.text(), names::dns_subdomain(node.text()));
    let status = attachment.get("status");
    let metadata = status.get("attachmentMetadata");
    if size(&metadata) > ATTACHMENT_SIZE_MAX {
        verdict.too_long(metadata.path(), ATTACHMENT_SIZE_MAX);
    }
    for error in ["attachError", "detachError"].map(|name| status.get(name)) {
        if error.str("message").len() > ATTACHMENT_SIZE_MAX {
            verdict.too_long(error.get("message").path(), ATTACHMENT_SIZE_MAX);
        }
        check::range(&error.get("errorCode"), 0, i64::from(i32::MAX), verdict);
    }
    if name.is_set() {
        verdict.invalid_each(name.path(), name.text(), names::dns_subdomain(name.text()));
    }
}

/// Says what is wrong with a CSIStorageCapacity.
pub fn validate_capacity(capacity: &Value) -> Vec<Finding> {
    findings(capacity, |capacity, verdict| {
        check::label_selector(&capacity.get("nodeTopology"), verdict);
        let class = capacity.get("storageClassName");
        verdict.invalid_each(class.path(), class.text(), names::dns_subdomain(class.text()));
        let amount = capacity.get("capacity");
        if let Some(quantity) = amount.quantity().filter(|quantity| quantity.is_negative()) {
            verdict.invalid(amount.path(), quantity.to_string(), "must be greater than or equal to 0");
        }
    })
}

/// Says what is wrong with a changed CSIStorageCapacity. What it is about stays.
pub fn validate_capacity_update(capacity: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(capacity, old, |capacity, old, verdict| {
        for field in ["nodeTopology", "storageClassName"] {
            stays(&capacity.get(field), &old.get(field), verdict);
        }
    })
}

/// Says what is wrong with a RuntimeClass.
pub fn validate_runtime_class(class: &Value) -> Vec<Finding> {
    findings(class, |class, verdict| {
        check::required_name(&class.get("handler"), names::dns_label, verdict);
        for (name, amount) in class.get("overhead").get("podFixed").entries() {
            let path = class.get("overhead").path().field("limits").key(name);
            if let Some(quantity) = amount.quantity().filter(|quantity| quantity.is_negative()) {
                verdict.invalid(&path, quantity.to_string(), "must be greater than or equal to 0");
            }
        }
        let scheduling_of = class.get("scheduling");
        check::labels(&scheduling_of.get("nodeSelector"), verdict);
        let tolerations = scheduling_of.get("tolerations");
        scheduling::validate_tolerations(&tolerations, verdict);
        let mut seen = BTreeSet::new();
        for toleration in tolerations.list() {
            if !seen.insert(["key", "operator", "value", "effect"].map(|field| toleration.str(field))) {
                verdict.duplicate_object(toleration.path(), "core.Toleration", toleration.value(), "");
            }
        }
    })
}

/// Says what is wrong with a changed RuntimeClass. What runs its containers stays.
pub fn validate_runtime_class_update(class: &Value, old: &Value) -> Vec<Finding> {
    let mut found = validate_runtime_class(class);
    found.extend(findings_of_change(class, old, |class, old, verdict| {
        stays(&class.get("handler"), &old.get("handler"), verdict);
    }));
    found
}

/// Says what is wrong with a PriorityClass.
pub fn validate_priority_class(class: &Value) -> Vec<Finding> {
    findings(class, |class, verdict| {
        let (name, value) = (class.get("metadata").get("name"), class.get("value").int().unwrap_or(0));
        if name.text().starts_with("system-") {
            validate_system_class(class, verdict);
        } else if value > USER_PRIORITY_MAX {
            let rule = format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}");
            verdict.forbidden(class.get("value").path(), &rule);
        }
        let policy = class.get("preemptionPolicy");
        if policy.is_set() {
            check::word(&policy, &["PreemptLowerPriority", "Never"], verdict);
        }
    })
}

/// Names of the system are taken, but for the two classes that every cluster has.
fn validate_system_class(class: &At<'_>, verdict: &mut Verdict) {
    let name = class.get("metadata").get("name");
    let known = [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
    let wrong = match known.iter().find(|(known, _)| *known == name.text()) {
        None => format!("{} is not a known system priority class", name.text()),
        Some((known, value)) if class.get("value").int() != Some(*value) => {
            format!("value of {known} PriorityClass must be {value}")
        }
        Some((known, _)) if class.get("globalDefault").is_true() => {
            format!("globalDefault of {known} PriorityClass must be false")
        }
        Some(_) => return,
    };
    let rule = format!(
        "priority class names with 'system-' prefix are reserved for system use only. error: {wrong}"
    );
    verdict.forbidden(name.path(), &rule);
}

/// Says what is wrong with a changed PriorityClass. What it means stays.
pub fn validate_priority_class_update(class: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(class, old, |class, old, verdict| {
        if class.get("value").value() != old.get("value").value() {
            verdict.forbidden(class.get("value").path(), "may not be changed in an update.");
        }
        stays(&class.get("preemptionPolicy"), &old.get("preemptionPolicy"), verdict);
    })
}

/// Says what is wrong with a ControllerRevision.
pub fn validate_revision(revision: &Value) -> Vec<Finding> {
    findings(revision, |revision, verdict| {
        check::not_negative(&revision.get("revision"), verdict);
        let data = revision.get("data");
        if !data.is_set() {
            verdict.required(data.path(), "data is mandatory");
        } else if data.fields().is_none() {
            verdict.required(data.path(), "data must be a valid JSON object");
        }
    })
}

/// Says what is wrong with a changed ControllerRevision. What it holds stays.
pub fn validate_revision_update(revision: &Value, old: &Value) -> Vec<Finding> {
    findings_of_change(revision, old, |revision, old, verdict| {
        check::not_negative(&revision.get("revision"), verdict);
        stays(&revision.get("data"), &old.get("data"), verdict);
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::said;
    use super::*;

    #[test]
    fn how_volumes_are_made_is_said_and_stays() {
        let class = json!({"provisioner": "A/b/c", "reclaimPolicy": "Recycle", "volumeBindingMode": "Odd",
            "parameters": {"": "x"}, "allowedTopologies": [
                {"matchLabelExpressions": [{"key": "a", "values": ["x", "x"]}, {"key": "a", "values": []}]}]});
        expect![[r#"
            provisioner: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')
            parameters: Invalid value: "": field can not be empty.
            reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"
            volumeBindingMode: Unsupported value: "Odd": supported values: "Immediate", "WaitForFirstConsumer"
            allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "x"
            allowedTopologies[0].matchLabelExpressions[1].values: Required value
            allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "a""#]].assert_eq(&said(&validate_storage_class(&class)));
        let mut old = class.clone();
        old["parameters"] = json!({"a": "b"});
        assert!(
            said(&validate_storage_class_update(&class, &old))
                .contains("parameters: Invalid value: {\"\":\"x\"}: field is immutable")
        );
    }

    #[test]
    fn drivers_say_what_they_can_do() {
        let mut driver = json!({"spec": {"fsGroupPolicy": "X", "volumeLifecycleModes": ["Retain"], "serviceAccountTokenInSecrets": true,
            "nodeAllocatableUpdatePeriodSeconds": 9}});
        default_driver(&mut driver);
        expect![[r#"
            spec.fsGroupPolicy: Unsupported value: "X": supported values: "File", "None", "ReadWriteOnceWithFSType"
            spec.volumeLifecycleModes: Unsupported value: "Retain": supported values: "Persistent", "Ephemeral"
            spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds
            spec.serviceAccountTokenInSecrets: Invalid value: true: serviceAccountTokenInSecrets is set but no tokenRequests are specified"#]].assert_eq(&said(&validate_driver(&driver)));
        let tokens = json!({"spec": {"tokenRequests": [{"audience": "a", "expirationSeconds": 5}, {"audience": "a"}]}});
        expect![[r#"
            spec.tokenRequests[0].expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes
            spec.tokenRequests[1].audience: Duplicate value: "a""#]].assert_eq(&said(&validate_driver(&tokens)));
        assert_eq!(warnings_of_driver(&tokens).len(), 1);
    }

    #[test]
    fn an_attachment_is_of_one_volume() {
        let attachment = json!({"spec": {"attacher": "a", "nodeName": "n", "source": {}}});
        expect!["spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"].assert_eq(&said(&validate_attachment(&attachment)));
        let other =
            json!({"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}});
        expect![[r#"spec: Invalid value: {"Attacher":"a","Source":{"PersistentVolumeName":"v","InlineVolumeSpec":null},"NodeName":"n"}: field is immutable"#]].assert_eq(&said(&validate_attachment_update(&other, &attachment)));
    }

    #[test]
    fn a_runtime_has_a_handler() {
        let class = json!({"handler": "A.b", "overhead": {"podFixed": {"cpu": "-1"}},
            "scheduling": {"nodeSelector": {"a b": "c"}, "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Exists"}]}});
        expect![[r#"
            handler: Invalid value: "A.b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
            overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0
            scheduling.nodeSelector: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
            scheduling.tolerations[1]: Duplicate value: {"Key":"a","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null}"#]].assert_eq(&said(&validate_runtime_class(&class)));
    }

    #[test]
    fn high_priorities_are_the_systems() {
        let class = |name: &str, value: i64| json!({"metadata": {"name": name}, "value": value, "preemptionPolicy": "Odd"});
        expect![[r#"
            value: Forbidden: maximum allowed value of a user defined priority is 1000000000
            preemptionPolicy: Unsupported value: "Odd": supported values: "PreemptLowerPriority", "Never""#]]
        .assert_eq(&said(&validate_priority_class(&class("a", 1_000_000_001))));
        expect![[r#"
            metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-a is not a known system priority class
            preemptionPolicy: Unsupported value: "Odd": supported values: "PreemptLowerPriority", "Never""#]].assert_eq(&said(&validate_priority_class(&class("system-a", 1))));
        expect![[r#"
            metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: value of system-node-critical PriorityClass must be 2000001000
            preemptionPolicy: Unsupported value: "Odd": supported values: "PreemptLowerPriority", "Never""#]].assert_eq(&said(&validate_priority_class(&class("system-node-critical", 1))));
        expect!["value: Forbidden: may not be changed in an update."]
            .assert_eq(&said(&validate_priority_class_update(&class("a", 1), &class("a", 2))));
    }

    #[test]
    fn a_revision_holds_an_object() {
        expect![[r#"
            revision: Invalid value: -1: must be greater than or equal to 0
            data: Required value: data must be a valid JSON object"#]]
        .assert_eq(&said(&validate_revision(&json!({"revision": -1, "data": [1]}))));
        expect!["data: Required value: data is mandatory"].assert_eq(&said(&validate_revision(&json!({}))));
    }
}
