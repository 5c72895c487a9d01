//! Patches: how a client says what is to change, and no more.
//!
//! ```text
//!   merge.rs     JSON merge patch: fields replace fields, null removes one
//!   json.rs      JSON patch: a list of operations on places
//! ```
//!
//! Strategic merge patches are in [`krafla_schema::strategic`]: the table of types says how lists are merged.

mod json;
mod merge;

use krafla_schema::decode;
use krafla_schema::json::Node;
use krafla_schema::strategic;
use krafla_schema::table::TypeId;
use serde_json::Value;

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

/// A patch, and what strict field validation says about its text.
pub type Decoded = (Patch, Vec<String>);

impl Patch {
    /// Reads a patch of a media type; `None` if no patch has that type.
    pub fn decode(media_type: &str, body: &[u8]) -> Option<Result<Decoded, Status>> {
        match media_type {
            "application/merge-patch+json" => Some(decode_merge(body)),
            "application/json-patch+json" => Some(json::decode(body)),
            "application/strategic-merge-patch+json" => Some(decode_strategic(body)),
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
                strategic::merge(old.clone(), patch.clone(), of).map_err(strategic_refused)
            }
        }
    }
}

/// What a list of operations, as JSON, makes of an object; `None` if a test among them fails.
pub fn apply_operations(object: Value, operations: &Value) -> Result<Option<Value>, String> {
    let decoded = json::decode(operations.to_string().as_bytes());
    let (patch, _) = decoded.map_err(|status| status.message)?;
    match patch {
        Patch::Json(operations) => json::apply_if_tested(object, &operations),
        Patch::Merge(_) | Patch::Strategic(_) => Ok(Some(object)),
    }
}

/// A strategic merge patch that cannot be applied. Upstream takes most faults for its own.
fn strategic_refused(why: String) -> Status {
    match why.as_str() {
        "invalid JSON document"
        | "invalid patch format of primitive list"
        | "invalid patch format of retainKeys"
        | "invalid patch format of setElementOrder list"
        | "strategic merge patch format is not supported" => Status::bad_request(why),
        _ => Status::plain(why),
    }
}

/// Custom kinds have no types that would say how lists are merged.
fn strategic_unsupported() -> Status {
    Status::unsupported_media_type(
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    )
}

fn decode_merge(body: &[u8]) -> Result<Decoded, Status> {
    let node = Node::parse(body).map_err(|why| undecodable(&why))?;
    match &node {
        Node::Object(_) => Ok(with_findings(node, Patch::Merge)),
        Node::Null => Err(Status::bad_request("Invalid JSON Patch")),
        other => Err(undecodable(&wrong_type(other, FIELDS))),
    }
}

/// A strategic merge patch of null changes nothing.
fn decode_strategic(body: &[u8]) -> Result<Decoded, Status> {
    let node = Node::parse(body).map_err(Status::bad_request)?;
    match &node {
        Node::Object(_) | Node::Null => Ok(with_findings(node, Patch::Strategic)),
        other => Err(Status::bad_request(wrong_type(other, FIELDS))),
    }
}

const FIELDS: &str = "map[string]interface {}";

fn with_findings(node: Node<'_>, patch: fn(Value) -> Patch) -> Decoded {
    let findings = decode::duplicates(&node).iter().map(ToString::to_string).collect();
    (patch(node.into_value()), findings)
}

fn undecodable(why: &str) -> Status {
    Status::bad_request(format!("error decoding patch: {why}"))
}

/// A value of another JSON type than is read here, in Go's words.
fn wrong_type(node: &Node<'_>, expected: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {expected}", node.go_kind())
}
