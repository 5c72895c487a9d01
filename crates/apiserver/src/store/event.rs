//! What happened to an object.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;

use super::entry::Entry;

/// One thing that happened to an object.
#[derive(Debug)]
pub struct StoredEvent {
    /// When.
    pub revision: u64,
    /// What.
    pub event_type: EventType,
    /// The object after it, or the last that is seen of it.
    pub entry: Arc<Entry>,
    /// The object before it: what a selector matched before and does not match now is gone for its watcher.
    pub previous: Option<Arc<Entry>>,
    /// When, on the store's clock.
    pub(super) happened_at: Duration,
    line: OnceLock<Bytes>,
}

/// What can happen to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It is new.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

impl EventType {
    /// As it stands in watch streams.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
        }
    }
}

impl StoredEvent {
    /// The same event of the same object in another form.
    pub(crate) fn with(&self, entry: Arc<Entry>, previous: Option<Arc<Entry>>) -> StoredEvent {
        StoredEvent::new(self.event_type, entry, previous, self.happened_at)
    }

    pub(super) fn new(
        event_type: EventType,
        entry: Arc<Entry>,
        previous: Option<Arc<Entry>>,
        happened_at: Duration,
    ) -> StoredEvent {
        StoredEvent {
            revision: entry.revision,
            event_type,
            entry,
            previous,
            happened_at,
            line: OnceLock::new(),
        }
    }

    /// The line of a watch stream that shows the whole object. It is made once, by the first watcher that asks, and
    /// shared by the others.
    pub fn line(&self) -> &Bytes {
        self.line.get_or_init(|| watch_line(self.event_type, &self.entry.bytes))
    }
}

/// One line of a watch stream. The type comes first: clients that look only at the type need not read on.
pub fn watch_line(event_type: EventType, object: &[u8]) -> Bytes {
    let parts: [&[u8]; 5] =
        [br#"{"type":""#, event_type.as_str().as_bytes(), br#"","object":"#, object, b"}\n"];
    parts.concat().into()
}
