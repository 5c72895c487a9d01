//! Watching: what happens to the objects of a filter, in order, from a revision on.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Api;
use crate::registry::Resource;
use crate::selector::{FieldSelector, Filter};
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
    /// Whether to begin with what happens next, where no revision is named.
    pub is_from_now: bool,
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
    converting: Option<Converting>,
}

/// How a watch brings objects into the version of its request.
struct Converting {
    api: Api,
    resource: Arc<Resource>,
    /// Whether the objects that were there at the beginning are converted.
    has_begun: bool,
    /// The event that is being converted. It stays here until it is, so that nothing is lost if the wait ends early.
    pending: Option<Arc<StoredEvent>>,
}

impl Api {
    /// Watches a resource.
    pub fn watch(&self, resource: &Resource, options: WatchOptions) -> Result<Watch, Status> {
        self.check_reached(options.revision)?;
        let from = options.revision.filter(|revision| *revision > 0);
        let begins_with_all = options.send_initial || from.is_none() && !options.is_from_now;
        let (initial, start) = if begins_with_all {
            let snapshot = self.store().snapshot(&resource.storage);
            let all = snapshot.range(options.filter.namespace.as_deref(), None);
            (all.filter(|entry| options.filter.matches(entry)).cloned().collect(), snapshot.revision)
        } else {
            (VecDeque::new(), from.unwrap_or_else(|| self.store().revision()))
        };
        let watcher = self.store().watch(&resource.storage, start).map_err(too_old)?;
        let initial_end = begins_with_all.then_some(start);
        Ok(Watch { watcher, filter: options.filter, initial, initial_end, converting: None })
    }

    /// Watches a resource in the version of the request.
    pub fn watch_shown(&self, resource: &Arc<Resource>, options: WatchOptions) -> Result<Watch, Status> {
        if resource.versions_to_convert().is_none() {
            return self.watch(resource, options);
        }
        // Versions differ in their fields, so fields are compared after the conversion.
        let filter = options.filter.clone();
        let but_for_fields = Filter { fields: FieldSelector::default(), ..options.filter };
        let watch = self.watch(resource, WatchOptions { filter: but_for_fields, ..options })?;
        let converting =
            Converting { api: self.clone(), resource: resource.clone(), has_begun: false, pending: None };
        Ok(Watch { filter, converting: Some(converting), ..watch })
    }
}

impl Converting {
    async fn convert(&self, event: &StoredEvent) -> Result<Arc<StoredEvent>, Status> {
        let entries = std::iter::once(&event.entry).chain(&event.previous).cloned().collect();
        let mut shown = self.api.shown_all(&self.resource, entries).await?.into_iter();
        let entry = shown.next().unwrap_or_else(|| event.entry.clone());
        Ok(Arc::new(event.with(entry, shown.next())))
    }
}

/// The history that was asked for is forgotten.
fn too_old(expired: Expired) -> Status {
    Status::expired(expired.to_string())
}

impl Watch {
    /// The next event. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<WatchEvent, Status> {
        self.convert_initial().await?;
        loop {
            if let Some(event) = self.next_initial() {
                return Ok(event);
            }
            let event = self.next_stored().await?;
            if let Some(event) = self.seen_through_filter(event) {
                return Ok(event);
            }
        }
    }

    /// The next event, if it has happened and can be told without waiting for a conversion.
    pub fn try_next(&mut self) -> Option<Result<WatchEvent, Status>> {
        if self.converting.as_ref().is_some_and(|converting| !converting.has_begun) {
            return None;
        }
        loop {
            if let Some(event) = self.next_initial() {
                return Some(Ok(event));
            }
            if self.converting.is_some() {
                return None;
            }
            match self.watcher.try_next()? {
                Ok(event) => {
                    if let Some(event) = self.seen_through_filter(event) {
                        return Some(Ok(event));
                    }
                }
                Err(expired) => return Some(Err(too_old(expired))),
            }
        }
    }

    async fn next_stored(&mut self) -> Result<Arc<StoredEvent>, Status> {
        let Some(converting) = &mut self.converting else {
            return self.watcher.next().await.map_err(too_old);
        };
        let event = match converting.pending.clone() {
            Some(event) => event,
            None => self.watcher.next().await.map_err(too_old)?,
        };
        converting.pending = Some(event.clone());
        let shown = converting.convert(&event).await?;
        converting.pending = None;
        Ok(shown)
    }

    /// Brings the objects that were there at the beginning into the version of the request, all at once.
    async fn convert_initial(&mut self) -> Result<(), Status> {
        let Some(converting) = self.converting.as_mut().filter(|converting| !converting.has_begun) else {
            return Ok(());
        };
        let stored = self.initial.iter().cloned().collect();
        let shown = converting.api.shown_all(&converting.resource, stored).await?;
        self.initial = shown.into_iter().filter(|entry| self.filter.matches(entry)).collect();
        converting.has_begun = true;
        Ok(())
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
