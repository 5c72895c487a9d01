//! Pod templates: the defaults of everything that has containers.

use krafla_admission::builtin::workload;
use krafla_admission::{Path, pod};
use krafla_cluster::Propagation;
use krafla_schema::field::{self, FieldError};
use krafla_schema::object;
use serde_json::{Map, Value, json};

use super::{Rules, default_to};

/// A pod template that is stored by itself.
pub struct PodTemplate;

impl Rules for PodTemplate {
    fn default(&self, object: &mut Value) {
        default_template(object::part(object, "template"));
    }

    fn on_create(&self, object: &mut Value, _now: krafla_api::Time) {
        drop_unserved_of_pods(object.pointer_mut("/template/spec"));
    }

    fn on_update(&self, object: &mut Value, _old: &Value) {
        drop_unserved_of_pods(object.pointer_mut("/template/spec"));
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let template = object.get("template").unwrap_or(&Value::Null);
        field::found(pod::validate_template(template, &Path::new("template")))
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pod::warnings(object.get("template").unwrap_or(&Value::Null), "template")
    }

    fn warnings_of_change(&self, object: &Value, old: &Value) -> Vec<String> {
        let generation = |object: &Value| object.pointer("/metadata/generation").cloned();
        if generation(object) == generation(old) { Vec::new() } else { self.warnings(object) }
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
                default_stateful_strategy(spec);
                maps(spec.get_mut("volumeClaimTemplates")).for_each(default_claim);
            }
            Replicated::DaemonSet => {
                default_to(spec, "revisionHistoryLimit", 10);
                default_strategy(spec, "updateStrategy", json!({"maxSurge": 0, "maxUnavailable": 1}));
                let generation = template_generation(object);
                set_template_generation(object, generation);
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
        self.drop_unserved(object);
        if matches!(self, Replicated::DaemonSet) {
            set_template_generation(object, 1);
        }
    }

    fn on_status_update(&self, object: &mut Value, old: &Value) {
        super::keep_all_but(object, old, &["metadata", "status"]);
        if matches!(self, Replicated::DaemonSet) {
            set_template_generation(object, template_generation(old));
        }
    }

    fn on_update(&self, object: &mut Value, old: &Value) {
        self.drop_unserved(object);
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
        let of_name = workload::name_warning(self.set(), object).into_iter();
        of_name.chain(self.warnings_of_spec(object)).collect()
    }

    fn warnings_of_change(&self, object: &Value, old: &Value) -> Vec<String> {
        let generation = |object: &Value| object.pointer("/metadata/generation").cloned();
        if generation(object) == generation(old) { Vec::new() } else { self.warnings_of_spec(object) }
    }
}

impl Replicated {
    fn warnings_of_spec(&self, object: &Value) -> Vec<String> {
        let template = object.pointer("/spec/template").unwrap_or(&Value::Null);
        let of_template = pod::warnings(template, "spec.template").into_iter();
        of_template.chain(workload::warnings(self.set(), object)).collect()
    }

