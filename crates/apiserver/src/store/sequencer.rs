//! The order of all writes: who comes first, what is accepted, and when it becomes visible.
//!
//! ```text
//!   submit --> newest, batch      accepted, in order, not yet durable
//!                  |
//!              next_batch         taken by the disk's thread; the next batch starts to fill
//!                  |
//!              publish            durable: visible, watchers woken, writers told
//!              take_back          not written: newest is what is visible again, writers told
//! ```
//!
//! It does no I/O and starts no thread. Without a disk, a batch is one write and is published as soon as it is accepted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use krafla_api::Key;
use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};

use super::entry::{Entry, ResourceId};
use super::event::StoredEvent;
use super::snapshot::Snapshot;
use super::state::State;
use super::write::{CommitError, Write};

/// Writes that wait for the disk may hold this many bytes of objects; beyond it the disk is not keeping up.
const WAITING_BYTES_MAX: usize = 256 << 20;

/// The order of all writes.
#[derive(Debug)]
pub(super) struct Sequencer {
    /// What readers and watchers see.
    visible: ArcSwap<State>,
    pending: Mutex<Pending>,
    /// Rung when the batch is no longer empty, and on closing.
    work: Condvar,
    bells: Bells,
    home: Home,
    /// Whether the disk has room for deletes alone.
    is_full: AtomicBool,
}

/// Where accepted writes go.
#[derive(Debug)]
enum Home {
    /// Nowhere: they are visible at once, and no time passes.
    Memory,
    /// To a thread that makes them durable. Time is counted from the start.
    Disk { started_at: Instant },
}

/// What is accepted, but not yet visible.
#[derive(Debug)]
struct Pending {
    /// The state after the last accepted write.
    newest: State,
    batch: Vec<Accepted>,
    batch_bytes: usize,
    is_closed: bool,
}

/// One accepted write.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) resource: ResourceId,
    pub(super) event: Arc<StoredEvent>,
    outcome: Option<oneshot::Sender<Outcome>>,
}

/// Accepted writes in their order, and the state after the last of them.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) writes: Vec<Accepted>,
    pub(super) state: State,
}

/// What became of a write.
pub(super) type Outcome = Result<Arc<Entry>, CommitError>;

/// The answer to a write that was accepted.
pub(super) enum Submitted {
    /// It is done.
    Done(Arc<Entry>),
    /// It will be told.
    Waiting(oneshot::Receiver<Outcome>),
}

/// Why a write was not accepted.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) error: CommitError,
    /// The revision that must be durable before the error is returned: another write caused the error. 0 if no stored
    /// object caused it.
    pub(super) depends_on: u64,
}

impl From<CommitError> for Refused {
    fn from(error: CommitError) -> Refused {
        Refused { error, depends_on: 0 }
    }
}

/// What the disk's thread should do.
#[derive(Debug)]
pub(super) enum Work {
    /// Make these writes durable.
    Write(Batch),
    /// Nothing is to be written; forget what has become old.
    Forget,
    /// The store is closed, and everything accepted is durable.
    Stop,
}

impl Sequencer {
    /// For a store without a disk.
    pub(super) fn in_memory(state: State) -> Sequencer {
        Sequencer::new(state, Home::Memory)
    }

    /// For a store whose disk is served by a thread that takes [`Sequencer::next_work`].
    pub(super) fn on_disk(state: State) -> Sequencer {
        Sequencer::new(state, Home::Disk { started_at: Instant::now() })
    }

    fn new(state: State, home: Home) -> Sequencer {
        let pending = Pending { newest: state.clone(), batch: Vec::new(), batch_bytes: 0, is_closed: false };
        Sequencer {
            visible: ArcSwap::from_pointee(state),
            pending: Mutex::new(pending),
            work: Condvar::new(),
            bells: Bells::default(),
            home,
            is_full: AtomicBool::new(false),
        }
    }

    /// What readers and watchers see now.
    pub(super) fn visible(&self) -> arc_swap::Guard<Arc<State>> {
        self.visible.load()
    }

    /// The objects of a resource after the last accepted write.
    pub(super) fn newest_snapshot(&self, resource: &ResourceId) -> Snapshot {
        self.pending.lock().newest.snapshot(resource)
    }

    /// One object after the last accepted write, and the revision of that write.
    pub(super) fn newest(&self, resource: &ResourceId, key: &Key) -> (Option<Arc<Entry>>, u64) {
        let pending = self.pending.lock();
        (pending.newest.get(resource, key).cloned(), pending.newest.revision())
    }

    /// Waits until everything up to an accepted revision is durable; fails if the disk did not take it.
    pub(super) async fn durable(&self, revision: u64) -> Result<(), CommitError> {
        loop {
            let rung = self.bells.of_all.notified();
            if self.visible.load().revision() >= revision {
                return Ok(());
            }
            if self.pending.lock().newest.revision() < revision {
                return Err(CommitError::Failed("the disk did not take what this depends on".to_owned()));
            }
            rung.await;
        }
    }

    /// What is rung after something has happened to a resource.
    pub(super) fn bell(&self, resource: &ResourceId) -> Arc<Notify> {
        self.bells.of(resource)
    }

    /// Waits until something has happened after a revision, whatever it is.
    pub(super) async fn changed_after(&self, revision: u64) {
        loop {
            // Listen first and look then: what happens in between rings the bell.
            let rung = self.bells.of_all.notified();
            if self.visible.load().revision() > revision {
                return;
            }
            rung.await;
        }
    }

