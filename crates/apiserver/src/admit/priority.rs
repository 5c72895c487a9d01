//! A pod's priority is computed from its priority class, when it is created.

use krafla_api::Key;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Operation, Policy, Request};
use crate::object;
use crate::status::Status;

/// Fills in the priority of new pods.
pub(super) struct PodPriority;

const CLASSES: &str = "priorityclasses.scheduling.k8s.io";

impl Policy for PodPriority {
    fn mutate(&self, request: &Request<'_>, pod: &mut Value) -> Result<(), Status> {
        if request.resource.storage.as_str() != "pods" || request.operation != Operation::Create {
            return Ok(());
        }
        let refuse =
            |why: String| Err(Status::forbidden(&request.resource.qualified(), object::name(pod), &why));
        let named = object::text_at(pod, "spec.priorityClassName");
        let class = if named.is_empty() { global_default(request) } else { lookup(request, &named) };
        if !named.is_empty() && class.is_none() {
            return refuse(format!("no PriorityClass with name {named} was found"));
        }
        let value = class.as_ref().map_or(0, |class| class.value);
        let policy = class.as_ref().and_then(|class| class.preemption_policy.as_deref());
        let policy = policy.unwrap_or("PreemptLowerPriority");
        let computed = "must not be provided in pod spec; priority admission controller computed";
        let from = "from the given PriorityClass name";
        match pod.pointer("/spec/priority").and_then(Value::as_i64) {
            Some(given) if given != value => {
                return refuse(format!("the integer value of priority ({given}) {computed} {value} {from}"));
            }
            _ => {}
        }
        match pod.pointer("/spec/preemptionPolicy").and_then(Value::as_str) {
            Some(given) if given != policy => {
                return refuse(format!(
                    "the string value of PreemptionPolicy ({given}) {computed} {policy} {from}"
                ));
            }
            _ => {}
        }
        let spec = object::part(pod, "spec");
        spec.insert("priority".into(), json!(value));
        spec.insert("preemptionPolicy".into(), json!(policy));
        if let Some(class) = class {
            spec.insert("priorityClassName".into(), json!(class.metadata.name));
        }
        Ok(())
    }
}

/// What a priority class says, and no more: every new pod reads some.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PriorityClass {
    metadata: Named,
    #[serde(default)]
    value: i64,
    #[serde(default)]
    preemption_policy: Option<String>,
    #[serde(default)]
    global_default: bool,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

fn lookup(request: &Request<'_>, name: &str) -> Option<PriorityClass> {
    let entry = request.api.store().get(&CLASSES.into(), &Key::new("", name))?;
    serde_json::from_slice(&entry.bytes).ok()
}

/// The class of pods that name none: the lowest of those that offer themselves.
fn global_default(request: &Request<'_>) -> Option<PriorityClass> {
    let snapshot = request.api.store().snapshot(&CLASSES.into());
    let classes = snapshot.entries.values();
    classes
        .filter_map(|entry| serde_json::from_slice::<PriorityClass>(&entry.bytes).ok())
        .filter(|class| class.global_default)
        .min_by_key(|class| class.value)
}
