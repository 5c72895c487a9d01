//! What a pod's containers did, by name and attempt.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::container::{Cause, ContainerId, End, Record};
use crate::pod::Pod;
use crate::status::{PodStatus, Terminated};

/// The known attempts at a pod's containers: the newest of each, and mostly the one before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attempts(BTreeMap<String, BTreeMap<u32, Record>>);

impl Attempts {
    /// Takes in a new or changed record.
    pub fn insert(&mut self, record: Record) {
        let of_container = self.0.entry(record.id.name.clone()).or_default();
        of_container.insert(record.id.attempt, record);
        while of_container.len() > 2 {
            of_container.pop_first();
        }
    }

    /// The newest attempt at a container.
    pub fn latest(&self, container: &str) -> Option<&Record> {
        self.0.get(container)?.values().next_back()
    }

    /// One attempt at a container.
    pub fn get(&self, container: &str, attempt: u32) -> Option<&Record> {
        self.0.get(container)?.get(&attempt)
    }

    /// All known attempts at a container, the oldest first.
    pub fn of(&self, container: &str) -> impl Iterator<Item = &Record> {
        self.0.get(container).into_iter().flat_map(BTreeMap::values)
    }

    /// The newest attempt at a container, if it runs.
    pub fn running(&self, container: &str) -> Option<&Record> {
        self.latest(container).filter(|record| record.is_running())
    }

    /// How the newest attempt at a container ended, if it has.
    pub fn latest_end(&self, container: &str) -> Option<&End> {
        self.latest(container)?.end.as_ref()
    }

    /// All attempts that run.
    pub fn all_running(&self) -> impl Iterator<Item = &Record> {
        self.0.values().flat_map(BTreeMap::values).filter(|record| record.is_running())
    }

    /// Whether anything runs.
    pub fn any_running(&self) -> bool {
        self.all_running().next().is_some()
    }

    /// Adds what only the pod's status remembers: containers that ran here, and whose records are lost.
    ///
    /// Without this a container that had done its work would run once more.
    pub fn recover(&mut self, pod: &Pod, before: &PodStatus, now: Timestamp) {
        for container in pod.all_containers() {
            let Some(status) = before.container(&container.name) else { continue };
            if status.container_id.is_empty() || self.latest(&container.name).is_some() {
                continue;
            }
            let terminated = status.state.terminated.as_ref().or(status.last_state.terminated.as_ref());
            let end = match terminated {
                Some(terminated) if status.state.running.is_none() => end_of(terminated, now),
                _ => End { at: now, exit_code: 137, cause: Cause::Lost, message: LOST.to_owned() },
            };
            let started_at = terminated.and_then(|terminated| terminated.started_at).map(|time| time.0);
            self.insert(Record {
                id: ContainerId {
                    pod: pod.metadata.uid.clone(),
                    name: container.name.clone(),
                    attempt: status.restart_count,
                },
                backoff_seconds: 0,
                grace_seconds: 0,
                pid: None,
                started_at: started_at.or(Some(now)),
                address: None,
                is_unlimited: false,
                stopping_at: None,
                end: Some(end),
            });
        }
    }
}

/// A kubelet's words for the same.
const LOST: &str = "The container could not be located when the pod was restarted";

fn end_of(terminated: &Terminated, now: Timestamp) -> End {
    let cause = match terminated.reason.as_str() {
        "StartError" => Cause::NotStarted,
        "ContainerStatusUnknown" => Cause::Lost,
        "OOMKilled" => Cause::OutOfMemory,
        _ => Cause::Exited,
    };
    End {
        at: terminated.finished_at.map_or(now, |time| time.0),
        exit_code: terminated.exit_code,
        cause,
        message: terminated.message.clone(),
    }
}
