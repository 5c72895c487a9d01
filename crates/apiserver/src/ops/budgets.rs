//! Disruption budgets: counted as their pods come, change and go, and asked before a pod is evicted.

use std::collections::BTreeMap;
use std::time::Duration;

use krafla_admission::builtin::budget::{self, Verdict};
use krafla_api::Key;
use krafla_cluster::Cause;
use krafla_schema::object;
use serde_json::Value;

use super::ownership::Ownership;
use super::{Api, Part, WriteOptions, parse};
use crate::status::{Qualified, Status};

const BUDGETS: &str = "poddisruptionbudgets.policy";
const PODS: &str = "pods";
/// How long changes are gathered before budgets are counted anew: counting looks at every pod of a namespace.
const GATHERING: Duration = Duration::from_millis(100);
/// When an eviction that a budget forbids is worth another try.
const RETRY_SECONDS: u32 = 10;

impl Api {
    /// Counts what budgets are about, whenever something of it changes, for as long as it is polled.
    pub async fn run_budgets(self) {
        loop {
            let since = self.store().revision();
            if let Err(error) = self.count_budgets().await {
                tracing::warn!(%error, "a disruption budget could not be counted; the next change is a reason to try again");
            }
            // Without budgets, pods come and go without anybody looking.
            let has_budgets = !self.store().snapshot(&BUDGETS.into()).entries.is_empty();
            let watched = [BUDGETS, PODS].into_iter().take(if has_budgets { 2 } else { 1 });
            self.changed_after(since, watched.map(Into::into).collect(), |_| true).await;
            tokio::time::sleep(GATHERING).await;
        }
    }

