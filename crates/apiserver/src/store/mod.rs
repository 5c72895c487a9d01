//! The store: every object of the embedded server, in memory as bytes, on disk in one file.
//!
//! ```text
//!   request tasks                          one at a time            the disk's thread
//!   serialise a Draft  --- commit() --->   check the expectation    write the batch, fdatasync
//!                                          next revision            publish, tell the writers
//!                                          append to the batch
//!
//!   State  = revision, objects, recent events: one immutable value, cloned in no time
//!   newest   the state after the last accepted write
//!   visible  the state after the last durable one: what readers and watchers see
//! ```
//!
//! While one batch is being synced the next one fills, so a lone writer waits for one sync and a crowd shares it.
//! Nothing is visible before it is durable: no crash can take back what a controller has acted upon. The disk holds
//! the objects and no history, so after a restart every older revision is expired.

mod entry;
mod event;
mod snapshot;
mod watch;
mod write;

use std::path::Path;
use std::sync::Arc;

use krafla_api::Key;

pub use entry::{Entry, EntryMeta, OwnerMark, Pairs, ResourceId};
pub use event::{EventType, StoredEvent, watch_line};
pub use snapshot::{Entries, Snapshot};
pub use watch::{Expired, Watcher};
pub use write::{Change, CommitError, Draft, Expect, Write};

/// Every object of the embedded server. Clones share it.
#[derive(Clone, Debug)]
pub struct Store;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open")]
pub struct OpenError;

#[allow(unused_variables, clippy::todo)]
impl Store {
    /// An empty store without a disk. Every write is done when its future is first polled, in that thread.
    pub fn in_memory() -> Store {
        todo!()
    }

    /// The store in a directory, which is made if it is missing. One process may have it open at a time.
    pub fn open(dir: &Path) -> Result<Store, OpenError> {
        todo!()
    }

    /// The newest visible revision.
    pub fn revision(&self) -> u64 {
        todo!()
    }

    /// One object.
    pub fn get(&self, resource: &ResourceId, key: &Key) -> Option<Arc<Entry>> {
        todo!()
    }

    /// All objects of a resource.
    pub fn snapshot(&self, resource: &ResourceId) -> Snapshot {
        todo!()
    }

    /// All objects of a resource as they were at a revision, unless that is forgotten.
    pub fn snapshot_at(&self, resource: &ResourceId, revision: u64) -> Option<Snapshot> {
        todo!()
    }

    /// Makes a write, and waits until it is durable. Nothing happens until the future is polled; once it has been, the
    /// write goes on even if the future is dropped.
    pub fn commit(&self, write: Write) -> impl Future<Output = Result<Arc<Entry>, CommitError>> + Send + 'static {
        async move { todo!() }
    }

    /// The events of a resource after a revision.
    pub fn watch(&self, resource: &ResourceId, after: u64) -> Result<Watcher, Expired> {
        todo!()
    }

    /// Makes all accepted writes durable, and gives the directory free. Reads go on; writes do not.
    pub fn close(&self) {
        todo!()
    }
}
