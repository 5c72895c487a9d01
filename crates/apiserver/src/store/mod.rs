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

mod backend;
mod copy;
mod disk;
mod entry;
mod event;
mod head;
mod history;
mod open;
mod overlay;
mod reserve;
mod sequencer;
mod snapshot;
mod state;
mod text;
mod watch;
mod write;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use krafla_api::{Key, Uid};
use parking_lot::Mutex;

pub use copy::{CopyError, CopyHead};
pub use entry::{Entry, EntryMeta, OwnerMark, ResourceId};
pub use event::{EventType, StoredEvent, watch_line};
pub use open::{DirectoryLock, OpenError};
pub use snapshot::{Entries, Snapshot};
pub use watch::{Expired, Watcher};
pub use write::{Change, CommitError, Draft, Expect, Write};

use disk::{Contents, Disk};
use history::Retention;
use sequencer::{Refused, Sequencer, Submitted, Work};
use state::{FIRST_REVISION, State};

/// Every object of the embedded server. Clones share it; the last one to go closes it.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

/// What the next write of an object will meet.
#[derive(Clone, Debug)]
pub(crate) struct Newest {
    /// The object, if it exists.
    pub(crate) entry: Option<Arc<Entry>>,
    /// The revision that must be durable before this may be told to anybody.
    pub(crate) revision: u64,
}

#[derive(Debug)]
struct Inner {
    sequencer: Arc<Sequencer>,
    /// Which cluster this is the store of, if it is on disk.
    cluster: Option<Uid>,
    /// The disk's thread, until the store is closed.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// An empty store without a disk. Every write is done when its future is first polled, by whoever polls it: no
    /// thread, no clock, the same answers every time.
    pub fn in_memory() -> Store {
        let state = State::new(FIRST_REVISION, BTreeMap::new(), Retention::BY_COUNT);
        Store::new(Arc::new(Sequencer::in_memory(state)), None, None)
    }

    /// An independent store without a disk that begins with everything visible here. It takes no time: the two share what
    /// neither has changed.
    pub fn fork(&self) -> Store {
        let state = State::clone(&self.inner.sequencer.visible());
        Store::new(Arc::new(Sequencer::in_memory(state)), None, None)
    }

    /// The store in a directory, which is made if it is missing. One process may have it open at a time.
    pub fn open(dir: &Path) -> Result<Store, OpenError> {
        let (lock, disk, contents) = open::open(dir)?;
        Store::on_disk(disk, contents, Some(lock))
            .map_err(|source| OpenError::Io { path: dir.to_owned(), source })
    }

