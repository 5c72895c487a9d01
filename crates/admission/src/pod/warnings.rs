//! What is allowed in a pod and will not do what its author hopes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use krafla_api::Quantity;
use serde_json::Value;

use crate::json::At;
use crate::{Path, names};

use super::spec::all_containers;

/// What the author of a new pod or of a template should know, in kube-apiserver's words. `place` is where it stands.
pub fn warnings(pod: &Value, place: &str) -> Vec<String> {
    let pod = At::new(pod, Path::new(place));
    let (spec, annotations) = (pod.get("spec"), pod.get("metadata").get("annotations"));
    let mut warnings = Vec::new();
    node_labels(&spec, &mut warnings);
    for (key, text) in ANNOTATIONS {
        if has(&annotations, key) {
            warnings.push(format!("{}: {text}", annotations.path().key(key)));
        }
    }
    for volume in spec.items("volumes") {
        plugins(&volume, &mut warnings);
    }
    spec.items("volumes").iter().for_each(|volume| overlaps(volume, &mut warnings));
    repeated(&spec, "hostAliases", "ip", &mut warnings);
    repeated(&spec, "imagePullSecrets", "name", &mut warnings);
    for secret in spec.items("imagePullSecrets") {
        if secret.str("name").is_empty() {
            warnings.push(format!("{}: invalid empty name \"\"", secret.get("name").path()));
        }
    }
    fractions(&spec.get("overhead"), &["memory", "ephemeral-storage"], &mut warnings);
    profiles(&spec, &annotations, !place.is_empty(), &mut warnings);
    ports(&spec, &mut warnings);
    let grace = spec.get("terminationGracePeriodSeconds");
    if grace.int().is_some_and(|seconds| seconds < 0) {
        let text = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{}: {text}", grace.path()));
    }
    affinity(&spec.get("affinity"), &mut warnings);
    for server in spec.get("dnsConfig").items("nameservers") {
        warnings.extend(addresses(&server));
    }
    for alias in spec.items("hostAliases") {
        warnings.extend(addresses(&alias.get("ip")));
    }
    warnings
}

const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

const NODE_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

/// Volumes whose drivers are gone, with the name that messages have for them.
const PLUGINS: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

fn has(map: &At<'_>, key: &str) -> bool {
    map.value().get(key).is_some()
}

fn deprecated(label: &str) -> Option<&'static str> {
    NODE_LABELS.iter().find(|(key, _)| *key == label).map(|(_, text)| *text)
}

/// Labels of nodes that have newer names.
fn node_labels(spec: &At<'_>, warnings: &mut Vec<String>) {
    for (key, at) in spec.get("nodeSelector").entries() {
        warnings.extend(deprecated(key).map(|text| format!("{}: {text}", at.path())));
    }
    let affinity = spec.get("affinity").get("nodeAffinity");
    let required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution");
    for term in required.items("nodeSelectorTerms") {
        warnings.extend(warnings_of_node_term(&term, false));
    }
    for term in affinity.items("preferredDuringSchedulingIgnoredDuringExecution") {
        warnings.extend(warnings_of_node_term(&term.get("preference"), true));
    }
    for constraint in spec.items("topologySpreadConstraints") {
        let key = constraint.get("topologyKey");
        if let Some(text) = deprecated(key.text()) {
            warnings.push(format!("{}: {} is {text}", key.path(), key.text()));
        }
        matches_nothing(&constraint, warnings);
    }
}

/// What is to be said of a term that selects nodes; of its values only where it is a wish.
pub(crate) fn warnings_of_node_term(term: &At<'_>, checks_values: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    for expression in term.items("matchExpressions") {
        let key = expression.get("key");
        if let Some(text) = deprecated(key.text()) {
            warnings.push(format!("{}: {} is {text}", key.path(), key.text()));
        }
        for value in expression.items("values").iter().filter(|_| checks_values) {
            let wrong = names::label_value(value.text()).into_iter();
            warnings
                .extend(wrong.map(|text| format!("{}: {} is invalid, {text}", value.path(), value.text())));
        }
    }
    warnings
}

fn matches_nothing(term: &At<'_>, warnings: &mut Vec<String>) {
    let selector = term.get("labelSelector");
    if !selector.is_set() {
        warnings.push(format!("{}: a null labelSelector results in matching no pod", selector.path()));
    }
}

