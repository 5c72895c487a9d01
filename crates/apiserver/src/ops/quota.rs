//! Quotas: what a new object costs, or a changed one costs more, is charged before it is stored, and what goes is counted
//! out again later.
//!
//! A charge is a write to the quota on the condition that nobody else charged it meanwhile, so a quota is never overdrawn
//! by two at once. If the object is not stored after all, the quota stays charged until it is counted anew; the other
//! order would let too much through. Nothing is counted between a charge and the write that it is for: that count would
//! give the charge back.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use krafla_admission::builtin::quota;
use krafla_api::{Key, Quantity};
use krafla_schema::object;
use serde_json::{Value, json};
use tokio::sync::{RwLock, RwLockReadGuard};

use super::ownership::Ownership;
use super::{Api, Part, WriteOptions, parse};
use crate::registry::Resource;
use crate::status::Status;
use crate::store::ResourceId;

const QUOTAS: &str = "resourcequotas";
/// Whoever counts waits until all that is charged is stored.
pub(super) type Books = RwLock<()>;
/// Something is charged, and not yet stored.
pub(super) type Charge<'a> = RwLockReadGuard<'a, ()>;
/// How long changes are gathered before quotas are counted anew: counting looks at every object of a namespace.
const GATHERING: Duration = Duration::from_millis(200);

