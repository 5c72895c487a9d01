//! A Command: what a person asks of a job or a queue. It is removed when it is taken.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::task::Action;
use crate::meta::{ObjectMeta, OwnerReference};
use crate::schema;

/// A request to do something to a job or a queue. Its fields stand beside `metadata`: there is no spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Command {
    #[allow(missing_docs)]
    #[schemars(schema_with = "schema::metadata")]
    pub metadata: ObjectMeta,
    /// What is asked.
    #[serde(flatten)]
    pub fields: CommandFields,
}

/// What is asked of whom, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CommandFields {
    /// What to do.
    #[serde(skip_serializing_if = "Action::is_unset")]
    #[schemars(with = "String")]
    pub action: Action,
    /// To which object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::owner_reference")]
    pub target: Option<OwnerReference>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}
