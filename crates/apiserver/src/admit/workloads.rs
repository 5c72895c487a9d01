//! Warns the author of a set of pods that nothing makes its pods.
//!
//! This server has no controllers for Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers. A
//! kube-controller-manager beside it has them; it holds a Lease for as long as it works.

use krafla_api::Key;
use krafla_schema::object;
use serde_json::Value;

use super::{Operation, Policy, Request};

const KINDS: [(&str, &str); 5] = [
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("", "ReplicationController"),
];

/// The Lease of a working kube-controller-manager.
const LEASE: (&str, &str) = ("kube-system", "kube-controller-manager");

/// The rule.
pub struct WorkloadControllers;

impl Policy for WorkloadControllers {
    fn warnings(&self, request: &Request<'_>, _object: &Value) -> Vec<String> {
        let names = &request.resource.names;
        let is_meant = KINDS.contains(&(&*names.group, &*names.kind));
        if !is_meant || request.operation != Operation::Create || is_controller_there(request) {
            return Vec::new();
        }
        let kind = &names.kind;
        vec![format!(
            "nothing makes the pods of this {kind}: Krafla has no controller for it; run a kube-controller-manager \
             with the kubeconfig of this cluster, or use a Job"
        )]
    }
}

/// Whether a kube-controller-manager holds its Lease now.
fn is_controller_there(request: &Request<'_>) -> bool {
    let api = request.api;
    let lease = api.store().get(&"leases.coordination.k8s.io".into(), &Key::new(LEASE.0, LEASE.1));
    let lease =
        lease.and_then(|entry| serde_json::from_slice::<Value>(&entry.bytes).ok()).unwrap_or_default();
    let seconds = object::at(&lease, "/spec/leaseDurationSeconds").as_i64().unwrap_or(0);
    let is_held = !object::text_at(&lease, "spec.holderIdentity").is_empty();
    let renewed = object::time_at(&lease, "/spec/renewTime").filter(|_| is_held);
    renewed.is_some_and(|renewed| api.env().now().since(renewed).as_secs() <= seconds.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::admit::Admission;
    use crate::env::{Env, SystemEnv};
    use crate::ops::{Api, WriteOptions};
    use crate::store::Store;

    fn create(api: &Api, [group, plural, namespace]: [&str; 3], object: Value) -> Vec<String> {
        let resource = api.registry().find(group, "v1", plural).unwrap();
        let object = crate::codec::normalise(&resource, &object).unwrap();
        let options = WriteOptions::default();
        api.create(&resource, namespace, object, &options).now_or_never().unwrap().unwrap();
        options.warnings.list()
    }

    fn set(name: &str) -> Value {
        let template = json!({
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
        json!({"metadata": {"name": name}, "spec": spec})
    }

    #[test]
    fn a_set_is_warned_about_unless_a_controller_holds_its_lease() {
        let admission = Admission::default().with(WorkloadControllers);
        let api = Api::new(Store::in_memory(), Arc::new(SystemEnv), admission);
        api.bootstrap().now_or_never().unwrap().unwrap();
        for plural in ["deployments", "replicasets", "statefulsets", "daemonsets"] {
            let warned = create(&api, ["apps", plural, "default"], set("a"));
            assert!(
                warned.len() == 1 && warned[0].starts_with("nothing makes the pods of this "),
                "{plural}: {warned:?}"
            );
        }
        assert!(create(&api, ["", "configmaps", "default"], json!({"metadata": {"name": "a"}})).is_empty());

        let renewed = SystemEnv.now().to_micro_string();
        let spec = json!({"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": renewed});
        let lease = json!({"metadata": {"name": LEASE.1}, "spec": spec});
        create(&api, ["coordination.k8s.io", "leases", LEASE.0], lease);
        assert_eq!(create(&api, ["apps", "deployments", "default"], set("b")), Vec::<String>::new());
    }
}
