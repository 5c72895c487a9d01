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
        let namespaces = NAMESPACES.map(|name| (Kind::Namespace, json!({"metadata": {"name": name}})));
        let definitions =
            crd::crds().into_iter().map(|definition| (Kind::CustomResourceDefinition, definition));
        let first = namespaces.into_iter().chain(priority_classes()).chain(definitions);
        // None of them needs another, so they wait for the disk together: it takes longer than all the rest.
        try_join_all(first.map(|(kind, object)| self.ensure(kind, object))).await?;
        self.purge_deleted_definitions().await;
        for queue in queues() {
            self.ensure(Kind::Queue, queue).await?;
        }
        Ok(())
    }

    async fn ensure(&self, kind: Kind, object: Value) -> Result<(), Status> {
        let Some(resource) = self.registry().of_kind(kind) else { return Err(Status::unknown_resource()) };
        let status = object.get("status").cloned();
        let name = crate::object::name(&object).to_owned();
        match self.create(&resource, "", object, &WriteOptions::default()).await {
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
