//! A pod, as far as a node reads it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use krafla_api::meta::null_as_default;
use krafla_api::{Key, Quantity, Time, Uid};
use serde::{Deserialize, Serialize};

use crate::status::PodStatus;
use crate::supervisor::stage::Identity;

/// How long a container has at least to end by itself, as in Kubernetes.
pub(crate) const GRACE_SECONDS_MIN: u32 = 1;
/// What fits into a label of DNS, and into a host name of Linux.
const HOSTNAME_BYTES_MAX: usize = 63;

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Who it is.
    pub metadata: Metadata,
    /// What should run.
    pub spec: PodSpec,
    /// What was last written down.
    pub status: PodStatus,
}

impl Pod {
    /// Namespace and name.
    pub fn key(&self) -> Key {
        Key::new(&self.metadata.namespace, &self.metadata.name)
    }

    /// Whether deletion has been asked for.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// How long its containers have to end by themselves: what the deletion says, else what the pod says.
    pub fn grace_seconds(&self) -> u32 {
        let seconds =
            self.metadata.deletion_grace_period_seconds.or(self.spec.termination_grace_period_seconds);
        // Kubernetes' default.
        u32::try_from(seconds.unwrap_or(30).max(GRACE_SECONDS_MIN.into())).unwrap_or(u32::MAX)
    }

    /// Init containers, then containers.
    pub fn own_containers(&self) -> impl Iterator<Item = &Container> {
        self.spec.init_containers.iter().chain(&self.spec.containers)
    }

    /// The same, and then what people have added to look at them.
    pub fn all_containers(&self) -> impl Iterator<Item = &Container> {
        self.own_containers().chain(&self.spec.ephemeral_containers)
    }

    /// Whether a container was added by somebody to look at the others.
    pub fn is_ephemeral(&self, container: &str) -> bool {
        self.spec.ephemeral_containers.iter().any(|known| known.name == container)
    }

    /// Whether it asks for names that the machine does not have: then all its containers have a view of their own.
    pub fn has_names(&self) -> bool {
        let spec = &self.spec;
        self.asks_for_hostname() || !spec.subdomain.is_empty() || !spec.host_aliases.is_empty()
    }

    /// The user and the groups that a container asks for, if it asks for any.
    pub fn identity(&self, container: &Container) -> Option<Identity> {
        let number = |id: Option<i64>| id.and_then(|id| u32::try_from(id).ok());
        let (own, pod) = (&container.security_context, &self.spec.security_context);
        let uid = number(own.run_as_user.or(pod.run_as_user));
        let gid = number(own.run_as_group.or(pod.run_as_group));
        let groups = pod.supplemental_groups.iter().copied().chain(pod.fs_group);
        let groups: Vec<u32> = groups.filter_map(|group| number(Some(group))).collect();
        let is_asked = uid.is_some() || gid.is_some() || !groups.is_empty();
        is_asked.then(|| Identity { uid: uid.unwrap_or(0), gid: gid.unwrap_or(0), groups })
    }

    /// Why a container must not be started: it must not run as root, and would. `own` is the user of containers that
    /// name none, and `holds` says whether they get the one that they name.
    pub fn refuses_root(&self, container: &Container, own: u32, holds: bool) -> Option<String> {
        let (context, pod) = (&container.security_context, &self.spec.security_context);
        if context.run_as_non_root.or(pod.run_as_non_root) != Some(true) {
            return None;
        }
        let why = match context.run_as_user.or(pod.run_as_user) {
            Some(0) => "container's runAsUser breaks non-root policy",
            Some(_) if holds || own != 0 => return None,
            None if own != 0 => return None,
            _ => "container has runAsNonRoot and image will run as root",
        };
        let (key, uid) = (self.key(), &self.metadata.uid);
        let pod = format!("{}_{}({uid})", key.name, key.namespace);
        Some(format!("{why} (pod: {pod:?}, container: {})", container.name))
    }

    /// The group that volumes belong to, if the pod asks for one.
    pub fn volume_group(&self) -> Option<u32> {
        self.spec.security_context.fs_group.and_then(|group| u32::try_from(group).ok())
    }

    /// Whether it asks for a host name that is not its own name.
    pub fn asks_for_hostname(&self) -> bool {
        let spec = &self.spec;
        !spec.hostname.is_empty()
            || spec.hostname_override.is_some()
            || spec.set_hostname_as_fqdn == Some(true)
    }