impl Api {
    /// Charges all quotas of a namespace with a new object, or with what a changed one costs more, or refuses it.
    pub(super) async fn charge(
        &self,
        resource: &Resource,
        object: &Value,
        before: Option<&Value>,
        options: &WriteOptions,
    ) -> Result<Option<Charge<'_>>, Status> {
        let mut quotas = self.store().snapshot(&QUOTAS.into());
        // Events tell of trouble, also of that with quotas.
        if quotas.entries.is_empty() || resource.storage.as_str() == "events" {
            return Ok(None);
        }
        let Some(of_quotas) = self.registry().find("", "v1", QUOTAS) else { return Ok(None) };
        let namespace = Some(object::namespace(object));
        let is_uncounted = |quota: Value| !is_counted(&quota, resource);
        // What nobody has counted yet can not be charged: a crowd right behind a new quota would get past it.
        if quotas.range(namespace, None).any(|entry| parse(entry).is_ok_and(is_uncounted)) {
            self.count_quotas_of(namespace).await?;
            quotas = self.store().snapshot(&QUOTAS.into());
        }
        let charge = self.inner.quotas.read().await;
        let (plural, group) = (&resource.names.plural, &resource.names.group);
        for entry in quotas.range(namespace, None) {
            if quota::charge(&parse(entry)?, plural, group, object, before).is_none() {
                continue;
            }
            let options = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
            let charged = |old: &Value| match quota::charge(old, plural, group, object, before) {
                None => Ok(old.clone()),
                Some(Ok(used)) => Ok(with_status(old, "used", &used)),
                Some(Err(why)) => Err(Status::forbidden(&resource.qualified(), object::name(object), &why)),
            };
            let (part, managers) = (Part::Status, Ownership::Kept);
            match self.change(&of_quotas, &entry.key, part, managers, &options, charged).await {
                // A quota that went meanwhile limits nothing.
                Err(status) if status.code == 404 => {}
                outcome => {
                    outcome?;
                }
            }
        }
        Ok(Some(charge))
    }

    /// Charges what a change costs; none where a change costs nothing. The charge is itself a change, of the quota, so its
    /// future has to be of a known size.
    pub(super) fn charge_for_change<'a, 's: 'a>(
        &'s self,
        resource: &'a Resource,
        part: Part,
        (new, old): (&'a Value, &'a Value),
        options: &'a WriteOptions,
    ) -> Option<BoxFuture<'a, Result<Option<Charge<'s>>, Status>>> {
        let can_cost = match (part, resource.storage.as_str()) {
            (Part::Main, "persistentvolumeclaims" | "services") | (Part::Own("resize"), "pods") => true,
            // A pod that gets a deadline moves from one scope to another.
            (Part::Main, "pods") => quota::is_terminating(new) != quota::is_terminating(old),
            _ => false,
        };
        can_cost.then(|| self.charge(resource, new, Some(old), options).boxed())
    }

    /// Counts what quotas limit, whenever something of it changes, for as long as it is polled.
    pub async fn run_quotas(self) {
        loop {
            let since = self.store().revision();
            let limited = self.count_quotas().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "a quota could not be counted; the next change is a reason to try again");
                BTreeSet::new()
            });
            self.changed_after(since, limited.into_iter().chain([QUOTAS.into()]).collect(), |_| true).await;
            tokio::time::sleep(GATHERING).await;
        }
    }

    /// Says in the status of every quota what it limits and how much of that is used. Returns the resources that count.
    pub async fn count_quotas(&self) -> Result<BTreeSet<ResourceId>, Status> {
        self.count_quotas_of(None).await
    }

    /// The same for the quotas of one namespace.
    async fn count_quotas_of(&self, namespace: Option<&str>) -> Result<BTreeSet<ResourceId>, Status> {
        let mut limited = BTreeSet::new();
        let Some(of_quotas) = self.registry().find("", "v1", QUOTAS) else { return Ok(limited) };
        for entry in self.store().snapshot(&QUOTAS.into()).range(namespace, None) {
            let hard = hard_of(&parse(entry)?);
            limited.extend(self.limited_by(&hard).into_iter().map(|resource| resource.storage.clone()));
            let (options, part, managers) = (WriteOptions::default(), Part::Status, Ownership::Kept);
            let counted = |old: &Value| {
                let hard = hard_of(old);
                let used = self.count(&entry.key, old, &hard);
                Ok(with_status(&with_status(old, "hard", &hard), "used", &used))
            };
            let _books = self.inner.quotas.write().await;
            match self.change(&of_quotas, &entry.key, part, managers, &options, counted).await {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
        Ok(limited)
    }

    /// How much of what a quota limits is used.
    fn count(&self, quota: &Key, object: &Value, hard: &quota::Amounts) -> quota::Amounts {
        let mut used: quota::Amounts = hard.keys().map(|name| (name.clone(), Quantity::ZERO)).collect();
        for resource in self.limited_by(hard) {
            let (plural, group) = (&resource.names.plural, &resource.names.group);
            for entry in self.store().snapshot(&resource.storage).range(Some(&quota.namespace), None) {
                let Ok(counted) = parse(entry) else { continue };
                if !quota::selects(object, plural, &counted) {
                    continue;
                }
                for (name, amount) in quota::usage(plural, group, &counted) {
                    if let Some(used) = used.get_mut(&name) {
                        *used += amount;
                    }
                }
            }
        }
        used
    }

    /// The resources of which a quota counts something, each in one version.
    fn limited_by(&self, hard: &quota::Amounts) -> Vec<std::sync::Arc<Resource>> {
        let table = self.registry().table();
        let mut seen = BTreeSet::new();
        let concerned = table.resources().filter(|resource| {
            let names = &resource.names;
            hard.keys().any(|name| quota::concerns(name, &names.plural, &names.group))
        });
        concerned.filter(|resource| seen.insert(resource.storage.clone())).cloned().collect()
    }
}

/// Whether a quota says how much is used of everything that it limits in a resource.
fn is_counted(quota: &Value, resource: &Resource) -> bool {
    let (names, used) = (&resource.names, object::at(quota, "/status/used"));
    let hard = hard_of(quota);
    let mut limited = hard.keys().filter(|name| quota::concerns(name, &names.plural, &names.group));
    limited.all(|name| used.get(name).is_some())
}

fn hard_of(quota: &Value) -> quota::Amounts {
    let hard = quota.pointer("/spec/hard").and_then(Value::as_object).into_iter().flatten();
    hard.filter_map(|(name, amount)| Some((name.clone(), amount.as_str()?.parse().ok()?))).collect()
}

fn with_status(quota: &Value, field: &str, amounts: &quota::Amounts) -> Value {
    let mut quota = quota.clone();
    let shown: serde_json::Map<String, Value> =
        amounts.iter().map(|(name, amount)| (name.clone(), json!(amount.to_string()))).collect();
    object::part(&mut quota, "status").insert(field.to_owned(), Value::Object(shown));
    quota
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use krafla_api::Kind;

    use super::*;
    use crate::SystemEnv;
    use crate::admit::Admission;
    use crate::ops::DeleteOptions;
    use crate::store::Store;

    fn cluster() -> Api {
        let api = Api::new(Store::in_memory(), Arc::new(SystemEnv), Admission::default());
        api.bootstrap().now_or_never().unwrap().unwrap();
        api
    }

    fn create(api: &Api, kind: Kind, object: Value) -> Result<(), Status> {
        let resource = api.registry().of_kind(kind).unwrap();
        let object = crate::codec::normalise(&resource, &object).unwrap();
        let options = WriteOptions::default();
        api.create(&resource, "default", object, &options).now_or_never().unwrap().map(drop)
    }

    fn count(api: &Api) {
        api.count_quotas().now_or_never().unwrap().unwrap();
    }

    fn used(api: &Api) -> Value {
        used_in(api, "default")
    }

    fn used_in(api: &Api, namespace: &str) -> Value {
        let entry = api.store().get(&QUOTAS.into(), &Key::new(namespace, "q")).unwrap();
        parse(&entry).unwrap().pointer("/status/used").cloned().unwrap_or_default()
    }

    #[test]
    fn what_a_quota_allows_is_charged_and_given_back() {
        let api = cluster();
        let quotas = api.registry().find("", "v1", QUOTAS).unwrap();
        let quota =
            json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1", "count/configmaps": "2"}}});
        let options = WriteOptions::default();
        api.create(&quotas, "default", quota, &options).now_or_never().unwrap().unwrap();
        count(&api);
        assert_eq!(used(&api), json!({"pods": "0", "count/configmaps": "0"}));
        let pod = |name: &str| {
            let container = json!({"name": "c", "image": "i"});
            json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
        };
        create(&api, Kind::Pod, pod("a")).unwrap();
        assert_eq!(used(&api)["pods"], "1");
        let refused = create(&api, Kind::Pod, pod("b")).unwrap_err();
        let why =
            "pods \"b\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1";
        assert_eq!(refused.message, why);
        let pods = api.registry().of_kind(Kind::Pod).unwrap();
        let (key, now) = (Key::new("default", "a"), DeleteOptions::default());
        api.delete(&pods, &key, &now).now_or_never().unwrap().unwrap();
        count(&api);
        assert_eq!(used(&api)["pods"], "0");
        create(&api, Kind::Pod, pod("b")).unwrap();
    }

    #[test]
    fn a_quota_holds_from_its_first_moment() {
        let api = cluster();
        let quotas = api.registry().find("", "v1", QUOTAS).unwrap();
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": "1"}}});
        let options = WriteOptions::default();
        api.create(&quotas, "default", quota, &options).now_or_never().unwrap().unwrap();
        create(&api, Kind::Secret, json!({"metadata": {"name": "a"}})).unwrap();
        let refused = create(&api, Kind::Secret, json!({"metadata": {"name": "b"}})).unwrap_err();
        assert!(refused.message.contains("exceeded quota: q"), "{}", refused.message);
        // What is limited later is counted before it is charged, too.
        create(&api, Kind::ConfigMap, json!({"metadata": {"name": "a"}})).unwrap();
        let more = crate::patch::Patch::Merge(json!({"spec": {"hard": {"count/configmaps": "1"}}}));
        let key = Key::new("default", "q");
        api.patch(&quotas, &key, Part::Main, &more, &options).now_or_never().unwrap().unwrap();
        let refused = create(&api, Kind::ConfigMap, json!({"metadata": {"name": "b"}})).unwrap_err();
        assert!(refused.message.contains("exceeded quota: q"), "{}", refused.message);
    }

    /// Whoever makes an object waits for no quota that it does not concern.
    #[test]
    fn a_new_object_has_only_the_quotas_of_its_namespace_counted() {
        let api = cluster();
        let quotas = api.registry().find("", "v1", QUOTAS).unwrap();
        let namespaces = api.registry().of_kind(Kind::Namespace).unwrap();
        let options = WriteOptions::default();
        let elsewhere = json!({"metadata": {"name": "elsewhere"}});
        api.create(&namespaces, "", elsewhere, &options).now_or_never().unwrap().unwrap();
        for namespace in ["default", "elsewhere"] {
            let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": "1"}}});
            api.create(&quotas, namespace, quota, &options).now_or_never().unwrap().unwrap();
        }
        create(&api, Kind::Secret, json!({"metadata": {"name": "a"}})).unwrap();
        assert_eq!(used_in(&api, "default"), json!({"count/secrets": "1"}));
        assert_eq!(used_in(&api, "elsewhere"), Value::Null);
    }

    #[test]
    fn nothing_is_counted_between_a_charge_and_its_object() {
        let api = cluster();
        let quotas = api.registry().find("", "v1", QUOTAS).unwrap();
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": "1"}}});
        let options = WriteOptions::default();
        api.create(&quotas, "default", quota, &options).now_or_never().unwrap().unwrap();
        count(&api);
        let secrets = api.registry().of_kind(Kind::Secret).unwrap();
        let secret = json!({"metadata": {"name": "s", "namespace": "default"}});
        let charge = api.charge(&secrets, &secret, None, &options).now_or_never().unwrap().unwrap();
        assert!(api.count_quotas().now_or_never().is_none(), "the secret is not there to be counted yet");
        assert_eq!(used(&api), json!({"count/secrets": "1"}));
        drop(charge);
        count(&api);
        assert_eq!(used(&api), json!({"count/secrets": "0"}), "it was never stored");
    }

    #[test]
    fn a_claim_that_grows_is_charged_for_its_growth() {
        let api = cluster();
        let quotas = api.registry().find("", "v1", QUOTAS).unwrap();
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"requests.storage": "5Gi"}}});
        let options = WriteOptions::default();
        api.create(&quotas, "default", quota, &options).now_or_never().unwrap().unwrap();
        count(&api);
        let class =
            json!({"metadata": {"name": "growing"}, "provisioner": "p", "allowVolumeExpansion": true});
        let classes = api.registry().find("storage.k8s.io", "v1", "storageclasses").unwrap();
        api.create(&classes, "", class, &options).now_or_never().unwrap().unwrap();
        let claim = json!({"metadata": {"name": "c"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "growing",
            "resources": {"requests": {"storage": "2Gi"}},
        }});
        create(&api, Kind::PersistentVolumeClaim, claim).unwrap();
        let claims = api.registry().of_kind(Kind::PersistentVolumeClaim).unwrap();
        let key = Key::new("default", "c");
        let bind = crate::patch::Patch::Merge(json!({"status": {"phase": "Bound"}}));
        api.patch(&claims, &key, Part::Status, &bind, &options).now_or_never().unwrap().unwrap();
        let grow = |size: &str| {
            let patch = json!({"spec": {"resources": {"requests": {"storage": size}}}});
            let patch = crate::patch::Patch::Merge(patch);
            api.patch(&claims, &key, Part::Main, &patch, &options).now_or_never().unwrap()
        };
        grow("4Gi").unwrap();
        assert_eq!(used(&api), json!({"requests.storage": "4Gi"}));
        let why = "exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=4Gi, limited: \
                   requests.storage=5Gi";
        let refused = grow("6Gi").unwrap_err().message;
        assert_eq!(refused, format!("persistentvolumeclaims \"c\" is forbidden: {why}"));
    }

    #[test]
    fn limit_ranges_fill_pods_in_and_bound_them() {
        let api = cluster();
        let ranges = api.registry().find("", "v1", "limitranges").unwrap();
        let limit = json!({"type": "Container", "max": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}});
        let range = json!({"metadata": {"name": "l"}, "spec": {"limits": [limit]}});
        let options = WriteOptions::default();
        api.create(&ranges, "default", range, &options).now_or_never().unwrap().unwrap();
        let pod = |name: &str, resources: Value| {
            let container = json!({"name": "c", "image": "i", "resources": resources});
            json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
        };
        create(&api, Kind::Pod, pod("a", json!({}))).unwrap();
        let stored = parse(&api.store().get(&"pods".into(), &Key::new("default", "a")).unwrap()).unwrap();
        let filled = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}});
        assert_eq!(stored["spec"]["containers"][0]["resources"], filled);
        let refused = create(&api, Kind::Pod, pod("b", json!({"limits": {"cpu": "3"}}))).unwrap_err();
        let why = "maximum cpu usage per Container is 2, but limit is 3";
        assert_eq!(refused.message, format!("pods \"b\" is forbidden: {why}"));
    }
}
