//! What pods alone can be asked: to be bound to a node, to be evicted.

use krafla_api::Key;
use krafla_schema::object;
use serde_json::{Value, json};

use super::ownership::Ownership;
use super::update::wrong_uid;
use super::{Answer, Api, DeleteOptions, Deleted, Part, WriteOptions, parse};
use crate::registry::Resource;
use crate::status::{Qualified, Status};

impl Api {
    /// Gives a pod to a node, as a `Binding` says.
    pub async fn bind(
        &self,
        pods: &Resource,
        pod: &Key,
        binding: &Value,
        options: &WriteOptions,
    ) -> Result<Answer, Status> {
        let node = binding_target(pod, binding)?;
        let entry = self.accepted(pods, pod).await?;
        if !object::uid(binding).is_empty() && *object::uid(binding) != *entry.uid.0 {
            return Err(wrong_uid(pods, &entry.key, &entry.uid.0, object::uid(binding), options.dry_run));
        }
        let now = self.env().now();
        let bound = self.change(pods, pod, Part::Bind, Ownership::Kept, options, |old| {
            check_bindable(pod, old)?;
            let mut new = old.clone();
            copy_marks(&mut new, binding);
            object::part(&mut new, "spec").insert("nodeName".into(), node.as_str().into());
            let scheduled = json!({
                "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
            });
            set_condition(&mut new, scheduled);
            Ok(new)
        });
        bound.await
    }

    /// Deletes a pod on behalf of somebody who needs its node, as an `Eviction` says.
    pub async fn evict(
        &self,
        pods: &Resource,
        pod: &Key,
        eviction: &Value,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        let named = object::name(eviction);
        if !named.is_empty() && *named != *pod.name {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        let entry = self.accepted(pods, pod).await?;
        self.spend_budget(&parse(&entry)?, options.dry_run).await?;
        if options.uid.is_none() && !options.dry_run && !entry.meta.is_deleting {
            self.mark_disrupted(pods, pod).await?;
        }
        self.delete(pods, pod, options).await
    }

    /// Says in the pod's conditions why it goes, for controllers that treat a disruption unlike a failure.
    async fn mark_disrupted(&self, pods: &Resource, pod: &Key) -> Result<(), Status> {
        let now = self.env().now();
        let options = WriteOptions::default();
        let marked = self.change(pods, pod, Part::Status, Ownership::Kept, &options, |old| {
            let mut new = old.clone();
            let condition = json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
            });
            set_condition(&mut new, condition);
            Ok(new)
        });
        marked.await.map(drop)
    }
}

/// The node that a binding names.
fn binding_target(pod: &Key, binding: &Value) -> Result<String, Status> {
    let named = object::name(binding);
    if !named.is_empty() && *named != *pod.name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let target = |field: &str| {
        binding.pointer(&format!("/target/{field}")).and_then(Value::as_str).unwrap_or_default()
    };
    match (target("kind"), target("name")) {
        ("" | "Node", "") => Err(Status::plain("target.name: Required value")),
        ("" | "Node", node) => Ok(node.to_owned()),
        (kind, _) => {
            let supported = "supported values: \"Node\", \"<empty>\"";
            Err(Status::plain(format!("target.kind: Unsupported value: \"{kind}\": {supported}")))
        }
    }
}

fn check_bindable(pod: &Key, old: &Value) -> Result<(), Status> {
    let about = Qualified { group: "", what: "pods/binding" };
    let refuse = |why: String| Err(Status::conflict(&about, &pod.name, &why));
    let node = object::text_at(old, "spec.nodeName");
    let is_gated =
        old.pointer("/spec/schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty());
    if object::is_deleting(old) {
        return refuse(format!("pod {} is being deleted, cannot be assigned to a host", pod.name));
    }
    if !node.is_empty() {
        return refuse(format!("pod {} is already assigned to node \"{node}\"", pod.name));
    }
    if is_gated {
        return refuse(format!("pod {} has non-empty .spec.schedulingGates", pod.name));
    }
    Ok(())
}

/// A scheduler may leave labels and annotations with its decision.
fn copy_marks(pod: &mut Value, binding: &Value) {
    for field in ["annotations", "labels"] {
        let Some(marks) = binding.pointer(&format!("/metadata/{field}")).and_then(Value::as_object) else {
            continue;
        };
        let existing = object::fields(object::metadata(pod).entry(field).or_insert_with(|| json!({})));
        existing.extend(marks.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}

/// Sets one condition, in the place of the one of its type.
fn set_condition(pod: &mut Value, condition: Value) {
    let conditions = object::part(pod, "status").entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|existing| existing.get("type") == condition.get("type")) {
        Some(existing) => *existing = condition,
        None => conditions.push(condition),
    }
}
