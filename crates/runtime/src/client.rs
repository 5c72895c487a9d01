//! What a cluster can be asked. The same interface stands in front of the embedded server (without HTTP underneath), of
//! a real cluster, and of the simulator's faults.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use krafla_api::{Key, Kind, Served, Uid};
use krafla_plan::{Object, Step};
use parking_lot::Mutex;
use serde_json::Value;

/// A cluster, as controllers, scheduler and node see it.
pub trait Client: Send + Sync {
    /// All objects of a kind in all namespaces, and the revision at which that was so.
    fn list(&self, kind: Kind) -> BoxFuture<'_, Result<Listed, ClientError>>;

    /// What happened to a kind after `revision`, until the stream ends or fails. [`ClientError::Expired`] means: list
    /// again.
    fn watch(&self, kind: Kind, revision: u64) -> BoxStream<'static, Result<Event, ClientError>>;

    /// One object.
    fn get(&self, kind: Kind, key: &Key) -> BoxFuture<'_, Result<Bytes, ClientError>>;

    /// Makes one write.
    fn write<'a>(&'a self, step: &'a Step) -> BoxFuture<'a, Result<Written, ClientError>>;
}

/// A cluster, as those see it who bring manifests: whatever it serves can be made, named or not in [`Kind`].
pub trait Manifests: Send + Sync {
    /// The kinds under an `apiVersion` whose objects can be made and kept; none if it is not served.
    fn served(&self, api_version: &str) -> BoxFuture<'_, Result<Vec<Served>, ClientError>>;

    /// One object.
    fn read<'a>(&'a self, of: &'a Served, key: &'a Key) -> BoxFuture<'a, Result<Bytes, ClientError>>;

    /// Whether an object could be made now. Nothing is made.
    fn check<'a>(&'a self, of: &'a Served, object: &'a Value) -> BoxFuture<'a, Result<(), ClientError>>;

    /// Makes an object.
    fn make<'a>(&'a self, of: &'a Served, object: &'a Value) -> BoxFuture<'a, Result<Written, ClientError>>;

    /// Gives one very object the fields of a patch. Of the lists of Kubernetes' own kinds, elements of one name are merged, so that
    /// what a server has added to a pod stays.
    fn amend<'a>(
        &'a self,
        of: &'a Served,
        key: &'a Key,
        uid: &'a Uid,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<Written, ClientError>>;
}

/// The answer to a list.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The store's revision at that moment.
    pub revision: u64,
    /// Each object as JSON, with `kind` and `apiVersion`.
    pub items: Vec<Bytes>,
}

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
    /// An event that nobody else is told of.
    pub fn new(event_type: EventType, revision: u64, object: Bytes) -> Event {
        Event { event_type, revision, object, reading: Reading::default() }
    }

    /// The object, narrowed to what decisions read.
    pub fn read(&self, kind: Kind) -> Arc<Object> {
        self.reading.get_or_make(|| Object::decode(kind, &self.object))
    }
}

/// An object as it was read by the first of those who are told of one event: reading a pod costs more than most of what
/// is then decided about it. It is not kept from being forgotten once nobody has it any more.
#[derive(Clone, Debug, Default)]
pub struct Reading(Arc<Mutex<Weak<Object>>>);

impl Reading {
    /// Whoever comes while it is being read waits, which takes no longer than to read it as well.
    fn get_or_make(&self, make: impl FnOnce() -> Object) -> Arc<Object> {
        let mut known = self.0.lock();
        known.upgrade().unwrap_or_else(|| {
            let object = Arc::new(make());
            *known = Arc::downgrade(&object);
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

/// What a write led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Where the object is.
    pub key: Key,
    /// Who it is.
    pub uid: Uid,
    /// Its revision after the write.
    pub revision: u64,
}

/// Why a request did not succeed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ClientError {
    /// There is no such object.
    #[error("not found: {0}")]
    NotFound(String),
    /// An object of that name exists.
    #[error("already exists: {0}")]
    AlreadyExists(String),
    /// The object is not what the write was computed from, or is another one of the same name.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The watch can not go on from there: list again.
    #[error("expired: {0}")]
    Expired(String),
    /// The server will not take this, now or later, unless something else changes.
    #[error("refused ({code}): {message}")]
    Refused {
        /// HTTP status.
        code: u16,
        /// The server's words.
        message: String,
    },
    /// The server has too much to do.
    #[error("too many requests: {message}")]
    Busy {
        /// The server's words.
        message: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// No answer, or a server error: the write may or may not have been made.
    #[error("outcome unknown: {0}")]
    Unknown(String),
}

impl ClientError {
    /// What a server's refusal means: its HTTP status, the one word for the reason, and its words.
    pub fn of_status(code: u16, reason: &str, message: String, retry_after: Option<Duration>) -> ClientError {
        match (code, reason) {
            (404, _) => ClientError::NotFound(message),
            (409, "AlreadyExists") => ClientError::AlreadyExists(message),
            (409, _) => ClientError::Conflict(message),
            (410, _) => ClientError::Expired(message),
            (429, _) => ClientError::Busy { message, retry_after },
            (400..500, _) => ClientError::Refused { code, message },
            _ => ClientError::Unknown(message),
        }
    }

    /// Whether it is refused because its namespace is going, which takes nothing new any more. Kubernetes tells the cause apart
    /// by these words and by a detail that not every answer has.
    pub fn is_of_a_namespace_that_goes(&self) -> bool {
        matches!(self, ClientError::Refused { message, .. } if message.ends_with("because it is being terminated"))
    }

    /// A stable word for metrics and logs.
    pub fn label(&self) -> &'static str {
        match self {
            ClientError::NotFound(_) => "not_found",
            ClientError::AlreadyExists(_) => "already_exists",
            ClientError::Conflict(_) => "conflict",
            ClientError::Expired(_) => "expired",
            ClientError::Refused { .. } => "refused",
            ClientError::Busy { .. } => "busy",
            ClientError::Unknown(_) => "unknown",
        }
    }
}
