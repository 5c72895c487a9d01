//! Volcano's own rules: what its admission webhooks say on a cluster, said in this process.

use std::sync::Arc;

use krafla_admission::{Cluster, Finding, Settings, Verdict};
use krafla_api::volcano::Queue;
use krafla_api::{Key, Kind};
use krafla_cluster::Cause;
use krafla_schema::object;
use serde_json::Value;

use super::{Operation, Policy, Request};
use crate::ops::Api;
use crate::status::Status;

/// Volcano's rules for jobs, queues, gangs, flows and pods.
#[derive(Clone, Debug, Default)]
pub struct Volcano {
    /// What an administrator has set.
    pub settings: Settings,
}

impl Policy for Volcano {
    fn mutate(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Status> {
        let Some(kind) = kind_of(request) else { return Ok(()) };
        // Volcano completes new objects only, and then refuses to apply the same manifest twice, since it lacks what was
        // filled in. A pod is another matter: it was complete when it was created. And a gang stays in its queue, whatever its
        // namespace says later.
        if request.operation == Operation::Create || !matches!(kind, Kind::Pod | Kind::PodGroup) {
            krafla_admission::default(kind, object, &self.settings, request.api);
        }
        Ok(())
    }

    fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Status> {
        let Some(kind) = kind_of(request) else { return Ok(()) };
        let old = request.old.unwrap_or(&Value::Null);
        let (operation, shown) = match request.operation {
            Operation::Create => (krafla_admission::Operation::Create, object),
            Operation::Update => (krafla_admission::Operation::Update, object),
            Operation::Delete => (krafla_admission::Operation::Delete, &Value::Null),
        };
        let name = object::name(object);
        let asked = krafla_admission::Request { kind, operation, name, object: shown, old };
        refuse(request, name, krafla_admission::validate(asked, &self.settings, request.api))
    }
}

/// The kind, if Volcano has something to say about it.
fn kind_of(request: &Request<'_>) -> Option<Kind> {
    let names = &request.resource.names;
    let kinds = Kind::VOLCANO.into_iter().chain([Kind::Pod]);
    kinds.into_iter().find(|kind| *kind.info().group == *names.group && *kind.info().plural == *names.plural)
}

fn refuse(request: &Request<'_>, name: &str, verdict: Verdict) -> Result<(), Status> {
    if verdict.is_allowed() {
        return Ok(());
    }
    let cause = |finding: Finding| Cause {
        reason: finding.reason.as_str().into(),
        message: finding.message,
        field: finding.field,
    };
    let causes = verdict.refusals.into_iter().map(cause).collect();
    Err(Status::invalid_for(&request.resource.qualified_kind(), name, causes))
}

impl Cluster for Api {
    fn queue(&self, name: &str) -> Option<Arc<Queue>> {
        let queues = self.registry().of_kind(Kind::Queue)?;
        let entry = self.store().get(&queues.storage, &Key::new("", name))?;
        serde_json::from_slice(&entry.bytes).ok().map(Arc::new)
    }

    fn queues(&self) -> Vec<Arc<Queue>> {
        let Some(queues) = self.registry().of_kind(Kind::Queue) else { return Vec::new() };
        let snapshot = self.store().snapshot(&queues.storage);
        let read = snapshot.entries.values().filter_map(|entry| serde_json::from_slice(&entry.bytes).ok());
        read.map(Arc::new).collect()
    }

    fn namespace_annotation(&self, namespace: &str, key: &str) -> Option<String> {
        let entry = self.store().get(&"namespaces".into(), &Key::new("", namespace))?;
        let namespace: Value = serde_json::from_slice(&entry.bytes).ok()?;
        namespace.get("metadata")?.get("annotations")?.get(key)?.as_str().map(str::to_owned)
    }

    fn has_time_zone(&self, name: &str) -> bool {
        self.env().has_time_zone(name)
    }
}
