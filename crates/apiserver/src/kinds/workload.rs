//! Pod templates: the defaults of everything that has containers.

use krafla_admission::builtin::workload;
use serde_json::{Map, Value, json};

use super::{Rules, default_to};
use crate::field::{self, FieldError};
use crate::object;

/// A pod template that is stored by itself.
pub struct PodTemplate;

impl Rules for PodTemplate {
    fn default(&self, object: &mut Value) {
        default_template(object::part(object, "template"));
    }
}

/// Sets of pods that are kept at a number.
pub enum Replicated {
    /// A Deployment.
    Deployment,
    /// A ReplicaSet.
    ReplicaSet,
    /// A ReplicationController, which selects pods in a way of its own.
    ReplicationController,
    /// A StatefulSet.
    StatefulSet,
    /// A DaemonSet.
    DaemonSet,
}

impl Rules for Replicated {
    fn default(&self, object: &mut Value) {
        let spec = object::part(object, "spec");
        match self {
            Replicated::Deployment => {
                default_to(spec, "replicas", 1);
                default_to(spec, "progressDeadlineSeconds", 600);
                default_to(spec, "revisionHistoryLimit", 10);
                default_strategy(spec, "strategy", json!({"maxSurge": "25%", "maxUnavailable": "25%"}));
            }
            Replicated::ReplicaSet | Replicated::ReplicationController => default_to(spec, "replicas", 1),
            Replicated::StatefulSet => {
                default_to(spec, "replicas", 1);
                default_to(spec, "podManagementPolicy", "OrderedReady");
                default_to(spec, "revisionHistoryLimit", 10);
                let retained = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
                default_to(spec, "persistentVolumeClaimRetentionPolicy", retained);
                default_strategy(spec, "updateStrategy", json!({"partition": 0}));
            }
            Replicated::DaemonSet => {
                default_to(spec, "revisionHistoryLimit", 10);
                default_strategy(spec, "updateStrategy", json!({"maxSurge": 0, "maxUnavailable": 1}));
            }
        }
        default_template(object::fields(spec.entry("template").or_insert(Value::Null)));
    }

    fn on_create(&self, object: &mut Value, _now: krafla_api::Time) {
        object::remove(object, "status");
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        self.set().map_or_else(Vec::new, |set| field::found(workload::validate(set, object)))
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        self.set().map_or_else(Vec::new, |set| field::found(workload::validate_update(set, object, old)))
    }
}

impl Replicated {
    /// Whose rules it is checked by.
    fn set(&self) -> Option<workload::Set> {
        match self {
            Replicated::Deployment => Some(workload::Set::Deployment),
            Replicated::ReplicaSet => Some(workload::Set::ReplicaSet),
            Replicated::StatefulSet => Some(workload::Set::StatefulSet),
            Replicated::DaemonSet => Some(workload::Set::DaemonSet),
            Replicated::ReplicationController => None,
        }
    }
}

fn default_strategy(spec: &mut Map<String, Value>, field: &str, rolling: Value) {
    let strategy = object::fields(spec.entry(field).or_insert(Value::Null));
    default_to(strategy, "type", "RollingUpdate");
    if strategy.get("type").is_some_and(|name| name == "RollingUpdate") {
        let given = object::fields(strategy.entry("rollingUpdate").or_insert(Value::Null));
        for (name, value) in rolling.as_object().into_iter().flatten() {
            default_to(given, name, value.clone());
        }
    }
}

/// Fills in a pod template.
pub fn default_template(template: &mut Map<String, Value>) {
    default_pod_spec(object::fields(template.entry("spec").or_insert(Value::Null)));
}

/// Fills in a pod's spec as kube-apiserver does.
pub fn default_pod_spec(spec: &mut Map<String, Value>) {
    default_to(spec, "dnsPolicy", "ClusterFirst");
    default_to(spec, "restartPolicy", "Always");
    default_to(spec, "schedulerName", "default-scheduler");
    default_to(spec, "securityContext", json!({}));
    default_to(spec, "terminationGracePeriodSeconds", 30);
    default_service_account(spec);
    let is_on_host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in maps(spec.get_mut(list)) {
            default_container(container);
            if is_on_host_network {
                default_host_ports(container);
            }
        }
    }
    for volume in maps(spec.get_mut("volumes")) {
        default_volume(volume);
    }
}

