//! A pod that asks for a runtime by name gets what that runtime costs added to it.

use krafla_api::Key;
use serde_json::Value;

use super::{Operation, Policy, Request};
use crate::object;
use crate::status::Status;

/// Looks runtime classes up.
pub(super) struct RuntimeClass;

impl Policy for RuntimeClass {
    fn mutate(&self, request: &Request<'_>, pod: &mut Value) -> Result<(), Status> {
        let name = object::text_at(pod, "spec.runtimeClassName");
        let is_new_pod =
            request.resource.storage.as_str() == "pods" && request.operation == Operation::Create;
        if !is_new_pod || name.is_empty() {
            return Ok(());
        }
        let entry = request.api.store().get(&"runtimeclasses.node.k8s.io".into(), &Key::new("", &name));
        let Some(entry) = entry else {
            let why = format!("pod rejected: RuntimeClass {name:?} not found");
            return Err(Status::forbidden(&request.resource.qualified(), object::name(pod), &why));
        };
        let class: Value = serde_json::from_slice(&entry.bytes).unwrap_or_default();
        if let Some(overhead) = class.pointer("/overhead/podFixed") {
            object::part(pod, "spec").insert("overhead".into(), overhead.clone());
        }
        Ok(())
    }
}
