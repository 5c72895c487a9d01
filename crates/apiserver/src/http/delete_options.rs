//! How an object is to be deleted, as bodies and query parameters say it.

use krafla_plan::Propagation;
use serde_json::Value;

use super::query::Query;
use crate::codec;
use crate::field::FieldError;
use crate::ops::DeleteOptions;
use crate::status::{Qualified, Status};

/// Reads delete options. A body counts more than parameters.
pub(super) fn decode(content_type: &str, body: &[u8], query: &Query) -> Result<DeleteOptions, Status> {
    if body.is_empty() {
        return of(&Value::Null, query);
    }
    let options = codec::decode_any(["", "v1", "DeleteOptions"], content_type, body)?;
    match options.get("kind").and_then(Value::as_str) {
        None | Some("" | "DeleteOptions") => of(&options, query),
        Some(kind) => {
            let version = options.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            Err(Status::bad_request(codec::not_registered(kind, version)))
        }
    }
}

/// Reads delete options that are part of another body.
pub(super) fn of(body: &Value, query: &Query) -> Result<DeleteOptions, Status> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let policy = text("/propagationPolicy").or_else(|| query.get("propagationPolicy").map(str::to_owned));
    let orphan = body.get("orphanDependents").and_then(Value::as_bool);
    let orphan = orphan.or_else(|| query.get("orphanDependents").map(|_| query.flag("orphanDependents")));
    let grace = body.get("gracePeriodSeconds").and_then(Value::as_i64);
    let grace = match grace {
        Some(seconds) => Some(seconds),
        None => query.number("gracePeriodSeconds")?,
    };
    let in_body = body.get("dryRun").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    Ok(DeleteOptions {
        warnings: Default::default(),
        grace_seconds: grace,
        uid: text("/preconditions/uid"),
        revision: text("/preconditions/resourceVersion"),
        propagation: propagation(policy.as_deref(), orphan)?,
        dry_run: in_body || query.text("dryRun") == "All",
    })
}

fn propagation(policy: Option<&str>, orphan: Option<bool>) -> Result<Option<Propagation>, Status> {
    let refuse = |error: FieldError| {
        Err(Status::invalid(&Qualified { group: "meta.k8s.io", what: "DeleteOptions" }, "", &[error]))
    };
    match (policy, orphan) {
        (Some(policy), Some(_)) => {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            refuse(FieldError::invalid("propagationPolicy", policy, why))
        }
        (Some("Background"), None) => Ok(Some(Propagation::Background)),
        (Some("Foreground"), None) => Ok(Some(Propagation::Foreground)),
        (Some("Orphan"), None) => Ok(Some(Propagation::Orphan)),
        (Some(other), None) => {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            refuse(FieldError::not_supported("propagationPolicy", other, &supported))
        }
        (None, Some(true)) => Ok(Some(Propagation::Orphan)),
        (None, Some(false)) => Ok(Some(Propagation::Background)),
        (None, None) => Ok(None),
    }
}
