//! How an object is to be deleted, as bodies and query parameters say it.

use krafla_cluster::Propagation;
use krafla_schema::field::FieldError;
use serde_json::{Value, json};

use super::query::Query;
use super::write_options::check_dry_run;
use crate::codec;
use crate::ops::DeleteOptions;
use crate::status::{Qualified, Status};

/// Reads delete options. Where there is a body, parameters do not count.
pub(super) fn decode(content_type: &str, body: &[u8], query: &Query) -> Result<DeleteOptions, Status> {
    if body.is_empty() {
        return from_query(query)?.checked();
    }
    from_body(&codec::decode_options("DeleteOptions", content_type, body)?)
}

/// Reads delete options that are part of another body.
pub(super) fn from_body(body: &Value) -> Result<DeleteOptions, Status> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let dry_run = body.get("dryRun").and_then(Value::as_array).into_iter().flatten();
    let dry_run = dry_run.filter_map(Value::as_str).map(str::to_owned);
    let said = Said {
        grace_seconds: body.get("gracePeriodSeconds").and_then(Value::as_i64),
        uid: text("/preconditions/uid"),
        revision: text("/preconditions/resourceVersion"),
        orphans: body.get("orphanDependents").and_then(Value::as_bool),
        policy: text("/propagationPolicy"),
        dry_run: dry_run.collect(),
    };
    said.checked()
}

fn from_query(query: &Query) -> Result<Said, Status> {
    let named = |name: &str| query.get(name).filter(|value| !value.is_empty()).map(str::to_owned);
    Ok(Said {
        grace_seconds: query.number("gracePeriodSeconds")?,
        uid: named("uid"),
        revision: named("resourceVersion"),
        orphans: query.choice("orphanDependents"),
        policy: query.get("propagationPolicy").map(str::to_owned),
        dry_run: query.all("dryRun").map(str::to_owned).collect(),
    })
}

/// What was said, before anybody knows whether it makes sense.
struct Said {
    grace_seconds: Option<i64>,
    uid: Option<String>,
    revision: Option<String>,
    orphans: Option<bool>,
    policy: Option<String>,
    dry_run: Vec<String>,
}

impl Said {
    fn checked(self) -> Result<DeleteOptions, Status> {
        let mut errors = Vec::new();
        if let (Some(policy), Some(_)) = (&self.policy, self.orphans) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid("propagationPolicy", policy.as_str(), why));
        }
        let propagation = match (self.policy.as_deref(), self.orphans) {
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some(other), _) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported("propagationPolicy", json!(other), &supported));
                None
            }
            (None, None) => None,
        };
        errors.extend(check_dry_run(self.dry_run.iter().map(String::as_str)));
        if !errors.is_empty() {
            let about = Qualified { group: "meta.k8s.io", what: "DeleteOptions" };
            return Err(Status::invalid(&about, "", &errors));
        }
        Ok(DeleteOptions {
            warnings: Default::default(),
            user: None,
            grace_seconds: self.grace_seconds,
            uid: self.uid,
            revision: self.revision,
            propagation,
            accepts_later: self.orphans == Some(false),
            dry_run: !self.dry_run.is_empty(),
        })
    }
}
