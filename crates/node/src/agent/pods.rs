//! What the node knows: its pods as the server has them, and what their containers did as the supervisor
//! reports it.
//!
//! There is one of these, and it only remembers. Whatever changes wakes the worker of the pod concerned,
//! which looks at all of it anew: no change can be missed, and none needs to be told apart.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use jiff::Timestamp;
use krafla_api::{Key, Kind, Uid};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::addresses::Addresses;
use super::hosts::Present;
use crate::container::{Cause, ContainerId, End, Record};
use crate::decide::Attempts;
use crate::materials::references::{has_own_fields, of_volumes};
use crate::pod::Pod;
use crate::status::PodStatus;
use crate::supervisor::protocol::Surroundings;

pub(crate) struct Pods {
    state: Mutex<State>,
    synced: Notify,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<Uid, Entry>,
    addresses: Addresses,
    /// Whether the pods were listed at least once: only then is a container without a pod an orphan.
    is_listed: bool,
    /// Counts the connections to the supervisor.
    session: u64,
    /// What the supervisor has reported since it was connected to; none once it has reported all.
    reported: Option<BTreeSet<ContainerId>>,
    /// The revisions that this node's own reports made and that the server has not told of yet.
    own_reports: BTreeSet<u64>,
}

#[derive(Default)]
struct Entry {
    /// None for containers whose pod has not been listed yet.
    pod: Option<Arc<Pod>>,
    is_gone: bool,
    address: Option<Ipv4Addr>,
    volumes_version: u64,
    attempts: Attempts,
    /// What containers that run see, where that can not be found out any more.
    surroundings: BTreeMap<ContainerId, Arc<Surroundings>>,
    wake: Arc<Notify>,
    log_grew: Arc<Notify>,
}

/// What is known of one pod.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) pod: Arc<Pod>,
    pub(crate) is_gone: bool,
    pub(crate) address: Ipv4Addr,
    /// Changes when something changes that the pod's volumes are made of.
    pub(crate) volumes_version: u64,
    pub(crate) attempts: Attempts,
    /// Which connection to the supervisor this is: what was asked for on an earlier one may have been lost.
    pub(crate) session: u64,
    /// Told whenever any of this changes.
    pub(crate) wake: Arc<Notify>,
    /// Told whenever a followed container has written something, or has ended.
    pub(crate) log_grew: Arc<Notify>,
}

/// What became of a pod that was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nobody looks after it yet.
    New,
    /// Its worker was told.
    Known,
}

impl Pods {
    pub(crate) fn new(addresses: Addresses) -> Pods {
        Pods { state: Mutex::new(State { addresses, ..State::default() }), synced: Notify::new() }
    }

    /// Takes in a pod as the server has it.
    pub(crate) fn insert(&self, pod: Arc<Pod>) -> Taken {
        let mut state = self.state.lock();
        let state = &mut *state;
        let entry = state.entries.entry(pod.metadata.uid.clone()).or_default();
        if entry.address.is_none() {
            entry.address = Some(state.addresses.take(&pod));
        }
        let taken = if entry.pod.is_none() { Taken::New } else { Taken::Known };
        let is_newer =
            entry.pod.as_ref().is_none_or(|known| known.metadata.revision() <= pod.metadata.revision());
        if is_newer {
            let known = entry.pod.as_ref().map(|known| &known.metadata);
            let is_changed = known.is_some_and(|known| {
                known.labels != pod.metadata.labels || known.annotations != pod.metadata.annotations
            });
            if is_changed && has_own_fields(&pod) {
                entry.volumes_version = entry.volumes_version.wrapping_add(1);
            }
            entry.pod = Some(pod);
        }
        entry.wake.notify_one();
        taken
    }

