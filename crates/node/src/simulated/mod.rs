//! Nodes that only pretend: a pod on them takes its time and ends as it was told, and no process runs. They are for
//! trying out schedules on clusters that nobody has, and for measuring controllers.
//!
//! ```text
//!   server ── pods ──> one worker per pod: life (what its containers "did"), decide, report
//! ```
//!
//! What a pod's status becomes is decided by [`crate::decide`], as for real containers; only what the containers do is
//! made up, by [`life`]. After a restart it goes on from what the pods' statuses say.

mod life;
mod size;
mod worker;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use krafla_api::{Kind, Uid};
use krafla_cluster::{Client, ClientError, Event, EventType};
use krafla_runtime::{Clock, SystemClock};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use life::{DURATION_ANNOTATION, EXIT_CODE_ANNOTATION};
pub use size::{BadSize, ClusterSize, is_simulated};

use crate::agent::{Presence, look_after_claims, register};
use crate::pod::Pod;
use crate::status::PodStatus;

/// How long to wait after a failed list, a broken watch or a failed registration.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// How many nodes are registered at once.
const REGISTERED_AT_ONCE: usize = 32;
/// Simulated pods have addresses from here on.
const FIRST_ADDRESS: u32 = Ipv4Addr::new(10, 0, 0, 1).to_bits();

/// Nodes that only pretend.
pub struct SimulatedNodes {
    shared: Arc<Shared>,
}

/// What all workers share.
struct Shared {
    client: Arc<dyn Client>,
    clock: Arc<dyn Clock>,
    size: ClusterSize,
    n_addresses: AtomicU32,
}

impl Shared {
    fn next_address(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(FIRST_ADDRESS.wrapping_add(self.n_addresses.fetch_add(1, Ordering::Relaxed)))
    }
}

/// The pods that are looked after, and where their workers hear of them.
#[derive(Default)]
struct Pods {
    senders: BTreeMap<Uid, watch::Sender<Arc<Pod>>>,
    workers: JoinSet<()>,
}

impl SimulatedNodes {
    /// Nodes that do nothing yet.
    pub fn new(client: Arc<dyn Client>, size: ClusterSize) -> SimulatedNodes {
        let clock = Arc::new(SystemClock);
        SimulatedNodes { shared: Arc::new(Shared { client, clock, size, n_addresses: AtomicU32::new(0) }) }
    }

