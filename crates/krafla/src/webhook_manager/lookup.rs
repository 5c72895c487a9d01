//! What admission looks up in the cluster: queues, and annotations of namespaces.
//!
//! Both are watched. A queue that the watch has not shown yet is read before the answer depends on it, so that a job
//! right after its queue is not refused.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use krafla_admission::Cluster;
use krafla_admission::webhook::Endpoint;
use krafla_api::volcano::Queue;
use krafla_api::{Key, Kind};
use krafla_apiserver::{Env, SystemEnv};
use krafla_client::HttpsClient;
use krafla_cluster::{Client, ClientError, EventType};
use parking_lot::RwLock;
use serde::Deserialize;
use tokio::sync::watch;

/// How long to wait before a watch that failed is begun anew.
const RETRY: Duration = Duration::from_secs(1);

/// Queues and namespaces of a cluster, as far as they were seen.
pub(super) struct Lookup {
    client: HttpsClient,
    seen: RwLock<Seen>,
    /// How many of the kinds have been listed.
    n_listed: watch::Sender<usize>,
    kinds: Vec<Kind>,
}

#[derive(Default)]
struct Seen {
    queues: BTreeMap<String, Arc<Queue>>,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
}

impl Seen {
    fn observe(&mut self, kind: Kind, event_type: EventType, object: &[u8]) {
        let is_gone = match event_type {
            EventType::Bookmark => return,
            EventType::Deleted => true,
            EventType::Added | EventType::Modified => false,
        };
        match kind {
            Kind::Queue => {
                let Ok(queue) = serde_json::from_slice::<Queue>(object) else { return };
                let name = queue.metadata.name.clone();
                if is_gone {
                    self.queues.remove(&name);
                } else {
                    self.queues.insert(name, Arc::new(queue));
                }
            }
            _ => {
                let Ok(namespace) = serde_json::from_slice::<Namespace>(object) else { return };
                let Metadata { name, annotations } = namespace.metadata;
                if is_gone {
                    self.namespaces.remove(&name);
                } else {
                    self.namespaces.insert(name, annotations);
                }
            }
        }
    }
}

/// What is read of a namespace.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Namespace {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    annotations: BTreeMap<String, String>,
}

/// The kinds that the answers at these paths depend on. Nothing else is watched, so that no further right is needed.
fn kinds(endpoints: &[&Endpoint]) -> Vec<Kind> {
    let needs = |paths: &[&str]| endpoints.iter().any(|endpoint| paths.contains(&endpoint.path));
    let queues = needs(&["/jobs/validate", "/podgroups/validate", "/queues/validate"]);
    let namespaces = needs(&["/podgroups/mutate"]);
    [(queues, Kind::Queue), (namespaces, Kind::Namespace)]
        .into_iter()
        .filter_map(|(is_needed, kind)| is_needed.then_some(kind))
        .collect()
}

impl Lookup {
    pub(super) fn new(client: HttpsClient, endpoints: &[&Endpoint]) -> Lookup {
        Lookup { client, seen: RwLock::default(), n_listed: watch::channel(0).0, kinds: kinds(endpoints) }
    }

    /// Whether everything has been listed once.
    pub(super) fn is_complete(&self) -> bool {
        *self.n_listed.borrow() >= self.kinds.len()
    }

    /// Watches until it is dropped.
    pub(super) async fn watch(&self) {
        let each = self.kinds.iter().map(|kind| self.watch_kind(*kind));
        futures_util::future::join_all(each).await;
    }

    async fn watch_kind(&self, kind: Kind) {
        let mut is_listed = false;
        loop {
            let ended = match self.list(kind).await {
                Ok(revision) => {
                    if !is_listed {
                        is_listed = true;
                        self.n_listed.send_modify(|n| *n += 1);
                    }
                    self.follow(kind, revision).await
                }
                Err(error) => error,
            };
            if !matches!(ended, ClientError::Expired(_)) {
                tracing::warn!(error = %ended, kind = kind.info().plural, "cannot watch");
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// Reads everything anew, and returns the revision of that.
    async fn list(&self, kind: Kind) -> Result<u64, ClientError> {
        let listed = self.client.list(kind).await?;
        let mut now = Seen::default();
        listed.items.iter().for_each(|object| now.observe(kind, EventType::Added, object));
        let mut seen = self.seen.write();
        match kind {
            Kind::Queue => seen.queues = now.queues,
            _ => seen.namespaces = now.namespaces,
        }
        Ok(listed.revision)
    }

    /// Follows changes until everything has to be read anew.
    async fn follow(&self, kind: Kind, mut revision: u64) -> ClientError {
        loop {
            let mut events = self.client.watch(kind, revision);
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        revision = revision.max(event.revision);
                        self.seen.write().observe(kind, event.event_type, &event.object);
                    }
                    Err(error) => return error,
                }
            }
        }
    }

