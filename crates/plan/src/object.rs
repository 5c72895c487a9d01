//! One observed resource, narrowed to what decisions read.
//!
//! A full pod is about six kilobytes of JSON and sixty of tree; what a decision reads of it fits in one. Everything
//! else stays on the server. Specs that are written back (pod templates) pass through as raw JSON, so that a field
//! newer than this program survives.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use krafla_api::batch;
use krafla_api::meta::null_as_default;
use krafla_api::volcano::{
    CommandFields, JobSpec, JobStatus, PodGroupSpec, PodGroupStatus, QueueSpec, QueueStatus, ResourceList,
};
use krafla_api::{Key, Kind, OwnerReference, Pairs, Time, Uid};
use krafla_cluster::{Event, Propagation, Step};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::cronjob::VcCronJob;
use crate::jobflow::{JobFlow, JobTemplate};
use crate::placement::{Affinity, SchedulingGate, Taint, Toleration, TopologySpreadConstraint};

/// One observed resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// What it is.
    pub kind: Kind,
    /// Who it is.
    pub meta: Meta,
    /// What decisions read of its spec and status.
    pub body: Body,
}

/// The metadata that decisions read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Namespace and name.
    pub key: Key,
    /// Identity.
    pub uid: Uid,
    /// resourceVersion, as a number.
    pub revision: u64,
    /// Increased by the server on every change of spec.
    pub generation: i64,
    /// Labels.
    pub labels: Pairs,
    /// Annotations.
    pub annotations: Pairs,
    /// Owner references.
    pub owners: Vec<OwnerReference>,
    /// Finalizers that still hold the object.
    pub finalizers: Vec<String>,
    /// When the server stored it first.
    pub created_at: Option<Time>,
    /// When its deletion is due, once asked for.
    pub deleting_at: Option<Time>,
    /// How long it has from being asked to go.
    pub deletion_grace_seconds: i64,
}

impl Meta {
    /// Whether deletion has been asked for.
    pub fn is_deleting(&self) -> bool {
        self.deleting_at.is_some()
    }

    /// When deletion was asked for.
    pub fn deletion_asked_at(&self) -> Option<Time> {
        let due_at = self.deleting_at?;
        Some(Time::from_seconds(due_at.0.as_second().saturating_sub(self.deletion_grace_seconds)))
    }

    /// The UID of the owner that manages this object.
    pub fn controller_uid(&self) -> Option<&Uid> {
        self.owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| &owner.uid)
    }

    /// A patch of these fields of the status, if the object is still as it was read.
    pub fn status_patch(&self, kind: Kind, fields: &Value) -> Step {
        Step::Patch {
            kind,
            key: self.key.clone(),
            uid: self.uid.clone(),
            revision: Some(self.revision),
            of_status: true,
            patch: json!({ "status": fields }),
        }
    }

    /// What stands in the metadata of an object that this one, which is of this kind, controls.
    pub fn as_controller(&self, kind: Kind) -> OwnerReference {
        OwnerReference {
            api_version: kind.info().api_version(),
            kind: kind.info().kind.to_owned(),
            name: self.key.name.to_string(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}

/// What decisions read of an object's spec and status.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A Volcano Job.
    VcJob(Box<VcJob>),
    /// A Job of Kubernetes.
    Job(Box<Job>),
    /// A CronJob of Kubernetes.
    CronJob(Box<CronJob>),
    /// A pod.
    Pod(Box<Pod>),
    /// A PodGroup.
    PodGroup(Box<PodGroup>),
    /// A queue.
    Queue(Box<Queue>),
    /// A Command.
    Command(Box<CommandFields>),
    /// A Volcano CronJob.
    VcCronJob(Box<VcCronJob>),
    /// A JobFlow.
    JobFlow(Box<JobFlow>),
    /// A JobTemplate.
    JobTemplate(Box<JobTemplate>),
    /// A node.
    Node(Box<Node>),
    /// A ReplicaSet or StatefulSet.
    Workload {
        /// How many pods it wants; one if it does not say.
        replicas: Option<i32>,
    },
    /// A priority class.
    PriorityClass(PriorityClass),
    /// The data of a ConfigMap or Secret that belongs to a Volcano Job. Nobody else's is kept.
    Data(Box<Map<String, Value>>),
    /// A kind of which only the metadata matters.
    Other,
    /// The server holds something that is not shaped like its kind. It concerns its own root alone.
    Unreadable(Box<Unreadable>),
}

/// What is wrong with an object that can not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreadable {
    /// Why it can not be read.
    pub why: String,
    /// What its status says about its state, if anything.
    pub said: String,
    /// The phase that its status says, if any.
    pub phase: String,
}