/// `serviceAccount` is the older name of `serviceAccountName`; both are kept equal.
fn default_service_account(spec: &mut Map<String, Value>) {
    let set = |name: &str| spec.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let account = set("serviceAccountName").or_else(|| set("serviceAccount")).map(str::to_owned);
    if let Some(account) = account {
        spec.insert("serviceAccountName".into(), account.clone().into());
        spec.insert("serviceAccount".into(), account.into());
    }
}

fn default_container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    default_to(container, "imagePullPolicy", if is_latest(image) { "Always" } else { "IfNotPresent" });
    default_to(container, "terminationMessagePath", "/dev/termination-log");
    default_to(container, "terminationMessagePolicy", "File");
    default_to(container, "resources", json!({}));
    for port in maps(container.get_mut("ports")) {
        default_to(port, "protocol", "TCP");
    }
    for variable in maps(container.get_mut("env")) {
        default_env_source(variable);
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).and_then(Value::as_object_mut) {
            default_probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        let hook = container.get_mut("lifecycle").and_then(|lifecycle| lifecycle.get_mut(hook));
        if let Some(hook) = hook.and_then(Value::as_object_mut) {
            default_http_get(hook);
        }
    }
}

/// Whether an image would be pulled anew each time: no tag, or `latest`, and no digest.
fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or(image);
    !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// What is limited and not requested is requested to the limit. That is so in pods; templates stay as they are written.
pub(super) fn default_requests(spec: &mut Map<String, Value>) {
    for list in ["containers", "initContainers"] {
        maps(spec.get_mut(list)).for_each(default_requests_of);
    }
}

fn default_requests_of(container: &mut Map<String, Value>) {
    let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let Value::Object(requests) = resources.entry("requests").or_insert_with(|| json!({})) else { return };
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}

fn default_env_source(variable: &mut Map<String, Value>) {
    let Some(source) = variable.get_mut("valueFrom").and_then(Value::as_object_mut) else { return };
    if let Some(field) = source.get_mut("fieldRef").and_then(Value::as_object_mut) {
        default_to(field, "apiVersion", "v1");
    }
    if let Some(resource) = source.get_mut("resourceFieldRef").and_then(Value::as_object_mut) {
        default_to(resource, "divisor", "0");
    }
}

fn default_probe(probe: &mut Map<String, Value>) {
    default_to(probe, "failureThreshold", 3);
    default_to(probe, "periodSeconds", 10);
    default_to(probe, "successThreshold", 1);
    default_to(probe, "timeoutSeconds", 1);
    default_http_get(probe);
    if let Some(grpc) = probe.get_mut("grpc").and_then(Value::as_object_mut) {
        default_to(grpc, "service", "");
    }
}

fn default_http_get(handler: &mut Map<String, Value>) {
    if let Some(get) = handler.get_mut("httpGet").and_then(Value::as_object_mut) {
        default_to(get, "path", "/");
        default_to(get, "scheme", "HTTP");
    }
}

fn default_host_ports(container: &mut Map<String, Value>) {
    for port in maps(container.get_mut("ports")) {
        if let Some(number) = port.get("containerPort").cloned() {
            default_to(port, "hostPort", number);
        }
    }
}

fn default_volume(volume: &mut Map<String, Value>) {
    const READABLE: i32 = 0o644;
    if volume.len() <= 1 {
        volume.insert("emptyDir".into(), json!({}));
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            default_to(source, "defaultMode", READABLE);
        }
    }
    if let Some(path) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        default_to(path, "type", "");
    }
    default_field_items(volume.get_mut("downwardAPI").and_then(|source| source.get_mut("items")));
    let projected = volume.get_mut("projected").and_then(|source| source.get_mut("sources"));
    for source in maps(projected) {
        default_field_items(source.get_mut("downwardAPI").and_then(|source| source.get_mut("items")));
        if let Some(token) = source.get_mut("serviceAccountToken").and_then(Value::as_object_mut) {
            default_to(token, "expirationSeconds", 3600);
        }
    }
}

fn default_field_items(items: Option<&mut Value>) {
    for item in maps(items) {
        if let Some(field) = item.get_mut("fieldRef").and_then(Value::as_object_mut) {
            default_to(field, "apiVersion", "v1");
        }
    }
}

/// The objects in a list.
fn maps(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    list.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_fixed_tag_is_pulled_always() {
        for (image, latest) in
            [("x", true), ("x:latest", true), ("x:1", false), ("x@sha256:0", false), ("host:5000/x", true)]
        {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }
}
