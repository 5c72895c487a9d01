//! Claims and volumes that are in use are not taken away: a finalizer holds them until nobody uses them any more.
//! [`crate::Api::run_storage_protection`] removes it.

use krafla_schema::object;
use serde_json::{Value, json};

use super::{Operation, Policy, Request};
use crate::status::Status;

/// What holds a claim while a pod uses it.
pub(crate) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// What holds a volume while a claim is bound to it.
pub(crate) const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";
const CLASS_PROTECTION: &str = "kubernetes.io/vac-protection";

/// Protects new claims, volumes and classes of volume attributes.
#[derive(Default)]
pub struct StorageProtection;

impl Policy for StorageProtection {
    fn mutate(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Status> {
        let finalizer = match request.resource.storage.as_str() {
            "persistentvolumeclaims" => CLAIM_PROTECTION,
            "persistentvolumes" => VOLUME_PROTECTION,
            "volumeattributesclasses.storage.k8s.io" => CLASS_PROTECTION,
            _ => return Ok(()),
        };
        if request.operation == Operation::Create && !object::finalizers(object).contains(&finalizer) {
            let mut finalizers = object::finalizers(object);
            finalizers.push(finalizer);
            let finalizers = json!(finalizers);
            object::set_meta(object, "finalizers", finalizers);
        }
        Ok(())
    }
}