impl Unreadable {
    /// How much of a reason is kept: it may quote what is wrong.
    const REASON_CHARS_MAX: usize = 500;

    /// The reason names the field and not the column: where that is in the text changes with every revision, and what has been
    /// said once would be said again.
    fn new(json: &[u8], error: &serde_json::Error, can_be_read: impl Fn(&[u8]) -> bool) -> Unreadable {
        let object: Value = serde_json::from_slice(json).unwrap_or_default();
        let state = |field: &str| {
            let state = object.pointer("/status/state").and_then(|state| state.get(field));
            state.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let field =
            krafla_admission::locate(&object, |part| can_be_read(part.to_string().as_bytes())).to_string();
        let reason = error.to_string();
        let reason = reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
        let why = if field.is_empty() { reason.to_owned() } else { format!("{field}: {reason}") };
        let why = why.chars().take(Unreadable::REASON_CHARS_MAX).collect();
        Unreadable { why, said: state("message"), phase: state("phase") }
    }
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

/// A Volcano Job.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VcJob {
    /// What the user wants, with admission's defaults filled in: a job that skipped admission behaves the same.
    pub spec: Arc<JobSpec>,
    /// What was last written down.
    pub status: JobStatus,
}

impl VcJob {
    /// Defaults are filled in here, once per change of the job, and not at every look at it.
    fn decode(json: &[u8]) -> serde_json::Result<VcJob> {
        let mut job: VcJob = serde_json::from_slice(json)?;
        krafla_admission::job::default_spec(Arc::make_mut(&mut job.spec), DEFAULT_SCHEDULER);
        Ok(job)
    }
}

/// Who schedules the pods of a job that does not say.
const DEFAULT_SCHEDULER: &str = "volcano";

/// A Job of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Job {
    /// What the user wants.
    pub spec: batch::JobSpec,
    /// What was last written down.
    pub status: batch::JobStatus,
}

/// A CronJob of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CronJob {
    /// What the user wants.
    pub spec: batch::CronJobSpec,
    /// What was last written down.
    pub status: batch::CronJobStatus,
}

/// A PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodGroup {
    /// What the gang needs.
    pub spec: PodGroupSpec,
    /// What the scheduler says of it.
    pub status: PodGroupStatus,
}

/// A queue.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// What the queue may use.
    pub spec: QueueSpec,
    /// Its state.
    pub status: QueueStatus,
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Where and how it runs.
    pub spec: PodSpec,
    /// How it is doing.
    pub status: PodStatus,
    /// Whether it had ended when it was asked to go.
    #[serde(skip)]
    pub end_order: EndOrder,
}

/// Which came first: a pod's end, or the request to delete it. A pod that ends because it was asked to go has not done its work.
///
/// One sight of a pod does not always tell. The request gives a running pod time (`deletionGracePeriodSeconds`) and a finished
/// one none. But the agent of its node ends every removal with a request without grace, and that moves `deletionTimestamp` back to
/// the moment of the first request. So what an earlier sight has shown is carried over, see [`Object::following`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EndOrder {
    /// Neither has happened, or both had when the pod was first seen.
    #[default]
    Unknown,
    /// It was seen finished before anybody asked it to go.
    EndedFirst,
    /// It had not finished when it was asked to go.
    AskedFirst,
}

impl EndOrder {
    /// What one sight of a pod shows.
    fn at_sight(meta: &Meta, phase: PodPhase) -> EndOrder {
        match (meta.is_deleting(), phase.is_finished()) {
            (false, true) => EndOrder::EndedFirst,
            (true, false) => EndOrder::AskedFirst,
            // No server gives a finished pod time to finish.
            (true, true) if meta.deletion_grace_seconds > 0 => EndOrder::AskedFirst,
            (false, false) | (true, true) => EndOrder::Unknown,
        }
    }
}

