//! A Queue: a share of the cluster that jobs wait for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DNS_SUBDOMAIN, ResourceList, is_default, is_zero};
use crate::meta::{ObjectMeta, null_as_default};
use crate::schema;
use crate::words::words;

/// A share of the cluster that jobs wait for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Queue {
    #[allow(missing_docs)]
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// What the queue may use.
    pub spec: QueueSpec,
    /// Its state and what it uses.
    pub status: QueueStatus,
}

/// What a queue may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueSpec {
    /// Its share relative to its siblings.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 1, max = 65535), extend("x-default" = 1))]
    pub weight: i32,
    /// What it may use at most.
    #[serde(skip_serializing_if = "ResourceList::is_empty", deserialize_with = "null_as_default")]
    pub capability: ResourceList,
    /// What it can claim back from others.
    #[serde(skip_serializing_if = "ResourceList::is_empty", deserialize_with = "null_as_default")]
    pub deserved: ResourceList,
    /// What is kept free for it.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_default")]
    pub guarantee: Guarantee,
    /// Whether others may claim back what it uses beyond its share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaimable: Option<bool>,
    /// The queue above it.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253), regex(pattern = DNS_SUBDOMAIN))]
    pub parent: String,
    /// The higher, the earlier its jobs are placed and the later it gives back.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub priority: i32,
    /// Whether a job that does not fit holds back those behind it (`fifo`) or not (`traverse`).
    #[serde(skip_serializing_if = "DequeueStrategy::is_unset")]
    #[schemars(extend("x-default" = "traverse"))]
    pub dequeue_strategy: DequeueStrategy,
    /// Free text.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub queue_type: String,
    /// The node groups that its pods may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Other clusters that its jobs are forwarded to.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub extend_clusters: Vec<Cluster>,
}

/// What is kept free for a queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Guarantee {
    /// How much.
    #[serde(skip_serializing_if = "ResourceList::is_empty", deserialize_with = "null_as_default")]
    pub resource: ResourceList,
}

/// The node groups that a queue's pods may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    /// Node groups to go to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_group_affinity: Option<NodeGroupAffinity>,
    /// Node groups to stay away from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_group_anti_affinity: Option<NodeGroupAffinity>,
}

/// Node groups, as a must and as a wish.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeGroupAffinity {
    /// A must.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub required: Vec<String>,
    /// A wish.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub preferred: Vec<String>,
}

/// Another cluster that jobs are forwarded to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cluster {
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its share of the jobs.
    #[serde(skip_serializing_if = "is_zero")]
    pub weight: i32,
    /// What it has.
    #[serde(skip_serializing_if = "ResourceList::is_empty", deserialize_with = "null_as_default")]
    pub capacity: ResourceList,
}

/// A queue's state and what it uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QueueStatus {
    /// Whether it takes new jobs.
    #[serde(skip_serializing_if = "QueueState::is_unset")]
    pub state: QueueState,
    /// How many gangs are half placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub unknown: Option<i32>,
    /// How many gangs wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub pending: Option<i32>,
    /// How many gangs run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub running: Option<i32>,
    /// How many gangs have room and wait for their pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub inqueue: Option<i32>,
    /// How many gangs ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub completed: Option<i32>,
    /// What its pods use.
    #[serde(skip_serializing_if = "ResourceList::is_empty", deserialize_with = "null_as_default")]
    pub allocated: ResourceList,
    /// What is locked for one large job.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_as_default")]
    pub reservation: Reservation,
}

/// What is locked for one large job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reservation {
    /// The nodes.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub nodes: Vec<String>,
    /// What they have.
    #[serde(skip_serializing_if = "ResourceList::is_empty", deserialize_with = "null_as_default")]
    pub resource: ResourceList,
}

words! {
    /// Whether a queue takes new jobs.
    QueueState {
        /// It does.
        Open = "Open",
        /// It does not, and holds none.
        Closed = "Closed",
        /// It does not, and still holds some.
        Closing = "Closing",
        Unknown = "Unknown",
    }
}

words! {
    /// Whether a job that does not fit holds back those behind it.
    DequeueStrategy {
        Fifo = "fifo",
        Traverse = "traverse",
    }
}
