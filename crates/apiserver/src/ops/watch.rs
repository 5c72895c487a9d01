//! Watching: what happens to the objects of a filter, in order, from a revision on.

use std::collections::VecDeque;
use std::sync::Arc;

use krafla_api::Key;

use super::Api;
use crate::registry::Resource;
use crate::selector::{FieldSelector, Filter};
use crate::status::Status;
use crate::store::{Entry, EventType, Expired, Snapshot, StoredEvent, Watcher};

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
    initial: Option<Initial>,
    converting: Option<Converting>,
}

/// What there was when a watch began, and has yet to be told. It is read as it is told: a list of it for each of many watches
/// would be large.
struct Initial {
    snapshot: Snapshot,
    /// The last object that was read.
    after: Option<Key>,
    /// Objects that were read and converted.
    converted: VecDeque<Arc<Entry>>,
}

impl Initial {
    /// The next object as it is stored.
    fn next(&mut self, filter: &Filter) -> Option<Arc<Entry>> {
        let mut rest = self.snapshot.range(filter.namespace.as_deref(), self.after.as_ref());
        let next = rest.find(|entry| filter.matches(entry)).cloned();
        self.after = next.as_ref().map(|entry| entry.key.clone()).or(self.after.take());
        next
    }
}

/// How many objects are converted at once.
const CONVERTED_AT_ONCE: usize = 500;

/// How a watch brings objects into the version of its request.
struct Converting {
    api: Api,
    resource: Arc<Resource>,
    /// Which objects are meant as they are stored.
    filter: Filter,
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
            let start = snapshot.revision;
            (Some(Initial { snapshot, after: None, converted: VecDeque::new() }), start)
        } else {
            (None, from.unwrap_or_else(|| self.store().revision()))
        };
        let watcher = self.store().watch(&resource.storage, start).map_err(too_old)?;
        Ok(Watch { watcher, filter: options.filter, initial, converting: None })
    }

    /// Watches a resource in the version of the request.
    pub fn watch_shown(&self, resource: &Arc<Resource>, options: WatchOptions) -> Result<Watch, Status> {
        if resource.versions_to_convert().is_none() {
            return self.watch(resource, options);
        }
        // Versions differ in their fields, so fields are compared after the conversion.
        let filter = options.filter.clone();
        let but_for_fields = Filter { fields: FieldSelector::default(), ..options.filter };
        let watch = self.watch(resource, WatchOptions { filter: but_for_fields.clone(), ..options })?;
        let (api, resource) = (self.clone(), resource.clone());
        let converting = Converting { api, resource, filter: but_for_fields, pending: None };
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
        loop {
            if self.converting.is_some() {
                let initial = self.initial.as_mut()?;
                return initial.converted.pop_front().map(|entry| Ok(WatchEvent::Added(entry)));
            }
            if let Some(event) = self.next_initial() {
                return Some(Ok(event));
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

    /// Brings the next objects that were there at the beginning into the version of the request.
    async fn convert_initial(&mut self) -> Result<(), Status> {
        let (Some(converting), Some(initial)) = (&self.converting, &mut self.initial) else { return Ok(()) };
        while initial.converted.is_empty() {
            let before = initial.after.clone();
            let next = std::iter::from_fn(|| initial.next(&converting.filter));
            let stored: Vec<_> = next.take(CONVERTED_AT_ONCE).collect();
            if stored.is_empty() {
                return Ok(());
            }
            // If the wait ends early, these are converted again.
            let after = std::mem::replace(&mut initial.after, before);
            let shown = converting.api.shown_all(&converting.resource, stored).await?;
            initial.after = after;
            initial.converted = shown.into_iter().filter(|entry| self.filter.matches(entry)).collect();
        }
        Ok(())
    }

    /// Up to which revision everything has been told.
    pub fn revision(&self) -> u64 {
        self.watcher.revision()
    }

    fn next_initial(&mut self) -> Option<WatchEvent> {
        let initial = self.initial.as_mut()?;
        let next = match &self.converting {
            Some(_) => initial.converted.pop_front(),
            None => initial.next(&self.filter),
        };
        match next {
            Some(entry) => Some(WatchEvent::Added(entry)),
            None => self.initial.take().map(|initial| WatchEvent::InitialEnd(initial.snapshot.revision)),
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
