//! Kinds about nodes that Volcano's agents write and its schedulers read: Numatopology, NodeShard and
//! ColocationConfiguration. Krafla serves and checks them; its own scheduler reads none of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Time;
use crate::meta::{ObjectMeta, null_as_default};
use crate::schema;

/// The processors of a node and how near they are to each other. It has the name of its node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Numatopology {
    #[allow(missing_docs)]
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// The processors of the node.
    pub spec: NumatopologySpec,
}

/// The processors of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NumatopologySpec {
    /// The policy of each manager of the kubelet.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub policies: BTreeMap<String, String>,
    /// What is reserved on the node, by resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub res_reserved: BTreeMap<String, String>,
    /// The resources of the NUMA nodes, by resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub numares: BTreeMap<String, NumaResource>,
    /// Where each processor is, by its number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_default")]
    pub cpu_detail: BTreeMap<String, CpuInfo>,
}

/// A resource of the NUMA nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NumaResource {
    /// What pods may use, as a list of ranges.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub allocatable: String,
    /// How much there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<i64>,
}

/// Where a processor is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CpuInfo {
    /// Its NUMA node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub numa: Option<i64>,
    /// Its socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub socket: Option<i64>,
    /// Its core.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub core: Option<i64>,
}

/// The nodes that one of several schedulers has to itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NodeShard {
    #[allow(missing_docs)]
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// Which nodes the scheduler is to have.
    #[schemars(extend("x-required" = true))]
    pub spec: NodeShardSpec,
    /// Which nodes the scheduler has.
    pub status: NodeShardStatus,
}

/// Which nodes a scheduler is to have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeShardSpec {
    /// Names of nodes.
    #[serde(deserialize_with = "null_as_default")]
    #[schemars(extend("x-required" = true))]
    pub nodes_desired: Vec<String>,
}

/// Which nodes a scheduler has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeShardStatus {
    /// The nodes that the scheduler uses.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub nodes_in_use: Vec<String>,
    /// The nodes that it will give up.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub nodes_to_remove: Vec<String>,
    /// The nodes that it will get.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub nodes_to_add: Vec<String>,
    /// When the status was written last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
}

/// How pods of different urgency share the memory of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ColocationConfiguration {
    #[allow(missing_docs)]
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// Which pods are meant, and their memory.
    #[schemars(extend("x-required" = true))]
    pub spec: ColocationSpec,
    /// What is true of it at present.
    pub status: ColocationStatus,
}

/// Which pods are meant, and their memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ColocationSpec {
    /// The pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub selector: Option<Value>,
    /// Their memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_qos: Option<MemoryQos>,
}

/// Parts of a pod's memory, in percent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryQos {
    /// From where on the pod is slowed down.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100), extend("x-default" = 100))]
    pub high_ratio: Option<i64>,
    /// What is taken from the pod only when there is no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100), extend("x-default" = 0))]
    pub low_ratio: Option<i64>,
    /// What is never taken from the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100), extend("x-default" = 0))]
    pub min_ratio: Option<i64>,
}

/// What is true of a ColocationConfiguration at present.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ColocationStatus {
    /// What is true of it at present.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    #[schemars(schema_with = "schema::conditions_by_type")]
    pub conditions: Vec<Value>,
}
