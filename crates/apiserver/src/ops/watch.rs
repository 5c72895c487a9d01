//! Watching: what happens to the objects of a filter, in order, from a revision on.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Api;
use crate::registry::Resource;
use crate::selector::Filter;
use crate::status::Status;
use crate::store::{Entry, EventType, Expired, StoredEvent, Watcher};

/// From when on what is watched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchOptions {
    /// Which objects.
    pub filter: Filter,
    /// After which revision; `None` or zero begins with what there is.
    pub revision: Option<u64>,
    /// Whether to begin with what there is even so.
    pub send_initial: bool,
}

/// One thing to tell a watcher.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// It happened, and the watcher sees the object as it is stored.
    Stored(Arc<StoredEvent>),
    /// The object is new to this watcher: it was there before the watch began, or was not meant before it changed.
    Added(Arc<Entry>),
    /// The object is gone for this watcher, as it last was for it; the revision is that of the change.
    Deleted(Arc<Entry>, u64),
    /// All that was there before the watch began has been shown, as of this revision.
    InitialEnd(u64),
}

/// A watch: a place in the history of a resource, and a filter.
pub struct Watch {
    watcher: Watcher,
    filter: Filter,
    initial: VecDeque<Arc<Entry>>,
    initial_end: Option<u64>,
}

impl Api {
    /// Watches a resource.
    pub fn watch(&self, resource: &Resource, options: WatchOptions) -> Result<Watch, Status> {
        self.check_reached(options.revision)?;
        let from = options.revision.filter(|revision| *revision > 0);
        let begins_with_all = options.send_initial || from.is_none();
        let (initial, start) = if begins_with_all {
            let snapshot = self.store().snapshot(&resource.storage);
            let all = snapshot.range(options.filter.namespace.as_deref(), None);
            (all.filter(|entry| options.filter.matches(entry)).cloned().collect(), snapshot.revision)
        } else {
            (VecDeque::new(), from.unwrap_or_default())
        };
        let watcher = self.store().watch(&resource.storage, start).map_err(too_old)?;
        let initial_end = begins_with_all.then_some(start);
        Ok(Watch { watcher, filter: options.filter, initial, initial_end })
    }
}

/// The history that was asked for is forgotten.
pub(crate) fn too_old(expired: Expired) -> Status {
    Status::expired(expired.to_string())
}

impl Watch {
    /// The next event. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<WatchEvent, Expired> {
        loop {
            if let Some(event) = self.next_initial() {
                return Ok(event);
            }
            let event = self.watcher.next().await?;
            if let Some(event) = self.seen_through_filter(event) {
                return Ok(event);
            }
        }
    }

    /// The next event, if it has happened.
    pub fn try_next(&mut self) -> Option<Result<WatchEvent, Expired>> {
        loop {
            if let Some(event) = self.next_initial() {
                return Some(Ok(event));
            }
            match self.watcher.try_next()? {
                Ok(event) => {
                    if let Some(event) = self.seen_through_filter(event) {
                        return Some(Ok(event));
                    }
                }
                Err(expired) => return Some(Err(expired)),
            }
        }
    }

    /// Up to which revision everything has been told.
    pub fn revision(&self) -> u64 {
        self.watcher.revision()
    }

    fn next_initial(&mut self) -> Option<WatchEvent> {
        match self.initial.pop_front() {
            Some(entry) => Some(WatchEvent::Added(entry)),
            None => self.initial_end.take().map(WatchEvent::InitialEnd),
        }
    }

    /// A change can bring an object into the filter, or take it out: then it is new, or gone, for this watcher.
    fn seen_through_filter(&self, event: Arc<StoredEvent>) -> Option<WatchEvent> {
        let is_meant = self.filter.matches(&event.entry);
        let was_meant = event.previous.as_ref().is_some_and(|previous| self.filter.matches(previous));
        match (event.event_type, was_meant, is_meant) {
            (EventType::Added, _, true) => Some(WatchEvent::Stored(event)),
            (EventType::Added, _, false) => None,
            (EventType::Modified, true, true) => Some(WatchEvent::Stored(event)),
            (EventType::Modified, false, true) => Some(WatchEvent::Added(event.entry.clone())),
            (EventType::Modified, true, false) => {
                event.previous.clone().map(|previous| WatchEvent::Deleted(previous, event.revision))
            }
            (EventType::Modified, false, false) => None,
            // What counts is whether the watcher knew it, which is what the state before says.
            (EventType::Deleted, true, _) => Some(WatchEvent::Stored(event)),
            (EventType::Deleted, false, _) => None,
        }
    }
}