fn affinity(affinity: &At<'_>, warnings: &mut Vec<String>) {
    for side in ["podAffinity", "podAntiAffinity"].map(|side| affinity.get(side)) {
        for term in side.items("requiredDuringSchedulingIgnoredDuringExecution") {
            matches_nothing(&term, warnings);
        }
        for term in side.items("preferredDuringSchedulingIgnoredDuringExecution") {
            matches_nothing(&term.get("podAffinityTerm"), warnings);
        }
    }
}

fn plugins(volume: &At<'_>, warnings: &mut Vec<String>) {
    for (field, name, text) in PLUGINS {
        // Claims are looked at in between.
        if field == "cephfs" {
            let claim = volume.get("ephemeral").get("volumeClaimTemplate");
            warnings.extend(amounts_of_claim(&claim.get("spec")));
        }
        if volume.get(field).is_set() {
            warnings.push(format!("{}: {text}", volume.path().field(name)));
        }
    }
}

/// What the author of a claim should know.
pub fn warnings_of_claim(claim: &Value) -> Vec<String> {
    let claim = At::new(claim, Path::default());
    let annotations = claim.get("metadata").get("annotations");
    let key = "volume.beta.kubernetes.io/storage-class";
    let mut warnings = Vec::new();
    if has(&annotations, key) {
        let text = "deprecated since v1.8; use \"storageClassName\" attribute instead";
        warnings.push(format!("{}: {text}", annotations.path().key(key)));
    }
    warnings.extend(amounts_of_claim(&claim.get("spec")));
    warnings
}

fn amounts_of_claim(spec: &At<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for list in ["requests", "limits"] {
        fractions(&spec.get("resources").get(list), &["storage"], &mut warnings);
    }
    warnings
}

/// Nothing holds a part of a byte.
fn fractions(amounts: &At<'_>, resources: &[&str], warnings: &mut Vec<String>) {
    for resource in resources {
        let amount = amounts.get(resource);
        if is_fractional(&amount) {
            let (path, amount) = (amounts.path().key(resource), amount.text());
            let why = format!("fractional byte value {amount:?} is invalid, must be an integer");
            warnings.push(format!("{path}: {why}"));
        }
    }
}

fn is_fractional(amount: &At<'_>) -> bool {
    amount.quantity().is_some_and(|amount: Quantity| amount.milli_value() % 1000 != 0)
}

/// Two items of a list with the same name.
fn repeated(spec: &At<'_>, list: &str, field: &str, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for item in spec.items(list).iter().map(|item| item.get(field)) {
        if !seen.insert(item.text()) {
            warnings.push(format!("{}: duplicate {field} {:?}", item.path(), item.text()));
        }
    }
}

const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const NO_SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";

/// Profiles in annotations that have fields, and what single containers ask for.
fn profiles(spec: &At<'_>, annotations: &At<'_>, is_template: bool, warnings: &mut Vec<String>) {
    let context = spec.get("securityContext");
    if !context.get("seccompProfile").is_set() && has(annotations, SECCOMP_POD) {
        warnings.push(format!("{}: {NO_SECCOMP}", annotations.path().key(SECCOMP_POD)));
    }
    for container in all_containers(spec) {
        let own = container.get("securityContext");
        let key = format!("{SECCOMP_CONTAINER}{}", container.str("name"));
        if !own.get("seccompProfile").is_set() && has(annotations, &key) {
            warnings.push(format!("{}: {NO_SECCOMP}", annotations.path().key(&key)));
        }
        let key = format!("{APP_ARMOR}{}", container.str("name"));
        let profile = annotations.value().get(&key).and_then(Value::as_str);
        if let (true, false, Some(profile)) = (is_template, own.get("appArmorProfile").is_set(), profile)
            && !is_profile(&context.get("appArmorProfile"), profile)
        {
            let text = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
            warnings.push(format!("{}: {text}", annotations.path().key(&key)));
        }
        let resources = container.get("resources");
        for resource in ["memory", "ephemeral-storage"] {
            for list in ["limits", "requests"] {
                fractions(&resources.get(list), &[resource], warnings);
            }
        }
        hidden_variables(&container, warnings);
    }
}

