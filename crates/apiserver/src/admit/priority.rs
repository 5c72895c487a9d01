//! A pod's priority is computed from its priority class, when it is created.

use std::sync::Arc;

use krafla_api::Key;
use krafla_schema::object;
use serde::Deserialize;
use serde_json::{Value, json};

use super::kept::Kept;
use super::{Operation, Policy, Request};
use crate::status::Status;

/// Fills in the priority of new pods. Every one of them asks the same few classes, which are read once.
#[derive(Default)]
pub(super) struct PodPriority {
    classes: Kept<PriorityClass>,
}

const CLASSES: &str = "priorityclasses.scheduling.k8s.io";

impl Policy for PodPriority {
    fn mutate(&self, request: &Request<'_>, pod: &mut Value) -> Result<(), Status> {
        if request.resource.storage.as_str() != "pods" || request.operation != Operation::Create {
            return Ok(());
        }
        let refuse =
            |why: String| Err(Status::forbidden(&request.resource.qualified(), object::name(pod), &why));
        let named = object::text_at(pod, "spec.priorityClassName");
        let class =
            if named.is_empty() { self.global_default(request) } else { self.lookup(request, &named) };
        if !named.is_empty() && class.is_none() {
            return refuse(format!("no PriorityClass with name {named} was found"));
        }
        let value = class.as_ref().map_or(0, |class| class.value);
        let policy = class.as_ref().and_then(|class| class.preemption_policy.as_deref());
        let policy = policy.unwrap_or("PreemptLowerPriority");
        let computed = "must not be provided in pod spec; priority admission controller computed";
        let from = "from the given PriorityClass name";
        match object::at(pod, "/spec/priority").as_i64() {
            Some(given) if given != value => {
                return refuse(format!("the integer value of priority ({given}) {computed} {value} {from}"));
            }
            _ => {}
        }
        match object::at(pod, "/spec/preemptionPolicy").as_str() {
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

impl PodPriority {
    fn lookup(&self, request: &Request<'_>, name: &str) -> Option<Arc<PriorityClass>> {
        let snapshot = request.api.store().snapshot(&CLASSES.into());
        let entry = snapshot.get(&Key::new("", name))?;
        self.classes.one(&snapshot, entry, PriorityClass::read)
    }

    /// The class of pods that name none: the lowest of those that offer themselves.
    fn global_default(&self, request: &Request<'_>) -> Option<Arc<PriorityClass>> {
        let classes = self.classes.all(&request.api.store().snapshot(&CLASSES.into()), PriorityClass::read);
        classes.into_iter().filter(|class| class.global_default).min_by_key(|class| class.value)
    }
}

impl PriorityClass {
    /// Reads a stored class, which was checked when it was stored.
    fn read(class: Value) -> PriorityClass {
        serde_json::from_value(class).unwrap_or_default()
    }
}

/// What a priority class says, as far as it concerns pods.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PriorityClass {
    metadata: Named,
    value: i64,
    preemption_policy: Option<String>,
    global_default: bool,
}

#[derive(Default, Deserialize)]
struct Named {
    name: String,
}