    /// The name that a pod's processes get from the kernel: `hostnameOverride`, the name with its domain where
    /// `setHostnameAsFQDN` asks for it, or the host name by which others find the pod.
    pub fn kernel_hostname(&self) -> Cow<'_, str> {
        let (spec, hostname) = (&self.spec, self.hostname());
        match &spec.hostname_override {
            Some(name) => Cow::Borrowed(name),
            None if spec.set_hostname_as_fqdn == Some(true) && !spec.subdomain.is_empty() => {
                let namespace = &self.metadata.namespace;
                Cow::Owned(format!("{hostname}.{}.{namespace}.svc.cluster.local", spec.subdomain))
            }
            None => Cow::Borrowed(hostname),
        }
    }

    /// The pod's host name: its own, or what the pod asks for. A name that is too long for one is cut off, as by a kubelet.
    pub fn hostname(&self) -> &str {
        let wanted = if self.spec.hostname.is_empty() { &self.metadata.name } else { &self.spec.hostname };
        match wanted.get(..HOSTNAME_BYTES_MAX) {
            Some(beginning) => beginning.trim_end_matches(['-', '.']),
            None => wanted,
        }
    }
}

/// The metadata that a node reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub uid: Uid,
    pub resource_version: String,
    #[serde(deserialize_with = "null_as_default")]
    pub generation: i64,
    pub deletion_timestamp: Option<Time>,
    pub deletion_grace_period_seconds: Option<i64>,
    #[serde(deserialize_with = "null_as_default")]
    pub labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_as_default")]
    pub annotations: BTreeMap<String, String>,
}

impl Metadata {
    /// The resourceVersion as a number; 0 when unset.
    pub fn revision(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }
}

/// What should run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct PodSpec {
    pub node_name: String,
    pub restart_policy: RestartPolicy,
    pub termination_grace_period_seconds: Option<i64>,
    pub active_deadline_seconds: Option<i64>,
    pub hostname: String,
    pub hostname_override: Option<String>,
    #[serde(rename = "setHostnameAsFQDN")]
    pub set_hostname_as_fqdn: Option<bool>,
    pub subdomain: String,
    pub host_network: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub security_context: SecurityContext,
    pub enable_service_links: Option<bool>,
    #[serde(deserialize_with = "null_as_default")]
    pub host_aliases: Vec<HostAlias>,
    pub service_account_name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub init_containers: Vec<Container>,
    #[serde(deserialize_with = "null_as_default")]
    pub containers: Vec<Container>,
    #[serde(deserialize_with = "null_as_default")]
    pub ephemeral_containers: Vec<Container>,
    #[serde(deserialize_with = "null_as_default")]
    pub volumes: Vec<Volume>,
    #[serde(deserialize_with = "null_as_default")]
    pub readiness_gates: Vec<ReadinessGate>,
}

/// The users and groups of processes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct SecurityContext {
    pub run_as_user: Option<i64>,
    pub run_as_non_root: Option<bool>,
    pub run_as_group: Option<i64>,
    pub fs_group: Option<i64>,
    #[serde(deserialize_with = "null_as_default")]
    pub supplemental_groups: Vec<i64>,
}

/// Names of an address, for this pod alone.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct HostAlias {
    pub ip: String,
    #[serde(deserialize_with = "null_as_default")]
    pub hostnames: Vec<String>,
}

/// A condition that somebody else sets, without which the pod is not ready.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct ReadinessGate {
    pub condition_type: String,
}

/// When a container that has ended is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "Kubernetes' own words")]
pub enum RestartPolicy {
    #[default]
    Always,
    OnFailure,
    Never,
}

/// One container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct Container {
    pub name: String,
    pub image: String,
    #[serde(deserialize_with = "null_as_default")]
    pub security_context: SecurityContext,
    #[serde(deserialize_with = "null_as_default")]
    pub command: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub args: Vec<String>,
    pub working_dir: String,
    #[serde(deserialize_with = "null_as_default")]
    pub env: Vec<EnvVar>,
    #[serde(deserialize_with = "null_as_default")]
    pub env_from: Vec<EnvFrom>,
    #[serde(deserialize_with = "null_as_default")]
    pub resources: Resources,
    #[serde(deserialize_with = "null_as_default")]
    pub volume_mounts: Vec<VolumeMount>,
    #[serde(deserialize_with = "null_as_default")]
    pub ports: Vec<Port>,
    pub startup_probe: Option<Probe>,
    pub liveness_probe: Option<Probe>,
    pub readiness_probe: Option<Probe>,
    #[serde(deserialize_with = "null_as_default")]
    pub lifecycle: Lifecycle,
    pub termination_message_policy: String,
    pub termination_message_path: String,
    pub stdin: bool,
    pub stdin_once: bool,
    pub tty: bool,
    /// Its own, in place of the pod's. `Always` makes an init container a sidecar.
    pub restart_policy: Option<RestartPolicy>,
    #[serde(deserialize_with = "null_as_default")]
    pub restart_policy_rules: Vec<RestartRule>,
}

