//! Limit ranges of a namespace: what pods get when they say nothing, and how much they may ask for.

use krafla_admission::builtin::limits;
use krafla_schema::object;
use serde_json::Value;

use super::{Operation, Policy, Request};
use crate::status::Status;

/// Applies limit ranges to new pods and claims.
pub(super) struct LimitRanges;

impl Policy for LimitRanges {
    fn mutate(&self, request: &Request<'_>, pod: &mut Value) -> Result<(), Status> {
        if is_new(request, "pods") {
            for range in ranges(request, object::namespace(pod)) {
                limits::fill_in(&range, pod);
            }
        }
        Ok(())
    }

    fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Status> {
        let broken_by = match () {
            () if is_new(request, "pods") => limits::broken_by_pod,
            () if is_new(request, "persistentvolumeclaims") => limits::broken_by_claim,
            () => return Ok(()),
        };
        for range in ranges(request, object::namespace(object)) {
            let broken = broken_by(&range, object);
            let why = match broken.as_slice() {
                [] => continue,
                [one] => one.clone(),
                several => format!("[{}]", several.join(", ")),
            };
            return Err(Status::forbidden(&request.resource.qualified(), object::name(object), &why));
        }
        Ok(())
    }
}

fn is_new(request: &Request<'_>, storage: &str) -> bool {
    request.operation == Operation::Create && request.resource.storage.as_str() == storage
}

fn ranges(request: &Request<'_>, namespace: &str) -> Vec<Value> {
    let ranges = request.api.store().snapshot(&"limitranges".into());
    let ranges = ranges.range(Some(namespace), None);
    ranges.filter_map(|entry| serde_json::from_slice(&entry.bytes).ok()).collect()
}