    /// Pretends until `shutdown`.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            () = self.look_after_pods() => {}
            () = look_after_claims(self.shared.client.as_ref(), None, None) => {}
            () = shutdown => {}
        }
    }

    async fn look_after_pods(&self) {
        let names = (0..self.shared.size.nodes).map(|n| self.shared.size.node_name(n));
        stream::iter(names).for_each_concurrent(REGISTERED_AT_ONCE, |name| self.register(name)).await;
        let mut pods = Pods::default();
        loop {
            match self.list(&mut pods).await {
                Ok(revision) => self.follow(revision, &mut pods).await,
                Err(error) => {
                    tracing::warn!(%error, "cannot list pods");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }

    async fn register(&self, name: String) {
        let Shared { client, clock, size, .. } = &*self.shared;
        let presence = Presence {
            name: &name,
            capacity: &size.capacity,
            ready_because: "pods on this node are simulated",
        };
        while let Err(error) = register(client.as_ref(), &presence, clock.now()).await {
            tracing::warn!(%error, node = name, "cannot register the node");
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    async fn list(&self, pods: &mut Pods) -> Result<u64, ClientError> {
        let listed = self.shared.client.list(Kind::Pod).await?;
        let mut left = std::mem::take(&mut pods.senders);
        for json in &listed.items {
            let Some(pod) = self.read(json) else { continue };
            if let Some(sender) = left.remove(&pod.metadata.uid) {
                pods.senders.insert(pod.metadata.uid.clone(), sender);
            }
            self.take_in(pod, pods);
        }
        // The workers of all others end as their senders are dropped.
        Ok(listed.revision)
    }

    /// Follows the watch until the pods have to be listed again.
    async fn follow(&self, mut revision: u64, pods: &mut Pods) {
        loop {
            let mut events = self.shared.client.watch(Kind::Pod, revision);
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        revision = event.revision;
                        self.observe(&event, pods);
                    }
                    Err(ClientError::Expired(_)) => return,
                    Err(error) => {
                        tracing::warn!(%error, "the watch on pods broke");
                        break;
                    }
                }
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    fn observe(&self, event: &Event, pods: &mut Pods) {
        if event.event_type == EventType::Bookmark {
            return;
        }
        let Some(pod) = self.read(&event.object) else { return };
        if event.event_type == EventType::Deleted {
            pods.senders.remove(&pod.metadata.uid);
        } else {
            self.take_in(pod, pods);
        }
    }

    /// A pod, if it is bound to one of these nodes.
    fn read(&self, json: &Bytes) -> Option<Arc<Pod>> {
        let pod: Pod = serde_json::from_slice(json).ok()?;
        self.shared.size.is_node(&pod.spec.node_name).then(|| Arc::new(pod))
    }

    fn take_in(&self, pod: Arc<Pod>, pods: &mut Pods) {
        if is_over(&pod) {
            // Its worker ends with the sender. Most pods of a cluster have finished, and a worker holds more than the store does.
            pods.senders.remove(&pod.metadata.uid);
            return;
        }
        match pods.senders.get(&pod.metadata.uid) {
            Some(sender) => drop(sender.send_replace(pod)),
            None => {
                // Those that are done need not be remembered.
                while pods.workers.try_join_next().is_some() {}
                let (sender, receiver) = watch::channel(pod.clone());
                pods.senders.insert(pod.metadata.uid.clone(), sender);
                pods.workers.spawn(worker::Worker::new(self.shared.clone(), receiver).run());
            }
        }
    }
}

/// Whether a pod has reported everything; only its deletion is still to come.
fn is_over(pod: &Pod) -> bool {
    let PodStatus { phase, init_container_statuses, container_statuses, .. } = &pod.status;
    let mut containers = init_container_statuses.iter().chain(container_statuses);
    phase.is_finished() && !pod.is_deleting() && containers.all(|status| status.state.running.is_none())
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use futures_util::stream::BoxStream;
    use krafla_api::{Key, Time};
    use krafla_cluster::{Listed, Step, Written};
    use serde_json::json;

    use super::*;

    /// Takes every write.
    struct Yes;

    impl Client for Yes {
        fn list(&self, _: Kind) -> BoxFuture<'_, Result<Listed, ClientError>> {
            Box::pin(std::future::ready(Ok(Listed::default())))
        }
        fn watch(&self, _: Kind, _: u64) -> BoxStream<'static, Result<Event, ClientError>> {
            stream::pending().boxed()
        }
        fn get(&self, _: Kind, _: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>> {
            Box::pin(std::future::pending())
        }
        fn write<'a>(&'a self, _: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>> {
            let written = Written { key: Key::new("n", "p"), uid: Uid::from("u"), revision: 2 };
            Box::pin(std::future::ready(Ok(written)))
        }
    }

    fn pod(status: &serde_json::Value, deleting_at: Option<Time>) -> Arc<Pod> {
        let metadata = json!({"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "3"});
        let spec = json!({"containers": [{"name": "main"}], "restartPolicy": "Never"});
        let pod = json!({"metadata": metadata, "spec": spec, "status": status});
        let mut pod: Pod = serde_json::from_value(pod).unwrap();
        pod.metadata.deletion_timestamp = deleting_at;
        Arc::new(pod)
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_pod_that_has_finished_until_it_is_deleted() {
        let size = "nodes=1".parse().unwrap();
        let nodes = SimulatedNodes::new(Arc::new(Yes), size);
        let mut pods = Pods::default();
        let running = json!({"name": "main", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
        let ended = json!({"name": "main", "state": {"terminated": {"exitCode": 0}}});
        nodes.take_in(pod(&json!({"phase": "Running", "containerStatuses": [running]}), None), &mut pods);
        assert_eq!(pods.senders.len(), 1);
        let finished = json!({"phase": "Succeeded", "containerStatuses": [ended]});
        nodes.take_in(pod(&finished, None), &mut pods);
        assert!(pods.senders.is_empty());
        assert!(pods.workers.join_next().await.is_some_and(|ended| ended.is_ok()), "its worker ends");
        // Another one has said that it has finished: its containers are still to be reported.
        nodes.take_in(pod(&json!({"phase": "Failed", "containerStatuses": [running]}), None), &mut pods);
        assert_eq!(pods.senders.len(), 1);
        pods.senders.clear();
        nodes.take_in(pod(&finished, Some(Time::from_seconds(5))), &mut pods);
        assert_eq!(pods.senders.len(), 1, "its deletion is to be confirmed");
    }
}