    /// Drops what Kubernetes 1.36 knows and does not serve unless it is told to.
    fn drop_unserved(&self, object: &mut Value) {
        drop_unserved_of_pods(object.pointer_mut("/spec/template/spec"));
        let rolling = object.pointer_mut("/spec/updateStrategy/rollingUpdate");
        if let (Replicated::StatefulSet, Some(rolling)) = (self, rolling.and_then(Value::as_object_mut)) {
            rolling.remove("maxUnavailable");
        }
    }

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

/// Drops what Kubernetes 1.36 knows of pods and does not serve unless it is told to.
pub(super) fn drop_unserved_of_pods(spec: Option<&mut Value>) {
    let Some(spec) = spec.and_then(Value::as_object_mut) else { return };
    spec.remove("schedulingGroup");
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in maps(spec.get_mut(list)) {
            let lifecycle = container.get_mut("lifecycle").and_then(Value::as_object_mut);
            if lifecycle
                .is_some_and(|lifecycle| lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty())
            {
                container.remove("lifecycle");
            }
        }
    }
    for volume in maps(spec.get_mut("volumes")) {
        let projected = volume.get_mut("projected").and_then(|source| source.get_mut("sources"));
        for source in maps(projected) {
            source.remove("clusterTrustBundle");
            source.remove("podCertificate");
        }
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

/// A StatefulSet that names the strategy and says nothing more of it leaves it so.
fn default_stateful_strategy(spec: &mut Map<String, Value>) {
    let strategy = object::fields(spec.entry("updateStrategy").or_insert(Value::Null));
    if strategy.get("type").is_none_or(Value::is_null) {
        strategy.insert("type".into(), "RollingUpdate".into());
        default_to(strategy, "rollingUpdate", json!({}));
    }
    let is_rolling = strategy.get("type").is_some_and(|name| name == "RollingUpdate");
    if let Some(rolling) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut)
        && is_rolling
    {
        default_to(rolling, "partition", 0);
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
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        maps(spec.get_mut(list)).for_each(default_container);
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

/// Whether an image would be pulled anew each time: the tag `latest`, or neither tag nor digest. What is no name of an
/// image is not.
fn is_latest(image: &str) -> bool {
    let (named, digest) = match image.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (image, None),
    };
    let last = named.rfind('/').map_or(0, |slash| slash + 1);
    let tag_at = named.get(last..).and_then(|name| name.find(':')).map(|colon| last + colon);
    let (name, tag) = match tag_at {
        Some(at) => (named.get(..at).unwrap_or_default(), named.get(at + 1..)),
        None => (named, None),
    };
    let is_good = is_image_name(name) && tag.is_none_or(is_image_tag) && digest.is_none_or(is_image_digest);
    is_good && tag.map_or(digest.is_none(), |tag| tag == "latest")
}

/// `registry.example.com:5000/path/name`, all in small letters but for the registry.
fn is_image_name(name: &str) -> bool {
    let is_hash =
        name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let (domain, path) = match name.split_once('/') {
        Some((domain, path))
            if domain.contains(['.', ':']) || domain == "localhost" || domain != domain.to_lowercase() =>
        {
            (Some(domain), path)
        }
        _ => (None, name),
    };
    let is_part = |part: &str| {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let separators = part.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let is_separator =
            |text: &str| matches!(text, "" | "." | "_" | "__") || text.chars().all(|c| c == '-');
        ends(part.chars().next()) && ends(part.chars().last()) && separators.into_iter().all(is_separator)
    };
    let is_host = |host: &str| {
        let (host, port) = host.rsplit_once(':').map_or((host, None), |(host, port)| (host, Some(port)));
        let is_label = |label: &str| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        let is_number = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        (host.split('.').all(is_label) || host.starts_with('[')) && port.is_none_or(is_number)
    };
    !is_hash && name.len() <= 255 && path.split('/').all(is_part) && domain.is_none_or(is_host)
}

fn is_image_tag(tag: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= 128 && tag.starts_with(is_word) && tag.chars().all(|c| is_word(c) || ".-".contains(c))
}

fn is_image_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(kind, hash)| {
        kind.starts_with(|c: char| c.is_ascii_alphabetic())
            && hash.len() >= 32
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
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
    if let Some(file) = source.get_mut("fileKeyRef").and_then(Value::as_object_mut) {
        default_to(file, "optional", false);
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

/// In the host's network, the ports of a pod's containers are ports of the host. Templates stay as they are written.
pub(super) fn default_host_ports(spec: &mut Map<String, Value>) {
    if spec.get("hostNetwork") != Some(&Value::Bool(true)) {
        return;
    }
    for list in ["containers", "initContainers"] {
        maps(spec.get_mut(list)).for_each(default_host_ports_of);
    }
}

fn default_host_ports_of(container: &mut Map<String, Value>) {
    for port in maps(container.get_mut("ports")) {
        if let Some(number) = port.get("containerPort").cloned() {
            default_to(port, "hostPort", number);
        }
    }
}

fn default_volume(volume: &mut Map<String, Value>) {
    const READABLE: i32 = 0o644;
    if volume.keys().all(|name| name == "name") {
        volume.insert("emptyDir".into(), json!({}));
    }
    let image = volume.get_mut("image").and_then(Value::as_object_mut);
    if let Some(image) = image {
        let reference = image.get("reference").and_then(Value::as_str).unwrap_or_default();
        let policy = if is_latest(reference) { "Always" } else { "IfNotPresent" };
        default_to(image, "pullPolicy", policy);
    }
    default_source(volume);
    let claim = volume.get_mut("ephemeral").and_then(|source| source.get_mut("volumeClaimTemplate"));
    if let Some(claim) = claim.and_then(Value::as_object_mut) {
        default_to(object::fields(claim.entry("spec").or_insert(Value::Null)), "volumeMode", "Filesystem");
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            default_to(source, "defaultMode", READABLE);
        }
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

/// Fills in a source that volumes of pods and PersistentVolumes share.
pub(super) fn default_source(volume: &mut Map<String, Value>) {
    const DEFAULTS: [(&str, &[(&str, &str)]); 5] = [
        ("hostPath", &[("type", "")]),
        ("iscsi", &[("iscsiInterface", "default")]),
        ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
        ("azureDisk", &[("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("kind", "Shared")]),
        ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
    ];
    for (name, fields) in DEFAULTS {
        let Some(source) = volume.get_mut(name).and_then(Value::as_object_mut) else { continue };
        for (field, value) in fields {
            default_to(source, field, *value);
        }
        if name == "azureDisk" {
            default_to(source, "readOnly", false);
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
        for (image, latest) in [
            ("x", true),
            ("x:latest", true),
            ("x:1", false),
            ("x@sha256:0123456789abcdef0123456789abcdef", false),
            ("host:5000/x", true),
            ("a.example.com/b-c/d__e:latest", true),
            ("", false),
            ("X", false),
            ("a b", false),
            ("a/", false),
            ("a..b", false),
        ] {
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
        Replicated::StatefulSet.on_create(&mut set, krafla_api::Time::from_seconds(0));
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