    /// Says in the status of every budget how many of its pods may go.
    pub async fn count_budgets(&self) -> Result<(), Status> {
        let Some(budgets) = self.registry().find("policy", "v1", "poddisruptionbudgets") else {
            return Ok(());
        };
        for entry in self.store().snapshot(&BUDGETS.into()).entries.values() {
            let counted = |old: &Value| {
                let pods = self.pods_of_budget(old);
                let mut new = old.clone();
                let status = budget::count(old, &pods, self.n_expected(&pods), self.env().now());
                object::set(&mut new, "status", status);
                Ok(new)
            };
            let (options, managers) = (WriteOptions::default(), Ownership::Kept);
            match self.change(&budgets, &entry.key, Part::Status, managers, &options, counted).await {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
        Ok(())
    }

    fn pods_of_budget(&self, budget: &Value) -> Vec<Value> {
        let snapshot = self.store().snapshot(&PODS.into());
        let pods =
            snapshot.range(Some(object::namespace(budget)), None).filter_map(|entry| parse(entry).ok());
        pods.filter(|pod| !is_over(pod) && budget::is_about(budget, pod)).collect()
    }

    /// How many pods there should be: as many as their controllers want. A pod without one that says it counts for itself.
    fn n_expected(&self, pods: &[Value]) -> i64 {
        let table = self.registry().table();
        let mut controllers = BTreeMap::new();
        let mut n_alone = 0_i64;
        for pod in pods {
            let owners =
                pod.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
            let wanted = owners.into_iter().find(|owner| owner["controller"] == true).and_then(|owner| {
                let text = |field: &str| owner[field].as_str().unwrap_or_default();
                let resource = table.of_manifest(text("apiVersion"), text("kind"))?;
                let key = Key::new(object::namespace(pod), text("name"));
                let controller = parse(&*self.store().get(&resource.storage, &key)?).ok()?;
                Some((text("uid").to_owned(), object::at(&controller, "/spec/replicas").as_i64()?))
            });
            match wanted {
                Some((uid, replicas)) => {
                    controllers.insert(uid, replicas);
                }
                None => n_alone = n_alone.saturating_add(1),
            }
        }
        controllers.values().fold(n_alone, |sum, replicas| sum.saturating_add(*replicas))
    }

    /// Spends from the budget of a pod that is to be evicted, or refuses.
    pub(super) async fn spend_budget(&self, pod: &Value, dry_run: bool) -> Result<(), Status> {
        let is_waiting = object::text_at(pod, "status.phase") == "Pending";
        if is_over(pod) || is_waiting || object::is_deleting(pod) {
            return Ok(());
        }
        let Some(budgets) = self.registry().find("policy", "v1", "poddisruptionbudgets") else {
            return Ok(());
        };
        let snapshot = self.store().snapshot(&BUDGETS.into());
        let all = snapshot.range(Some(object::namespace(pod)), None);
        let about: Vec<_> =
            all.filter(|entry| parse(entry).is_ok_and(|it| budget::is_about(&it, pod))).collect();
        let entry = match about.as_slice() {
            [] => return Ok(()),
            [entry] => entry,
            _ => {
                let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(Status::plain(why));
            }
        };
        let spent = |old: &Value| match budget::spend(old, pod, self.env().now()) {
            Verdict::Free => Ok(old.clone()),
            Verdict::Spent(status) => {
                let mut new = old.clone();
                object::set(&mut new, "status", status);
                Ok(new)
            }
            Verdict::NotNow(why) => Err(not_now(why, 0)),
            Verdict::Uncounted(why) => Err(not_now(why, RETRY_SECONDS)),
            Verdict::Never(why) => {
                let about = Qualified { group: "policy", what: "poddisruptionbudget" };
                Err(Status::forbidden(&about, object::name(old), &why))
            }
        };
        let options = WriteOptions { dry_run, ..WriteOptions::default() };
        match self.change(&budgets, &entry.key, Part::Status, Ownership::Kept, &options, spent).await {
            // A budget that went meanwhile forbids nothing.
            Err(status) if status.code == 404 => Ok(()),
            outcome => outcome.map(drop),
        }
    }
}

fn is_over(pod: &Value) -> bool {
    matches!(object::text_at(pod, "status.phase").as_str(), "Succeeded" | "Failed")
}

fn not_now(why: String, retry_seconds: u32) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut status = Status::too_many_requests(message, retry_seconds);
    let cause = Cause { reason: "DisruptionBudget".to_owned(), message: why, field: String::new() };
    status.details.get_or_insert_default().causes.push(cause);
    status
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::SystemEnv;
    use crate::admit::Admission;
    use crate::ops::DeleteOptions;
    use crate::patch::Patch;
    use crate::store::Store;

    #[test]
    fn a_budget_lets_go_what_it_can_spare_and_no_more() {
        let api = Api::new(Store::in_memory(), Arc::new(SystemEnv), Admission::default());
        api.bootstrap().now_or_never().unwrap().unwrap();
        let options = WriteOptions::default();
        let create = |group: &str, plural: &str, object: Value| {
            let resource = api.registry().find(group, "v1", plural).unwrap();
            let object = crate::codec::normalise(&resource, &object).unwrap();
            api.create(&resource, "default", object, &options).now_or_never().unwrap().unwrap();
        };
        let pods = api.registry().find("", "v1", "pods").unwrap();
        for name in ["a", "b"] {
            let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "any"}]});
            create("", "pods", json!({"metadata": {"name": name, "labels": {"app": "x"}}, "spec": spec}));
            let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
            let ready = Patch::Merge(json!({"status": ready}));
            let key = Key::new("default", name);
            api.patch(&pods, &key, Part::Status, &ready, &options).now_or_never().unwrap().unwrap();
        }
        let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}});
        create("policy", "poddisruptionbudgets", json!({"metadata": {"name": "b"}, "spec": spec}));
        let evict = |name: &str| {
            let (key, options) = (Key::new("default", name), DeleteOptions::default());
            let evicted = api.evict(&pods, &key, &Value::Null, &options).now_or_never().unwrap();
            evicted.map(drop).map_err(|status| {
                let causes = status.details.map(|details| details.causes).unwrap_or_default();
                (status.code, causes.into_iter().map(|cause| cause.message).collect::<String>())
            })
        };
        let uncounted = "The disruption budget b is still being processed by the server.";
        assert_eq!(evict("a"), Err((429, uncounted.to_owned())));
        api.count_budgets().now_or_never().unwrap().unwrap();
        assert_eq!(evict("a"), Ok(()));
        let spent = "The disruption budget b does not allow evicting pods currently";
        assert_eq!(evict("b"), Err((429, spent.to_owned())));
        api.count_budgets().now_or_never().unwrap().unwrap();
        let spent = "The disruption budget b needs 1 healthy pods and has 1 currently";
        assert_eq!(evict("b"), Err((429, spent.to_owned())));
    }
}
