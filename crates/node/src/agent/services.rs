//! The headless Services, whose names lead to pods.

use std::collections::BTreeMap;

use bytes::Bytes;
use krafla_api::Key;
use krafla_api::meta::null_as_default;
use krafla_cluster::{Event, EventType};
use serde::Deserialize;

use super::feed::Observer;
use super::hosts::Hosts;
use crate::pod::Pod;

/// A headless Service with a selector.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Service {
    selector: BTreeMap<String, String>,
    /// Whether its name leads to pods that are not ready, too.
    has_unready: bool,
}

impl Service {
    /// Whether the name of this Service, which is that of `key`, leads to a pod.
    pub(super) fn has(&self, key: &Key, pod: &Pod) -> bool {
        *key.namespace == *pod.metadata.namespace
            && self.selector.iter().all(|(name, value)| pod.metadata.labels.get(name) == Some(value))
            && !pod.status.phase.is_finished()
            && (self.has_unready || pod.status.is_ready())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Stored {
    metadata: StoredMetadata,
    spec: StoredSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredMetadata {
    name: String,
    namespace: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredSpec {
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    #[serde(deserialize_with = "null_as_default")]
    selector: BTreeMap<String, String>,
    publish_not_ready_addresses: bool,
}

/// Reads a Service. One with an address of its own leads nowhere here, and one without a selector to nobody that is known.
pub(super) fn read(json: &[u8]) -> Option<(Key, Option<Service>)> {
    let Stored { metadata, spec } = serde_json::from_slice(json).ok()?;
    let service = Service { selector: spec.selector, has_unready: spec.publish_not_ready_addresses };
    let is_meant = spec.cluster_ip == "None" && !service.selector.is_empty();
    Some((Key::new(&metadata.namespace, &metadata.name), Some(service).filter(|_| is_meant)))
}

impl Observer for Hosts {
    async fn listed(&self, items: &[Bytes]) {
        let services = items.iter().filter_map(|json| read(json));
        self.set_services(services.filter_map(|(key, service)| Some((key, service?))).collect());
    }

    async fn observed(&self, event: &Event) {
        let is_there = matches!(event.event_type, EventType::Added | EventType::Modified);
        if event.event_type != EventType::Bookmark
            && let Some((key, service)) = read(&event.object)
        {
            self.set_service(key, service.filter(|_| is_there));
        }
    }
}
