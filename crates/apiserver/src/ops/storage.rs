//! Letting claims and volumes go that nobody uses any more.

use std::collections::BTreeSet;

use krafla_api::Key;
use krafla_schema::object;
use serde_json::{Value, json};

use super::ownership::Ownership;
use super::{Api, Part, WriteOptions, parse};
use crate::admit::{CLAIM_PROTECTION, VOLUME_PROTECTION};
use crate::status::Status;
use crate::store::{Entry, ResourceId};

const PODS: &str = "pods";
const CLAIMS: &str = "persistentvolumeclaims";
const VOLUMES: &str = "persistentvolumes";

impl Api {
    /// Takes the protection of deleted claims and volumes away when nobody uses them, for as long as it is polled.
    pub async fn run_storage_protection(self) {
        let watched: BTreeSet<ResourceId> = [PODS, CLAIMS, VOLUMES].map(ResourceId::from).into();
        loop {
            let since = self.store().revision();
            if let Err(error) = self.release_storage().await {
                tracing::warn!(%error, "storage could not be released; the next change is a reason to try again");
            }
            self.changed_after(since, watched.clone(), |_| true).await;
        }
    }

    /// Looks at all deleted claims and volumes once.
    pub async fn release_storage(&self) -> Result<(), Status> {
        for entry in self.deleted(CLAIMS) {
            if !self.is_claim_used(&entry.key)? {
                self.release(CLAIMS, &entry.key, CLAIM_PROTECTION).await?;
            }
        }
        for entry in self.deleted(VOLUMES) {
            if parse(&entry)?.pointer("/status/phase").is_none_or(|phase| phase != "Bound") {
                self.release(VOLUMES, &entry.key, VOLUME_PROTECTION).await?;
            }
        }
        Ok(())
    }

    fn deleted(&self, resource: &str) -> Vec<std::sync::Arc<Entry>> {
        let snapshot = self.store().snapshot(&resource.into());
        snapshot.entries.values().filter(|entry| entry.meta.is_deleting).cloned().collect()
    }

    /// Whether a pod that has not ended mounts a claim.
    fn is_claim_used(&self, claim: &Key) -> Result<bool, Status> {
        let pods = self.store().snapshot(&PODS.into());
        for entry in pods.range(Some(&claim.namespace), None) {
            let pod = parse(entry)?;
            let has_ended = matches!(&*object::text_at(&pod, "status.phase"), "Succeeded" | "Failed");
            if !has_ended && mounts(&pod, &claim.name) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn release(&self, resource: &str, key: &Key, protection: &str) -> Result<(), Status> {
        let Some(resource) = self.registry().find("", "v1", resource) else { return Ok(()) };
        let options = WriteOptions::default();
        let released = self.change(&resource, key, Part::Main, Ownership::Kept, &options, |old| {
            let mut new = old.clone();
            let mut finalizers = object::finalizers(old);
            finalizers.retain(|name| *name != protection);
            object::set_meta(&mut new, "finalizers", json!(finalizers));
            Ok(new)
        });
        match released.await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }
}

fn mounts(pod: &Value, claim: &str) -> bool {
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array).into_iter().flatten();
    let mut claims = volumes.filter_map(|volume| volume.pointer("/persistentVolumeClaim/claimName"));
    claims.any(|name| name == claim)
}