impl Container {
    /// Whether this init container runs beside the containers instead of before them.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy == Some(RestartPolicy::Always)
    }
}

/// Exit codes after which a container is started again, whatever its policy says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct RestartRule {
    pub action: String,
    #[serde(deserialize_with = "null_as_default")]
    pub exit_codes: ExitCodes,
}

/// A set of exit codes, or all but these.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct ExitCodes {
    pub operator: String,
    #[serde(deserialize_with = "null_as_default")]
    pub values: Vec<i32>,
}

impl RestartRule {
    /// Whether a container that ended so is started again.
    pub fn restarts_after(&self, exit_code: i32) -> bool {
        let is_listed = self.exit_codes.values.contains(&exit_code);
        let applies = match self.exit_codes.operator.as_str() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        };
        applies && self.action == "Restart"
    }
}

/// A port by its name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct Port {
    pub name: String,
    pub container_port: u16,
}

/// A check that is made again and again.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct Probe {
    #[serde(flatten)]
    pub handler: Handler,
    pub initial_delay_seconds: u32,
    pub timeout_seconds: u32,
    pub period_seconds: u32,
    pub success_threshold: u32,
    pub failure_threshold: u32,
    pub termination_grace_period_seconds: Option<u32>,
}

/// What is done around a container's life.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct Lifecycle {
    pub post_start: Option<Handler>,
    pub pre_stop: Option<Handler>,
    #[serde(deserialize_with = "null_as_default")]
    pub stop_signal: String,
}

/// What a probe or a hook does: one of these.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct Handler {
    pub exec: Option<ExecAction>,
    pub http_get: Option<HttpGetAction>,
    pub tcp_socket: Option<SocketAction>,
    pub grpc: Option<GrpcAction>,
    pub sleep: Option<SleepAction>,
}

/// Runs a command as the container would.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct ExecAction {
    #[serde(deserialize_with = "null_as_default")]
    pub command: Vec<String>,
}

/// Asks a web server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct HttpGetAction {
    pub path: String,
    pub port: PortRef,
    pub host: String,
    pub scheme: String,
    #[serde(deserialize_with = "null_as_default")]
    pub http_headers: Vec<HttpHeader>,
}

/// One header of a request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct HttpHeader {
    pub name: String,
    pub value: String,
}

/// Connects.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct SocketAction {
    pub port: PortRef,
    pub host: String,
}

/// Asks a server by gRPC how one of its services is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct GrpcAction {
    pub port: u16,
    #[serde(deserialize_with = "null_as_default")]
    pub service: String,
}

/// Waits.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct SleepAction {
    pub seconds: u32,
}

/// A port by its number or name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the two ways in which Kubernetes writes it")]
pub enum PortRef {
    Number(u16),
    Name(String),
}

impl Default for PortRef {
    fn default() -> PortRef {
        PortRef::Number(0)
    }
}

/// Requests and limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct Resources {
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub requests: BTreeMap<String, Quantity>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub limits: BTreeMap<String, Quantity>,
}

impl Resources {
    /// Whether nothing is asked for, and nothing limited.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }
}

/// One variable of the environment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct EnvVar {
    pub name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub value: String,
    pub value_from: Option<ValueFrom>,
}

/// Where a variable's value comes from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct ValueFrom {
    pub field_ref: Option<FieldRef>,
    pub resource_field_ref: Option<ResourceFieldRef>,
    pub config_map_key_ref: Option<KeyRef>,
    pub secret_key_ref: Option<KeyRef>,
}

/// A field of the pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct FieldRef {
    pub field_path: String,
}

/// A request or limit of a container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct ResourceFieldRef {
    pub container_name: String,
    pub resource: String,
    pub divisor: Option<Quantity>,
}

/// One key of a ConfigMap or Secret.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct KeyRef {
    pub name: String,
    pub key: String,
    pub optional: Option<bool>,
}

/// All keys of a ConfigMap or Secret.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct EnvFrom {
    #[serde(deserialize_with = "null_as_default")]
    pub prefix: String,
    pub config_map_ref: Option<NameRef>,
    pub secret_ref: Option<NameRef>,
}

/// A whole ConfigMap or Secret.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct NameRef {
    pub name: String,
    pub optional: Option<bool>,
}

