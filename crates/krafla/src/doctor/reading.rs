//! Reads from a cluster what is needed to say why jobs wait.

use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Key, Kind, Time, Uid};
use krafla_cluster::{Client, ClientError};
use krafla_node::pod::Pod;
use krafla_plan::Object;
use serde::Deserialize;

use super::waiting::{Lease, Seen, Warning};

/// What the judgement looks at.
const KINDS: [Kind; 9] = [
    Kind::JobFlow,
    Kind::JobTemplate,
    Kind::VcJob,
    Kind::Job,
    Kind::PodGroup,
    Kind::Queue,
    Kind::Pod,
    Kind::PersistentVolumeClaim,
    Kind::Event,
];
/// The lease of Volcano's controllers, unless flags of theirs say otherwise.
const LEASE: (&str, &str) = ("volcano-system", "vc-controller-manager");

/// What was read, and what could not be: the judgement is about less then.
pub(super) struct Reading {
    pub(super) seen: Seen,
    pub(super) unread: Vec<String>,
}

/// Reads everything.
pub(super) async fn read(client: &dyn Client, now: Time) -> Reading {
    let mut reading = Reading { seen: Seen::default(), unread: Vec::new() };
    for kind in KINDS {
        match client.list(kind).await {
            Ok(listed) => listed.items.iter().for_each(|json| reading.seen.take_in(kind, json)),
            // Not every cluster has Volcano's kinds.
            Err(ClientError::NotFound(_)) => {}
            Err(error) => reading.unread.push(format!("{}: {error}", kind.info().plural)),
        }
    }
    let (namespace, name) = LEASE;
    match client.get(Kind::Lease, &Key::new(namespace, name)).await {
        Ok(json) => reading.seen.lease = lease(&json, now),
        Err(ClientError::NotFound(_)) => {}
        Err(error) => reading.unread.push(format!("the lease {namespace}/{name}: {error}")),
    }
    reading
}

impl Seen {
    /// Takes in one object as it was listed. What can not be read is left out: others judge what is stored.
    pub(super) fn take_in(&mut self, kind: Kind, json: &[u8]) {
        if kind == Kind::Event {
            return self.warn(json);
        }
        let object = Object::decode(kind, json);
        if kind == Kind::Pod
            && let Ok(pod) = serde_json::from_slice::<Pod>(json)
        {
            self.pods.insert(object.meta.key.clone(), pod);
        }
        self.objects.insert(Arc::new(object));
    }

    /// Keeps the newest warning about each object. Events are listed in the order of their names, which says nothing:
    /// one that happened again keeps the name of its first time.
    fn warn(&mut self, json: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event>(json) else { return };
        if event.event_type != "Warning" {
            return;
        }
        let warning = Warning { at: event.last_time(), message: event.message };
        let known = self.warnings.entry(event.involved_object.uid).or_default();
        if warning.at >= known.at {
            *known = warning;
        }
    }
}

/// An Event, with the times that old and new recorders give it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Event {
    metadata: EventMetadata,
    #[serde(rename = "type")]
    event_type: String,
    message: String,
    involved_object: Involved,
    first_timestamp: Option<Time>,
    last_timestamp: Option<Time>,
    event_time: Option<Time>,
    series: Option<Series>,
}

impl Event {
    /// When it last happened.
    fn last_time(&self) -> Option<Time> {
        let repeated = self.series.as_ref().and_then(|series| series.last_observed_time);
        let told = [repeated, self.last_timestamp, self.event_time, self.first_timestamp];
        told.into_iter().flatten().max().or(self.metadata.creation_timestamp)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EventMetadata {
    creation_timestamp: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Series {
    last_observed_time: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Involved {
    uid: Uid,
}

/// Who holds a lease, by the clock of this machine.
pub(crate) fn lease(json: &[u8], now: Time) -> Lease {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Stored {
        spec: Spec,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Spec {
        holder_identity: Option<String>,
        lease_duration_seconds: Option<u64>,
        renew_time: Option<Time>,
    }
    let Spec { holder_identity, lease_duration_seconds, renew_time } =
        serde_json::from_slice::<Stored>(json).unwrap_or_default().spec;
    let Some(holder) = holder_identity.filter(|holder| !holder.is_empty()) else { return Lease::Free };
    let age = renew_time.map_or(Duration::ZERO, |renewed| now.since(renewed));
    if age > Duration::from_secs(lease_duration_seconds.unwrap_or(15)) {
        return Lease::Expired { holder, seconds: age.as_secs() };
    }
    Lease::Held(holder)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lease_that_was_not_renewed_in_time_has_a_dead_holder() {
        let of = |spec: serde_json::Value| {
            let now = serde_json::from_value(json!("2026-11-15T08:00:00Z")).unwrap();
            lease(json!({ "spec": spec }).to_string().as_bytes(), now)
        };
        let held =
            |renewed: &str| json!({"holderIdentity": "x", "leaseDurationSeconds": 15, "renewTime": renewed});
        assert_eq!(of(held("2026-11-15T07:59:50.000000Z")), Lease::Held("x".to_owned()));
        let expired = Lease::Expired { holder: "x".to_owned(), seconds: 60 };
        assert_eq!(of(held("2026-11-15T07:59:00.000000Z")), expired);
        assert_eq!(of(json!({"holderIdentity": ""})), Lease::Free);
        assert_eq!(of(json!(7)), Lease::Free);
    }
}