    fn on_disk(disk: Disk, contents: Contents, lock: Option<DirectoryLock>) -> std::io::Result<Store> {
        let cluster = Some(contents.cluster);
        let state = State::new(contents.revision, contents.objects, Retention::BY_AGE);
        let sequencer = Arc::new(Sequencer::on_disk(state));
        sequencer.set_full(disk.is_full());
        let served = Arc::clone(&sequencer);
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || {
            let served = std::panic::catch_unwind(AssertUnwindSafe(|| serve_disk(&served, disk)));
            if served.is_err() {
                backend::give_up("its thread panicked");
            }
            drop(lock);
        })?;
        Ok(Store::new(sequencer, cluster, Some(thread)))
    }

    fn new(sequencer: Arc<Sequencer>, cluster: Option<Uid>, thread: Option<JoinHandle<()>>) -> Store {
        Store { inner: Arc::new(Inner { sequencer, cluster, thread: Mutex::new(thread) }) }
    }

    /// Which cluster this is the store of, from its beginning to its end. A store without a disk has no such name.
    pub fn cluster(&self) -> Option<&Uid> {
        self.inner.cluster.as_ref()
    }

    /// Whether its disk is full: then it takes only deletes.
    pub fn is_full(&self) -> bool {
        self.inner.sequencer.is_full()
    }

    /// Whether nothing was ever written to it.
    pub fn is_new(&self) -> bool {
        self.revision() == FIRST_REVISION
    }

    /// The newest visible revision.
    pub fn revision(&self) -> u64 {
        self.inner.sequencer.visible().revision()
    }

    /// One object.
    pub fn get(&self, resource: &ResourceId, key: &Key) -> Option<Arc<Entry>> {
        self.inner.sequencer.visible().get(resource, key).cloned()
    }

    /// All objects of a resource.
    pub fn snapshot(&self, resource: &ResourceId) -> Snapshot {
        self.inner.sequencer.visible().snapshot(resource)
    }

    /// All objects of a resource as they will be when everything accepted is durable. It is no answer to a reader; it
    /// tells a writer what the next write will meet.
    pub(crate) fn newest_snapshot(&self, resource: &ResourceId) -> Snapshot {
        self.inner.sequencer.newest_snapshot(resource)
    }

    /// One object as the next write will meet it, durable or not. An answer that is made from it without a write must wait
    /// for [`Store::durable`].
    pub(crate) fn newest(&self, resource: &ResourceId, key: &Key) -> Newest {
        let (entry, revision) = self.inner.sequencer.newest(resource, key);
        let revision = entry.as_ref().map_or(revision, |entry| entry.revision);
        Newest { entry, revision }
    }

    /// Waits until everything up to a revision that was accepted is durable.
    pub(crate) async fn durable(&self, revision: u64) -> Result<(), CommitError> {
        self.inner.sequencer.durable(revision).await
    }

    /// All objects of a resource as they were at a revision, unless that is forgotten or yet to come. It is forgotten
    /// when a watch from there would be.
    pub fn snapshot_at(&self, resource: &ResourceId, revision: u64) -> Option<Snapshot> {
        self.inner.sequencer.visible().snapshot_at(resource, revision)
    }

    /// Makes a write, and waits until it is durable. Nothing happens until the future is polled; once it has been, the
    /// write goes on even if the future is dropped. A refusal also waits, until the change that caused it is durable.
    /// Otherwise a crash could undo that change after the answer, and a read after the answer could miss it.
    pub fn commit(
        &self,
        write: Write,
    ) -> impl Future<Output = Result<Arc<Entry>, CommitError>> + Send + 'static {
        let sequencer = Arc::clone(&self.inner.sequencer);
        async move {
            match sequencer.submit(write) {
                Ok(Submitted::Done(entry)) => Ok(entry),
                Ok(Submitted::Waiting(outcome)) => outcome.await.unwrap_or(Err(CommitError::Closed)),
                Err(Refused { error, depends_on }) => {
                    sequencer.durable(depends_on).await?;
                    Err(error)
                }
            }
        }
    }

    /// The events of a resource after a revision.
    pub fn watch(&self, resource: &ResourceId, after: u64) -> Result<Watcher, Expired> {
        Watcher::new(Arc::clone(&self.inner.sequencer), resource.clone(), after)
    }

    fn sequencer(&self) -> Arc<Sequencer> {
        Arc::clone(&self.inner.sequencer)
    }

    /// Waits until something has happened after a revision, to whatever resource.
    pub async fn changed_after(&self, revision: u64) {
        self.inner.sequencer.changed_after(revision).await;
    }

    /// Makes all accepted writes durable, and gives the directory free. Reads go on; writes do not.
    pub fn close(&self) {
        self.inner.close();
    }
}

impl Inner {
    fn close(&self) {
        self.sequencer.close();
        if let Some(thread) = self.thread.lock().take() {
            // The thread ends in no other way than by returning.
            let _returned = thread.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

/// Makes batches durable, one after the other, until the store is closed.
fn serve_disk(sequencer: &Sequencer, mut disk: Disk) {
    loop {
        disk.look_for_room();
        sequencer.set_full(disk.is_full());
        match sequencer.next_work() {
            Work::Write(batch) => match disk.write(&batch) {
                Ok(()) => {
                    sequencer.set_full(disk.is_full());
                    sequencer.publish(batch);
                }
                Err(error) => {
                    tracing::error!(%error, "the store could not write");
                    sequencer.set_full(disk.is_full());
                    let is_full = error.is_no_space();
                    let failed = || CommitError::Failed(error.to_string());
                    sequencer.take_back(batch, &if is_full { CommitError::NoSpace } else { failed() });
                }
            },
            Work::Forget => sequencer.forget(),
            Work::Stop => return disk.close(sequencer.visible().revision()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