/// Where a container sees a volume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct VolumeMount {
    pub name: String,
    pub mount_path: String,
    pub sub_path: String,
    pub sub_path_expr: String,
    pub read_only: bool,
}

/// A volume. Kinds that are not listed can not be offered by this node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct Volume {
    pub name: String,
    pub empty_dir: Option<EmptyDir>,
    pub host_path: Option<HostPath>,
    pub config_map: Option<ConfigMapVolume>,
    pub secret: Option<SecretVolume>,
    #[serde(rename = "downwardAPI")]
    pub downward_api: Option<DownwardApi>,
    pub projected: Option<Projected>,
    pub persistent_volume_claim: Option<ClaimVolume>,
}

/// A fresh directory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct EmptyDir {
    pub medium: String,
}

/// A path of this machine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct HostPath {
    pub path: String,
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    pub path_type: String,
}

/// A ConfigMap as files; also a part of a projected volume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct ConfigMapVolume {
    pub name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub items: Vec<KeyToPath>,
    pub default_mode: Option<u32>,
    pub optional: Option<bool>,
}

/// A Secret as files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct SecretVolume {
    /// The name in a volume of its own.
    pub secret_name: String,
    /// The name in a projected volume.
    pub name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub items: Vec<KeyToPath>,
    pub default_mode: Option<u32>,
    pub optional: Option<bool>,
}

impl SecretVolume {
    /// The Secret's name, whichever of the two fields has it.
    pub fn name(&self) -> &str {
        if self.secret_name.is_empty() { &self.name } else { &self.secret_name }
    }
}

/// One key of a ConfigMap or Secret as a file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct KeyToPath {
    pub key: String,
    pub path: String,
    pub mode: Option<u32>,
}

/// Fields of the pod as files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct DownwardApi {
    #[serde(deserialize_with = "null_as_default")]
    pub items: Vec<DownwardFile>,
    pub default_mode: Option<u32>,
}

/// One field of the pod as a file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct DownwardFile {
    pub path: String,
    pub field_ref: Option<FieldRef>,
    pub resource_field_ref: Option<ResourceFieldRef>,
    pub mode: Option<u32>,
}

/// Several sources in one directory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct Projected {
    #[serde(deserialize_with = "null_as_default")]
    pub sources: Vec<ProjectedSource>,
    pub default_mode: Option<u32>,
}

/// One source of a projected volume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct ProjectedSource {
    pub config_map: Option<ConfigMapVolume>,
    pub secret: Option<SecretVolume>,
    #[serde(rename = "downwardAPI")]
    pub downward_api: Option<DownwardApi>,
    pub service_account_token: Option<AccountToken>,
}

/// A token of the pod's account as a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct AccountToken {
    #[serde(deserialize_with = "null_as_default")]
    pub audience: String,
    pub expiration_seconds: Option<i64>,
    pub path: String,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "Kubernetes' own fields")]
pub struct ClaimVolume {
    pub claim_name: String,
    pub read_only: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refusal(pod: Value, container: Value, own: u32, holds: bool) -> Option<String> {
        let container = json!({"name": "c", "securityContext": container});
        let metadata = json!({"name": "p", "namespace": "n", "uid": "u"});
        let spec = json!({"containers": [container], "securityContext": pod});
        let pod: Pod = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
        pod.refuses_root(&pod.spec.containers[0], own, holds)
    }

    #[test]
    fn a_container_that_must_not_be_root_is_refused_only_if_it_would_be() {
        let must = || json!({"runAsNonRoot": true});
        let by_image =
            "container has runAsNonRoot and image will run as root (pod: \"p_n(u)\", container: c)";
        let by_user = "container's runAsUser breaks non-root policy (pod: \"p_n(u)\", container: c)";
        assert_eq!(refusal(must(), json!({}), 0, false).as_deref(), Some(by_image));
        assert_eq!(refusal(must(), json!({"runAsUser": 0}), 0, true).as_deref(), Some(by_user));
        assert_eq!(refusal(json!({}), json!({"runAsNonRoot": true}), 0, false).as_deref(), Some(by_image));
        // The user that the container names is not set: it would run as root all the same.
        assert_eq!(refusal(must(), json!({"runAsUser": 7}), 0, false).as_deref(), Some(by_image));
        assert_eq!(refusal(must(), json!({"runAsUser": 7}), 0, true), None);
        assert_eq!(refusal(must(), json!({}), 1000, false), None);
        assert_eq!(refusal(must(), json!({"runAsNonRoot": false}), 0, false), None);
        assert_eq!(refusal(json!({}), json!({"runAsUser": 0}), 0, true), None);
    }
}
