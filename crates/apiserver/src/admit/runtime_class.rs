//! A pod that asks for a runtime by name gets what that runtime costs added to it, and the nodes that have it.

use krafla_api::Key;
use krafla_schema::object;
use serde_json::{Map, Value};

use super::{Operation, Policy, Request};
use crate::status::Status;

/// Looks runtime classes up.
pub(super) struct RuntimeClass;

const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

impl Policy for RuntimeClass {
    fn mutate(&self, request: &Request<'_>, pod: &mut Value) -> Result<(), Status> {
        if !is_new_pod(request) {
            return Ok(());
        }
        let Some(class) = class_of(request, pod)? else { return Ok(()) };
        let refuse =
            |pod: &Value, why: &str| Status::forbidden(&request.resource.qualified(), object::name(pod), why);
        if let Some(overhead) = class.pointer("/overhead/podFixed") {
            if overhead_of(pod).is_some_and(|given| Some(given) != overhead.as_object()) {
                return Err(refuse(pod, OTHER_OVERHEAD));
            }
            object::part(pod, "spec").insert("overhead".into(), overhead.clone());
        }
        schedule(&class, pod).map_err(|why| refuse(pod, &why))
    }

    fn validate(&self, request: &Request<'_>, pod: &Value) -> Result<(), Status> {
        let overhead = overhead_of(pod);
        if !is_new_pod(request) || overhead.is_none() {
            return Ok(());
        }
        let class = class_of(request, pod)?.unwrap_or_default();
        let why = match class.pointer("/overhead/podFixed").map(Value::as_object) {
            None => "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            Some(defined) if defined != overhead => OTHER_OVERHEAD,
            Some(_) => return Ok(()),
        };
        Err(Status::forbidden(&request.resource.qualified(), object::name(pod), why))
    }
}

fn is_new_pod(request: &Request<'_>) -> bool {
    request.resource.storage.as_str() == "pods" && request.operation == Operation::Create
}

fn overhead_of(pod: &Value) -> Option<&Map<String, Value>> {
    pod.pointer("/spec/overhead").and_then(Value::as_object).filter(|overhead| !overhead.is_empty())
}

/// The class that a pod asks for, if it does.
fn class_of(request: &Request<'_>, pod: &Value) -> Result<Option<Value>, Status> {
    let name = object::text_at(pod, "spec.runtimeClassName");
    if name.is_empty() {
        return Ok(None);
    }
    let entry = request.api.store().get(&"runtimeclasses.node.k8s.io".into(), &Key::new("", &name));
    let Some(entry) = entry else {
        let why = format!("pod rejected: RuntimeClass {name:?} not found");
        return Err(Status::forbidden(&request.resource.qualified(), object::name(pod), &why));
    };
    Ok(Some(serde_json::from_slice(&entry.bytes).unwrap_or_default()))
}

/// Sends a pod to the nodes that have its runtime.
fn schedule(class: &Value, pod: &mut Value) -> Result<(), String> {
    let nodes = class.pointer("/scheduling/nodeSelector").and_then(Value::as_object);
    let spec = object::part(pod, "spec");
    for (key, value) in nodes.into_iter().flatten() {
        let selector = object::fields(spec.entry("nodeSelector").or_insert(Value::Null));
        if let Some(other) = selector.get(key).filter(|other| *other != value) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (wanted, given) = (text(value), text(other));
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {given}"
            ));
        }
        selector.insert(key.clone(), value.clone());
    }
    let more = class.pointer("/scheduling/tolerations").and_then(Value::as_array);
    for toleration in more.into_iter().flatten() {
        let list = spec.entry("tolerations").or_insert_with(|| Value::Array(Vec::new()));
        if let Some(list) = list.as_array_mut().filter(|list| !list.contains(toleration)) {
            list.push(toleration.clone());
        }
    }
    Ok(())
}
