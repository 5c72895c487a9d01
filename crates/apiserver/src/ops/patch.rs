//! Changing objects by patches.

use krafla_api::Key;
use serde_json::Value;

use super::ownership::Ownership;
use super::update::check_name;
use super::{Answer, Api, Part, WriteOptions};
use crate::codec;
use crate::field::FieldError;
use crate::patch::Patch;
use crate::registry::Resource;
use crate::schema::strategic::go_print;
use crate::status::{Qualified, Status};

/// What is to be done about fields that nobody knows, and about those that come twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Nothing: they are dropped in silence.
    #[default]
    Ignore,
    /// The author is told.
    Warn,
    /// The request is refused.
    Refuse,
}

impl Strictness {
    /// What the author is to be told, or why the request is refused.
    pub fn judge(self, findings: Vec<String>) -> Result<Vec<String>, String> {
        match self {
            Strictness::Ignore => Ok(Vec::new()),
            Strictness::Refuse if !findings.is_empty() => {
                Err(format!("strict decoding error: {}", findings.join(", ")))
            }
            Strictness::Warn | Strictness::Refuse => Ok(findings),
        }
    }
}

/// How the fields of what is written are looked at.
#[derive(Clone, Debug, Default)]
pub struct FieldValidation {
    /// What is to be done about findings.
    pub strictness: Strictness,
    /// What was found in the text of a patch, before it was applied.
    pub found: Vec<String>,
}

impl Api {
    /// Changes what a patch says, and no more.
    pub async fn patch(
        &self,
        resource: &Resource,
        key: &Key,
        part: Part,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Answer, Status> {
        let patched = |old: &Value| {
            let new = patched(resource, patch, options, old)?;
            check_name(&new, key)?;
            Ok(new)
        };
        self.change(resource, key, part, Ownership::Tracked, options, patched).await
    }
}

/// What a patch makes of an object, if that can be read as an object of its kind.
fn patched(resource: &Resource, patch: &Patch, options: &WriteOptions, old: &Value) -> Result<Value, Status> {
    let patched = patch.apply(old, resource.schema)?;
    let refuse = |why: String| unreadable(patch, &patched, why);
    codec::check_still_of_kind(resource, &patched, old).map_err(refuse)?;
    let is_strategic = matches!(patch, Patch::Strategic(_));
    let decoded = codec::decode_patched(resource, &patched, is_strategic).map_err(refuse)?;
    let FieldValidation { strictness, found } = &options.field_validation;
    let findings = found.iter().cloned().chain(decoded.findings.iter().map(ToString::to_string));
    options.warnings.extend(strictness.judge(findings.collect()).map_err(refuse)?);
    Ok(decoded.object)
}

/// A patch made something of the object that its kind cannot be. A strategic one is shown itself, others by what they
/// made.
fn unreadable(patch: &Patch, patched: &Value, why: String) -> Status {
    let shown = match patch {
        Patch::Strategic(patch) => go_print(patch),
        Patch::Merge(_) | Patch::Json(_) => patched.to_string(),
    };
    let error = FieldError::invalid("patch", shown, why);
    Status::invalid(&Qualified { group: "", what: "" }, "", &[error])
}