impl Pod {
    /// Gives back the room that lists were given to grow while they were read. There are more pods than anything else,
    /// and most of these lists have one element.
    fn shrink(&mut self) {
        let Pod { spec, status, .. } = self;
        spec.containers.shrink_to_fit();
        spec.init_containers.shrink_to_fit();
        spec.tolerations.shrink_to_fit();
        status.container_statuses.shrink_to_fit();
        status.init_container_statuses.shrink_to_fit();
    }
}

/// A priority class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PriorityClass {
    /// What is compared.
    pub value: i32,
    /// Whether it is meant for all that name none.
    pub global_default: bool,
}

/// The part of a pod's spec that decisions read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The node it is bound to; empty while it waits.
    pub node_name: String,
    /// Who is to bind it.
    pub scheduler_name: String,
    /// Its priority class.
    pub priority_class_name: String,
    /// Labels that its node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Its containers' needs.
    pub containers: Vec<Container>,
    /// Its init containers' needs.
    pub init_containers: Vec<Container>,
    /// What running it costs beside its containers.
    pub overhead: ResourceList,
    /// What it may ask for as a whole, whatever its containers ask for.
    pub resources: Option<Box<Resources>>,
    /// Taints that it puts up with.
    pub tolerations: Vec<Toleration>,
    /// What it demands of its node and its neighbours.
    pub affinity: Option<Box<Affinity>>,
    /// How evenly it must be spread with others. What it only would like is left out.
    #[serde(rename = "topologySpreadConstraints", deserialize_with = "musts")]
    pub spread_constraints: Box<[TopologySpreadConstraint]>,
    /// Locks that keep it from being placed.
    pub scheduling_gates: Vec<SchedulingGate>,
    /// The claims that its volumes are made of.
    #[serde(rename = "volumes", deserialize_with = "claim_names")]
    pub claims: Vec<String>,
}

fn musts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[TopologySpreadConstraint]>, D::Error> {
    let all: Vec<TopologySpreadConstraint> = null_as_default(deserializer)?;
    Ok(all.into_iter().filter(|it| it.when_unsatisfiable == "DoNotSchedule").collect())
}

fn claim_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Volume {
        persistent_volume_claim: Option<Claim>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct Claim {
        claim_name: String,
    }
    let volumes: Vec<Volume> = null_as_default(deserializer)?;
    Ok(volumes.into_iter().filter_map(|volume| Some(volume.persistent_volume_claim?.claim_name)).collect())
}

/// The part of a container that decisions read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// `Always` makes an init container a sidecar.
    pub restart_policy: String,
    /// Requests and limits.
    pub resources: Resources,
    /// Its ports that are ports of its node too. Most containers have none, and then this takes no room.
    #[serde(rename = "ports", deserialize_with = "host_ports")]
    pub host_ports: Box<[HostPort]>,
}

/// A port of the node that a container wants for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct HostPort {
    /// Its number; zero if the port is the pod's own.
    #[serde(rename = "hostPort")]
    pub port: i32,
    /// `TCP`, also when empty, `UDP` or `SCTP`.
    pub protocol: String,
    /// The address of the node; empty means all of them.
    #[serde(rename = "hostIP")]
    pub address: String,
}

impl HostPort {
    /// Its protocol.
    pub fn protocol(&self) -> &str {
        if self.protocol.is_empty() { "TCP" } else { &self.protocol }
    }
}

fn host_ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[HostPort]>, D::Error> {
    let ports: Vec<HostPort> = null_as_default(deserializer)?;
    Ok(ports.into_iter().filter(|port| port.port != 0).collect())
}

/// Requests and limits of a container or a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// What the scheduler sets aside.
    pub requests: ResourceList,
    /// What it may use at most.
    pub limits: ResourceList,
}

/// The part of a pod's status that decisions read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// Pending, Running, Succeeded, Failed or Unknown.
    pub phase: PodPhase,
    /// Why, in one word.
    pub reason: String,
    /// When its node took it on.
    pub start_time: Option<Time>,
    /// Where it is reached, once it runs.
    #[serde(rename = "podIP", deserialize_with = "readable_address")]
    pub pod_ip: Option<IpAddr>,
    /// Each container's state.
    pub container_statuses: Vec<ContainerStatus>,
    /// Each init container's state.
    pub init_container_statuses: Vec<ContainerStatus>,
    /// What the scheduler, the node and others say of it.
    pub conditions: PodConditions,
}

