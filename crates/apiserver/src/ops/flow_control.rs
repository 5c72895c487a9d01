//! Keeps the flow schemas and priority levels that a cluster cannot do without, says of each schema whether its priority
//! level exists, and publishes the flows by which requests are classified.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use krafla_admission::builtin::flow;
use krafla_api::Key;
use krafla_schema::object;
use serde_json::{Value, json};

use super::{Api, Part, WriteOptions, parse};
use crate::flow::Flow;
use crate::patch::Patch;
use crate::registry::Resource;
use crate::status::Status;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const SCHEMAS: &str = "flowschemas";
const LEVELS: &str = "prioritylevelconfigurations";
const RETRY: Duration = Duration::from_secs(1);

impl Api {
    /// Keeps them for as long as it is polled.
    pub async fn run_flow_control(self) {
        loop {
            let since = self.store().revision();
            match self.keep_flow_control().await {
                Ok(()) => {
                    let watched = [SCHEMAS, LEVELS].map(|plural| format!("{plural}.{GROUP}").as_str().into());
                    self.changed_after(since, BTreeSet::from(watched), |_| true).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "flow schemas cannot be written; retrying");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// The flows that requests are classified by, in the order in which they are tried.
    pub fn flows(&self) -> Arc<Vec<Flow>> {
        self.inner.flows.load_full()
    }

    /// Creates what is missing and says of each schema whether its priority level exists.
    pub async fn keep_flow_control(&self) -> Result<(), Status> {
        let find = |plural| self.registry().find(GROUP, "v1", plural);
        let (Some(schemas), Some(levels)) = (find(SCHEMAS), find(LEVELS)) else { return Ok(()) };
        for level in flow::levels() {
            self.create_missing(&levels, level).await?;
        }
        for schema in flow::schemas() {
            self.create_missing(&schemas, schema).await?;
        }
        let known: BTreeMap<Key, String> = self
            .store()
            .snapshot(&levels.storage)
            .entries
            .values()
            .map(|entry| (entry.key.clone(), entry.uid.to_string()))
            .collect();
        let mut flows = Vec::new();
        for entry in self.store().snapshot(&schemas.storage).entries.values() {
            let schema = parse(entry)?;
            let level = object::text_at(&schema, "spec.priorityLevelConfiguration.name");
            let uid = known.get(&Key::new("", &level));
            self.say_dangling(&schemas, &entry.key, &schema, &level, uid.is_none()).await?;
            flows.extend(uid.and_then(|uid| Flow::new(&schema, uid)));
        }
        crate::flow::sort(&mut flows);
        self.inner.flows.store(Arc::new(flows));
        Ok(())
    }

    async fn create_missing(&self, resource: &Resource, object: Value) -> Result<(), Status> {
        let key = Key::new("", object::name(&object));
        if self.store().get(&resource.storage, &key).is_some() {
            return Ok(());
        }
        match self.create(resource, "", object, &WriteOptions::default()).await {
            Err(status) if &*status.reason != "AlreadyExists" => Err(status),
            _ => Ok(()),
        }
    }

    async fn say_dangling(
        &self,
        resource: &Resource,
        key: &Key,
        schema: &Value,
        level: &str,
        is_dangling: bool,
    ) -> Result<(), Status> {
        let conditions = object::at(schema, "/status/conditions").as_array().cloned().unwrap_or_default();
        let (status, reason, end) = if is_dangling {
            ("True", "NotFound", "but there is no such object")
        } else {
            ("False", "Found", "and it exists")
        };
        let message =
            format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} {end}");
        let is_said = |condition: &Value| {
            condition["type"] == "Dangling"
                && condition["status"] == status
                && condition["message"] == message
        };
        if conditions.iter().any(is_said) {
            return Ok(());
        }
        let said = json!({
            "type": "Dangling", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": self.env().now(),
        });
        let others = conditions.into_iter().filter(|condition| condition["type"] != "Dangling");
        let conditions: Vec<Value> = others.chain([said]).collect();
        let revision = object::meta(schema, "resourceVersion");
        let patch = Patch::Merge(
            json!({"metadata": {"resourceVersion": revision}, "status": {"conditions": conditions}}),
        );
        match self.patch(resource, key, Part::Status, &patch, &WriteOptions::default()).await {
            // The object has changed or is gone; the next look tells.
            Err(status) if !matches!(status.code, 404 | 409) => Err(status),
            _ => Ok(()),
        }
    }
}