    /// The cluster as one request needs it: queues of these names that were not seen yet are read. They are not kept, because
    /// the watch would not tell that they were deleted before it began to show them.
    pub(super) async fn view(&self, names: &[&str]) -> Result<View<'_>, ClientError> {
        let mut read = Vec::new();
        for name in names {
            let is_seen = self.seen.read().queues.contains_key(*name);
            if is_seen || !self.kinds.contains(&Kind::Queue) {
                continue;
            }
            match self.client.get(Kind::Queue, &Key::new("", name)).await {
                Ok(queue) => read.extend(serde_json::from_slice(&queue).ok().map(Arc::new)),
                Err(ClientError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(View { seen: &self.seen, read })
    }
}

/// What was seen, and what was read for one request.
pub(super) struct View<'a> {
    seen: &'a RwLock<Seen>,
    read: Vec<Arc<Queue>>,
}

impl Cluster for View<'_> {
    fn queue(&self, name: &str) -> Option<Arc<Queue>> {
        let seen = self.seen.read().queues.get(name).cloned();
        seen.or_else(|| self.read.iter().find(|queue| queue.metadata.name == name).cloned())
    }

    fn queues(&self) -> Vec<Arc<Queue>> {
        let seen = self.seen.read();
        let read = self.read.iter().filter(|queue| !seen.queues.contains_key(&queue.metadata.name));
        seen.queues.values().chain(read).cloned().collect()
    }

    fn namespace_annotation(&self, namespace: &str, key: &str) -> Option<String> {
        self.seen.read().namespaces.get(namespace)?.get(key).cloned()
    }

    fn has_time_zone(&self, name: &str) -> bool {
        SystemEnv.has_time_zone(name)
    }
}

#[cfg(test)]
mod tests {
    use krafla_admission::webhook::ENDPOINTS;

    use super::*;

    #[test]
    fn only_what_the_paths_need_is_watched() {
        let of = |paths: &[&str]| {
            let served: Vec<&Endpoint> = ENDPOINTS.iter().filter(|it| paths.contains(&it.path)).collect();
            kinds(&served)
        };
        assert_eq!(of(&["/jobs/mutate", "/pods/validate"]), []);
        assert_eq!(of(&["/jobs/validate"]), [Kind::Queue]);
        assert_eq!(of(&["/podgroups/mutate"]), [Kind::Namespace]);
        assert_eq!(kinds(&ENDPOINTS.iter().collect::<Vec<_>>()), [Kind::Queue, Kind::Namespace]);
    }

    #[test]
    fn a_queue_that_the_watch_has_not_shown_yet_is_found() {
        let queue = |name: &str, weight: u32| {
            serde_json::json!({ "metadata": { "name": name }, "spec": { "weight": weight } }).to_string()
        };
        let mut seen = Seen::default();
        seen.observe(Kind::Queue, EventType::Added, queue("old", 1).as_bytes());
        let read = ["old", "new"].map(|name| Arc::new(serde_json::from_str(&queue(name, 2)).unwrap()));
        let seen = RwLock::new(seen);
        let view = View { seen: &seen, read: read.to_vec() };
        assert_eq!(view.queue("old").unwrap().spec.weight, 1, "the watch knows better");
        assert!(view.queue("new").is_some() && view.queue("none").is_none());
        assert_eq!(view.queues().len(), 2);
        seen.write().observe(Kind::Queue, EventType::Deleted, queue("old", 1).as_bytes());
        assert_eq!(view.queues().len(), 2, "what was read for this request stays");
    }
}