/// An address that can not be read is none: it must not make the whole pod unreadable.
fn readable_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IpAddr>, D::Error> {
    let text: String = null_as_default(deserializer)?;
    Ok(text.parse().ok())
}

/// A pod's conditions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodConditions {
    /// What the scheduler says: `PodScheduled`, the only one whose words are read.
    pub scheduled: Option<Box<PodCondition>>,
    /// All others by their type: `True`, `False` or `Unknown`.
    pub statuses: Pairs,
    /// All others with their words, of a pod that has no node yet: whoever says why it has none writes them all again.
    pub others: Box<[PodCondition]>,
    /// When `Ready` last changed.
    pub ready_changed_at: Option<Time>,
    /// When any of them last changed.
    pub changed_at: Option<Time>,
}

impl<'de> Deserialize<'de> for PodConditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all: Vec<PodCondition> = null_as_default(deserializer)?;
        let changed_at = all.iter().filter_map(|condition| condition.last_transition_time).max();
        let (scheduled, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|condition| condition.condition_type == "PodScheduled");
        let scheduled = scheduled.into_iter().next().map(Box::new);
        let ready = others.iter().find(|condition| condition.condition_type == "Ready");
        let has_node = scheduled.as_ref().is_some_and(|condition| condition.status == "True");
        let statuses = others.iter().map(|other| (&*other.condition_type, &*other.status));
        Ok(PodConditions {
            ready_changed_at: ready.and_then(|ready| ready.last_transition_time),
            changed_at,
            statuses: statuses.collect(),
            others: if has_node { Box::default() } else { others.into() },
            scheduled,
        })
    }
}

/// A pod's condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodCondition {
    /// What it is about.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When it was last looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    /// When that last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Which generation of the pod it was said of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A pod's phase. A phase newer than this program reads as Unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "Kubernetes' own words")]
pub enum PodPhase {
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}

impl PodPhase {
    /// Whether the pod will never run again.
    pub fn is_finished(self) -> bool {
        matches!(self, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// As it stands in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            PodPhase::Pending => "Pending",
            PodPhase::Running => "Running",
            PodPhase::Succeeded => "Succeeded",
            PodPhase::Failed => "Failed",
            PodPhase::Unknown => "Unknown",
        }
    }
}

impl<'de> Deserialize<'de> for PodPhase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Ok(match text.as_ref() {
            "" | "Pending" => PodPhase::Pending,
            "Running" => PodPhase::Running,
            "Succeeded" => PodPhase::Succeeded,
            "Failed" => PodPhase::Failed,
            _ => PodPhase::Unknown,
        })
    }
}

/// The part of a container's status that decisions read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// The container's name.
    pub name: String,
    /// Whether it is ready to serve.
    pub ready: bool,
    /// How often it was started again.
    pub restart_count: i32,
    /// What it is doing.
    pub state: ContainerState,
    /// How its last run ended, if it was started again.
    pub last_state: ContainerState,
}

/// What a container is doing; only its end matters here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// Set once it has ended.
    pub terminated: Option<Box<Terminated>>,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// Its exit code.
    pub exit_code: i32,
    /// When it ended.
    pub finished_at: Option<Time>,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Whether new pods may come.
    pub spec: NodeSpec,
    /// What it has.
    pub status: NodeStatus,
}

/// The part of a node's spec that decisions read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// Closed to new pods.
    pub unschedulable: bool,
    /// Marks that keep pods away.
    pub taints: Vec<Taint>,
}

/// The part of a node's status that decisions read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// What pods may use.
    pub allocatable: ResourceList,
    /// How it is doing.
    pub conditions: Vec<NodeCondition>,
}

/// The part of a node's condition that decisions read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeCondition {
    /// `Ready` and others.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
}

