//! What a new cluster has from its first moment.

use futures_util::future::try_join_all;
use krafla_api::{Kind, crd};
use serde_json::{Value, json};

use crate::ops::{Api, WriteOptions};
use crate::status::Status;

const NAMESPACES: [&str; 5] = ["default", "kube-system", "kube-public", "kube-node-lease", "volcano-system"];

impl Api {
    /// Makes sure that the standard objects are there, and leaves those alone that are.
    pub async fn bootstrap(&self) -> Result<(), Status> {
        // None of them needs another, so they wait for the disk together: it takes longer than all the rest.
        try_join_all(first().map(|(kind, object)| self.ensure(kind, object))).await?;
        self.purge_deleted_definitions().await;
        for queue in queues() {
            self.ensure(Kind::Queue, queue).await?;
        }
        Ok(())
    }

    async fn ensure(&self, kind: Kind, object: Value) -> Result<(), Status> {
        let Some(resource) = self.registry().of_kind(kind) else { return Err(Status::unknown_resource()) };
        let status = object.get("status").cloned();
        let name = krafla_schema::object::name(&object).to_owned();
        // A test checks once that they are valid: to check eleven schemas at every start takes longer than all the rest.
        let options = WriteOptions { is_servers_own: true, ..WriteOptions::default() };
        match self.create(&resource, "", object, &options).await {
            Err(status) if status.reason == "AlreadyExists" => return Ok(()),
            outcome => outcome?,
        };
        // A status that belongs to the object from the start goes the way of any other status.
        if let Some(status) =
            status.filter(|_| resource.has_status() && kind != Kind::CustomResourceDefinition)
        {
            let key = krafla_api::Key::new("", &name);
            let patch = crate::patch::Patch::Merge(json!({"status": status}));
            self.patch(&resource, &key, crate::ops::Part::Status, &patch, &WriteOptions::default()).await?;
        }
        Ok(())
    }
}

/// The standard objects that need no other object.
fn first() -> impl Iterator<Item = (Kind, Value)> {
    let namespaces = NAMESPACES.map(|name| (Kind::Namespace, json!({"metadata": {"name": name}})));
    let definitions = crd::crds().into_iter().map(|definition| (Kind::CustomResourceDefinition, definition));
    namespaces.into_iter().chain(priority_classes()).chain(definitions)
}

/// The classes of pods that a cluster cannot do without.
fn priority_classes() -> [(Kind, Value); 2] {
    let class = |name: &str, value: i64| {
        let description = "Used for system critical pods.";
        let class = json!({"metadata": {"name": name}, "value": value, "description": description});
        (Kind::PriorityClass, class)
    };
    [class("system-node-critical", 2_000_001_000), class("system-cluster-critical", 2_000_000_000)]
}

/// Volcano's two standard queues: jobs that name no queue use `default`, and `root`, which comes first, is above all.
fn queues() -> [Value; 2] {
    let queue = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}});
    [
        queue("root", json!({"weight": 1, "reclaimable": false})),
        queue("default", json!({"weight": 1, "parent": "root", "reclaimable": true})),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::admit::{Admission, Volcano};
    use crate::env::SystemEnv;
    use crate::store::Store;

    /// A start does not validate them.
    #[tokio::test]
    async fn the_standard_objects_are_valid() {
        let api =
            Api::new(Store::in_memory(), Arc::new(SystemEnv), Admission::default().with(Volcano::default()));
        let queues = queues().map(|queue| (Kind::Queue, queue));
        for (kind, object) in first().chain(queues) {
            let resource = api.registry().of_kind(kind).unwrap();
            let name = krafla_schema::object::name(&object).to_owned();
            let options = WriteOptions::default();
            let created = api.create(&resource, "", object, &options).await;
            assert_eq!(created.map(drop), Ok(()), "{kind} {name}");
        }
    }
}
