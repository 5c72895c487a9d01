//! Addresses and node ports of services: no two services ever have the same.
//!
//! What is given to a service is claimed until the service is stored, so that another one that is created meanwhile sees it
//! as taken. There is no second record of who has what: the stored services are it, and a service that goes frees what it
//! had.

use krafla_schema::field::FieldError;
use parking_lot::Mutex;
use serde_json::Value;

use super::Api;
use crate::kinds::service::address::{self, Taken};
use crate::registry::Resource;

/// What is given to services that are not stored yet.
#[derive(Default)]
pub(super) struct Claims(Mutex<Taken>);

/// What one service was given; others can have it if the service is not stored after all.
pub(super) struct Claim<'a> {
    claims: &'a Claims,
    given: Taken,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.claims.0.lock().remove(&self.given);
    }
}

impl Api {
    /// Gives a service an address and ports, and holds them for it. What it wants but cannot have is added to `errors`.
    pub(super) fn claim_addresses(
        &self,
        resource: &Resource,
        (service, old): (&mut Value, Option<&Value>),
        errors: &mut Vec<FieldError>,
    ) -> Option<Claim<'_>> {
        if resource.storage.as_str() != "services" {
            return None;
        }
        let claims = &self.inner.claims;
        let mut claimed = claims.0.lock();
        // Looked at under the lock: whoever gave a claim back before has its service among the stored ones.
        let mut taken = self.taken_by_services(resource);
        taken.add(&claimed);
        errors.extend(address::give(&taken, service, old));
        let mut given = Taken::by(service);
        // What was refused is another's to give back.
        given.remove(&taken);
        claimed.add(&given);
        drop(claimed);
        Some(Claim { claims, given })
    }

    /// What services have, also those that are on their way to the disk: nobody can be given it.
    fn taken_by_services(&self, resource: &Resource) -> Taken {
        let mut taken = Taken::default();
        for entry in self.store().newest_snapshot(&resource.storage).entries.values() {
            let field = |path: &str| entry.meta.fields.get(path);
            match field("spec.type") {
                // The services that have nothing but an address are most, and need not be parsed.
                Some("ClusterIP") => {
                    let address = field("spec.clusterIP").unwrap_or_default();
                    taken.addresses.insert(address.to_owned());
                }
                _ => {
                    let service = serde_json::from_slice(&entry.bytes).unwrap_or_default();
                    taken.add(&Taken::by(&service));
                }
            }
        }
        taken
    }
}
