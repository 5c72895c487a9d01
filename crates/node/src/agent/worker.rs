//! Looks after one pod: decides, carries out, reports, and waits for the next change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Kind, Time, Uid};
use krafla_plan::{Note, Propagation, Severity, Step};
use krafla_runtime::ClientError;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::Shared;
use super::addresses::HOST;
use super::launch::{Context, Problem};
use super::pods::View;
use crate::container::ContainerId;
use crate::decide::{Action, Decision, Next, Sight, Trouble, decide};
use crate::health::Watch;
use crate::pod::Pod;
use crate::status::PodStatus;
use crate::supervisor::protocol::Request;

/// How long to wait before trying again what did not work: twice as long each time, up to the second.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(10);

pub(super) struct Worker {
    shared: Arc<Shared>,
    uid: Uid,
    wake: Arc<Notify>,
    /// The newest status, ours or the server's, and its revision.
    status: PodStatus,
    revision: u64,
    /// What was asked for on this connection to the supervisor and is not visible yet.
    asked: BTreeSet<ContainerId>,
    session: u64,
    /// Why containers can not be started, and how often each was tried.
    troubles: BTreeMap<String, Trouble>,
    n_tries: BTreeMap<String, u32>,
    has_volumes: bool,
    is_confirmed: bool,
    watch: Watch,
    /// What was said already.
    notes: Vec<Note>,
    /// What containers lack although they were started.
    shortcomings: BTreeSet<String>,
    /// When to try a write again that failed, and how often it has failed.
    retry_at: Option<Time>,
    n_failed_writes: u32,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, view: &View) -> Worker {
        Worker {
            shared,
            uid: view.pod.metadata.uid.clone(),
            wake: view.wake.clone(),
            status: PodStatus::default(),
            revision: 0,
            asked: BTreeSet::new(),
            session: 0,
            troubles: BTreeMap::new(),
            n_tries: BTreeMap::new(),
            has_volumes: false,
            is_confirmed: false,
            watch: Watch::new(view.wake.clone()),
            notes: Vec::new(),
            shortcomings: BTreeSet::new(),
            retry_at: None,
            n_failed_writes: 0,
        }
    }

    /// Returns once nothing is left of the pod.
    pub(super) async fn run(mut self) {
        while let Some(mut view) = self.shared.pods.view(&self.uid) {
            self.take_in(&mut view);
            let context = self.context(&view);
            let running =
                view.attempts.all_running().map(|record| (record.id.name.as_str(), record)).collect();
            self.watch.update(&context, &running);
            let now = self.shared.clock.now();
            let decision = self.decide(&view, now);
            let has_new_trouble = self.carry_out(&context, &decision.actions, now).await;
            if has_new_trouble {
                continue;
            }
            if !view.is_gone {
                if !decision.is_passing() {
                    self.report(&view.pod, &decision.status).await;
                }
                self.say(&view.pod, decision.notes).await;
            }
            match decision.next {
                Next::Wait => {}
                Next::ConfirmDeletion => self.confirm(&view.pod).await,
                Next::CleanUp => return self.clean_up(&view.pod).await,
            }
            self.wait(decision.wake_at).await;
        }
    }

    fn take_in(&mut self, view: &mut View) {
        if view.pod.metadata.revision() > self.revision {
            self.revision = view.pod.metadata.revision();
            self.status = view.pod.status.clone();
        }
        if self.session != view.session {
            self.session = view.session;
            self.asked.clear();
        }
        self.asked.retain(|id| view.attempts.get(&id.name, id.attempt).is_none());
        view.attempts.recover(&view.pod, &self.status, self.shared.clock.now().0);
    }

    fn context(&self, view: &View) -> Context {
        Context { shared: self.shared.clone(), pod: view.pod.clone(), address: view.address }
    }

    fn decide(&self, view: &View, now: Time) -> Decision {
        let (health, pre_stops) = self.watch.found();
        decide(&Sight {
            pod: &view.pod,
            before: &self.status,
            attempts: &view.attempts,
            troubles: &self.troubles,
            health: &health,
            pre_stops: &pre_stops,
            is_gone: view.is_gone,
            host_ip: &HOST.to_string(),
            pod_ip: &view.address.to_string(),
            now,
        })
    }

    /// Returns whether a container could not be started: then there is something new to report.
    async fn carry_out(&mut self, context: &Context, actions: &[Action], now: Time) -> bool {
        let pod = self.uid.clone();
        let id = |name: &str, attempt| ContainerId { pod: pod.clone(), name: name.to_owned(), attempt };
        let mut has_new_trouble = false;
        for action in actions {
            match action {
                Action::Stop { container, attempt, how } => {
                    self.shared.link.send(Request::Stop { id: id(container, *attempt), how: *how });
                }
                Action::PreStop { container, attempt, grace_seconds } => {
                    let grace = Duration::from_secs((*grace_seconds).into());
                    self.watch.begin_pre_stop(context, &id(container, *attempt), grace, now);
                }
                Action::Start { container, attempt, backoff_seconds } => {
                    let id = id(container, *attempt);
                    if self.asked.contains(&id) {
                        continue;
                    }
                    match self.launch(context, &id, *backoff_seconds).await {
                        Ok(request) => {
                            self.shared.link.send(request);
                            self.asked.insert(id);
                            self.troubles.remove(container);
                            self.n_tries.remove(container);
                            self.shortcomings.extend(context.shortcoming(container).await);
                        }
                        Err(trouble) => {
                            self.trouble(container, trouble);
                            has_new_trouble = true;
                        }
                    }
                }
            }
        }
        has_new_trouble
    }

    async fn launch(
        &mut self,
        context: &Context,
        id: &ContainerId,
        backoff_seconds: u32,
    ) -> Result<Request, Problem> {
        if !self.has_volumes {
            context.make_volumes().await?;
            self.has_volumes = true;
        }
        let launch = context.launch(id.clone(), backoff_seconds).await?;
        Ok(Request::Start(Box::new(launch)))
    }

    fn trouble(&mut self, container: &str, problem: Problem) {
        let n_tries = self.n_tries.entry(container.to_owned()).or_default();
        let retry_at = self.shared.clock.now().after(backoff(*n_tries));
        *n_tries = n_tries.saturating_add(1);
        let Problem { reason, message } = problem;
        self.troubles.insert(container.to_owned(), Trouble { reason, message, retry_at });
    }

    /// Makes events of the notes that are new. An event that can not be written is lost: it is only for people.
    async fn say(&mut self, pod: &Pod, mut notes: Vec<Note>) {
        let warning = |message: &String| Note {
            severity: Severity::Warning,
            reason: "FailedMount",
            message: message.clone(),
        };
        notes.extend(self.shortcomings.iter().map(warning));
        for note in notes.iter().filter(|note| !self.notes.contains(note)) {
            let event = event(pod, note, &self.shared.config.name, self.shared.clock.now());
            let step = Step::Create { kind: Kind::Event, object: event };
            if let Err(error) = self.shared.client.write(&step).await {
                tracing::debug!(pod = %pod.key(), %error, "event could not be written");
            }
        }
        self.notes = notes;
    }

    /// Writes the status, if it is not what the server has.
    async fn report(&mut self, pod: &Pod, desired: &PodStatus) {
        let Some(patch) = changed_fields(&self.status, desired) else {
            self.retry_at = None;
            return;
        };
        let step = Step::Patch {
            kind: Kind::Pod,
            key: pod.key(),
            uid: self.uid.clone(),
            revision: Some(self.revision),
            of_status: true,
            patch: serde_json::json!({ "status": patch }),
        };
        match self.shared.client.write(&step).await {
            Ok(written) => {
                self.revision = self.revision.max(written.revision);
                self.status = desired.clone();
                self.succeeded();
            }
            Err(error) => self.failed(pod, &error).await,
        }
    }

    /// Tells the server that nothing runs any more, so that the pod can go. Its end is told only after how it ended.
    async fn confirm(&mut self, pod: &Pod) {
        if self.is_confirmed || self.retry_at.is_some() {
            return;
        }
        let step = Step::Delete {
            kind: Kind::Pod,
            key: pod.key(),
            uid: self.uid.clone(),
            propagation: Propagation::Background,
            grace_seconds: Some(0),
        };
        match self.shared.client.write(&step).await {
            Ok(_) => {
                self.is_confirmed = true;
                self.succeeded();
            }
            Err(error) => self.failed(pod, &error).await,
        }
    }

    fn succeeded(&mut self) {
        self.retry_at = None;
        self.n_failed_writes = 0;
    }

    /// A failed write is tried again, from what is then true.
    async fn failed(&mut self, pod: &Pod, error: &ClientError) {
        tracing::debug!(pod = %pod.key(), %error, "write failed");
        self.retry_at = Some(self.shared.clock.now().after(backoff(self.n_failed_writes)));
        self.n_failed_writes = self.n_failed_writes.saturating_add(1);
        match error {
            ClientError::NotFound(_) => self.shared.pods.gone(&self.uid),
            ClientError::Conflict(_) => self.refresh(pod).await,
            ClientError::AlreadyExists(_)
            | ClientError::Expired(_)
            | ClientError::Refused { .. }
            | ClientError::Busy { .. }
            | ClientError::Unknown(_) => {}
        }
    }

    /// Somebody else has written, and the watch has not told yet.
    async fn refresh(&mut self, pod: &Pod) {
        let found = self.shared.client.get(Kind::Pod, &pod.key()).await;
        let found = found.map(|json| serde_json::from_slice::<Pod>(&json));
        match found {
            Ok(Ok(found)) if found.metadata.uid == self.uid => {
                self.shared.pods.insert(Arc::new(found));
            }
            Ok(Ok(_)) | Err(ClientError::NotFound(_)) => self.shared.pods.gone(&self.uid),
            Ok(Err(_)) | Err(_) => {}
        }
    }

    async fn clean_up(self, pod: &Pod) {
        self.shared.link.send(Request::Forget { pod: self.uid.clone() });
        self.shared.pods.remove(&self.uid);
        self.shared.hosts.changed(pod);
        let directory = self.shared.config.pods().join(&*self.uid.0);
        let removed = tokio::task::spawn_blocking(move || fs::remove_dir_all(directory)).await;
        if let Ok(Err(error)) = removed
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(pod = %self.uid, %error, "its files can not be removed");
        }
    }

    async fn wait(&self, wake_at: Option<Time>) {
        let wake_at = [wake_at, self.retry_at].into_iter().flatten().min();
        match wake_at {
            None => self.wake.notified().await,
            Some(at) => {
                // A moment more, so that it is past the time and not just before it.
                let delay = at.since(self.shared.clock.now()) + Duration::from_millis(1);
                let _ = tokio::time::timeout(delay, self.wake.notified()).await;
            }
        }
    }
}