    /// The server has taken in what this node reported of a pod: of all that it will tell of that revision, only the status is
    /// new.
    pub(crate) fn reported(&self, uid: &Uid, revision: u64, status: &PodStatus) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(entry) = state.entries.get_mut(uid) else { return };
        // The server may have told of it before it answered.
        let Some(pod) = entry.pod.as_mut().filter(|pod| pod.metadata.revision() < revision) else { return };
        let pod = Arc::make_mut(pod);
        pod.metadata.resource_version = revision.to_string();
        pod.status = status.clone();
        entry.wake.notify_one();
        state.own_reports.insert(revision);
    }

    /// Whether this node itself made a revision that the server tells of. What came before it has been told.
    pub(crate) fn is_own_report(&self, revision: u64) -> bool {
        let own_reports = &mut self.state.lock().own_reports;
        while own_reports.first().is_some_and(|first| *first < revision) {
            own_reports.pop_first();
        }
        own_reports.remove(&revision)
    }

    /// The server has a pod no more.
    pub(crate) fn gone(&self, uid: &Uid) {
        if let Some(entry) = self.state.lock().entries.get_mut(uid) {
            entry.is_gone = true;
            entry.wake.notify_one();
        }
    }

    /// All pods of this node were listed, and have been taken in: those that were not listed are no more. Returns those
    /// of which nothing is known but that there are containers of them.
    pub(crate) fn listed(&self, uids: &BTreeSet<Uid>) -> Vec<Uid> {
        let mut state = self.state.lock();
        state.is_listed = true;
        let state = &mut *state;
        let orphans: BTreeMap<Uid, Entry> =
            state.entries.extract_if(.., |_, entry| entry.pod.is_none()).collect();
        for address in orphans.values().filter_map(|entry| entry.address) {
            state.addresses.give_back(address);
        }
        for (_, entry) in state.entries.iter_mut().filter(|(uid, _)| !uids.contains(*uid)) {
            entry.is_gone = true;
            entry.wake.notify_one();
        }
        orphans.into_keys().collect()
    }

    /// All pods that have not ended, by name.
    pub(crate) fn unfinished(&self) -> Vec<Key> {
        let state = self.state.lock();
        let present =
            state.entries.values().filter(|entry| !entry.is_gone).filter_map(|entry| entry.pod.as_ref());
        let mut keys: Vec<Key> =
            present.filter(|pod| !pod.status.phase.is_finished()).map(|pod| pod.key()).collect();
        keys.sort();
        keys
    }

    /// Whether anything is known of a pod.
    pub(crate) fn contains(&self, uid: &Uid) -> bool {
        self.state.lock().entries.contains_key(uid)
    }

    /// Takes in a record. Returns false if it belongs to a pod that does not exist.
    pub(crate) fn observe(&self, record: Record) -> bool {
        let mut state = self.state.lock();
        if let Some(reported) = &mut state.reported {
            reported.insert(record.id.clone());
        }
        let is_listed = state.is_listed;
        let state = &mut *state;
        let entry = match state.entries.get_mut(&record.id.pod) {
            Some(entry) => entry,
            None if is_listed => return false,
            None => state.entries.entry(record.id.pod.clone()).or_default(),
        };
        if record.end.is_some() {
            entry.surroundings.remove(&record.id);
            entry.log_grew.notify_waiters();
        }
        // What runs was started with this address, though the server may not have been told.
        if let Some(address) = record.address.filter(|_| entry.address.is_none()) {
            state.addresses.reserve(address);
            entry.address = Some(address);
        }
        entry.attempts.insert(record);
        entry.wake.notify_one();
        true
    }

    /// Remembers what a container sees, for as long as it runs.
    pub(crate) fn remember(&self, id: &ContainerId, seen: Surroundings) {
        if let Some(entry) = self.state.lock().entries.get_mut(&id.pod) {
            entry.surroundings.insert(id.clone(), Arc::new(seen));
        }
    }

    /// What a container sees, if that was remembered.
    pub(crate) fn surroundings(&self, id: &ContainerId) -> Option<Arc<Surroundings>> {
        self.state.lock().entries.get(&id.pod)?.surroundings.get(id).cloned()
    }

    /// A connection to the supervisor begins: what it does not report is lost.
    pub(crate) fn begin_session(&self) {
        let mut state = self.state.lock();
        state.session = state.session.wrapping_add(1);
        state.reported = Some(BTreeSet::new());
    }

    /// The supervisor has reported all it has.
    pub(crate) fn end_sync(&self) {
        let mut state = self.state.lock();
        let Some(reported) = state.reported.take() else { return };
        for entry in state.entries.values_mut() {
            let lost = entry.attempts.all_running().filter(|record| !reported.contains(&record.id));
            let lost: Vec<_> = lost.cloned().collect();
            for mut record in lost {
                let message = "its supervisor knows it no more".to_owned();
                record.end = Some(End { at: Timestamp::now(), exit_code: 137, cause: Cause::Lost, message });
                entry.surroundings.remove(&record.id);
                entry.attempts.insert(record);
            }
            entry.wake.notify_one();
            entry.log_grew.notify_waiters();
        }
        self.synced.notify_one();
    }

    /// Returns once the supervisor has reported all it has.
    pub(crate) async fn synced(&self) {
        self.synced.notified().await;
    }

    /// A followed container has written something.
    pub(crate) fn log_grew(&self, id: &ContainerId) {
        if let Some(entry) = self.state.lock().entries.get(&id.pod) {
            entry.log_grew.notify_waiters();
        }
    }

    /// Resolves when a container has ended or, if it is followed, has written something; none if it does not
    /// run any more.
    ///
    /// It takes in news from the moment of the call, not only from the first poll.
    pub(crate) fn change_of(&self, id: &ContainerId) -> Option<impl Future<Output = ()> + use<>> {
        let change = self.view(&id.pod)?.log_grew.notified_owned();
        let is_running = self.view(&id.pod)?.attempts.get(&id.name, id.attempt)?.is_running();
        is_running.then_some(change)
    }

    /// All that is known of a pod.
    pub(crate) fn view(&self, uid: &Uid) -> Option<View> {
        let state = self.state.lock();
        let entry = state.entries.get(uid)?;
        Some(View {
            pod: entry.pod.clone()?,
            is_gone: entry.is_gone,
            address: entry.address?,
            volumes_version: entry.volumes_version,
            attempts: entry.attempts.clone(),
            session: state.session,
            wake: entry.wake.clone(),
            log_grew: entry.log_grew.clone(),
        })
    }

    /// The pod of a name; the newer one if an older one is still winding down.
    pub(crate) fn find(&self, key: &Key) -> Option<View> {
        let uid = {
            let state = self.state.lock();
            let named = state
                .entries
                .iter()
                .filter(|(_, entry)| entry.pod.as_ref().is_some_and(|pod| pod.key() == *key));
            named.min_by_key(|(_, entry)| entry.is_gone).map(|(uid, _)| uid.clone())
        };
        self.view(&uid?)
    }

    /// A ConfigMap or Secret has changed; all of them may have, if none is named.
    pub(crate) fn source_changed(&self, changed: Option<(Kind, &Key)>) {
        for entry in self.state.lock().entries.values_mut() {
            let Some(pod) = &entry.pod else { continue };
            let references = of_volumes(pod);
            let concerns = match changed {
                Some((kind, key)) => {
                    *key.namespace == *pod.metadata.namespace
                        && references.contains(&(kind, key.name.to_string()))
                }
                None => !references.is_empty(),
            };
            if concerns {
                entry.volumes_version = entry.volumes_version.wrapping_add(1);
                entry.wake.notify_one();
            }
        }
    }

    /// All pods that are there with their addresses, by their names.
    pub(crate) fn present(&self) -> Vec<Present> {
        let state = self.state.lock();
        let present = state.entries.values().filter(|entry| !entry.is_gone);
        let mut pods: Vec<Present> =
            present.filter_map(|entry| Some((entry.pod.clone()?, entry.address?))).collect();
        pods.sort_by(|(one, _), (other, _)| {
            let (one, other) = (&one.metadata, &other.metadata);
            (&one.namespace, &one.name, &one.uid).cmp(&(&other.namespace, &other.name, &other.uid))
        });
        pods
    }

    /// Forgets a pod of which nothing is left.
    pub(crate) fn remove(&self, uid: &Uid) {
        let mut state = self.state.lock();
        if let Some(address) = state.entries.remove(uid).and_then(|entry| entry.address) {
            state.addresses.give_back(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_has_the_address_that_its_containers_were_started_with() {
        let pod_of = |uid: &str| {
            let mut pod = Pod::default();
            pod.metadata.uid = Uid::from(uid);
            Arc::new(pod)
        };
        let first = Addresses::default().take(&Pod::default());
        let elsewhere = Ipv4Addr::new(127, 99, 0, 1);
        let record_of = |uid: &str, address: Ipv4Addr| -> Record {
            let record = json!({"pod": uid, "name": "main", "attempt": 0, "address": address});
            serde_json::from_value(record).unwrap()
        };
        let pods = Pods::new(Addresses::default());
        assert!(pods.observe(record_of("old", first)));
        assert!(pods.observe(record_of("orphan", elsewhere)));
        // The server knows of no address, and lists the new one first.
        pods.insert(pod_of("new"));
        pods.insert(pod_of("old"));
        let address = |uid: &str| pods.view(&Uid::from(uid)).unwrap().address;
        assert_eq!(address("old"), first);
        assert_ne!(address("new"), first);

        let listed = ["new", "old"].map(Uid::from).into();
        assert_eq!(pods.listed(&listed), [Uid::from("orphan")]);
        assert!(!pods.state.lock().addresses.is_taken(elsewhere));
    }

    #[test]
    fn volumes_that_tell_a_pod_of_itself_change_with_its_labels_and_annotations() {
        let pods = Pods::new(Addresses::default());
        let item = json!({"path": "x", "fieldRef": {"fieldPath": "metadata.labels"}});
        let downward = json!({"downwardAPI": {"items": [item]}});
        let version_after = |volume: serde_json::Value, revision: u64, metadata: serde_json::Value| {
            let uid = volume["name"].clone();
            let pod = json!({"metadata": metadata, "spec": {"volumes": [volume]}});
            let mut pod: Pod = serde_json::from_value(pod).unwrap();
            pod.metadata.uid = Uid::from(uid.as_str().unwrap());
            pod.metadata.resource_version = revision.to_string();
            let uid = pod.metadata.uid.clone();
            pods.insert(Arc::new(pod));
            pods.view(&uid).unwrap().volumes_version
        };
        for (volume, follows) in [
            (json!({"name": "own", "downwardAPI": downward["downwardAPI"]}), 1),
            (json!({"name": "part", "projected": {"sources": [downward]}}), 1),
            (json!({"name": "other", "emptyDir": {}}), 0),
        ] {
            let version_after = |revision, metadata| version_after(volume.clone(), revision, metadata);
            assert_eq!(version_after(1, json!({"labels": {"a": "b"}})), 0);
            assert_eq!(version_after(2, json!({"labels": {"a": "b"}})), 0);
            assert_eq!(version_after(3, json!({"labels": {"a": "c"}})), follows);
            assert_eq!(
                version_after(4, json!({"labels": {"a": "c"}, "annotations": {"d": "e"}})),
                2 * follows
            );
        }
    }

    #[test]
    fn what_this_node_reported_is_known_without_reading_it_again() {
        let pods = Pods::new(Addresses::default());
        let uid = Uid::from("u");
        let mut pod = Pod::default();
        pod.metadata.uid = uid.clone();
        pod.metadata.resource_version = "5".to_owned();
        pods.insert(Arc::new(pod.clone()));
        let status = |message: &str| PodStatus { message: message.to_owned(), ..PodStatus::default() };
        let known = || {
            let pod = pods.view(&uid).unwrap().pod;
            (pod.metadata.revision(), pod.status.message.clone())
        };

        pods.reported(&uid, 7, &status("own"));
        assert_eq!(known(), (7, "own".to_owned()));
        assert!(!pods.is_own_report(6));
        assert!(pods.is_own_report(7));
        assert!(!pods.is_own_report(7), "told of once");

        // The server has told of a later change before it answered.
        pod.metadata.resource_version = "9".to_owned();
        pod.status = status("another's");
        pods.insert(Arc::new(pod));
        pods.reported(&uid, 8, &status("own again"));
        assert_eq!(known(), (9, "another's".to_owned()));
        assert!(pods.state.lock().own_reports.is_empty());
    }
}
