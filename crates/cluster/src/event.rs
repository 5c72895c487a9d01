//! Changes of objects, as a watch reports them.

use std::any::Any;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub event_type: EventType,
    /// The revision at which it happened.
    pub revision: u64,
    /// The object after it, or as it last was before its deletion (with the revision of the deletion). Empty for a
    /// bookmark.
    pub object: Bytes,
    /// What others in this process have made of it.
    pub reading: Reading,
}

impl Event {
    /// An event that no other reader shares.
    pub fn new(event_type: EventType, revision: u64, object: Bytes) -> Event {
        Event { event_type, revision, object, reading: Reading::default() }
    }
}

/// The decoded object of one event. Several components of a process receive the same event; the first decodes the object
/// and the others reuse the result, because decoding a pod costs more than most decisions about it. The result is dropped
/// once no component holds it.
#[derive(Clone, Debug, Default)]
pub struct Reading(Arc<Mutex<Option<Weak<dyn Any + Send + Sync>>>>);

impl Reading {
    /// The decoded object. `decode` runs unless another component holds a result of the same type. A component that asks
    /// meanwhile waits, which takes no longer than to decode it as well.
    pub fn get_or_decode<T: Send + Sync + 'static>(&self, decode: impl FnOnce() -> T) -> Arc<T> {
        let mut known = self.0.lock();
        let held = known.as_ref().and_then(Weak::upgrade).and_then(|held| held.downcast::<T>().ok());
        held.unwrap_or_else(|| {
            let object = Arc::new(decode());
            let held: Weak<T> = Arc::downgrade(&object);
            *known = Some(held);
            object
        })
    }
}

/// What can happen to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// It is new, or new to this watch.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
    /// Nothing happened up to this revision.
    Bookmark,
}
