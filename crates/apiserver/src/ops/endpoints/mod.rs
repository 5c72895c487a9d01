//! Keeps the Endpoints and EndpointSlices of Services, as pods come, change and go. What they should be is
//! the business of [`desired`].

mod desired;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use krafla_api::Key;
use krafla_schema::object;
use serde_json::{Value, json};

use self::desired::{
    Desired, ENDPOINTS_MANAGED_BY, ENDPOINTS_MANAGER, Pod, SERVICE_NAME, SLICE_MANAGED_BY, SLICE_MANAGER,
    Service,
};
use super::ownership::Ownership;
use super::{Api, DeleteOptions, Part, WriteOptions, parse};
use crate::registry::Resource;
use crate::status::Status;

const SERVICES: &str = "services";
const PODS: &str = "pods";
/// How long changes are gathered at least, and how many times as long as the last look took: it reads all Services.
const GATHERING: Duration = Duration::from_millis(50);
const REST_FACTOR: u32 = 10;
const REST_MAX: Duration = Duration::from_secs(5);

impl Api {
    /// Keeps the endpoints of all Services, for as long as it is polled.
    pub async fn run_endpoints(self) {
        loop {
            let since = self.store().revision();
            let begun_at = Instant::now();
            let kept = self.keep_endpoints().await;
            let rest = begun_at.elapsed().saturating_mul(REST_FACTOR).clamp(GATHERING, REST_MAX);
            match kept {
                // Without a Service that selects pods, they come and go without anybody looking.
                Ok(has_managed) => {
                    let watched = [SERVICES, PODS].into_iter().take(if has_managed { 2 } else { 1 });
                    self.changed_after(since, watched.map(Into::into).collect(), |_| true).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "the endpoints of a Service cannot be written; retrying");
                }
            }
            tokio::time::sleep(rest).await;
        }
    }

    /// Brings the endpoints of every Service up to date. Returns whether there is one whose endpoints are kept.
    pub async fn keep_endpoints(&self) -> Result<bool, Status> {
        let services = self.store().snapshot(&SERVICES.into());
        let mut has_managed = false;
        for entry in services.entries.values() {
            let service: Service = serde_json::from_slice(&entry.bytes).unwrap_or_default();
            if !service.is_managed() || entry.meta.is_deleting {
                continue;
            }
            has_managed = true;
            if let Some(desired) = desired::desired(&service, &self.selected_pods(&service)) {
                self.write_endpoints(&entry.key, desired).await?;
            }
        }
        self.remove_orphaned_endpoints().await?;
        Ok(has_managed)
    }

    fn selected_pods(&self, service: &Service) -> Vec<Pod> {
        let snapshot = self.store().snapshot(&PODS.into());
        let pods = snapshot.range(Some(&service.metadata.namespace), None);
        let pods = pods.filter(|entry| service.selects(|name| entry.meta.labels.get(name)));
        pods.filter_map(|entry| serde_json::from_slice(&entry.bytes).ok()).collect()
    }

    async fn write_endpoints(&self, service: &Key, desired: Desired) -> Result<(), Status> {
        let Some((endpoints, slices)) = self.endpoint_resources() else { return Ok(()) };
        self.bring_to(&endpoints, desired.endpoints, &["subsets"]).await?;
        let mut wanted = BTreeSet::new();
        for slice in desired.slices {
            wanted.insert(object::name(&slice).to_owned());
            self.bring_to(&slices, slice, &["endpoints", "ports"]).await?;
        }
        for entry in self.store().snapshot(&slices.storage).range(Some(&service.namespace), None) {
            let label = |name: &str| entry.meta.labels.get(name);
            let is_ours =
                label(SERVICE_NAME) == Some(&service.name) && label(SLICE_MANAGED_BY) == Some(SLICE_MANAGER);
            if is_ours && !wanted.contains(&*entry.key.name) {
                self.remove(&slices, &entry.key).await?;
            }
        }
        Ok(())
    }

    /// Slices go with their Service, which owns them. Endpoints have no owner.
    async fn remove_orphaned_endpoints(&self) -> Result<(), Status> {
        let Some((endpoints, _)) = self.endpoint_resources() else { return Ok(()) };
        for entry in self.store().snapshot(&endpoints.storage).entries.values() {
            let is_kept = entry.meta.labels.get(ENDPOINTS_MANAGED_BY) == Some(ENDPOINTS_MANAGER);
            if is_kept && self.store().get(&SERVICES.into(), &entry.key).is_none() {
                self.remove(&endpoints, &entry.key).await?;
            }
        }
        Ok(())
    }

    async fn remove(&self, resource: &Resource, key: &Key) -> Result<(), Status> {
        match self.delete(resource, key, &DeleteOptions::default()).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }

    fn endpoint_resources(&self) -> Option<(std::sync::Arc<Resource>, std::sync::Arc<Resource>)> {
        let registry = self.registry();
        Some((
            registry.find("", "v1", "endpoints")?,
            registry.find("discovery.k8s.io", "v1", "endpointslices")?,
        ))
    }

    /// Makes an object, or changes its labels and these fields of it, where it is not so already.
    pub(crate) async fn bring_to(
        &self,
        resource: &Resource,
        desired: Value,
        fields: &[&str],
    ) -> Result<(), Status> {
        let key = Key::new(object::namespace(&desired), object::name(&desired));
        // The addresses of pods are loopback addresses here, which the rules for clients refuse.
        let options = WriteOptions { is_servers_own: true, ..WriteOptions::default() };
        let Some(entry) = self.store().get(&resource.storage, &key) else {
            return match self.create(resource, &key.namespace, desired, &options).await {
                // The namespace is going away, or somebody was faster: the next look tells.
                Err(status) if matches!(&*status.reason, "AlreadyExists" | "NotFound" | "Forbidden") => {
                    Ok(())
                }
                outcome => outcome.map(drop),
            };
        };
        let changed = |old: &Value| {
            let mut new = old.clone();
            if let Some(labels) = desired.pointer("/metadata/labels") {
                object::set_meta(&mut new, "labels", labels.clone());
            }
            for field in fields {
                match desired.get(field) {
                    Some(value) => object::set(&mut new, field, value.clone()),
                    None => drop(object::remove(&mut new, field)),
                }
            }
            new
        };
        let stored = parse(&entry)?;
        if is_alike(&changed(&stored), &stored) {
            return Ok(());
        }
        let written =
            self.change(resource, &key, Part::Main, Ownership::Kept, &options, |old| Ok(changed(old)));
        match written.await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }
}