impl Object {
    /// The object of an event, decoded once for all components of this process.
    pub fn from_event(kind: Kind, event: &Event) -> Arc<Object> {
        event.reading.get_or_decode(|| Object::decode(kind, &event.object))
    }

    /// The deletion of this object, whatever it says by now, and then of its children.
    pub fn deletion(&self) -> Step {
        Step::Delete {
            kind: self.kind,
            key: self.meta.key.clone(),
            uid: self.meta.uid.clone(),
            revision: None,
            propagation: Propagation::Background,
            grace_seconds: None,
        }
    }

    /// Reads an object of `kind`. Never fails: what cannot be read becomes [`Body::Unreadable`] with as much
    /// metadata as there is, so that one bad object cannot hide the others.
    pub fn decode(kind: Kind, json: &[u8]) -> Object {
        // There are more pods than anything else, so a pod is read in one go, unless a part of it can not be read.
        if kind == Kind::Pod
            && let Ok(pod) = serde_json::from_slice::<WholePod>(json)
        {
            return pod.into();
        }
        let envelope = match serde_json::from_slice::<Envelope>(json) {
            Ok(envelope) => envelope,
            Err(error) => {
                let can_be_read = |json: &[u8]| serde_json::from_slice::<Envelope>(json).is_ok();
                let body = Body::Unreadable(Unreadable::new(json, &error, can_be_read).into());
                return Object { kind, meta: Meta::default(), body };
            }
        };
        let body = Body::decode(kind, json).unwrap_or_else(|error| {
            let can_be_read = |json: &[u8]| Body::decode(kind, json).is_ok();
            Body::Unreadable(Unreadable::new(json, &error, can_be_read).into())
        });
        Object { kind, meta: envelope.metadata.into(), body }
    }

    /// The object with what an earlier sight of it showed and this one does not show any more.
    pub fn following(object: Arc<Object>, before: Option<&Arc<Object>>) -> Arc<Object> {
        let Some(before) = before.filter(|before| before.meta.uid == object.meta.uid) else { return object };
        let (Some(pod), Some(pod_before)) = (object.as_pod(), before.as_pod()) else { return object };
        let end_order = pod_before.end_order;
        if end_order == EndOrder::Unknown || end_order == pod.end_order || !pod.status.phase.is_finished() {
            return object;
        }
        let body = Body::Pod(Box::new(Pod { end_order, ..pod.clone() }));
        Arc::new(Object { kind: object.kind, meta: object.meta.clone(), body })
    }

    /// As a Volcano Job.
    pub fn as_vcjob(&self) -> Option<&VcJob> {
        if let Body::VcJob(job) = &self.body { Some(job) } else { None }
    }

    /// As a Job of Kubernetes.
    pub fn as_job(&self) -> Option<&Job> {
        if let Body::Job(job) = &self.body { Some(job) } else { None }
    }

    /// As a CronJob of Kubernetes.
    pub fn as_cron_job(&self) -> Option<&CronJob> {
        if let Body::CronJob(cron_job) = &self.body { Some(cron_job) } else { None }
    }

    /// As a pod.
    pub fn as_pod(&self) -> Option<&Pod> {
        if let Body::Pod(pod) = &self.body { Some(pod) } else { None }
    }

    /// As a PodGroup.
    pub fn as_podgroup(&self) -> Option<&PodGroup> {
        if let Body::PodGroup(podgroup) = &self.body { Some(podgroup) } else { None }
    }

    /// As a Command.
    pub fn as_command(&self) -> Option<&CommandFields> {
        if let Body::Command(command) = &self.body { Some(command) } else { None }
    }

    /// As a Volcano CronJob.
    pub fn as_vccronjob(&self) -> Option<&VcCronJob> {
        if let Body::VcCronJob(cronjob) = &self.body { Some(cronjob) } else { None }
    }

    /// As a JobFlow.
    pub fn as_jobflow(&self) -> Option<&JobFlow> {
        if let Body::JobFlow(flow) = &self.body { Some(flow) } else { None }
    }

    /// As a JobTemplate.
    pub fn as_jobtemplate(&self) -> Option<&JobTemplate> {
        if let Body::JobTemplate(template) = &self.body { Some(template) } else { None }
    }

    /// As a node.
    pub fn as_node(&self) -> Option<&Node> {
        if let Body::Node(node) = &self.body { Some(node) } else { None }
    }