/// Whether a field says what an annotation says.
fn is_profile(field: &At<'_>, annotation: &str) -> bool {
    if !field.is_set() {
        return false;
    }
    match (annotation, annotation.strip_prefix("localhost/")) {
        ("runtime/default", _) => field.str("type") == "RuntimeDefault",
        ("unconfined", _) => field.str("type") == "Unconfined",
        (_, Some(name)) => field.str("type") == "Localhost" && field.str("localhostProfile") == name,
        _ => false,
    }
}

/// A variable that is set twice, unless the second value has the first in it.
fn hidden_variables(container: &At<'_>, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for variable in container.items("env") {
        let (name, value) = (variable.str("name"), variable.str("value"));
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        if variable.get("valueFrom").is_set() || value == reference || !value.contains(&reference) {
            let text =
                format!("hides previous definition of {name:?}, which may be dropped when using apply");
            warnings.push(format!("{}: {text}", variable.path()));
        }
    }
}

/// Ports that stand in each other's way.
fn ports(spec: &At<'_>, warnings: &mut Vec<String>) {
    let all: Vec<At<'_>> = all_containers(spec).flat_map(|container| container.items("ports")).collect();
    let number = |port: &At<'_>, name: &str| port.get(name).int().unwrap_or(0);
    for (at, port) in all.iter().enumerate() {
        let (ip, host) = (port.str("hostIP"), number(port, "hostPort"));
        if !ip.is_empty() && host == 0 {
            warnings.push(format!(
                "{}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{ip}}}",
                port.path(),
                port.str("name"),
                number(port, "containerPort"),
                port.str("protocol"),
            ));
        }
        let is_same = |other: &&At<'_>| {
            number(other, "containerPort") == number(port, "containerPort")
                && other.str("protocol") == port.str("protocol")
        };
        for other in all.iter().take(at).filter(is_same) {
            let (other_ip, other_host) = (other.str("hostIP"), number(other, "hostPort"));
            let what = if ip == other_ip && host == other_host {
                "duplicate"
            } else if host == 0 || other_host == 0 {
                "overlapping"
            } else if host == other_host && ip.is_empty() != other_ip.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            warnings.push(format!("{}: {what} port definition with {}", port.path(), other.path()));
        }
    }
    let mut named = BTreeMap::new();
    for port in all.iter().filter(|port| !port.str("name").is_empty()) {
        let name = port.str("name");
        match named.get(name) {
            Some(other) => warnings.push(format!(
                "{}: duplicate port name {name:?} with {other}, services and probes that select ports by name will use \
                 {other}",
                port.path(),
            )),
            None => {
                named.insert(name, port.path().clone());
            }
        }
    }
}

/// A path inside a volume, and where it comes from.
struct Mapped {
    path: String,
    source: String,
}

impl Mapped {
    fn shown(&self) -> String {
        if self.source.is_empty() {
            return format!("{:?}", self.path);
        }
        format!("{:?} ({})", self.path, self.source)
    }

    fn meets(&self, other: &Mapped) -> bool {
        let is_inside = |path: &str, of: &str| format!("{path}/").starts_with(&format!("{of}/"));
        !self.path.is_empty()
            && !other.path.is_empty()
            && (is_inside(&self.path, &other.path) || is_inside(&other.path, &self.path))
    }
}

/// Files of one volume that have the same path, or one that would have to be a directory.
fn overlaps(volume: &At<'_>, warnings: &mut Vec<String>) {
    let name = volume.str("name");
    let paths = |source: &At<'_>, from: &str| -> Vec<Mapped> {
        let items = source.items("items");
        items.iter().map(|item| Mapped { path: item.str("path").into(), source: from.into() }).collect()
    };
    let mut say = |what: &str, paths: Vec<Mapped>, before: &mut Vec<Mapped>| {
        for mut path in paths {
            path.path.truncate(path.path.trim_end_matches('/').len());
            for other in before.iter().filter(|other| path.meets(other)) {
                let (path, other) = (path.shown(), other.shown());
                warnings.push(format!("volume {name:?} ({what}): overlapping paths: {path} with {other}"));
            }
            before.push(path);
        }
    };
    let [map, secret, downward] = ["configMap", "secret", "downwardAPI"].map(|field| volume.get(field));
    say(&format!("ConfigMap {:?}", map.str("name")), paths(&map, ""), &mut Vec::new());
    say(&format!("Secret {:?}", secret.str("secretName")), paths(&secret, ""), &mut Vec::new());
    say("DownwardAPI", paths(&downward, ""), &mut Vec::new());
    let mut before = Vec::new();
    let mut n_empty = 0;
    for source in volume.get("projected").items("sources") {
        let given = |field: &str| Some(source.get(field)).filter(At::is_set);
        let mapped = if source.is_empty() {
            n_empty += 1;
            Vec::new()
        } else if let Some(map) = given("configMap").filter(|map| map.get("items").is_set()) {
            paths(&map, &format!("ConfigMap {:?}", map.str("name")))
        } else if let Some(secret) = given("secret").filter(|secret| secret.get("items").is_set()) {
            paths(&secret, &format!("Secret {:?}", secret.str("name")))
        } else if let Some(downward) = given("downwardAPI").filter(|api| api.get("items").is_set()) {
            paths(&downward, "DownwardAPI")
        } else if let Some(token) = given("serviceAccountToken") {
            vec![Mapped { path: token.str("path").into(), source: "ServiceAccountToken".into() }]
        } else {
            Vec::new()
        };
        say("Projected", mapped, &mut before);
    }
    for _ in 0..n_empty {
        warnings.push(format!("volume {name:?} (Projected) has no sources provided"));
    }
}