    /// Accepts a write, or says why not.
    pub(super) fn submit(&self, write: Write) -> Result<Submitted, Refused> {
        let mut pending = self.pending.lock();
        if pending.is_closed {
            return Err(CommitError::Closed.into());
        }
        if pending.batch_bytes > WAITING_BYTES_MAX {
            let error = "too many writes wait for the disk; try again later".to_owned();
            return Err(CommitError::Failed(error).into());
        }
        // Before the check for room: on a full disk a start still finds its standard objects.
        if let Err(error) = pending.newest.check(&write) {
            let current = pending.newest.get(&write.resource, &write.key);
            let depends_on = current.map_or(pending.newest.revision(), |entry| entry.revision);
            return Err(Refused { error, depends_on });
        }
        if self.is_full() && !write.is_deletion() {
            return Err(CommitError::NoSpace.into());
        }
        let resource = write.resource.clone();
        let event = pending.newest.apply(write, self.now())?;
        match self.home {
            Home::Memory => {
                let entry = Arc::clone(&event.entry);
                let accepted = Accepted { resource, event, outcome: None };
                // Still under the lock, so that revisions become visible in their order.
                self.publish(Batch { writes: vec![accepted], state: pending.newest.clone() });
                Ok(Submitted::Done(entry))
            }
            Home::Disk { .. } => {
                let (sender, receiver) = oneshot::channel();
                pending.batch_bytes += event.entry.bytes.len();
                pending.batch.push(Accepted { resource, event, outcome: Some(sender) });
                self.work.notify_one();
                Ok(Submitted::Waiting(receiver))
            }
        }
    }

    /// Waits for something to do. There is no timer between a write and its batch: the sync of the batch before it is
    /// the timer.
    pub(super) fn next_work(&self) -> Work {
        let mut pending = self.pending.lock();
        while pending.batch.is_empty() && !pending.is_closed {
            let at_most = if self.is_full() {
                Some(LOOK_FOR_ROOM_EVERY)
            } else {
                pending.newest.is_ageing().then_some(FORGET_EVERY)
            };
            match at_most {
                None => self.work.wait(&mut pending),
                Some(at_most) if self.work.wait_for(&mut pending, at_most).timed_out() => {
                    return Work::Forget;
                }
                Some(_) => {}
            }
        }
        if pending.batch.is_empty() {
            return Work::Stop;
        }
        pending.batch_bytes = 0;
        Work::Write(Batch { writes: std::mem::take(&mut pending.batch), state: pending.newest.clone() })
    }

    /// A batch is durable.
    pub(super) fn publish(&self, batch: Batch) {
        let Batch { writes, state } = batch;
        self.visible.store(Arc::new(state));
        self.bells.ring(&writes);
        for Accepted { event, outcome, .. } in writes {
            // Whoever asked may have gone; the write stays.
            outcome.map(|outcome| outcome.send(Ok(Arc::clone(&event.entry))));
        }
    }

    /// A batch could not be written. What was accepted after it was computed from it, so it goes too.
    pub(super) fn take_back(&self, batch: Batch, reason: &CommitError) {
        let mut pending = self.pending.lock();
        pending.newest = State::clone(&self.visible.load());
        pending.batch_bytes = 0;
        let later = std::mem::take(&mut pending.batch);
        for Accepted { outcome, .. } in batch.writes.into_iter().chain(later) {
            outcome.map(|outcome| outcome.send(Err(reason.clone())));
        }
        drop(pending);
        self.bells.of_all.notify_waiters();
    }

    /// Whether the disk has room for deletes alone.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    pub(super) fn set_full(&self, is_full: bool) {
        if self.is_full.swap(is_full, Ordering::AcqRel) != is_full {
            match is_full {
                true => tracing::error!("no space left on the disk of the store: it takes only deletes"),
                false => tracing::warn!("the disk of the store has room again"),
            }
        }
    }

    /// Forgets the events that have become too old, when no write does it.
    pub(super) fn forget(&self) {
        let mut pending = self.pending.lock();
        pending.newest.forget(self.now());
        if pending.batch.is_empty() {
            self.visible.store(Arc::new(pending.newest.clone()));
        }
    }

    /// Accepts no more writes.
    pub(super) fn close(&self) {
        self.pending.lock().is_closed = true;
        self.work.notify_one();
    }

    fn now(&self) -> Duration {
        match self.home {
            Home::Memory => Duration::ZERO,
            Home::Disk { started_at } => started_at.elapsed(),
        }
    }
}

/// How often an idle store looks for old events.
const FORGET_EVERY: Duration = Duration::from_secs(30);

/// How often a full disk is looked at, when no delete does it.
const LOOK_FOR_ROOM_EVERY: Duration = Duration::from_secs(1);

/// One bell per watched resource, so that a write wakes only those who watch its resource, and one for those who watch
/// everything.
#[derive(Debug, Default)]
struct Bells {
    of_each: Mutex<BTreeMap<ResourceId, Arc<Notify>>>,
    of_all: Notify,
}

impl Bells {
    fn of(&self, resource: &ResourceId) -> Arc<Notify> {
        Arc::clone(self.of_each.lock().entry(resource.clone()).or_default())
    }

    fn ring(&self, writes: &[Accepted]) {
        let bells = self.of_each.lock();
        let mut rung: Vec<&ResourceId> = Vec::new();
        for Accepted { resource, .. } in writes {
            if rung.contains(&resource) {
                continue;
            }
            rung.push(resource);
            if let Some(bell) = bells.get(resource) {
                bell.notify_waiters();
            }
        }
        self.of_all.notify_waiters();
    }
}
