//! Volcano's kinds, typed, JSON-exact.
//!
//! ```text
//!   CronJob ──creates──> Job <──creates── JobFlow ──reads──> JobTemplate
//!                         │ ^
//!                  owns   │ └── Command (what a person asks of a job or a queue)
//!                         v
//!                      PodGroup ──waits in──> Queue ──child of──> Queue
//!
//!   HyperNode ──holds──> nodes and HyperNodes      Numatopology, NodeShard, ColocationConfiguration: about nodes
//! ```
//!
//! - What Go's `omitempty` leaves out is left out here: zero counters, empty strings, lists and maps.
//! - A `null` list or map reads as an empty one.
//! - Words newer than this program survive (see [`crate::words`]); pod templates and volume claims are raw JSON, so
//!   their newer fields survive too.
//! - `apiVersion` and `kind` are no fields: [`Resource::KIND`] says them and [`Resource::to_manifest`] writes them.
//!
//! The attributes that only schemars reads (`schemars(...)`) are the validation and the defaults of the CRDs
//! ([`crate::crd`]); the doc comments of the fields are their descriptions.

mod command;
mod cronjob;
mod hypernode;
mod job;
mod jobflow;
mod nodes;
mod podgroup;
mod queue;
mod task;

pub use command::{Command, CommandFields};
pub use cronjob::{ConcurrencyPolicy, CronJob, CronJobSpec, CronJobStatus, CronJobTemplate, ObjectReference};
pub use hypernode::{
    ExactMatch, HyperNode, HyperNodeSpec, HyperNodeStatus, Member, MemberSelector, RegexMatch,
};
pub use job::{Job, JobCondition, JobPhase, JobSpec, JobState, JobStatus, TaskState, VolumeSpec};
pub use jobflow::{
    Flow, FlowCondition, FlowDependsOn, FlowJobStatus, FlowPatch, HttpGet, HttpHeader, JobFlow, JobFlowPhase,
    JobFlowSpec, JobFlowState, JobFlowStatus, JobRetainPolicy, JobRunningHistory, JobTemplate,
    JobTemplateStatus, Probe, TaskStatus, TcpSocket,
};
pub use nodes::{
    ColocationConfiguration, ColocationSpec, ColocationStatus, CpuInfo, MemoryQos, NodeShard, NodeShardSpec,
    NodeShardStatus, NumaResource, Numatopology, NumatopologySpec,
};
pub use podgroup::{
    NetworkTopologyMode, NetworkTopologySpec, PodGroup, PodGroupCondition, PodGroupPhase, PodGroupSpec,
    PodGroupStatus, SubGroupPolicy,
};
pub use queue::{
    Affinity, Cluster, DequeueStrategy, Guarantee, NodeGroupAffinity, Queue, QueueSpec, QueueState,
    QueueStatus, Reservation,
};
pub use task::{
    Action, DependsOn, Event, Iteration, LifecyclePolicy, PartitionPolicySpec, TaskSpec, TopologyPolicy,
};

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Kind;
use crate::meta::ObjectMeta;
use crate::quantity::Quantity;

/// Amounts by resource name (`cpu`, `memory`, `nvidia.com/gpu`).
pub type ResourceList = BTreeMap<String, Quantity>;

/// A whole object of one kind.
pub trait Resource: Serialize + DeserializeOwned {
    /// Its kind.
    const KIND: Kind;

    /// Who it is.
    fn metadata(&self) -> &ObjectMeta;

    /// The object as a manifest, with `apiVersion` and `kind`.
    fn to_manifest(&self) -> Value {
        // These types have string keys only, so they always become JSON objects.
        let mut manifest = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = manifest.as_object_mut() {
            let info = Self::KIND.info();
            fields.insert("apiVersion".to_owned(), info.api_version().into());
            fields.insert("kind".to_owned(), info.kind.into());
        }
        manifest
    }
}

macro_rules! resources {
    ($($kind:ident: $type:ident,)+) => {
        $(impl Resource for $type {
            const KIND: Kind = Kind::$kind;

            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }
        })+
    };
}

resources! {
    VcJob: Job,
    VcCronJob: CronJob,
    JobFlow: JobFlow,
    JobTemplate: JobTemplate,
    Command: Command,
    PodGroup: PodGroup,
    Queue: Queue,
    HyperNode: HyperNode,
    Numatopology: Numatopology,
    NodeShard: NodeShard,
    ColocationConfiguration: ColocationConfiguration,
}

/// The pattern of a DNS-1123 subdomain, as the CRDs check it.
pub const DNS_SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// The pattern of a DNS-1123 label, as the CRDs check it.
pub const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// For `skip_serializing_if`: Go leaves a zero counter out.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &i32) -> bool {
    *count == 0
}

/// For `skip_serializing_if`: a part that holds nothing need not be written.
fn is_default<T: Default + PartialEq>(part: &T) -> bool {
    *part == T::default()
}