    /// As a queue.
    pub fn as_queue(&self) -> Option<&Queue> {
        if let Body::Queue(queue) = &self.body { Some(queue) } else { None }
    }
}

impl Body {
    fn decode(kind: Kind, json: &[u8]) -> serde_json::Result<Body> {
        Ok(match kind {
            Kind::VcJob => Body::VcJob(Box::new(VcJob::decode(json)?)),
            Kind::Job => Body::Job(serde_json::from_slice(json)?),
            Kind::CronJob => Body::CronJob(serde_json::from_slice(json)?),
            Kind::Pod => Body::Pod(serde_json::from_slice(json)?),
            Kind::PodGroup => Body::PodGroup(serde_json::from_slice(json)?),
            Kind::Queue => Body::Queue(serde_json::from_slice(json)?),
            Kind::Command => Body::Command(serde_json::from_slice(json)?),
            Kind::VcCronJob => Body::VcCronJob(serde_json::from_slice(json)?),
            Kind::JobFlow => Body::JobFlow(serde_json::from_slice(json)?),
            Kind::JobTemplate => Body::JobTemplate(serde_json::from_slice(json)?),
            Kind::Node => Body::Node(serde_json::from_slice(json)?),
            Kind::ConfigMap | Kind::Secret => match serde_json::from_slice::<Data>(json)? {
                Data { metadata, data: Some(data) } if metadata.is_of_job() => Body::Data(Box::new(data)),
                _ => Body::Other,
            },
            Kind::ReplicaSet | Kind::StatefulSet => {
                Body::Workload { replicas: serde_json::from_slice::<Workload>(json)?.spec.replicas }
            }
            Kind::PriorityClass => Body::PriorityClass(serde_json::from_slice(json)?),
            Kind::Namespace
            | Kind::Service
            | Kind::ServiceAccount
            | Kind::PersistentVolume
            | Kind::PersistentVolumeClaim
            | Kind::Event
            | Kind::NetworkPolicy
            | Kind::Lease
            | Kind::CustomResourceDefinition
            | Kind::DaemonSet
            | Kind::HyperNode
            | Kind::Numatopology
            | Kind::NodeShard
            | Kind::ColocationConfiguration => Body::Other,
        })
    }
}

#[derive(Deserialize)]
struct Workload {
    #[serde(default)]
    spec: WorkloadSpec,
}

#[derive(Default, Deserialize)]
struct WorkloadSpec {
    #[serde(default)]
    replicas: Option<i32>,
}

