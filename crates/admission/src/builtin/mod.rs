//! Kubernetes' own kinds that are set up around jobs rather than run: what may be left out, and what is refused.
//!
//! ```text
//!   network.rs   NetworkPolicy, EndpointSlice, Endpoints      rbac.rs       roles and their bindings
//!   storage.rs   PersistentVolume                             disruption.rs PodDisruptionBudget
//!   workload.rs  Deployment, ReplicaSet, StatefulSet, DaemonSet
//! ```
//!
//! The words are kube-apiserver's. Each function says everything that is wrong at once.

pub mod disruption;
pub mod network;
pub mod rbac;
pub mod storage;
pub mod workload;

use serde_json::{Map, Value};

use crate::json::At;
use crate::{Finding, Path, Verdict};

/// Runs checks over an object.
fn findings(object: &Value, check: impl FnOnce(&At<'_>, &mut Verdict)) -> Vec<Finding> {
    let mut verdict = Verdict::default();
    check(&At::new(object, Path::default()), &mut verdict);
    verdict.refusals
}

/// The objects in a list field.
fn items<'a>(of: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let list = of.get_mut(list).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Sets a field unless it is there.
fn default_to(fields: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    let slot = fields.entry(name).or_insert(Value::Null);
    if slot.is_null() {
        *slot = value.into();
    }
}

/// A word must be one of these, if it is there.
fn validate_word(at: &At<'_>, words: &[&str], verdict: &mut Verdict) {
    if at.is_set() && !words.contains(&at.text()) {
        verdict.unsupported(at.path(), at.text(), words);
    }
}

/// A number must not be below zero, if it is there.
fn validate_not_negative(at: &At<'_>, verdict: &mut Verdict) {
    if let Some(number) = at.int().filter(|number| *number < 0) {
        verdict.invalid(at.path(), number, "must be greater than or equal to 0");
    }
}

#[cfg(test)]
fn said(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