/// Addresses that some programs read and others do not.
pub(crate) fn addresses(at: &At<'_>) -> Option<String> {
    let text = at.text();
    let strict = text.parse::<IpAddr>().ok();
    match (strict, names::sloppy_ip(text)?) {
        (Some(IpAddr::V6(ip)), _) if ip.to_ipv4_mapped().is_none() => {
            let canonical = ip.to_string();
            let text = format!(
                "{}: IPv6 address {text:?} should be in RFC 5952 canonical format ({canonical:?})",
                at.path()
            );
            (canonical != at.text()).then_some(text)
        }
        (Some(IpAddr::V4(_)), _) => None,
        (_, read) => {
            let shown = match read {
                IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or_else(|| ip.to_string(), |ip| ip.to_string()),
                IpAddr::V4(ip) => ip.to_string(),
            };
            Some(format!("{}: non-standard IP address {text:?} is invalid: use {shown:?}", at.path()))
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tenth_of_a_byte_is_told() {
        let container = json!({"resources": {"requests": {"memory": "100m", "cpu": "100m"}, "limits": {"memory": "1Gi"}}});
        let pod = json!({"spec": {"containers": [container], "imagePullSecrets": [{}, {"name": "a"}]}});
        assert_eq!(
            warnings(&pod, ""),
            [
                "spec.imagePullSecrets[0].name: invalid empty name \"\"",
                "spec.containers[0].resources.requests[memory]: fractional byte value \"100m\" is invalid, must be an integer",
            ]
        );
    }

    #[test]
    fn what_stands_in_its_own_way_is_told() {
        let pod = json!({"spec": {
            "containers": [{
                "name": "c",
                "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A)3"}],
                "ports": [
                    {"containerPort": 80, "protocol": "TCP", "name": "web"},
                    {"containerPort": 80, "protocol": "TCP", "name": "web"},
                    {"containerPort": 81, "protocol": "TCP", "hostIP": "10.0.0.1"},
                ],
            }],
            "volumes": [
                {"name": "a", "configMap": {"name": "m", "items": [{"path": "x/"}, {"path": "x/y"}]}},
                {"name": "b", "glusterfs": {}},
            ],
            "hostAliases": [{"ip": "10.0.0.1"}, {"ip": "010.0.0.1"}],
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a"}]}},
            "terminationGracePeriodSeconds": -1,
        }});
        expect![[r#"
            t.spec.volumes[1].glusterfs: deprecated in v1.25, non-functional in v1.26+
            volume "a" (ConfigMap "m"): overlapping paths: "x/y" with "x"
            t.spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply
            t.spec.containers[0].ports[1]: duplicate port definition with t.spec.containers[0].ports[0]
            t.spec.containers[0].ports[2]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:81 Protocol:TCP HostIP:10.0.0.1}
            t.spec.containers[0].ports[1]: duplicate port name "web" with t.spec.containers[0].ports[0], services and probes that select ports by name will use t.spec.containers[0].ports[0]
            t.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1
            t.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results in matching no pod
            t.spec.hostAliases[1].ip: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1""#]]
        .assert_eq(&warnings(&pod, "t").join("\n"));
    }
}