#[derive(Deserialize)]
struct Data {
    metadata: Owners,
    #[serde(default)]
    data: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owners {
    #[serde(default)]
    owner_references: Option<Vec<OwnerReference>>,
}

impl Owners {
    fn is_of_job(&self) -> bool {
        let info = Kind::VcJob.info();
        self.owner_references.iter().flatten().any(|owner| {
            owner.controller == Some(true)
                && owner.kind == info.kind
                && owner.api_version == info.api_version()
        })
    }
}

#[derive(Deserialize)]
struct Envelope {
    metadata: NarrowMeta,
}

#[derive(Deserialize)]
struct WholePod {
    metadata: NarrowMeta,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

impl From<WholePod> for Object {
    fn from(whole: WholePod) -> Object {
        let meta: Meta = whole.metadata.into();
        let end_order = EndOrder::at_sight(&meta, whole.status.phase);
        let mut pod = Pod { spec: whole.spec, status: whole.status, end_order };
        pod.shrink();
        Object { kind: Kind::Pod, meta, body: Body::Pod(Box::new(pod)) }
    }
}

/// Metadata without `managedFields`, which is most of its bytes and which no decision reads.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct NarrowMeta {
    name: Arc<str>,
    namespace: Arc<str>,
    uid: Uid,
    resource_version: String,
    generation: i64,
    labels: Option<Pairs>,
    annotations: Option<Pairs>,
    owner_references: Option<Vec<OwnerReference>>,
    finalizers: Option<Vec<String>>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
}

impl From<NarrowMeta> for Meta {
    fn from(meta: NarrowMeta) -> Meta {
        let mut owners = meta.owner_references.unwrap_or_default();
        owners.shrink_to_fit();
        Meta {
            key: Key { namespace: meta.namespace, name: meta.name },
            uid: meta.uid,
            revision: meta.resource_version.parse().unwrap_or(0),
            generation: meta.generation,
            labels: meta.labels.unwrap_or_default(),
            annotations: meta.annotations.unwrap_or_default(),
            owners,
            finalizers: meta.finalizers.unwrap_or_default(),
            created_at: meta.creation_timestamp,
            deleting_at: meta.deletion_timestamp,
            deletion_grace_seconds: meta.deletion_grace_period_seconds.unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_came_first_is_known_by_every_sight_of_a_pod_together() {
        use EndOrder::{AskedFirst, EndedFirst, Unknown};
        let sight = |uid: &str, phase: &str, grace: Option<i64>| {
            let mut pod = json!({ "metadata": { "name": "p", "uid": uid }, "status": { "phase": phase } });
            if let Some(grace) = grace {
                pod["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z".into();
                pod["metadata"]["deletionGracePeriodSeconds"] = grace.into();
            }
            Arc::new(Object::decode(Kind::Pod, pod.to_string().as_bytes()))
        };
        let seen = |sights: &[(&str, Option<i64>)]| {
            let mut before: Option<Arc<Object>> = None;
            for (phase, grace) in sights {
                before = Some(Object::following(sight("u", phase, *grace), before.as_ref()));
            }
            before.and_then(|object| Some(object.as_pod()?.end_order)).unwrap()
        };
        for (sights, expected) in [
            (&[("Running", None)][..], Unknown),
            (&[("Running", Some(0))], AskedFirst),
            (&[("Succeeded", None)], EndedFirst),
            // A finished pod is given no time.
            (&[("Succeeded", Some(30))], AskedFirst),
            (&[("Succeeded", Some(0))], Unknown),
            // As the agent of a node writes, with every event seen or some.
            (
                &[("Running", None), ("Running", Some(30)), ("Succeeded", Some(30)), ("Succeeded", Some(0))],
                AskedFirst,
            ),
            (&[("Running", Some(30)), ("Succeeded", Some(0))], AskedFirst),
            (&[("Succeeded", Some(30)), ("Succeeded", Some(0))], AskedFirst),
            (&[("Running", None), ("Succeeded", Some(0))], Unknown),
            // It had ended, and somebody removes it.
            (&[("Running", None), ("Succeeded", None), ("Succeeded", Some(0))], EndedFirst),
            (&[("Succeeded", None), ("Succeeded", Some(30))], EndedFirst),
            // It is said to run after all.
            (&[("Succeeded", None), ("Running", Some(30))], AskedFirst),
            (&[("Succeeded", None), ("Running", None)], Unknown),
        ] {
            assert_eq!(seen(sights), expected, "{sights:?}");
        }
        // Another pod of the same name has its own life.
        let namesake =
            Object::following(sight("v", "Succeeded", Some(0)), Some(&sight("u", "Succeeded", None)));
        assert_eq!(namesake.as_pod().map(|pod| pod.end_order), Some(Unknown));
    }

    #[test]
    fn a_pod_that_can_be_read_in_part_is_known_by_its_metadata() {
        let decode = |object: Value| Object::decode(Kind::Pod, object.to_string().as_bytes());
        let metadata = json!({"name": "a", "namespace": "n", "resourceVersion": "7", "managedFields": [{}]});
        let whole = decode(json!({"metadata": metadata, "status": {"phase": "Running"}}));
        assert_eq!(whole.as_pod().map(|pod| pod.status.phase), Some(PodPhase::Running));
        let part = decode(json!({"metadata": metadata, "spec": {"containers": "none"}}));
        assert_eq!(part.meta, whole.meta);
        let Body::Unreadable(unreadable) = part.body else { panic!("{part:?}") };
        expect!["spec.containers: invalid type: string \"none\", expected a sequence"]
            .assert_eq(&unreadable.why);
        let nobody = decode(json!({"metadata": "none"}));
        assert_eq!(nobody.meta, Meta::default());
        assert!(matches!(nobody.body, Body::Unreadable(_)), "{nobody:?}");
    }
}
