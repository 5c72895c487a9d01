//! What a worker writes to the server: its pod's status, events, and that the pod may go.

use std::sync::Arc;
use std::time::Duration;

use krafla_api::{Kind, Time};
use krafla_cluster::{ClientError, Propagation, Step};
use krafla_plan::{Note, Severity};
use serde_json::{Map, Value};

use super::worker::Worker;
use crate::container::ContainerId;
use crate::pod::Pod;
use crate::status::PodStatus;

/// How long to wait before trying again what did not work: twice as long each time, up to the second.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(10);

impl Worker {
    /// Makes events of the notes that are new. An event that can not be written is lost: it is only for
    /// people.
    pub(super) async fn say(&mut self, pod: &Pod, mut notes: Vec<Note>) {
        let warning = |message: &String| Note::warning("FailedMount", message.clone());
        notes.extend(self.shortcomings.iter().map(warning));
        for note in notes.iter().filter(|note| !self.notes.contains(note)) {
            self.make_event(pod, note).await;
        }
        self.notes = notes;
    }

    /// Makes an event of each start that was not told of yet, if anybody wants to know.
    pub(super) async fn say_starts(&mut self, pod: &Pod, starts: &[ContainerId]) {
        for id in starts.iter().filter(|_| self.shared.config.tells) {
            if self.starts.get(&id.name).is_none_or(|told| *told < id.attempt) {
                self.starts.insert(id.name.clone(), id.attempt);
                let note = Note::normal("Started", format!("Started container {}", id.name));
                self.make_event(pod, &note).await;
            }
        }
    }

    async fn make_event(&self, pod: &Pod, note: &Note) {
        let event = event(pod, note, &self.shared.config.name, self.shared.clock.now());
        let step = Step::Create { kind: Kind::Event, object: event };
        if let Err(error) = self.shared.client.write(&step).await {
            tracing::debug!(pod = %pod.key(), %error, "event could not be written");
        }
    }

    /// Writes the status, if it is not what the server has.
    pub(super) async fn report(&mut self, pod: &Pod, desired: &PodStatus) {
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
            patch: Value::Object(Map::from_iter([("status".to_owned(), patch)])),
        };
        match self.shared.client.write(&step).await {
            Ok(written) => {
                self.revision = self.revision.max(written.revision);
                let leads_elsewhere = (self.status.is_ready(), self.status.phase.is_finished())
                    != (desired.is_ready(), desired.phase.is_finished());
                self.status = desired.clone();
                self.shared.pods.reported(&self.uid, written.revision, desired);
                if leads_elsewhere {
                    self.shared.hosts.tell();
                }
                self.succeeded();
            }
            Err(error) => self.failed(pod, &error).await,
        }
    }

    /// Tells the server that nothing runs any more, so that the pod can go. Its end is told only after how it
    /// ended.
    pub(super) async fn confirm(&mut self, pod: &Pod) {
        if self.is_confirmed || self.retry_at.is_some() {
            return;
        }
        let step = Step::Delete {
            kind: Kind::Pod,
            key: pod.key(),
            uid: self.uid.clone(),
            revision: None,
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
            | ClientError::Refused(_)
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
}

/// How long to wait after so many failures in a row.
pub(crate) fn backoff(n_failed: u32) -> Duration {
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
pub(crate) fn changed_fields(known: &PodStatus, desired: &PodStatus) -> Option<Value> {
    if known == desired {
        return None;
    }
    let fields = |status: &PodStatus| match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let (known, desired) = (fields(known), fields(desired));
    let removed: Vec<String> = known.keys().filter(|name| !desired.contains_key(*name)).cloned().collect();
    let changed = desired.into_iter().filter(|(name, value)| known.get(name) != Some(value));
    let patch: Map<_, _> = changed.chain(removed.into_iter().map(|name| (name, Value::Null))).collect();
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
