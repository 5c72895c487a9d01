//! What every namespace has: an account for its pods, and the certificate by which they know the server.

use std::collections::BTreeSet;

use krafla_api::Key;
use serde_json::{Value, json};

use super::{Api, WriteOptions};
use crate::status::Status;

/// The account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";
/// The ConfigMap with the certificate.
const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";

impl Api {
    /// Gives every namespace its account and the authority's certificate, for as long as it is polled, and brings both
    /// back when somebody takes them away.
    pub async fn run_service_accounts(self, ca_pem: String) {
        loop {
            let since = self.store().revision();
            if let Err(error) = self.furnish_namespaces(&ca_pem).await {
                tracing::warn!(%error, "a namespace could not be furnished; the next change is a reason to try again");
            }
            let watched = ["namespaces", "serviceaccounts", "configmaps"].map(Into::into);
            let is_reason = |key: &Key| {
                key.namespace.is_empty() || [DEFAULT_ACCOUNT, ROOT_CERTIFICATE].contains(&&*key.name)
            };
            self.changed_after(since, BTreeSet::from(watched), is_reason).await;
        }
    }

    /// Makes in every namespace what it lacks. That one of them refuses keeps nothing from the others.
    async fn furnish_namespaces(&self, ca_pem: &str) -> Result<(), Status> {
        let mut outcome = Ok(());
        for entry in self.store().snapshot(&"namespaces".into()).entries.values() {
            if !entry.meta.is_deleting {
                outcome = outcome.and(self.furnish(&entry.key.name, ca_pem).await);
            }
        }
        outcome
    }

    async fn furnish(&self, namespace: &str, ca_pem: &str) -> Result<(), Status> {
        let account = json!({"metadata": {"name": DEFAULT_ACCOUNT}});
        self.ensure_in(namespace, "serviceaccounts", account).await?;
        let certificate = json!({"metadata": {"name": ROOT_CERTIFICATE}, "data": {"ca.crt": ca_pem}});
        self.ensure_in(namespace, "configmaps", certificate).await
    }

    /// Makes an object unless there is one of its name, or the namespace goes away meanwhile.
    async fn ensure_in(&self, namespace: &str, plural: &str, object: Value) -> Result<(), Status> {
        let Some(resource) = self.registry().find("", "v1", plural) else { return Ok(()) };
        let key = Key::new(namespace, krafla_schema::object::name(&object));
        if self.store().get(&resource.storage, &key).is_some() {
            return Ok(());
        }
        match self.create(&resource, namespace, object, &WriteOptions::default()).await {
            Err(status) if matches!(&*status.reason, "AlreadyExists" | "NotFound" | "Forbidden") => Ok(()),
            outcome => outcome.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;

    use super::*;
    use crate::admit::Admission;
    use crate::env::SystemEnv;
    use crate::ops::DeleteOptions;
    use crate::store::Store;

    #[test]
    fn what_a_namespace_has_comes_back() {
        let api = Api::new(Store::in_memory(), Arc::new(SystemEnv), Admission::default());
        api.bootstrap().now_or_never().expect("ready at once").expect("a new cluster");
        let mut running = Box::pin(api.clone().run_service_accounts("PEM".to_owned()));
        assert!(running.as_mut().now_or_never().is_none(), "it never ends");
        let key = Key::new("default", DEFAULT_ACCOUNT);
        let accounts = api.registry().find("", "v1", "serviceaccounts").unwrap();
        let first = api.get(&accounts, &key).unwrap();
        let maps = api.registry().find("", "v1", "configmaps").unwrap();
        let certificate = api.get(&maps, &Key::new("default", ROOT_CERTIFICATE)).unwrap();
        let certificate: Value = serde_json::from_slice(&certificate.bytes).unwrap();
        assert_eq!(certificate["data"]["ca.crt"], "PEM");

        let deleted = api.delete(&accounts, &key, &DeleteOptions::default()).now_or_never();
        deleted.expect("ready at once").expect("it can be deleted");
        assert!(running.as_mut().now_or_never().is_none(), "it never ends");
        assert_ne!(api.get(&accounts, &key).unwrap().uid, first.uid);
    }
}
