//! Everything that is true at one revision.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use krafla_api::Key;

use super::entry::{Entry, ResourceId};
use super::event::{EventType, StoredEvent};
use super::history::{History, Retention};
use super::snapshot::{Entries, Snapshot};
use super::watch::Expired;
use super::write::{Change, CommitError, Expect, Write};

/// The revision of a store that was never written to. Zero is not a revision: in requests it means "any".
pub(super) const FIRST_REVISION: u64 = 1;

/// Everything that is true at one revision: the objects, and what recently happened to them. Clones are cheap and
/// independent, which is all there is to snapshots, to publishing, and to taking back what could not be written.
#[derive(Clone, Debug)]
pub(super) struct State {
    revision: u64,
    /// Where history begins: what happened before this process started is not known.
    start: u64,
    retention: Retention,
    resources: BTreeMap<ResourceId, Arc<Resource>>,
}

#[derive(Clone, Debug)]
struct Resource {
    entries: Entries,
    history: History,
}

impl State {
    /// What was found on disk, without a past.
    pub(super) fn new(revision: u64, objects: BTreeMap<ResourceId, Entries>, retention: Retention) -> State {
        let history = History::since(revision);
        let with_history = |(id, entries)| (id, Arc::new(Resource { entries, history: history.clone() }));
        let resources = objects.into_iter().map(with_history).collect();
        State { revision, start: revision, retention, resources }
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn get(&self, resource: &ResourceId, key: &Key) -> Option<&Arc<Entry>> {
        self.resources.get(resource)?.entries.get(key)
    }

    /// Every object, and the revision at which that is so.
    pub(super) fn all(&self) -> (u64, Vec<(ResourceId, Arc<Entry>)>) {
        let of_resource = |(id, resource): (&ResourceId, &Arc<Resource>)| {
            let entries: Vec<_> =
                resource.entries.values().map(|entry| (id.clone(), entry.clone())).collect();
            entries
        };
        (self.revision, self.resources.iter().flat_map(of_resource).collect())
    }

    pub(super) fn snapshot(&self, resource: &ResourceId) -> Snapshot {
        let entries = self.resources.get(resource).map(|resource| resource.entries.clone());
        Snapshot { revision: self.revision, entries: entries.unwrap_or_default() }
    }

    pub(super) fn snapshot_at(&self, resource: &ResourceId, revision: u64) -> Option<Snapshot> {
        if revision > self.revision {
            return None;
        }
        let entries = match self.resources.get(resource) {
            Some(resource) => resource.history.rewind(resource.entries.clone(), revision),
            None => History::since(self.start).rewind(Entries::new(), revision),
        };
        entries.ok().map(|entries| Snapshot { revision, entries })
    }

    /// The first event of a resource after a revision.
    pub(super) fn first_event_after(
        &self,
        resource: &ResourceId,
        revision: u64,
    ) -> Result<Option<&Arc<StoredEvent>>, Expired> {
        match self.resources.get(resource) {
            Some(resource) => {
                resource.history.check(revision)?;
                Ok(resource.history.first_after(revision))
            }
            None => History::since(self.start).check(revision).map(|()| None),
        }
    }

    /// Whether what a write expects is so.
    pub(super) fn check(&self, write: &Write) -> Result<(), CommitError> {
        write.expect.check(self.get(&write.resource, &write.key).map(Arc::as_ref))
    }

    /// Makes one write, or says why not. This is where revisions come from.
    pub(super) fn apply(&mut self, write: Write, now: Duration) -> Result<Arc<StoredEvent>, CommitError> {
        let Write { resource, key, expect, change } = write;
        let previous = self.get(&resource, &key).cloned();
        expect.check(previous.as_deref())?;

        self.revision += 1;
        let (draft, is_deleted) = match change {
            Change::Put(draft) => (draft, false),
            Change::Delete(draft) => (draft, true),
        };
        let bytes = draft.to_bytes(self.revision);
        let entry = Arc::new(Entry { key, uid: draft.uid, revision: self.revision, bytes, meta: draft.meta });
        let event_type = match (&previous, is_deleted) {
            (_, true) => EventType::Deleted,
            (None, false) => EventType::Added,
            (Some(_), false) => EventType::Modified,
        };
        let event = Arc::new(StoredEvent::new(event_type, entry, previous, now));
        self.record(resource, Arc::clone(&event));
        Ok(event)
    }

    fn record(&mut self, resource: ResourceId, event: Arc<StoredEvent>) {
        let start = self.start;
        let untouched = || Arc::new(Resource { entries: Entries::new(), history: History::since(start) });
        let resource = self.resources.entry(resource).or_insert_with(untouched);
        let Resource { entries, history } = Arc::make_mut(resource);
        match event.event_type {
            EventType::Added | EventType::Modified => {
                entries.insert(event.entry.key.clone(), Arc::clone(&event.entry))
            }
            EventType::Deleted => entries.remove(&event.entry.key),
        };
        history.push(event, &self.retention);
    }

    /// Whether there are events to forget as time goes by.
    pub(super) fn is_ageing(&self) -> bool {
        self.resources.values().any(|resource| resource.history.is_ageing(&self.retention))
    }

    /// Forgets the events that have become too old.
    pub(super) fn forget(&mut self, now: Duration) {
        for resource in self.resources.values_mut() {
            Arc::make_mut(resource).history.forget(now, &self.retention);
        }
    }
}

impl Expect {
    fn check(self, current: Option<&Entry>) -> Result<(), CommitError> {
        match (self, current) {
            (Expect::Absent, None) => Ok(()),
            (Expect::Absent, Some(_)) => Err(CommitError::Exists),
            (Expect::Revision(_), None) => Err(CommitError::Missing),
            (Expect::Revision(revision), Some(current)) if revision == current.revision => Ok(()),
            (Expect::Revision(_), Some(current)) => Err(CommitError::Stale { current: current.revision }),
        }
    }
}
