//! A HyperNode: nodes that share a network, as one vertex in the tree of networks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::DNS_SUBDOMAIN;
use crate::meta::{ObjectMeta, null_as_default};
use crate::schema;

/// Nodes that share a network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HyperNode {
    #[allow(missing_docs)]
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// Which nodes share the network.
    pub spec: HyperNodeSpec,
    /// The nodes found.
    pub status: HyperNodeStatus,
}

/// Which nodes share a network, and how fast it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HyperNodeSpec {
    /// The level of the network: the lower, the faster.
    #[schemars(range(min = 0), extend("x-required" = true))]
    pub tier: i64,
    /// The name of the level.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub tier_name: String,
    /// The nodes or HyperNodes below it.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    #[schemars(length(min = 1))]
    pub members: Vec<Member>,
}

/// Nodes or HyperNodes below a HyperNode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Member {
    /// Whether the members are nodes or HyperNodes.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["Node", "HyperNode"], "x-required" = true))]
    pub member_type: String,
    /// Which ones.
    #[schemars(extend("x-kubernetes-validations" = selector_rules()))]
    pub selector: MemberSelector,
}

/// Chooses members by exactly one of three ways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberSelector {
    /// The member of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact_match: Option<ExactMatch>,
    /// Members whose names match a pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex_match: Option<RegexMatch>,
    /// Nodes with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub label_match: Option<Value>,
}

/// The member of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExactMatch {
    /// The name of the node or HyperNode.
    #[schemars(length(min = 1, max = 253), regex(pattern = DNS_SUBDOMAIN), extend("x-required" = true))]
    pub name: String,
}

/// Members by a pattern.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RegexMatch {
    /// The regular expression that names must match.
    #[schemars(length(min = 1), extend("x-required" = true))]
    pub pattern: String,
}

/// The nodes found below a HyperNode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HyperNodeStatus {
    /// What is true of it at present.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Value>,
    /// How many nodes it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_count: Option<i64>,
}

fn selector_rules() -> Value {
    json!([
        {
            "rule": "has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)",
            "message": "Either ExactMatch or RegexMatch or LabelMatch must be specified",
        },
        {
            "rule": "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) <= 1",
            "message": "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
        },
    ])
}