/// Whether two objects say the same. A list that is empty may be left out.
fn is_alike(one: &Value, other: &Value) -> bool {
    let fields = |value: &Value| -> Vec<(String, Value)> {
        let fields = value.as_object().into_iter().flatten();
        let fields = fields.filter(|(_, value)| !value.is_null() && **value != json!([]));
        fields.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    fields(one) == fields(other)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;

    use super::*;
    use crate::admit::Admission;
    use crate::env::SystemEnv;
    use crate::store::Store;

    fn api() -> Api {
        let api = Api::new(Store::in_memory(), Arc::new(SystemEnv), Admission::default());
        api.bootstrap().now_or_never().expect("ready at once").expect("a new cluster");
        api
    }

    fn create(api: &Api, plural: &str, object: Value) {
        let resource = api.registry().find("", "v1", plural).unwrap();
        let object = crate::codec::normalise(&resource, &object).unwrap();
        let options = WriteOptions::default();
        api.create(&resource, "default", object, &options).now_or_never().unwrap().unwrap();
    }

    fn get(api: &Api, [group, version, plural]: [&str; 3], name: &str) -> Option<Value> {
        let resource = api.registry().find(group, version, plural).unwrap();
        let entry = api.store().get(&resource.storage, &Key::new("default", name))?;
        Some(serde_json::from_slice(&entry.bytes).unwrap())
    }

    const SLICES: [&str; 3] = ["discovery.k8s.io", "v1", "endpointslices"];
    const OLD: [&str; 3] = ["", "v1", "endpoints"];

    #[test]
    fn a_service_has_endpoints_for_as_long_as_it_is_there() {
        let api = api();
        let ports = json!([{"port": 80}]);
        let service =
            json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}});
        create(&api, "services", service);
        let container = json!({"name": "c", "image": "i"});
        let pod =
            json!({"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {"containers": [container]}});
        create(&api, "pods", pod);
        let keep = || api.keep_endpoints().now_or_never().unwrap().unwrap();
        assert!(keep());
        assert_eq!(get(&api, OLD, "web").unwrap().get("subsets"), None, "the pod has no address yet");

        let pods = api.registry().find("", "v1", "pods").unwrap();
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let status = json!({"status": {"phase": "Running", "podIP": "127.64.0.9", "conditions": ready}});
        let patch = crate::patch::Patch::Merge(status);
        let (key, options) = (Key::new("default", "p"), WriteOptions::default());
        api.patch(&pods, &key, Part::Status, &patch, &options).now_or_never().unwrap().unwrap();
        assert!(keep());
        assert_eq!(get(&api, OLD, "web").unwrap()["subsets"][0]["addresses"][0]["ip"], "127.64.0.9");
        let slice = get(&api, SLICES, "web-0").unwrap();
        assert_eq!(slice["endpoints"][0]["conditions"]["ready"], true);
        let revision = api.store().revision();
        assert!(keep());
        assert_eq!(api.store().revision(), revision, "nothing is written twice");

        let services = api.registry().find("", "v1", "services").unwrap();
        let (key, options) = (Key::new("default", "web"), DeleteOptions::default());
        api.delete(&services, &key, &options).now_or_never().unwrap().unwrap();
        assert!(!keep());
        assert_eq!(get(&api, OLD, "web"), None);
    }
}
