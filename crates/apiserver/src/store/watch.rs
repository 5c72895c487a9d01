//! A place in the history of a resource, from which its events are pulled.

use std::sync::Arc;

use tokio::sync::Notify;

use super::Store;
use super::entry::ResourceId;
use super::event::StoredEvent;
use super::sequencer::Sequencer;

/// A place in the history of a resource. It holds nothing and stops nobody: the store forgets old events whether or not
/// somebody still wants to see them.
#[derive(Debug)]
pub struct Watcher {
    sequencer: Arc<Sequencer>,
    resource: ResourceId,
    bell: Arc<Notify>,
    /// Everything up to here has been seen.
    position: u64,
}

/// The events asked for are forgotten: list again, and watch from there.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("too old resource version: {asked} ({oldest})")]
pub struct Expired {
    /// After which revision events were asked for.
    pub asked: u64,
    /// The oldest revision after which all events are known.
    pub oldest: u64,
}

impl Watcher {
    pub(super) fn new(
        sequencer: Arc<Sequencer>,
        resource: ResourceId,
        after: u64,
    ) -> Result<Watcher, Expired> {
        sequencer.visible().first_event_after(&resource, after)?;
        let bell = sequencer.bell(&resource);
        Ok(Watcher { sequencer, resource, bell, position: after })
    }

    /// The same place in the history of another store, which was forked from this watcher's and has the same past.
    pub fn in_fork(&self, fork: &Store) -> Watcher {
        let sequencer = fork.sequencer();
        let bell = sequencer.bell(&self.resource);
        Watcher { sequencer, resource: self.resource.clone(), bell, position: self.position }
    }

    /// The next event, if it has happened.
    pub fn try_next(&mut self) -> Option<Result<Arc<StoredEvent>, Expired>> {
        let visible = self.sequencer.visible();
        match visible.first_event_after(&self.resource, self.position) {
            Ok(Some(event)) => {
                self.position = event.revision;
                Some(Ok(Arc::clone(event)))
            }
            Ok(None) => {
                self.position = self.position.max(visible.revision());
                None
            }
            Err(expired) => Some(Err(expired)),
        }
    }

    /// The next event, when it happens. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Arc<StoredEvent>, Expired> {
        loop {
            // Listen first and look then: what happens in between rings the bell.
            let bell = Arc::clone(&self.bell);
            let rung = bell.notified();
            if let Some(event) = self.try_next() {
                return event;
            }
            rung.await;
        }
    }

    /// Up to which revision this watcher has seen everything. It advances with the store even when nothing happens to
    /// this resource, so it is what a bookmark says.
    pub fn revision(&self) -> u64 {
        let visible = self.sequencer.visible();
        match visible.first_event_after(&self.resource, self.position) {
            Ok(None) => self.position.max(visible.revision()),
            Ok(Some(_)) | Err(_) => self.position,
        }
    }
}
