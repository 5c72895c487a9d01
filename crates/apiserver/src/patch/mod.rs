//! Patches: how a client says what is to change, and no more.
//!
//! ```text
//!   merge.rs     JSON merge patch: fields replace fields, null removes one
//!   json.rs      JSON patch: a list of operations on places
//! ```
//!
//! Strategic merge patches are in [`crate::schema::strategic`]: the table of types says how lists are merged.

mod json;
mod merge;

use serde_json::Value;

use crate::schema::json::Node;
use crate::schema::strategic;
use crate::schema::table::TypeId;
use crate::status::Status;

pub use merge::merge;

/// A patch, ready to be applied as often as it takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// `application/merge-patch+json`.
    Merge(Value),
    /// `application/json-patch+json`.
    Json(Vec<json::Operation>),
    /// `application/strategic-merge-patch+json`.
    Strategic(Value),
}

impl Patch {
    /// Reads a patch of a media type; `None` if no patch has that type.
    pub fn decode(media_type: &str, body: &[u8]) -> Option<Result<Patch, Status>> {
        match media_type {
            "application/merge-patch+json" => Some(decode_object(body).map(Patch::Merge)),
            "application/json-patch+json" => Some(json::decode(body).map(Patch::Json)),
            "application/strategic-merge-patch+json" => Some(decode_object(body).map(Patch::Strategic)),
            _ => None,
        }
    }

    /// What an object becomes. Its type, if it is a built-in one, says how lists are merged.
    pub fn apply(&self, old: &Value, of: Option<TypeId>) -> Result<Value, Status> {
        match self {
            Patch::Merge(patch) => {
                let mut new = old.clone();
                merge(&mut new, patch);
                Ok(new)
            }
            Patch::Json(operations) => json::apply(old.clone(), operations),
            Patch::Strategic(patch) => {
                let of = of.ok_or_else(strategic_unsupported)?;
                strategic::merge(old.clone(), patch.clone(), of).map_err(Status::bad_request)
            }
        }
    }
}

/// Custom kinds have no types that would say how lists are merged.
fn strategic_unsupported() -> Status {
    Status::unsupported_media_type(
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    )
}

fn decode_object(body: &[u8]) -> Result<Value, Status> {
    let patch = parse(body)?;
    match &patch {
        Value::Object(_) => Ok(patch),
        Value::Null => Err(Status::bad_request("Invalid JSON Patch")),
        other => Err(wrong_type(other, "map[string]interface {}")),
    }
}

fn parse(body: &[u8]) -> Result<Value, Status> {
    let node =
        Node::parse(body).map_err(|why| Status::bad_request(format!("error decoding patch: {why}")))?;
    Ok(node.into_value())
}

/// A value of another JSON type than is read here, in Go's words.
fn wrong_type(value: &Value, expected: &str) -> Status {
    let found = Node::from(value).go_kind();
    Status::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {found} into Go value of type {expected}"
    ))
}
