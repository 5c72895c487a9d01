//! Looks after one simulated pod: lets its life go on, reports, and waits for the next change.

use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Kind, Time};
use krafla_cluster::{ClientError, Propagation, Step};
use serde_json::json;
use tokio::sync::watch;

use super::Shared;
use super::life::{Course, Life};
use crate::agent::{backoff, changed_fields};
use crate::decide::{Decision, Next};
use crate::pod::Pod;
use crate::status::{Phase, PodStatus};

pub(super) struct Worker {
    shared: Arc<Shared>,
    pods: watch::Receiver<Arc<Pod>>,
    /// The newest status, ours or the server's, and its revision.
    status: PodStatus,
    revision: u64,
    n_failed_writes: u32,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, pods: watch::Receiver<Arc<Pod>>) -> Worker {
        Worker { shared, pods, status: PodStatus::default(), revision: 0, n_failed_writes: 0 }
    }

    /// Returns once the pod is gone.
    pub(super) async fn run(mut self) {
        let pod = self.pods.borrow_and_update().clone();
        let now = self.shared.clock.now();
        let life = Course::of(&pod, &self.shared.size).map(|course| Life::of(&pod, course, now));
        let address = match pod.status.pod_ip.as_str() {
            "" => self.shared.next_address().to_string(),
            known => known.to_owned(),
        };
        match life {
            Ok(life) => self.live(life, &address).await,
            Err(why) => self.refuse(why).await,
        }
    }

    async fn live(&mut self, mut life: Life, address: &str) {
        loop {
            let pod = self.take_in();
            let Decision { status, next, wake_at, .. } =
                life.until(&pod, &self.status, address, self.shared.clock.now());
            let mut outcome = self.report(&pod, status).await;
            if outcome.is_ok() && next == Next::ConfirmDeletion {
                outcome = self.confirm(&pod).await;
            }
            if !self.wait(outcome, wake_at).await {
                return;
            }
        }
    }

    /// A pod whose annotations make no sense fails, and says why.
    async fn refuse(&mut self, why: String) {
        loop {
            let pod = self.take_in();
            let reason = "InvalidSimulation".to_owned();
            let failed =
                PodStatus { phase: Phase::Failed, reason, message: why.clone(), ..self.status.clone() };
            let outcome = match pod.is_deleting() {
                true => self.confirm(&pod).await,
                false => self.report(&pod, failed).await,
            };
            if !self.wait(outcome, None).await {
                return;
            }
        }
    }

    /// The pod as the server last showed it; its status counts unless ours is newer.
    fn take_in(&mut self) -> Arc<Pod> {
        let pod = self.pods.borrow_and_update().clone();
        if pod.metadata.revision() > self.revision {
            self.revision = pod.metadata.revision();
            self.status = pod.status.clone();
        }
        pod
    }

    async fn report(&mut self, pod: &Pod, desired: PodStatus) -> Result<(), ClientError> {
        let Some(patch) = changed_fields(&self.status, &desired) else { return Ok(()) };
        let step = Step::Patch {
            kind: Kind::Pod,
            key: pod.key(),
            uid: pod.metadata.uid.clone(),
            revision: Some(self.revision),
            of_status: true,
            patch: json!({ "status": patch }),
        };
        let written = self.shared.client.write(&step).await?;
        self.revision = self.revision.max(written.revision);
        self.status = desired;
        Ok(())
    }

    async fn confirm(&self, pod: &Pod) -> Result<(), ClientError> {
        let step = Step::Delete {
            kind: Kind::Pod,
            key: pod.key(),
            uid: pod.metadata.uid.clone(),
            revision: None,
            propagation: Propagation::Background,
            grace_seconds: Some(0),
        };
        self.shared.client.write(&step).await.map(drop)
    }

    /// Waits for a change of the pod, for the next thing to happen, or to try a failed write again. Returns false
    /// when the pod is gone.
    async fn wait(&mut self, outcome: Result<(), ClientError>, wake_at: Option<Time>) -> bool {
        let now = self.shared.clock.now();
        let retry_at = match outcome {
            Ok(()) => {
                self.n_failed_writes = 0;
                None
            }
            Err(error) => {
                tracing::debug!(%error, "write failed");
                self.n_failed_writes = self.n_failed_writes.saturating_add(1);
                Some(now.after(backoff(self.n_failed_writes)))
            }
        };
        match [wake_at, retry_at].into_iter().flatten().min() {
            None => self.pods.changed().await.is_ok(),
            Some(at) => {
                // A moment more, so that it is past the time and not just before it.
                let delay = at.since(now) + Duration::from_millis(1);
                tokio::time::timeout(delay, self.pods.changed()).await.unwrap_or(Ok(())).is_ok()
            }
        }
    }
}
