//! Pod templates: the defaults of everything that has containers.

use krafla_admission::builtin::workload;
use krafla_admission::pod;
use krafla_plan::Propagation;
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
#[derive(PartialEq, Eq)]
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
            Replicated::ReplicaSet => default_to(spec, "replicas", 1),
            Replicated::ReplicationController => {
                default_to(spec, "replicas", 1);
                default_plain_selector(object);
            }
            Replicated::StatefulSet => {
                default_to(spec, "replicas", 1);
                default_to(spec, "podManagementPolicy", "OrderedReady");
                default_to(spec, "revisionHistoryLimit", 10);
                let retention = spec.entry("persistentVolumeClaimRetentionPolicy").or_insert(Value::Null);
                for when in ["whenDeleted", "whenScaled"] {
                    default_to(object::fields(retention), when, "Retain");
                }
                default_strategy(spec, "updateStrategy", json!({"partition": 0}));
                drop_unserved(spec);
                maps(spec.get_mut("volumeClaimTemplates")).for_each(default_claim);
            }
            Replicated::DaemonSet => {
                default_to(spec, "revisionHistoryLimit", 10);
                default_strategy(spec, "updateStrategy", json!({"maxSurge": 0, "maxUnavailable": 1}));
            }
        }
        let spec = object::part(object, "spec");
        // A ReplicationController without a template is told so.
        if spec.contains_key("template") || !matches!(self, Replicated::ReplicationController) {
            default_template(object::fields(spec.entry("template").or_insert(Value::Null)));
        }
    }

    fn on_create(&self, object: &mut Value, _now: krafla_api::Time) {
        object::remove(object, "status");
        if matches!(self, Replicated::DaemonSet) {
            set_template_generation(object, 1);
        }
    }

    fn on_update(&self, object: &mut Value, old: &Value) {
        if matches!(self, Replicated::DaemonSet) {
            let before = template_generation(old);
            let is_changed = object.pointer("/spec/template") != old.pointer("/spec/template");
            set_template_generation(object, before.saturating_add(i64::from(is_changed)));
        }
    }

    /// For the sake of clients from before there was a choice, the pods of a ReplicationController stay when it goes.
    fn default_propagation(&self) -> Option<Propagation> {
        (*self == Replicated::ReplicationController).then_some(Propagation::Orphan)
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        field::found(workload::validate(self.set(), object))
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::found(workload::validate_update(self.set(), object, old))
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        field::found(workload::validate_status(self.set(), object, old))
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        let of_template = pod::warnings(object.pointer("/spec/template").unwrap_or(&Value::Null)).into_iter();
        let of_template = of_template.map(|warning| format!("spec.template.{warning}"));
        of_template.chain(workload::warnings(self.set(), object)).collect()
    }

    fn warnings_of_change(&self, object: &Value, old: &Value) -> Vec<String> {
        let generation = |object: &Value| object.pointer("/metadata/generation").cloned();
        if generation(object) == generation(old) { Vec::new() } else { self.warnings(object) }
    }
}

impl Replicated {
    /// Whose rules it is checked by.
    fn set(&self) -> workload::Set {
        match self {
            Replicated::Deployment => workload::Set::Deployment,
            Replicated::ReplicaSet => workload::Set::ReplicaSet,
            Replicated::StatefulSet => workload::Set::StatefulSet,
            Replicated::DaemonSet => workload::Set::DaemonSet,
            Replicated::ReplicationController => workload::Set::ReplicationController,
        }
    }
}

/// A ReplicationController that does not say which pods it has means those of its template.
fn default_plain_selector(object: &mut Value) {
    let labels = object.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    let Some(labels) = labels.filter(|labels| !labels.is_empty()).cloned() else { return };
    let is_missing = |place: Option<&Value>| place.and_then(Value::as_object).is_none_or(Map::is_empty);
    if is_missing(object.pointer("/spec/selector")) {
        object::part(object, "spec").insert("selector".into(), labels.clone().into());
    }
    if is_missing(object.pointer("/metadata/labels")) {
        object::part(object, "metadata").insert("labels".into(), labels.into());
    }
}

/// Drops what Kubernetes 1.36 knows and does not serve unless it is told to.
fn drop_unserved(spec: &mut Map<String, Value>) {
    let rolling = spec.get_mut("updateStrategy").and_then(|strategy| strategy.get_mut("rollingUpdate"));
    if let Some(rolling) = rolling.and_then(Value::as_object_mut) {
        rolling.remove("maxUnavailable");
    }
}

/// Fills in a claim that a StatefulSet makes for each of its pods.
fn default_claim(claim: &mut Map<String, Value>) {
    default_to(claim, "apiVersion", "v1");
    default_to(claim, "kind", "PersistentVolumeClaim");
    let part = |claim: &mut Map<String, Value>, name: &str, field: &str, value: &str| {
        default_to(object::fields(claim.entry(name).or_insert(Value::Null)), field, value);
    };
    part(claim, "spec", "volumeMode", "Filesystem");
    part(claim, "status", "phase", "Pending");
}

/// Where a DaemonSet keeps how often its template has changed.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn template_generation(object: &Value) -> i64 {
    let text = object.pointer("/metadata/annotations").and_then(|all| all.get(TEMPLATE_GENERATION));
    text.and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn set_template_generation(object: &mut Value, generation: i64) {
    let annotations = object::part(object, "metadata").entry("annotations").or_insert(Value::Null);
    object::fields(annotations).insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
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

    #[test]
    fn a_replication_controller_means_the_pods_of_its_template() {
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {}});
        let mut controller = json!({"metadata": {}, "spec": {"template": template}});
        Replicated::ReplicationController.default(&mut controller);
        assert_eq!(controller["spec"]["selector"], json!({"a": "b"}));
        assert_eq!(controller["metadata"]["labels"], json!({"a": "b"}));
    }

    #[test]
    fn a_claim_of_a_stateful_set_is_filled_in() {
        let claim = json!({"metadata": {"name": "data"}, "spec": {}});
        let rolling = json!({"rollingUpdate": {"maxUnavailable": 2}});
        let mut set = json!({"spec": {"volumeClaimTemplates": [claim], "updateStrategy": rolling}});
        Replicated::StatefulSet.default(&mut set);
        assert_eq!(
            set["spec"]["volumeClaimTemplates"][0],
            json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
                "spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"},
            })
        );
        assert_eq!(set["spec"]["updateStrategy"]["rollingUpdate"], json!({"partition": 0}));
    }

    #[test]
    fn a_daemon_set_counts_the_changes_of_its_template() {
        let set = |image: &str| json!({"metadata": {}, "spec": {"template": {"image": image}}});
        let mut created = set("a");
        Replicated::DaemonSet.on_create(&mut created, krafla_api::Time::from_seconds(0));
        assert_eq!(template_generation(&created), 1);
        let (mut same, mut other) = (set("a"), set("b"));
        Replicated::DaemonSet.on_update(&mut same, &created);
        Replicated::DaemonSet.on_update(&mut other, &created);
        assert_eq!((template_generation(&same), template_generation(&other)), (1, 2));
    }
}