fn backoff(n_failed: u32) -> Duration {
    RETRY_FIRST.saturating_mul(2_u32.saturating_pow(n_failed)).min(RETRY_LONGEST)
}

/// An event of a kubelet about a pod.
fn event(pod: &Pod, note: &Note, node: &str, now: Time) -> Value {
    let metadata = &pod.metadata;
    let event_type = match note.severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    };
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": format!("{}.{:x}", metadata.name, now.0.as_nanosecond()), "namespace": metadata.namespace},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod",
            "namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid,
        },
        "type": event_type,
        "reason": note.reason,
        "message": note.message,
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
        "source": {"component": "kubelet", "host": node},
        "reportingComponent": "kubelet", "reportingInstance": node,
    })
}

/// The fields of a status that differ, as a merge patch; none if there are none.
fn changed_fields(known: &PodStatus, desired: &PodStatus) -> Option<Value> {
    let fields = |status: &PodStatus| match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let (known, desired) = (fields(known), fields(desired));
    let removed =
        known.keys().filter(|name| !desired.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = desired.iter().filter(|(name, value)| known.get(*name) != Some(value));
    let patch: Map<_, _> =
        changed.map(|(name, value)| (name.clone(), value.clone())).chain(removed).collect();
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_written() {
        let known = PodStatus {
            reason: "Evicted".to_owned(),
            host_ip: "127.0.0.1".to_owned(),
            ..PodStatus::default()
        };
        assert_eq!(changed_fields(&known, &known.clone()), None);
        let desired = PodStatus { reason: String::new(), pod_ip: "127.64.0.1".to_owned(), ..known.clone() };
        let patch = serde_json::json!({"podIP": "127.64.0.1", "reason": null});
        assert_eq!(changed_fields(&known, &desired), Some(patch));
    }

    #[test]
    fn failed_writes_are_tried_again_ever_more_slowly() {
        assert_eq!(backoff(0), Duration::from_millis(100));
        assert_eq!(backoff(3), Duration::from_millis(800));
        assert_eq!(backoff(99), Duration::from_secs(10));
    }
}
